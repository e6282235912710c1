import type { Database } from '#platform/database/database.ts';
import { transaction } from '#platform/database/transaction.ts';
import type { Clock } from '#platform/shared/clock.ts';
import type { Logger } from '#platform/shared/logger.ts';
import { oneLine } from '#platform/shared/plain-text.ts';
import type { Random } from '#platform/shared/random.ts';
import type { Checkout } from '#purchases/checkouts/checkout.ts';
import { raiseAlert } from '#record/alerts/raise-alert.ts';

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
