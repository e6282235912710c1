import type pg from 'pg';
import type { Database } from '../../database/database.ts';
import type { Gateway, GatewayRecord } from '../../gateway/gateway.ts';
import { listMerchantClocks } from '../../merchants/merchant.sql.ts';
import { findAlert } from '../../operators/alert.sql.ts';
import { raiseAlert } from '../../operators/raise-alert.ts';
import { type Clock, secondsAfter, type Timestamp, timestamp } from '../../shared/clock.ts';
import type { Logger } from '../../shared/logger.ts';
import type { Random } from '../../shared/random.ts';
import { isUuid } from '../../shared/uuid.ts';
import {
  claimDailyRun,
  createSeen,
  insertSeen,
  listOwnRows,
  listUnseen,
  moveDailyRun,
  type OwnRow,
  type RecordKind,
} from './reconciliation.sql.ts';

/** How our rows differ from the gateway's records, and what an operator does about it. */
export const remedies = {
  unknown_to_us:
    'Find out what made it. If it is not ours, refund or void it at the gateway; after a restore, the service finds it by its key when the work falls due.',
  missing_there:
    'Look the reference up at the gateway. If it never existed there, the money did not move: correct the order with the merchant.',
  other_amount:
    'Compare both amounts. Refund the difference at the gateway, or correct the order with the merchant.',
  other_state:
    'Look at the checkout and at the gateway. The service takes over what is still due; anything else needs a refund or a void at the gateway.',
  held_too_long:
    'Find out why the hold was not captured (`tranche checkouts show`). Capture is retried by itself.',
} as const;
export type FindingKind = keyof typeof remedies;

export type Finding = {
  id: string;
  kind: FindingKind;
  reference: string;
  checkout_id: string | null;
  remedy: string;
};

type Difference = { kind: FindingKind; record: string; reference: string } & {
  merchant_id: string | null;
  checkout_id: string | null;
};

export type ReconcileDeps = {
  database: Database;
  clock: Clock;
  random: Random;
  log: Logger;
  gateway: Gateway;
};

const kinds: RecordKind[] = ['payments', 'refunds', 'disputes'];
/** A hold that should have been captured is given a day, because the gateway may be away. */
const captureGraceHours = 24;

/**
 * Walks the gateway's records and compares each with our rows, then looks for rows of ours that the
 * gateway does not have. It changes nothing but alerts: each difference is one, raised once.
 */
export async function reconcile(
  deps: ReconcileDeps,
  range: { from: Timestamp | null; to: Timestamp | null },
  progress: (checked: number) => void = () => {},
): Promise<{ checked: number; findings: Finding[] }> {
  const clocks = await listMerchantClocks(deps.database.db);
  const nowOf = (merchant_id: string) =>
    deps.clock.now().add({ milliseconds: clocks.get(merchant_id) ?? 0 });
  const client = await deps.database.pool.connect();
  try {
    await createSeen(client);
    const differences: Difference[] = [];
    let checked = 0;
    for (const kind of kinds) {
      for (let after: string | null = null; ; ) {
        const page = await deps.gateway.listRecords(kind, { ...range, after });
        differences.push(...(await comparePage(client, kind, page.records, nowOf)));
        checked += page.records.length;
        progress(checked);
        if (page.next === null) break;
        after = page.next;
      }
    }
    for (const own of await listUnseen(client, range.from, range.to)) {
      differences.push({ ...own, kind: 'missing_there', record: 'row' });
    }
    const findings: Finding[] = [];
    for (const difference of differences) findings.push(await report(deps, difference));
    return { checked, findings };
  } finally {
    // The connection ends with its temporary table.
    client.release(true);
  }
}

