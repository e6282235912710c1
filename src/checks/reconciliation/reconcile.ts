import type pg from 'pg';
import {
  type GatewayRecord,
  OutcomeUnknown,
  type RecordKind,
  RequestRefused,
  recordKinds,
} from '#gateway/gateway.ts';
import type { GatewayName } from '#gateway/gateway-name.ts';
import { isMoneyStopped, type MoneyProblem, refuseOtherAccounts } from '#gateway/guard-gateway.ts';
import { listMerchantClocks } from '#merchants/merchant.sql.ts';
import { secondsAfter, type Timestamp, timestamp } from '#platform/shared/clock.ts';
import { readKnown, readOrLog } from '#purchases/disputes/check-disputes.ts';
import type { DisputeDeps } from '#purchases/disputes/record-dispute.ts';
import { hasAlert } from '#record/alerts/alert.sql.ts';
import { raiseAlert } from '#record/alerts/raise-alert.ts';
import { postAccountFees, postFees } from '#record/ledger/post-fees.ts';
import {
  type Comparing,
  compareWithRows,
  type DifferenceKind,
  differenceOf,
  isKnownDispute,
  type Recording,
  remedyOf,
} from './compare.ts';
import {
  claimDailyRun,
  claimRun,
  countRecorded,
  endRun,
  findDailyRun,
  isCompared,
  listDifferences,
  listKnownFees,
  listOpenDifferences,
  listPaidCheckouts,
  moveDailyRun,
  moveDifference,
  type NewDifference,
  type Run,
  type RunDifference,
  recordPages,
  renewDailyRun,
} from './reconciliation.sql.ts';
import { type RecordingDeps, recordDifference } from './record-difference.ts';
import { reportDifference } from './report-difference.ts';
import { daysOf, listUnseen } from './unseen.sql.ts';
import { whenAllowed } from './when-allowed.ts';

export type Difference = {
  id: string;
  kind: DifferenceKind;
  reference: string;
  checkout_id: string | null;
  remedy: string;
};

export type ReconcileDeps = DisputeDeps & { money: MoneyProblem };

export type Reconciled = { checked: number; differences: Difference[]; recorded: number };

/** A run that was interrupted longer ago than this is not continued. */
const continuesHours = 24;
/** How many differences are settled between two reads of the table. */
const differencesBatchSize = 100;

type Range = {
  from: Timestamp | null;
  to: Timestamp | null;
  /** If absent, every gateway is read. */
  gateway?: GatewayName;
};
type Recorder = Omit<RecordingDeps, 'gateway'>;
/** Called after each batch, with the number of records that were read so far. */
type Progress = (checked: number) => void | Promise<void>;

/**
 * Reads through the gateway's records and compares each with our rows, then looks for rows of ours
 * that the gateway does not have. Each difference is an alert, raised once. The gateway's fees are
 * posted on the way. With a `recorder`, what the gateway did without this database knowing is
 * recorded (decision 0098).
 *
 * The position in the records and the differences are rows, so a run that was interrupted
 * continues, and the memory of the process does not grow with the number of records.
 */
export async function reconcile(
  deps: ReconcileDeps,
  range: Range & { recorder?: Recorder },
  progress: Progress = () => {},
): Promise<Reconciled> {
  const client = await deps.database.pool.connect();
  try {
    return await reconcileOn(client, deps, range, progress);
  } finally {
    // Closing the connection releases its lock.
    client.release(true);
  }
}

/** Reconciles on the caller's connection. The caller closes it afterwards. */
export async function reconcileOn(
  client: pg.ClientBase,
  deps: ReconcileDeps,
  { gateway, ...range }: Range & { recorder?: Recorder },
  progress: Progress,
): Promise<Reconciled> {
  const all: Reconciled = { checked: 0, differences: [], recorded: 0 };
  const names = gateway === undefined ? deps.gateways.names : [gateway];
  await refuseOtherAccounts(deps.money, names);
  for (const name of names) {
    const before = all.checked;
    const one = await reconcileOne(client, deps, { ...range, gateway: name }, (checked) =>
      progress(before + checked),
    );
    all.checked += one.checked;
    all.recorded += one.recorded;
    all.differences.push(...one.differences);
  }
  return all;
}

