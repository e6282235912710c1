import type { Handle } from '#platform/database/database.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import { OperatorError } from '#record/actions/operate.ts';
import { lockIntegrations } from './integration.sql.ts';
import type { Integration } from './integration.ts';

/** Locks an integration, so that concurrent changes by operators wait for each other. */
export async function lockIntegration(db: Handle, id: string): Promise<Integration> {
  const [integration] = isUuid(id) ? await lockIntegrations(db, [id]) : [];
  if (!integration) throw new OperatorError(`There is no integration ${id}.`);
  return integration;
}

/**
 * Like `lockIntegration`, but refuses a revoked integration, because such changes would be
 * pointless.
 */
export async function lockLiveIntegration(db: Handle, id: string): Promise<Integration> {
  const integration = await lockIntegration(db, id);
  if (integration.revoked_at !== null) {
    throw new OperatorError(
      `The integration ${id} was revoked permanently at ${integration.revoked_at}. Create a new one instead.`,
    );
  }
  return integration;
}