async function comparePage(
  client: pg.ClientBase,
  kind: RecordKind,
  records: GatewayRecord[],
  nowOf: (merchant_id: string) => Temporal.Instant,
): Promise<Difference[]> {
  if (records.length === 0) return [];
  const references = records.map(({ reference }) => reference);
  await insertSeen(client, references);
  const own_ids = records.flatMap(({ own_id }) => (own_id && isUuid(own_id) ? [own_id] : []));
  const rows = await listOwnRows(client, kind, references, own_ids);
  return records.flatMap((record): Difference[] => {
    const own = rows.filter(
      (row) => row.reference === record.reference || row.own_id === record.own_id,
    );
    const found = compare(record, own, nowOf);
    const { merchant_id = null, checkout_id = record.checkout_id } = own[0] ?? {};
    const { reference } = record;
    return found === null
      ? []
      : [{ kind: found, record: kind.slice(0, -1), reference, merchant_id, checkout_id }];
  });
}

/** How a record differs from our rows about it, or null. */
export function compare(
  record: Pick<GatewayRecord, 'amount' | 'state'>,
  own: Pick<OwnRow, 'amount' | 'state' | 'captures_at' | 'merchant_id'>[],
  nowOf: (merchant_id: string) => Temporal.Instant,
): FindingKind | null {
  const isLive = record.state === 'taken' || record.state === 'held';
  if (own.length === 0) return isLive ? 'unknown_to_us' : null;
  // The service is finding out by itself.
  if (record.state === 'in_flight' || own.some(({ state }) => state === 'in_flight')) return null;
  const taken = own.filter(({ state }) => state === 'taken');
  const held = own.find(({ state }) => state === 'held');
  const state = taken.length > 0 ? 'taken' : held ? 'held' : 'nothing';
  if (state !== record.state) return 'other_state';
  if (state === 'taken') {
    // A shopper may pay several payments at once.
    const sum = taken.reduce((total, { amount }) => total + amount, 0);
    return sum === record.amount ? null : 'other_amount';
  }
  if (state === 'held' && held) {
    if (held.amount !== record.amount) return 'other_amount';
    const { captures_at, merchant_id } = held;
    if (captures_at === null) return null;
    const late = Temporal.Instant.from(captures_at).add({ hours: captureGraceHours });
    return Temporal.Instant.compare(late, nowOf(merchant_id)) < 0 ? 'held_too_long' : null;
  }
  return null;
}

/** A difference is an alert, raised once. Its id is the alert's. */
async function report(deps: ReconcileDeps, difference: Difference): Promise<Finding> {
  const { kind, record, reference, checkout_id, merchant_id } = difference;
  const about = checkout_id === null ? '' : ` (checkout ${checkout_id})`;
  const remedy = remedies[kind];
  const alert = `gateway_${kind}`;
  const detail = `The gateway's ${record} ${reference}${about}: ${kind.replaceAll('_', ' ')}. ${remedy}`;
  const { db } = deps.database;
  const id =
    (await findAlert(db, alert, detail)) ??
    (await raiseAlert(deps, db, {
      kind: alert,
      ...(merchant_id !== null && { merchant_id }),
      ...(checkout_id !== null && isUuid(checkout_id) && { subject_id: checkout_id }),
      detail,
    }));
  return { id, kind, reference, checkout_id, remedy };
}

const dailyLeaseSeconds = 3_600;
/** Disputes and refunds come late; older records were compared on earlier days. */
const dailyDays = 40;

/** Reconciles once a day, in one process. Returns 0: nothing more is due today. */
export async function runDailyReconciliation(deps: ReconcileDeps): Promise<number> {
  const { pool } = deps.database;
  const now = deps.clock.now();
  const isClaimed = await claimDailyRun(pool, {
    now: timestamp(now),
    tomorrow: timestamp(secondsAfter(now, 86_400)),
    leased_until: timestamp(secondsAfter(now, dailyLeaseSeconds)),
  });
  if (!isClaimed) return 0;
  const from = timestamp(now.subtract({ hours: 24 * dailyDays }));
  const { checked, findings } = await reconcile(deps, { from, to: null });
  await moveDailyRun(pool, timestamp(secondsAfter(now, 86_400)));
  deps.log.info({ checked, findings: findings.length }, 'the gateway was reconciled');
  return 0;
}
