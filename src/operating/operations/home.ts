import { merchantNow } from '#merchants/merchant.ts';
import {
  countWaiting,
  type DaySums,
  listDays,
  type Waiting,
} from '#operating/search/overview.sql.ts';
import { reading } from '#platform/database/transaction.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { readBalance } from './balances.ts';
import type { Home } from './home.schema.ts';
import { findFirstDeadline, findSteps, listEndingKeys, type Steps } from './home.sql.ts';
import { noMerchant } from './merchants.ts';
import { listMerchantNames } from './owner.sql.ts';
import type { Viewer, ViewerDeps } from './viewer.ts';

/** Counting stops here. A higher count is shown as more than this number. */
const countMax = 100;

/**
 * The first page of a merchant's people: what needs their attention today, the sales of a week, the
 * next payout and the steps towards going live. It reads daily sums and indexes of waiting rows,
 * never a whole history.
 */
export async function readHome(
  viewer: Viewer<ViewerDeps & { environment: string }>,
  id: string,
): Promise<Home> {
  const { deps, scope, may } = viewer;
  const found = await reading(deps, async (db) => {
    const merchant = (await listMerchantNames(db, scope, [id])).get(id);
    if (!merchant) return null;
    const own = { merchant_ids: [id] };
    const { name, currency, locale, time_zone, clock_ahead_ms } = merchant;
    const today = merchantNow(deps.clock, merchant).toZonedDateTimeISO(time_zone).toPlainDate();
    const first = today.subtract({ days: 13 });
    const count = (kind: Waiting) => countWaiting(db, own, kind, countMax);
    const [refunds, callbacks, messages, disputes, due_by, keys, days, steps] = await Promise.all([
      may('refunds.read') ? count('refunds_to_review') : null,
      may('callbacks.read') ? count('callbacks_exhausted') : null,
      may('messages.read') ? count('messages_to_answer') : null,
      may('disputes.read') ? count('disputes_to_answer') : null,
      may('disputes.read') ? findFirstDeadline(db, id) : null,
      may('integrations.read') ? listEndingKeys(db, id, timestamp(deps.clock.now())) : null,
      listDays(db, own, { first: first.toString(), last: today.toString() }),
      findSteps(db, id),
    ]);
    const weekBegan = today.subtract({ days: 6 }).toString();
    return {
      ...{ merchant_id: id, merchant_name: name, currency, locale, time_zone, clock_ahead_ms },
      today: today.toString(),
      refunds_to_review: refunds,
      callbacks_exhausted: callbacks,
      messages_to_answer: messages,
      disputes_to_answer: disputes,
      dispute_due_by: due_by,
      ending_keys: keys,
      week: sumDays(days.filter(({ day }) => day >= weekBegan)),
      week_before: sumDays(days.filter(({ day }) => day < weekBegan)),
      go_live: goLiveOf(steps, deps.environment === 'production'),
    };
  });
  if (!found) throw noMerchant(id);
  if (!may('payouts.read')) return { ...found, next_payout: null, unpaid_payouts: null };
  const { next_payout: next, payout_count, sums } = await readBalance(viewer, id);
  return {
    ...found,
    next_payout:
      next !== null && next.amount > 0
        ? { business_on: next.business_on, amount: next.amount }
        : null,
    unpaid_payouts: { count: payout_count, amount: sums.payouts },
  };
}

/** A shop that sells only by link has no server, so the steps for a server do not apply to it. */
function goLiveOf(steps: Steps, isProduction: boolean): Home['go_live'] {
  const ofServer = (isDone: boolean) => (steps.has_no_server ? null : isDone);
  return {
    // Production requires signatures from the first request on, so any checkout proves a signed
    // request.
    signed_request: ofServer(steps.requires_signing && (!isProduction || steps.has_checkouts)),
    callback_delivered: ofServer(steps.callback_delivered),
    refund_requested: steps.refund_requested,
    drill_passed: isProduction ? null : ofServer(steps.drill_passed),
    bank_account: steps.bank_account,
  };
}

const sumDays = (days: DaySums[]): Home['week'] => ({
  sold: days.reduce((sum, { sold }) => sum + sold, 0),
  paid: days.reduce((sum, { paid }) => sum + paid, 0),
});
