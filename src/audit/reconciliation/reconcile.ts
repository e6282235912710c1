import type pg from 'pg';
import type { Database } from '../../database/database.ts';
import {
  type Gateway,
  type GatewayRecord,
  OutcomeUnknown,
  type RecordKind,
  recordKinds,
} from '../../gateway/gateway.ts';
import { postFees } from '../../ledger/post-fees.ts';
import { listMerchantClocks } from '../../merchants/merchant.sql.ts';
import { findAlert } from '../../operators/alert.sql.ts';
import { raiseAlert } from '../../operators/raise-alert.ts';
import { type Clock, secondsAfter, type Timestamp, timestamp } from '../../shared/clock.ts';
import type { Logger } from '../../shared/logger.ts';
import type { Random } from '../../shared/random.ts';
import { isUuid } from '../../shared/uuid.ts';
import { type AdoptDeps, adoptFinding } from './adopt.ts';
import {
  type ComparedKind,
  claimDailyRun,
  claimRun,
  countAdopted,
  endRun,
  isCompared,
  listFindings,
  listKnownFees,
  listOpenFindings,
  listOwnRows,
  listPaidCheckouts,
  listUnseen,
  moveDailyRun,
  moveFinding,
  type NewFinding,
  type OwnRow,
  type Run,
  type RunFinding,
  recordPages,
  sumCollected,
} from './reconciliation.sql.ts';