async function reconcileOne(
  client: pg.ClientBase,
  deps: ReconcileDeps,
  { from, to, gateway, ...by }: Range & { gateway: GatewayName; recorder?: Recorder },
  progress: Progress,
): Promise<Reconciled> {
  const recorder = by.recorder && { ...by.recorder, gateway };
  const now = deps.clock.now();
  const run = await claimRun(
    client,
    {
      id: deps.random.uuid(),
      gateway,
      from_at: from,
      to_at: to,
      records_lost: recorder !== undefined,
      kind: recordKinds[0],
    },
    {
      now: timestamp(now),
      since: timestamp(now.subtract({ hours: continuesHours })),
    },
  );
  const checked = await readThrough(deps, client, run, recorder ?? null, progress);
  const settle = () =>
    settleDifferences(deps, client, run, recorder ?? null, () => progress(checked));
  // The differences found so far are reported even if the rest of the run fails.
  await settle();
  await noteUnseen(client, run, checked, progress);
  await settle();
  const found = await listDifferences(client, run.id);
  const recorded = await countRecorded(client, run.id);
  await endRun(client, run.id, timestamp(deps.clock.now()));
  return { checked, differences: found.map(present), recorded };
}

const present = (difference: RunDifference): Difference => ({
  id: difference.alert_id ?? '',
  kind: difference.kind as DifferenceKind,
  reference: difference.reference,
  checkout_id: difference.checkout_id,
  remedy: remedyOf(difference),
});

/**
 * Reads the rest of the run, page by page. One batch of pages is compared while the next is read.
 * After an interruption only a little is read twice.
 */
async function readThrough(
  deps: ReconcileDeps,
  client: pg.ClientBase,
  run: Run,
  recorder: Recording,
  progress: Progress,
): Promise<number> {
  const clocks = await listMerchantClocks(deps.database.db);
  const nowOf = (merchant_id: string) =>
    deps.clock.now().add({ milliseconds: clocks.get(merchant_id) ?? 0 });
  const by = { gateway: run.gateway, nowOf, recorder };
  let { kind, after, checked } = run;
  const compareBatch = async (of: RecordKind, records: GatewayRecord[], next: string | null) => {
    const differences = await compareRecords(deps, client, of, records, by);
    const references = isCompared(of) ? records.map(({ reference }) => reference) : [];
    checked += records.length;
    const reached = { kind: next === null ? nextKind(of) : of, after: next, checked };
    await recordPages(client, { id: run.id, ...reached }, { references, differences });
    await progress(checked);
  };
  let comparing = Promise.resolve();
  try {
    while (kind !== null) {
      const batch = await readBatch(deps, kind, run, after);
      await comparing;
      comparing = compareBatch(kind, batch.records, batch.next);
      // This only prevents an unhandled rejection. The awaits above and below throw the failure.
      comparing.catch(() => {});
      after = batch.next;
      if (after === null) kind = nextKind(kind);
    }
    await comparing;
  } finally {
    // If the gateway failed, the comparison may still be using the connection.
    await comparing.catch(() => {});
  }
  return checked;
}

/**
 * Disputes are read from this many days before the range: the bank may reopen one months after its
 * end, under the reference and the time of its beginning.
 */
const disputeDays = 180;

/** Pages that are compared together. */
const batchPages = 10;

