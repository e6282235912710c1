import { derivedId } from '#platform/shared/derived-id.ts';
import { showMoney } from '#platform/shared/money.ts';
import { lockCheckout } from '#purchases/checkouts/checkout.sql.ts';
import { endPause, mustFindDispute } from '#purchases/disputes/answer-dispute.ts';
import type { Dispute } from '#purchases/disputes/dispute.ts';
import { listInstalments } from '#purchases/instalments/instalment.sql.ts';
import { OperatorError, operate } from '#record/actions/operate.ts';
import { countFailedRests } from './refund.sql.ts';
import type { RefundRequest } from './refund.ts';
import { requestRefund } from './request-refund.ts';
import type { ReviewDeps } from './review-refund.ts';

/**
 * Cancels the rest of the plan after a lost dispute, for an operator. This is a refund of what was
 * not collected, so nothing returns to the card, and the refund fails if another one has taken some
 * of that in the meantime. Above the merchant's threshold another person has to approve it, and the
 * plan stays paused until then. A repeated call continues with the same refund, or requests a new
 * one if the refund was declined or has failed.
 */
export async function cancelRest(
  deps: ReviewDeps,
  operator: string,
  text: string,
): Promise<{ dispute: Dispute; refund: RefundRequest | null }> {
  const { db: database } = deps.database;
  const { dispute, merchant } = await mustFindDispute(database, text);
  const { id, merchant_id, checkout_id, status, currency } = dispute;
  const key = { merchant_id, checkout_id };
  if (status !== 'lost') {
    throw new OperatorError(
      `Dispute ${id} is ${status}: the rest of the plan can be cancelled only after a loss.`,
    );
  }
  const amount = await sumRest(database, key);
  if (amount > 0 && !dispute.is_pausing) {
    const money = showMoney(amount, { currency, locale: merchant.territory.locale });
    throw new OperatorError(
      `An operator has decided that the rest of the plan stays due. To cancel it after all, refund ${money}.`,
    );
  }
  const refund =
    amount === 0
      ? null
      : await requestRefund(deps, operator, {
          request_id: derivedId(
            'rest of a disputed plan',
            id,
            amount,
            await countFailedRests(database, key),
          ),
          checkout_id,
          amount,
          reason: null,
          uncollected_only: true,
        });
  return await operate(deps, operator, 'disputes rest', async (db) => {
    await lockCheckout(db, merchant_id, checkout_id);
    const isDone = (await sumRest(db, key)) === 0;
    const { dispute: current } = await mustFindDispute(db, id);
    const moved = isDone ? await endPause(db, current) : current;
    const details = { rest: 'cancelled', amount };
    return { subject_id: id, details, result: { dispute: moved, refund } };
  });
}

/**
 * The sum of the payments that are left to collect. None is in flight, because the dispute pauses
 * the plan.
 */
async function sumRest(
  db: Parameters<typeof listInstalments>[0],
  key: { merchant_id: string; checkout_id: string },
): Promise<number> {
  return (await listInstalments(db, key))
    .filter(({ status }) => status === 'scheduled' || status === 'overdue')
    .reduce((sum, { amount, reduced }) => sum + amount - reduced, 0);
}