/** How our rows differ from the gateway's records, and what an operator does about it. */
export const remedies = {
  unknown_to_us:
    'Find out what made it. If it is not ours, refund or void it at the gateway; after a restore, `tranche gateway reconcile --adopt` records it.',
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

export type ReconcileDeps = {
  database: Database;
  clock: Clock;
  random: Random;
  log: Logger;
  gateway: Gateway;
};

export type Reconciled = { checked: number; findings: Finding[]; adopted: number };

/** A hold that should have been captured is given a day, because the gateway may be away. */
const captureGraceHours = 24;
/** A run that was interrupted longer ago begins anew. */
const continuesHours = 24;
/** How many findings are settled between two looks at the table. */
const findingsBatchSize = 100;

type Range = { from: Timestamp | null; to: Timestamp | null };

/**
 * Walks the gateway's records and compares each with our rows, then looks for rows of ours that the
 * gateway does not have. Each difference is an alert, raised once. The gateway's fees are posted on
 * the way. With an `adopter`, what the gateway did and we do not know is recorded (decision 0098).
 *
 * The place in the walk and the differences are rows, so a run that was interrupted continues, and
 * the memory of the process does not grow with the number of records.
 */
export async function reconcile(
  deps: ReconcileDeps,
  range: Range & { adopter?: AdoptDeps },
  progress: (checked: number) => void = () => {},
): Promise<Reconciled> {
  const client = await deps.database.pool.connect();
  try {
    const now = deps.clock.now();
    const run = await claimRun(
      client,
      {
        id: deps.random.uuid(),
        from_at: range.from,
        to_at: range.to,
        adopts: range.adopter !== undefined,
        kind: recordKinds[0],
      },
      {
        now: timestamp(now),
        since: timestamp(now.subtract({ hours: continuesHours })),
      },
    );
    const checked = await walk(deps, client, run, progress);
    await noteUnseen(client, run, checked);
    await settleFindings(deps, client, run, range.adopter ?? null);
    const found = await listFindings(client, run.id);
    const adopted = await countAdopted(client, run.id);
    await endRun(client, run.id, timestamp(deps.clock.now()));
    return { checked, findings: found.map(present), adopted };
  } finally {
    // The connection ends with its lock.
    client.release(true);
  }
}

const present = ({ alert_id, kind, reference, checkout_id }: RunFinding): Finding => ({
  id: alert_id ?? '',
  kind: kind as FindingKind,
  reference,
  checkout_id,
  remedy: remedies[kind as FindingKind],
});

/**
 * Reads what is left of the run, page after page. One batch of pages is compared while the next is
 * read. What is read again after an interruption is little.
 */
async function walk(
  deps: ReconcileDeps,
  client: pg.ClientBase,
  run: Run,
  progress: (checked: number) => void,
): Promise<number> {
  const clocks = await listMerchantClocks(deps.database.db);
  const nowOf = (merchant_id: string) =>
    deps.clock.now().add({ milliseconds: clocks.get(merchant_id) ?? 0 });
  let { kind, after, checked } = run;
  const compareBatch = async (of: RecordKind, records: GatewayRecord[], next: string | null) => {
    const findings = await compareRecords(deps, client, of, records, nowOf);
    const references = isCompared(of) ? records.map(({ reference }) => reference) : [];
    checked += records.length;
    const reached = { kind: next === null ? nextKind(of) : of, after: next, checked };
    await recordPages(client, { id: run.id, ...reached }, { references, findings });
    progress(checked);
  };
  let comparing = Promise.resolve();
  try {
    while (kind !== null) {
      const batch = await readBatch(deps, kind, run, after);
      await comparing;
      comparing = compareBatch(kind, batch.records, batch.next);
      // A failure is thrown above or below.
      comparing.catch(() => {});
      after = batch.next;
      if (after === null) kind = nextKind(kind);
    }
    await comparing;
  } finally {
    // The connection is still in use if the gateway failed.
    await comparing.catch(() => {});
  }
  return checked;
}

/** Pages that are compared together. */
const batchPages = 10;

async function readBatch(
  { gateway, clock }: ReconcileDeps,
  kind: RecordKind,
  { from_at: from, to_at: to }: Run,
  after: string | null,
): Promise<{ records: GatewayRecord[]; next: string | null }> {
  const records: GatewayRecord[] = [];
  let next = after;
  for (let page = 0; page < batchPages; page += 1) {
    const read = await whenAllowed(clock, () =>
      gateway.listRecords(kind, { from, to, after: next }),
    );
    records.push(...read.records);
    next = read.next;
    if (next === null) break;
  }
  return { records, next };
}

const pausesMax = 6;

/** Waits while the gateway asks for fewer requests, longer each time. */
async function whenAllowed<T>(clock: Clock, read: () => Promise<T>): Promise<T> {
  for (let pauses = 0; ; pauses += 1) {
    try {
      return await read();
    } catch (error) {
      const isTooMany = error instanceof OutcomeUnknown && error.why === 'too_many';
      if (!isTooMany || pauses === pausesMax) throw error;
      await clock.sleep(500 * 2 ** pauses);
    }
  }
}

const nextKind = (kind: RecordKind): RecordKind | null =>
  recordKinds[recordKinds.indexOf(kind) + 1] ?? null;

async function compareRecords(
  deps: ReconcileDeps,
  client: pg.ClientBase,
  kind: RecordKind,
  records: GatewayRecord[],
  nowOf: (merchant_id: string) => Temporal.Instant,
): Promise<NewFinding[]> {
  if (records.length === 0) return [];
  if (kind === 'transactions') {
    await takeFees(deps, client, records);
    return [];
  }
  if (isCompared(kind)) return await compareWithRows(client, kind, records, nowOf);
  // A charge is compared as its payment. Other programs make charges without one.
  return records
    .filter(({ payment_ref, state }) => payment_ref === null && state === 'taken')
    .map((record) => findingOf(kind, record, 'unknown_to_us', null));
}

async function compareWithRows(
  client: pg.ClientBase,
  kind: ComparedKind,
  all: GatewayRecord[],
  nowOf: (merchant_id: string) => Temporal.Instant,
): Promise<NewFinding[]> {
  const records = kind === 'payments' ? await leaveOutCollected(client, all) : all;
  if (records.length === 0) return [];
  const rows = await listOwnRows(client, kind, records);
  const byId = Map.groupBy(rows, ({ own_id }) => own_id);
  const byReference = Map.groupBy(rows, ({ reference }) => reference);
  return records.flatMap((record) => {
    const own = new Set([
      ...(byReference.get(record.reference) ?? []),
      ...(byId.get(record.own_id ?? '') ?? []).filter((row) => isAbout(row, record)),
    ]);
    const found = compare(record, [...own], nowOf);
    return found === null ? [] : [findingOf(kind, record, found, [...own][0] ?? null)];
  });
}

/**
 * Whether a row with our id of a record is about that record. A request that was declined and then
 * lost by a restore gave its id to the next one: the row names the payment of that one.
 */
const isAbout = ({ reference }: OwnRow, record: GatewayRecord) =>
  record.state !== 'nothing' || reference === null || reference === record.reference;

/** Most payments were collected for what the gateway took. Nothing else about them matters. */
async function leaveOutCollected(
  client: pg.ClientBase,
  records: GatewayRecord[],
): Promise<GatewayRecord[]> {
  const taken = records.filter(({ state }) => state === 'taken');
  if (taken.length === 0) return records;
  const sums = await sumCollected(
    client,
    taken.map(({ reference }) => reference),
  );
  return records.filter(
    ({ state, reference, amount }) => state !== 'taken' || sums.get(reference) !== amount,
  );
}

const findingOf = (
  kind: RecordKind,
  record: GatewayRecord,
  found: FindingKind,
  own: OwnRow | null,
): NewFinding => ({
  record_kind: kind.slice(0, -1),
  reference: record.reference,
  kind: found,
  merchant_id: own?.merchant_id ?? null,
  checkout_id: own?.checkout_id ?? record.checkout_id,
  record,
});

/** Posts the fees of payments that we know. Others are posted once their payment is. */
async function takeFees(
  deps: ReconcileDeps,
  client: pg.ClientBase,
  records: GatewayRecord[],
): Promise<void> {
  const known = await listKnownFees(
    client,
    records.map(({ reference }) => reference),
  );
  const charged = records.flatMap(({ fee, payment_ref, reference, created_at }) =>
    fee && fee.amount !== 0 && payment_ref !== null && !known.has(reference)
      ? [{ ...fee, payment_ref, transaction_ref: reference, at: created_at }]
      : [],
  );
  if (charged.length === 0) return;
  const payments = charged.map(({ payment_ref }) => payment_ref);
  const checkouts = await listPaidCheckouts(client, payments);
  await postFees(
    deps,
    charged.flatMap(({ amount, payment_ref, ...fee }) => {
      const checkout = checkouts.get(payment_ref);
      const isPosted = checkout?.currency === fee.currency;
      return isPosted ? [{ ...fee, ...checkout, payment_ref, fee: amount }] : [];
    }),
  );
  for (const { currency, payment_ref } of charged) {
    const paidIn = checkouts.get(payment_ref)?.currency ?? currency;
    if (paidIn !== currency) await reportCurrency(deps, currency, paidIn);
  }
}

/** One alert for all fees in a currency: the cause is a setting of the gateway's account. */
async function reportCurrency(deps: ReconcileDeps, currency: string, paidIn: string) {
  const { db } = deps.database;
  const kind = 'gateway_currency';
  const detail = `The gateway charges its fees for payments in ${paidIn} in ${currency}. They are not posted. The gateway's account must settle in ${paidIn}.`;
  if ((await findAlert(db, kind, detail)) === null) await raiseAlert(deps, db, { kind, detail });
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

/** Our rows that the gateway did not list. The walk has ended. */
async function noteUnseen(client: pg.ClientBase, run: Run, checked: number): Promise<void> {
  const unseen = await listUnseen(client, run);
  if (unseen.length === 0) return;
  const findings = unseen.map((own) => ({
    ...own,
    kind: 'missing_there',
    record_kind: 'row',
    record: null,
  }));
  const reached = { id: run.id, kind: null, after: null, checked };
  await recordPages(client, reached, { references: [], findings });
}

/**
 * Adopts or reports every finding of the run, the oldest first: a refund needs its payment. Disputes
 * come last. They pause plans, and the lost service may have charged before it knew of them.
 */
async function settleFindings(
  deps: ReconcileDeps,
  client: pg.ClientBase,
  run: Run,
  adopter: AdoptDeps | null,
): Promise<void> {
  for (;;) {
    const open = await listOpenFindings(client, run.id, findingsBatchSize);
    if (open.length === 0) return;
    for (const finding of open) {
      const settled = adopter
        ? await adoptFinding(adopter, client, run.id, finding, (why) => report(deps, finding, why))
        : [{ ...finding, alert_id: await report(deps, finding), outcome: 'reported' as const }];
      for (const one of settled) await moveFinding(client, run.id, one);
    }
  }
}

/** A difference is an alert, raised once. Returns the alert's id, which is the finding's. */
async function report(
  deps: ReconcileDeps,
  finding: RunFinding,
  why: string | null = null,
): Promise<string> {
  const { kind, record_kind, reference, checkout_id, merchant_id } = finding;
  const about = checkout_id === null ? '' : ` (checkout ${checkout_id})`;
  const alert = `gateway_${kind}`;
  const detail = `The gateway's ${record_kind} ${reference}${about}: ${kind.replaceAll('_', ' ')}. ${why ?? remedies[kind as FindingKind]}`;
  const { db } = deps.database;
  return (
    (await findAlert(db, alert, detail)) ??
    (await raiseAlert(deps, db, {
      kind: alert,
      ...(merchant_id !== null && { merchant_id }),
      ...(checkout_id !== null && isUuid(checkout_id) && { subject_id: checkout_id }),
      detail,
    }))
  );
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
  // The whole day, so that a run which continues has the same range.
  const day = Temporal.Instant.from(`${now.toString().slice(0, 10)}T00:00:00Z`);
  const from = timestamp(day.subtract({ hours: 24 * dailyDays }));
  const { checked, findings } = await reconcile(deps, { from, to: null });
  await moveDailyRun(pool, timestamp(secondsAfter(now, 86_400)));
  deps.log.info({ checked, findings: findings.length }, 'the gateway was reconciled');
  return 0;
}
