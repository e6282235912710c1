import type { Checkout } from '../checkouts/checkout.ts';
import type { Database } from '../database/database.ts';
import { transaction } from '../database/transaction.ts';
import { raiseAlert } from '../operators/raise-alert.ts';
import type { Clock } from '../shared/clock.ts';
import type { Logger } from '../shared/logger.ts';
import { oneLine } from '../shared/plain-text.ts';
import type { Random } from '../shared/random.ts';

export const problemCharactersMax = 1_000;

/** "Something is wrong": what the shopper wrote becomes an alert with the plan's id. */
export async function reportProblem(
  deps: { database: Database; clock: Clock; random: Random; log: Logger },
  { merchant_id, id }: Pick<Checkout, 'merchant_id' | 'id'>,
  text: string,
): Promise<void> {
  // After a COMMIT of unknown fate this may raise a second alert, which is better than none.
  await transaction(deps, async ({ db }) => {
    await raiseAlert(deps, db, {
      kind: 'shopper_report',
      merchant_id,
      subject_id: id,
      isPrivate: true,
      detail: `The shopper of checkout ${id} says: ${oneLine(text).slice(0, problemCharactersMax)}`,
    });
  });
}
