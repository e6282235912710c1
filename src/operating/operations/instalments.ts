import Type from 'typebox';
import { amountRefused } from '#gateway/amount-refused.ts';
import { merchantNow } from '#merchants/merchant.ts';
import type { Scope } from '#operating/search/scope.sql.ts';
import type { Handle } from '#platform/database/database.ts';
import { reading } from '#platform/database/transaction.ts';
import type { Clock } from '#platform/shared/clock.ts';
import {
  findForbidding,
  type Instalment,
  type InstalmentStatus,
  instalmentId,
  instalmentStatuses,
  waitsUntil,
} from '#purchases/instalments/instalment.ts';
import { explainWait } from '#purchases/instalments/retry-instalment.ts';
import { OverdueQuery, OverdueRow } from './callback.schema.ts';
import { ownerColumns } from './csv.ts';
import {
  type Decline,
  listCards,
  listDeclines,
  listInstalmentsPage,
  listInstalmentsWithin,
  listPauses,
  type Pause,
} from './instalments.sql.ts';
import { oneOf, paging } from './list.schema.ts';
import { defineList, type PageRequest, readList } from './list.ts';
import { findOwners } from './owner.sql.ts';
import { scopeOf, type Viewer } from './viewer.ts';

/**
 * Overdue payments, the longest overdue first, with the facts that decide whether a retry is
 * sensible.
 */
export const overdueList = defineList({
  name: 'overdue',
  permission: 'instalments.read',
  query: OverdueQuery,
  row: OverdueRow,
  read({ deps, ...viewer }, query, page) {
    const scope = scopeOf(viewer, query);
    return readList(
      deps,
      page,
      (db, range) => listInstalmentsPage(db, scope, 'overdue', range),
      (db, rows) => presentOverdue(deps.clock, db, scope, rows),
    );
  },
  columns: [
    ['Due', (row) => row.due_on],
    ['Days late', (row) => row.days_late],
    ...ownerColumns,
    ['Payment', (row) => row.number],
    ['Of', (row) => row.number_of_payments],
    ['Amount', (row) => ({ cents: row.amount })],
    ['Currency', (row) => row.currency],
    ['Reason', (row) => row.reason],
    ['Advice', (row) => row.advice],
    ['Checkout', (row) => row.checkout_id],
  ],
});

/** These payments, if the viewer sees them. */
export const findInstalments = ({ deps, scope }: Viewer, ids: string[]) =>
  reading(deps, (db) => listInstalmentsWithin(db, scope, ids));

export async function presentOverdue(clock: Clock, db: Handle, scope: Scope, rows: Instalment[]) {
  const describe = await findOwners(db, scope, rows);
  const declines = await listDeclines(db, scope, rows);
  const cards = await listCards(db, scope, rows);
  const pauses = await listPauses(
    db,
    scope,
    rows.filter((row) => row.paused),
  );
  return rows.map((row) => {
    const { checkout, merchant, owner } = describe(row);
    const now = merchantNow(clock, merchant);
    const today = now.toZonedDateTimeISO(merchant.time_zone).toPlainDate();
    const decline = lastOf(declines, row);
    const paused_by = pauseOf(row, pauses.get(row.checkout_id));
    const card = cards.get(row.checkout_id);
    const forbidding = card && findForbidding(declines, card, [row.number], now);
    const until = card && waitsUntil(declines, card, now);
    const wait = until ? explainWait(until, merchant.time_zone) : null;
    return {
      ...row,
      ...owner,
      amount: row.amount - row.reduced,
      number_of_payments: checkout.number_of_payments ?? 1,
      days_late: Temporal.PlainDate.from(row.due_on).until(today).days,
      reason: decline?.decline_reason ?? null,
      last_tried_at: decline?.settled_at ?? null,
      paused_by,
      ...adviceOf(card !== undefined, paused_by, forbidding ?? null, wait, decline),
    };
  });
}

type PausedBy = Pause | 'refund' | 'shopper';

/** Why a payment is not collected now, or null. */
function pauseOf({ paused, shopper_attempt }: Instalment, pause?: Pause): PausedBy | null {
  if (!paused) return null;
  return shopper_attempt === null ? (pause ?? 'refund') : 'shopper';
}

const pauseTexts: Record<PausedBy, string> = {
  dispute:
    'A payment of this checkout is disputed. A retry is refused until the dispute has ended.',
  difference:
    'The gateway’s records of this checkout differ from ours. Nothing is charged until an operator has compared them and released the checkout with `tranche gateway release`.',
  refund: 'A refund of this checkout is in progress. A retry is refused until it has ended.',
  shopper: 'The shopper is paying this now.',
};

/** Says whether a retry is sensible or refused for now, and why. */
function adviceOf(
  hasCard: boolean,
  paused_by: PausedBy | null,
  forbidding: ReturnType<typeof findForbidding>,
  wait: string | null,
  decline: Decline | null,
) {
  const advise = (is_retry_sensible: boolean, advice: string, waits = false) => ({
    is_retry_sensible,
    waits,
    advice,
  });
  if (!hasCard) return advise(false, 'No card is stored. Only the shopper can pay this.');
  if (paused_by !== null) return advise(false, pauseTexts[paused_by]);
  if (forbidding?.isForGood) {
    return advise(false, 'The bank forbids charging this card again. The shopper needs another.');
  }
  if (forbidding) {
    const until = 'It was declined too often today. A retry is refused until tomorrow.';
    return advise(false, until, true);
  }
  if (wait !== null) return advise(false, wait, true);
  if (decline?.decline_code === amountRefused.code) {
    return advise(false, 'The gateway does not accept the amount. It would refuse a retry, too.');
  }
  switch (decline?.decline_reason) {
    case 'insufficient_funds':
      return advise(true, 'There was not enough money. A retry after payday may succeed.');
    case 'expired_card':
      return advise(true, 'The card had expired. A retry may succeed if the bank has renewed it.');
    case 'authentication_required':
      return advise(false, 'The bank wants the shopper to confirm this payment. No one else can.');
  }
  return advise(true, 'The bank gave no reason against a retry.');
}

export const lastOf = (
  declines: Decline[],
  { checkout_id, number }: Pick<Instalment, 'checkout_id' | 'number'>,
) =>
  declines.findLast((one) => one.checkout_id === checkout_id && one.instalment === number) ?? null;

/** Payments with one status, for the command line. The console lists only the overdue ones. */
export const instalmentList = {
  query: Type.Object({ ...paging, status: Type.Optional(oneOf(instalmentStatuses)) }),
  read(viewer: Viewer, query: { merchant?: string; status?: InstalmentStatus }, page: PageRequest) {
    const scope = scopeOf(viewer, query);
    return readList(
      viewer.deps,
      page,
      (db, range) => listInstalmentsPage(db, scope, query.status ?? 'overdue', range),
      async (db, rows) => {
        const describe = await findOwners(db, scope, rows);
        const declines = await listDeclines(db, scope, rows);
        return rows.map((row) => {
          const id = instalmentId(row);
          const reason = lastOf(declines, row)?.decline_reason ?? null;
          return { ...row, ...describe(row).owner, id, reason };
        });
      },
    );
  },
};
