import type { Handle } from '../database/database.ts';
import { OperatorError } from '../operators/operate.ts';
import { isUuid } from '../shared/uuid.ts';
import { lockIntegrations } from './integration.sql.ts';
import type { Integration } from './integration.ts';

/** One operator's change of an integration waits for another's. */
export async function lockIntegration(db: Handle, id: string): Promise<Integration> {
  const [integration] = isUuid(id) ? await lockIntegrations(db, [id]) : [];
  if (!integration) throw new OperatorError(`There is no integration ${id}.`);
  return integration;
}

/** The same for changes that mean nothing once the integration was revoked. */
export async function lockLiveIntegration(db: Handle, id: string): Promise<Integration> {
  const integration = await lockIntegration(db, id);
  if (integration.revoked_at !== null) {
    throw new OperatorError(
      `The integration ${id} was revoked at ${integration.revoked_at}, for good. Create a new one with \`tranche integrations create\`.`,
    );
  }
  return integration;
}
