import type { Database } from '../database/database.ts';
import { OutcomeUnknown } from '../gateway/gateway.ts';
import type { Merchant } from '../merchants/merchant.ts';
import { type Clock, secondsAfter, timestamp } from '../shared/clock.ts';
import type { Logger } from '../shared/logger.ts';
import type { Random } from '../shared/random.ts';
import { hasAlertSince } from './alert.sql.ts';
import { raiseAlert } from './raise-alert.ts';

/** An outage ends by itself, most often within the hour; a refusal hardly ever does. */
const patientTries = 12;
const refusedTries = 2;
const daySeconds = 24 * 3600;

/**
 * Tells the operator of money that does not move because the gateway does not answer, or says
 * something that nobody expected. Once a day and merchant: an outage is one trouble, not thousands.
 */
export async function tellTrouble(
  deps: { database: Database; clock: Clock; random: Random; log: Logger },
  merchant: Pick<Merchant, 'id'>,
  what: string,
  error: unknown,
  tries: number,
): Promise<void> {
  if (tries < (error instanceof OutcomeUnknown ? patientTries : refusedTries)) return;
  const { db } = deps.database;
  const kind = 'gateway_trouble';
  const since = timestamp(secondsAfter(deps.clock.now(), -daySeconds));
  if (await hasAlertSince(db, kind, merchant.id, since)) return;
  await raiseAlert(deps, db, {
    kind,
    merchant_id: merchant.id,
    detail: `${what} has not been settled in ${tries + 1} tries (${(error as Error).message}). The service goes on trying; look at the gateway, and at its settings here.`,
  });
}
