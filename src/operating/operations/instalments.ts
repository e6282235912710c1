import Type from 'typebox';
import { merchantNow } from '#merchants/merchant.ts';
import type { Scope } from '#operating/search/scope.sql.ts';
import type { Handle } from '#platform/database/database.ts';
import type { Clock } from '#platform/shared/clock.ts';
import {
  type Instalment,
  type InstalmentStatus,
  instalmentId,
  instalmentStatuses,
} from '#purchases/instalments/instalment.ts';
import { OverdueQuery, OverdueRow } from './callback.schema.ts';
import { decimal, ownerColumns } from './csv.ts';
import {
  type Decline,
  listDeclines,
  listPauses,
  listWithCard,
  type Pause,
  pageInstalments,
} from './instalments.sql.ts';
import { oneOf, paging } from './list.schema.ts';
import { defineList, type PageRequest, readList } from './list.ts';
import { findOwners } from './owner.sql.ts';
import { scopeOf, type Viewer } from './viewer.ts';

/**
 * Overdue payments, the longest due first, with the facts that decide whether a retry is sensible.
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
      (db, range) => pageInstalments(db, scope, 'overdue', range),
      (db, rows) => presentOverdue(deps.clock, db, scope, rows),
    );
  },
  columns: [
    ['Due', (row) => row.due_on],
    ['Days late', (row) => row.days_late],
    ...ownerColumns,
    ['Payment', (row) => row.number],
    ['Of', (row) => row.number_of_payments],
    ['Amount', (row) => decimal(row.amount)],
    ['Currency', (row) => row.currency],
    ['Reason', (row) => row.reason],
    ['Advice', (row) => row.advice],
    ['Checkout', (row) => row.checkout_id],
  ],
});

async function presentOverdue(clock: Clock, db: Handle, scope: Scope, rows: Instalment[]) {
  const describe = await findOwners(db, scope, rows);
  const declines = await listDeclines(db, scope, rows);
  const cards = await listWithCard(db, scope, rows);
  const pauses = await listPauses(
    db,
    scope,
    rows.filter((row) => row.paused),
  );
  return rows.map((row) => {
    const { checkout, merchant, owner } = describe(row);
    const today = merchantNow(clock, merchant).toZonedDateTimeISO(merchant.time_zone).toPlainDate();
    const decline = declines.get(instalmentId(row)) ?? null;
    const paused_by = pauseOf(row, pauses.get(row.checkout_id));
    return {
      ...row,
      ...owner,
      amount: row.amount - row.reduced,
      number_of_payments: checkout.number_of_payments ?? 1,
      days_late: Temporal.PlainDate.from(row.due_on).until(today).days,
      reason: decline?.reason ?? null,
      last_tried_at: decline?.settled_at ?? null,
      paused_by,
      ...adviceOf(cards.has(row.checkout_id), paused_by, decline),
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
  difference: 'The gateway’s records differ from ours. Clear the difference first.',
  refund: 'A refund of this checkout is in progress. A retry is refused until it has ended.',
  shopper: 'The shopper is paying it now.',
};

function adviceOf(hasCard: boolean, paused_by: PausedBy | null, decline: Decline | null) {
  const advise = (is_retry_sensible: boolean, advice: string) => ({ is_retry_sensible, advice });
  if (!hasCard) return advise(false, 'No card is stored. Only the shopper can pay this.');
  if (paused_by !== null) return advise(false, pauseTexts[paused_by]);
  if (decline?.may_retry === false) {
    return advise(
      false,
      'The bank said not to try this card again. The shopper needs another card.',
    );
  }
  if (decline?.reason === 'insufficient_funds') {
    return advise(true, 'There was not enough money. A retry after payday may succeed.');
  }
  return advise(true, 'The bank gave no reason against a retry.');
}

/** Payments with one status, for the command line. The console lists the overdue ones only. */
export const instalmentList = {
  query: Type.Object({ ...paging, status: Type.Optional(oneOf(instalmentStatuses)) }),
  read(viewer: Viewer, query: { merchant?: string; status?: InstalmentStatus }, page: PageRequest) {
    const scope = scopeOf(viewer, query);
    return readList(
      viewer.deps,
      page,
      (db, range) => pageInstalments(db, scope, query.status ?? 'overdue', range),
      async (db, rows) => {
        const describe = await findOwners(db, scope, rows);
        const declines = await listDeclines(db, scope, rows);
        return rows.map((row) => {
          const id = instalmentId(row);
          const reason = declines.get(id)?.reason ?? null;
          return { ...row, ...describe(row).owner, id, reason };
        });
      },
    );
  },
};
