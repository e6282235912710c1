import type { GatewayName } from '#gateway/gateway-name.ts';
import type { Gateways } from '#gateway/gateways.ts';
import type { Database } from '#platform/database/database.ts';
import type { Clock } from '#platform/shared/clock.ts';
import type { Logger } from '#platform/shared/logger.ts';
import type { Random } from '#platform/shared/random.ts';
import { findAlertThatStarts } from '#record/alerts/alert.sql.ts';
import { raiseAlert } from '#record/alerts/raise-alert.ts';
import { listUsedGateways } from './gateway-heartbeat.sql.ts';

/**
 * Raises an alert for each gateway that this database has used but that is missing from the
 * settings. Its rows stay due, and every attempt at them fails with the same message. Returns the
 * names.
 */
export async function reportMissingGateways(deps: {
  database: Database;
  clock: Clock;
  random: Random;
  log: Logger;
  gateways: Pick<Gateways, 'names'>;
}): Promise<GatewayName[]> {
  const { db } = deps.database;
  const used = await listUsedGateways(db);
  const missing = used.filter(({ gateway }) => !deps.gateways.names.includes(gateway));
  for (const { gateway, heartbeat_at: since } of missing) {
    const start = `The settings have no gateway ${gateway}, which this service has used.`;
    deps.log.error({ gateway }, 'the settings lack a gateway that was used');
    const kind = 'gateway_without_settings';
    // If an operator has closed the alert, no new one is raised until the gateway has been back in
    // the settings.
    if ((await findAlertThatStarts(db, kind, [start], { isOpen: false, since })) !== null) continue;
    const detail = `${start} Its payments, refunds and disputes wait. Put its settings back.`;
    await raiseAlert(deps, db, { kind, detail });
  }
  return missing.map(({ gateway }) => gateway);
}