async function readBatch(
  { gateways, clock }: ReconcileDeps,
  kind: RecordKind,
  { gateway: name, from_at, to_at: to }: Run,
  after: string | null,
): Promise<{ records: GatewayRecord[]; next: string | null }> {
  const gateway = gateways.of(name);
  const isLonger = kind === 'disputes' && from_at !== null;
  const from = isLonger
    ? timestamp(secondsAfter(Temporal.Instant.from(from_at), -disputeDays * daySeconds))
    : from_at;
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

const nextKind = (kind: RecordKind): RecordKind | null =>
  recordKinds[recordKinds.indexOf(kind) + 1] ?? null;

async function compareRecords(
  deps: ReconcileDeps,
  client: pg.ClientBase,
  kind: RecordKind,
  records: GatewayRecord[],
  by: Comparing,
): Promise<NewDifference[]> {
  if (records.length === 0) return [];
  if (kind === 'transactions') {
    await takeFees(deps, client, by.gateway, records);
    // These movements belong to no payment and are not fees of the account.
    return records
      .filter(({ state }) => state === 'taken')
      .map((record) => differenceOf(kind, record, 'unknown_to_us', null));
  }
  if (isCompared(kind)) return await compareWithRows(client, kind, records, by);
  // A charge is compared as part of its payment. Charges without a payment were made by other
  // programs.
  return records
    .filter(({ payment_ref, state }) => payment_ref === null && state === 'taken')
    .map((record) => differenceOf(kind, record, 'unknown_to_us', null));
}

/**
 * Posts the fees of the account, and those of payments that we know. The others are posted once
 * their payment is known.
 */
async function takeFees(
  deps: ReconcileDeps,
  client: pg.ClientBase,
  gateway: GatewayName,
  records: GatewayRecord[],
): Promise<void> {
  const fees = records.flatMap(({ fee, payment_ref, reference, created_at: at }) => {
    if (fee === null || fee.amount === 0) return [];
    const { type, currency, amount, isOfAccount } = fee;
    const posted = { gateway, transaction_ref: reference, type, currency, fee: amount, at };
    return [{ isOfAccount, payment_ref, posted }];
  });
  const ofAccount = fees.filter(({ isOfAccount }) => isOfAccount);
  await postAccountFees(
    deps,
    ofAccount.map(({ posted }) => posted),
  );
  const known = await listKnownFees(
    client,
    gateway,
    fees.map(({ posted }) => posted.transaction_ref),
  );
  const charged = fees.flatMap(({ payment_ref, posted }) =>
    payment_ref !== null && !known.has(posted.transaction_ref) ? [{ ...posted, payment_ref }] : [],
  );
  if (charged.length === 0) return;
  const payments = charged.map(({ payment_ref }) => payment_ref);
  const checkouts = await listPaidCheckouts(client, gateway, payments);
  await postFees(
    deps,
    charged.flatMap((fee) => {
      const checkout = checkouts.get(fee.payment_ref);
      return checkout?.currency === fee.currency ? [{ ...fee, ...checkout }] : [];
    }),
  );
  for (const { currency, payment_ref } of charged) {
    const paidIn = checkouts.get(payment_ref)?.currency ?? currency;
    if (paidIn !== currency) await reportCurrency(deps, currency, paidIn);
  }
}

/** One alert covers all fees in a currency: the cause is a setting of the gateway's account. */
async function reportCurrency(deps: ReconcileDeps, currency: string, paidIn: string) {
  const { db } = deps.database;
  const kind = 'gateway_currency';
  const detail = `The gateway charges fees in ${currency} for payments in ${paidIn}. These fees are not posted. The gateway's account must settle in ${paidIn}.`;
  if (!(await hasAlert(db, kind, detail))) await raiseAlert(deps, db, { kind, detail });
}

/**
 * Writes a difference for each row that the gateway did not list. All its records have been read by
 * now.
 */
async function noteUnseen(
  client: pg.ClientBase,
  run: Run,
  checked: number,
  progress: Progress,
): Promise<void> {
  const reached = { id: run.id, kind: null, after: null, checked };
  const about = { kind: 'missing_there', record_kind: 'row', record: null };
  for (const day of daysOf(run)) {
    const unseen = await listUnseen(client, run, day);
    const differences = unseen.map((own) => ({ ...own, ...about }));
    if (unseen.length > 0) await recordPages(client, reached, { references: [], differences });
    await progress(checked);
  }
}

/**
 * Records or reports every difference of the run, the oldest first, because a refund can be
 * recorded only after its payment. Disputes come last: a dispute pauses its plan, but the service
 * may have charged before it learnt of the dispute, and those charges have to be recorded first.
 */
async function settleDifferences(
  deps: ReconcileDeps,
  client: pg.ClientBase,
  run: Run,
  recorder: RecordingDeps | null,
  progress: () => void | Promise<void>,
): Promise<void> {
  for (;;) {
    const open = await listOpenDifferences(client, run.id, differencesBatchSize);
    if (open.length === 0) return;
    await progress();
    for (const difference of open) {
      const settled = recorder
        ? await recordDifference(recorder, client, run.id, difference, (why) =>
            reportDifference(deps, run.gateway, difference, why),
          )
        : [await readOrReport(deps, run.gateway, difference)];
      for (const one of settled) await moveDifference(client, run.id, one);
    }
  }
}

/**
 * Reports a difference. A known dispute is first read again, because nothing else reads it after
 * its end, and only what still differs is reported. While money is stopped it is not read: payments
 * must be recorded before disputes.
 */
async function readOrReport(
  deps: ReconcileDeps,
  gateway: GatewayName,
  difference: RunDifference,
): Promise<RunDifference> {
  const isRead =
    isKnownDispute(difference) &&
    !(await isMoneyStopped(deps.money, gateway)) &&
    (await isRecordedNow(deps, gateway, difference));
  if (isRead) return { ...difference, outcome: 'recorded' };
  const alert_id = await reportDifference(deps, gateway, difference);
  return { ...difference, alert_id, outcome: 'reported' };
}

/** Reads a dispute again and records it. Returns whether the row now agrees with the gateway. */
async function isRecordedNow(
  deps: ReconcileDeps,
  gateway: GatewayName,
  { reference }: RunDifference,
): Promise<boolean> {
  const read = () => whenAllowed(deps.clock, () => readKnown(deps, gateway, reference));
  return (await readOrLog(deps, reference, read))?.agrees === true;
}

/**
 * Each batch renews the lease. If the process is killed, the run is delayed by at most this much.
 */
const dailyLeaseSeconds = 1_800;
const daySeconds = 86_400;
/** An operator is alerted if no run has ended for a day and a half. */
const lateSeconds = daySeconds / 2;
/**
 * A daily run reads this many days, because disputes and refunds come late. Older records were
 * compared on earlier days.
 */
const dailyDays = 40;

/**
 * Reconciles each gateway once a day, in one process. Returns 0, because nothing else is due today.
 * While money is stopped it does nothing, because it would report everything that `recordLost` is
 * about to record. A gateway that does not answer does not delay the others.
 */
export async function runDailyReconciliation(deps: ReconcileDeps): Promise<number> {
  let failure: unknown = null;
  for (const gateway of deps.gateways.names) {
    try {
      await runDaily(deps, gateway);
    } catch (error) {
      failure ??= error;
    }
  }
  if (failure !== null) throw failure;
  return 0;
}

async function runDaily(deps: ReconcileDeps, gateway: GatewayName): Promise<void> {
  const { pool } = deps.database;
  const now = deps.clock.now();
  const isStopped = await deps.money.problem(gateway).then(
    (problem) => problem !== null,
    (error) => {
      if (!(error instanceof OutcomeUnknown || error instanceof RequestRefused)) throw error;
      // Reading the records will fail in the same way and report that the run is late.
      return false;
    },
  );
  if (isStopped) return;
  let lease = leaseFrom(now);
  const claim = await claimDailyRun(pool, gateway, {
    now: timestamp(now),
    tomorrow: timestamp(secondsAfter(now, daySeconds)),
    leased_until: lease,
  });
  if (claim === 'not due') return;
  if (claim === 'claimed by another') return await callIfLate(deps, gateway);
  // The range is whole days, so that a continued run has the same range.
  const day = Temporal.Instant.from(`${now.toString().slice(0, 10)}T00:00:00Z`);
  const from = timestamp(day.subtract({ hours: 24 * dailyDays }));
  try {
    const { checked, differences } = await reconcile(
      deps,
      { from, to: null, gateway },
      async () => {
        const renewed = leaseFrom(deps.clock.now());
        if (!(await renewDailyRun(pool, gateway, lease, renewed))) {
          throw new Error('another process has claimed the daily reconciliation');
        }
        lease = renewed;
      },
    );
    await moveDailyRun(pool, gateway, timestamp(secondsAfter(now, daySeconds)));
    const found = { gateway, checked, differences: differences.length };
    deps.log.info(found, 'the gateway was reconciled');
  } catch (error) {
    await callIfLate(deps, gateway);
    throw error;
  }
}

const leaseFrom = (now: Temporal.Instant) => timestamp(secondsAfter(now, dailyLeaseSeconds));

/** Raises one alert for each daily run that is half a day late. */
async function callIfLate(deps: ReconcileDeps, gateway: GatewayName): Promise<void> {
  const due_at = await findDailyRun(deps.database.pool, gateway);
  if (due_at === null) return;
  const late = secondsAfter(Temporal.Instant.from(due_at), lateSeconds);
  if (Temporal.Instant.compare(deps.clock.now(), late) < 0) return;
  const detail = `The daily reconciliation with the gateway ${gateway} was due at ${due_at} and has not ended. The log says why. \`tranche gateway reconcile\` runs it now.`;
  const { db } = deps.database;
  if (await hasAlert(db, 'gateway_not_reconciled', detail)) return;
  await raiseAlert(deps, db, { kind: 'gateway_not_reconciled', detail });
}
