import { leaseSeconds } from '#gateway/retry-times.ts';
import { findMerchant } from '#merchants/merchant.sql.ts';
import { newLease } from '#platform/database/due-work.sql.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import { writeDate } from '#platform/shared/words/write-date.ts';
import { findCheckoutMerchant, lockCheckout } from '#purchases/checkouts/checkout.sql.ts';
import { OperatorError, operate } from '#record/actions/operate.ts';
import { type CollectDeps, collectInstalments } from './collect-instalments.ts';
import { listCardDeclines } from './collection.sql.ts';
import { findInstalment, listStoredCards, moveRetried } from './instalment.sql.ts';
import {
  declinesPerDayMax,
  findForbidding,
  type Instalment,
  retryDays,
  waitsUntil,
} from './instalment.ts';

/** Retries an overdue payment at once, for an operator. A decline leaves it overdue. */
export async function retryInstalment(
  deps: CollectDeps,
  operator: string,
  id: string,
): Promise<Instalment> {
  const [checkout_id = '', digits = ''] = id.split(':');
  const number = /^[1-9]\d{0,2}$/.test(digits) ? Number(digits) : 0;
  const { db } = deps.database;
  const merchant_id = isUuid(checkout_id) ? await findCheckoutMerchant(db, checkout_id) : null;
  const merchant = merchant_id && (await findMerchant(db, deps.clock, merchant_id));
  const key = { merchant_id: merchant_id ?? '', checkout_id: checkout_id.toLowerCase() };
  if (!merchant || !(await findInstalment(db, key, number))) {
    throw new OperatorError(
      `There is no payment ${id}. A payment's ID is the checkout's ID and its number: CHECKOUT_ID:2.`,
    );
  }
  const claimed = await operate(deps, operator, 'instalments retry', async (tx) => {
    await lockCheckout(tx, key.merchant_id, key.checkout_id);
    const { now: _, ...lease } = newLease(deps, leaseSeconds);
    const at = timestamp(merchant.now());
    // This is the count before the last automatic retry: one more decline makes the payment overdue
    // again.
    const to = { ...lease, at, declines: retryDays.length };
    const payment = await moveRetried(tx, { ...key, number }, to);
    if (!payment) {
      const current = await findInstalment(tx, key, number);
      throw new OperatorError(
        current?.status === 'overdue'
          ? `${current.shopper_attempt === null ? 'A refund, a dispute or a difference at the gateway pauses this checkout' : 'The shopper is paying it now'}. Look again when it has ended.`
          : `Payment ${id} is ${current?.status}: only an overdue payment can be retried.`,
      );
    }
    const [card] = await listStoredCards(tx, key.merchant_id, [key.checkout_id]);
    if (!card) {
      throw new OperatorError(
        `No card is stored for payment ${id}: it was once-off, and only the shopper can pay it.`,
      );
    }
    const declines = await listCardDeclines(tx, key.merchant_id, [key.checkout_id], merchant.now());
    const forbidding = findForbidding(declines, card, [number], merchant.now());
    if (forbidding) throw new OperatorError(explainForbidden(id, forbidding));
    const until = waitsUntil(declines, card, merchant.now());
    if (until !== null) {
      throw new OperatorError(
        `${explainWait(until, merchant.territory.time_zone)} The shopper can pay payment ${id} on the plan page.`,
      );
    }
    const { merchant_id, checkout_id: subject_id } = key;
    return { subject_id, merchant_id, details: { instalment: number }, result: payment };
  });
  await collectInstalments(deps, merchant, [claimed]);
  return (await findInstalment(db, key, number)) as Instalment;
}

export function explainWait(until: Temporal.Instant, time_zone: string): string {
  const local = until.toZonedDateTimeISO(time_zone);
  const day = writeDate(local.toPlainDate().toString(), 'en');
  return `The card network asks us to wait until ${day} at ${local.toPlainTime().toString().slice(0, 5)} before it is asked again.`;
}

function explainForbidden(
  id: string,
  { decline, isForGood }: NonNullable<ReturnType<typeof findForbidding>>,
): string {
  return isForGood
    ? `The bank declined this card (${decline.decline_reason}) and forbids charging it again. The shopper can pay payment ${id} with another card on the plan page.`
    : `Payment ${id} was declined ${declinesPerDayMax} times within a day. Try again tomorrow, or ask the shopper to pay it with another card on the plan page.`;
}
