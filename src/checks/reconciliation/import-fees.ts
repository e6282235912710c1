import type pg from 'pg';
import type { Capabilities } from '#gateway/capabilities.ts';
import type { GatewayName } from '#gateway/gateway-name.ts';
import type { Database } from '#platform/database/database.ts';
import { type Clock, type Timestamp, timestamp } from '#platform/shared/clock.ts';
import type { Logger } from '#platform/shared/logger.ts';
import type { Random } from '#platform/shared/random.ts';
import { type OperatorDeps, OperatorError, operate } from '#record/actions/operate.ts';
import { postAccountFees, postFees } from '#record/ledger/post-fees.ts';
import { type KnownFee, listKnownFees, listPaidCheckouts } from './reconciliation.sql.ts';

type ImportDeps = OperatorDeps & {
  database: Database;
  clock: Clock;
  random: Random;
  log: Logger;
  /** The gateway that the report is about. */
  gateway: { name: GatewayName; capabilities: Capabilities };
};

/** The columns of a settlement report, in any order. Others are ignored. */
const columns = [
  'transaction_id',
  'payment_id',
  'type',
  'amount',
  'currency',
  'created_at',
] as const;

type Fee = {
  gateway: GatewayName;
  transaction_ref: string;
  /** Null for a fee that the gateway charged to the account and not for a payment. */
  payment_ref: string | null;
  type: string;
  fee: number;
  currency: string;
  at: Timestamp;
};

export type ImportedFees = {
  rows: number;
  /** Fees that this import posted. The others were posted before, are unknown or conflict. */
  posted: number;
  /**
   * How many fees are of payments that this service does not know, or that were in another
   * currency, and the first of these payments.
   */
  unknown: number;
  unknown_payments: string[];
  /** How many rows have the id of another fee, and the first of these ids. */
  conflicting: number;
  conflicting_transactions: string[];
};

const batchSize = 500;
const namesShown = 20;
const halfRead =
  'The lines before it were read, and nothing on this line or after it was posted. Correct the line, and read the file again.';

/**
 * Posts the fees in an acquirer's settlement report, for a gateway that does not report them
 * (decision 0083). Each row counts once, by its transaction, so a report that was only half read
 * can be read again. A row with the transaction of another fee is not posted, and is named.
 */
export async function importFees(
  deps: ImportDeps,
  operator: string,
  lines: AsyncIterable<string>,
  progress: (rows: number) => void = () => {},
): Promise<ImportedFees> {
  if (deps.gateway.capabilities.knowsFees) {
    throw new OperatorError(
      'This gateway reports its fees itself, and `tranche gateway reconcile` posts them.',
    );
  }
  const sum: ImportedFees = {
    ...{ rows: 0, posted: 0 },
    ...{ unknown: 0, unknown_payments: [], conflicting: 0, conflicting_transactions: [] },
  };
  let header: string[] | null = null;
  let batch: Fee[] = [];
  let line = 0;
  const flush = async () => {
    if (batch.length === 0) return;
    const client = await deps.database.pool.connect();
    try {
      await postBatch(deps, client, batch, sum);
    } finally {
      client.release();
    }
    progress(sum.rows);
    batch = [];
  };
  for await (const text of lines) {
    line += 1;
    if (text.trim() === '') continue;
    if (header === null) {
      header = readHeader(readLine(text, line));
      // Fees are posted in batches. This first audit row names the operator even if the import
      // stops halfway.
      await note(deps, operator, { gateway: deps.gateway.name, is_begun: true });
      continue;
    }
    try {
      batch.push({ gateway: deps.gateway.name, ...readFee(header, readLine(text, line), line) });
    } catch (error) {
      await flush();
      throw error instanceof OperatorError
        ? new OperatorError(`${error.message} ${halfRead}`)
        : error;
    }
    if (batch.length === batchSize) await flush();
  }
  if (header === null) throw new OperatorError('The file is empty.');
  await flush();
  const { rows, posted, unknown, conflicting } = sum;
  await note(deps, operator, { rows, posted, unknown, conflicting });
  return sum;
}

const note = (deps: ImportDeps, operator: string, details: object) =>
  operate(deps, operator, 'gateway fees', async () => {
    return { subject_id: null, details, result: undefined };
  });

async function postBatch(
  deps: ImportDeps,
  client: pg.ClientBase,
  fees: Fee[],
  sum: ImportedFees,
): Promise<void> {
  sum.rows += fees.length;
  const references = fees.map(({ transaction_ref }) => transaction_ref);
  const known = new Map<string, KnownFee>([
    ...(await listKnownFees(client, deps.gateway.name, references)),
    ...(await listKnownFees(client, deps.gateway.name, references, true)),
  ]);
  const fresh = fees.filter((fee) => {
    const earlier = known.get(fee.transaction_ref);
    if (earlier === undefined) known.set(fee.transaction_ref, fee);
    else if (!isSame(earlier, fee)) {
      sum.conflicting += 1;
      if (sum.conflicting_transactions.length < namesShown)
        sum.conflicting_transactions.push(fee.transaction_ref);
    }
    return earlier === undefined;
  });
  const charged = fresh.flatMap(({ payment_ref, ...fee }) =>
    payment_ref === null ? [] : [{ ...fee, payment_ref }],
  );
  const checkouts = await listPaidCheckouts(
    client,
    deps.gateway.name,
    charged.map(({ payment_ref }) => payment_ref),
  );
  const ofPayments = charged.flatMap((fee) => {
    const checkout = checkouts.get(fee.payment_ref);
    if (checkout?.currency === fee.currency) return [{ ...fee, ...checkout }];
    sum.unknown += 1;
    if (sum.unknown_payments.length < namesShown) sum.unknown_payments.push(fee.payment_ref);
    return [];
  });
  sum.posted += await postFees(deps, ofPayments);
  const ofAccount = fresh.filter(({ payment_ref }) => payment_ref === null);
  sum.posted += await postAccountFees(
    deps,
    ofAccount.map(({ payment_ref: _, ...fee }) => fee),
  );
}

const isSame = (one: KnownFee, other: KnownFee) =>
  one.type === other.type &&
  one.fee === other.fee &&
  one.currency === other.currency &&
  one.payment_ref === other.payment_ref;

/** Splits a line at its commas. A quoted cell may contain commas and doubled quotes. */
function readLine(text: string, line: number): string[] {
  const cells: string[] = [];
  const cell = /\s*(?:"((?:[^"]|"")*)"|([^",]*))\s*(,|$)/gy;
  for (;;) {
    const found = cell.exec(text);
    if (found === null) throw new OperatorError(`Line ${line} is not CSV.`);
    cells.push((found[1]?.replaceAll('""', '"') ?? found[2] ?? '').trim());
    if (found[3] === '') return cells;
  }
}

function readHeader(cells: string[]): string[] {
  const names = cells.map((cell) => cell.replace(/^\uFEFF/, '').toLowerCase());
  const missing = columns.filter((name) => !names.includes(name));
  if (missing.length === 0) return names;
  throw new OperatorError(
    `The first line must name the columns ${columns.join(', ')}. It has no ${missing.join(', ')}.`,
  );
}

const centsMax = 1_000_000_000_000;

function readFee(header: string[], cells: string[], line: number): Omit<Fee, 'gateway'> {
  const cell = (name: (typeof columns)[number]) => cells[header.indexOf(name)] ?? '';
  const refuse = (name: string, what: string): never => {
    throw new OperatorError(`Line ${line}: ${name} ${what}.`);
  };
  const [transaction_ref, type, currency] = [
    cell('transaction_id'),
    cell('type'),
    cell('currency'),
  ];
  if (!/^[\w.:-]{1,200}$/.test(transaction_ref))
    refuse('transaction_id', 'must be 1 to 200 letters, digits or _ . : -, without spaces');
  if (!/^[\w .-]{1,60}$/.test(type))
    refuse('type', 'must be 1 to 60 letters, digits, spaces or _ . -');
  if (!/^[A-Z]{3}$/.test(currency)) refuse('currency', 'must be three capital letters');
  const fee = Number(cell('amount'));
  if (!/^-?\d{1,13}$/.test(cell('amount')) || fee === 0 || Math.abs(fee) > centsMax) {
    refuse('amount', 'must be whole cents other than 0, negative for a fee that was returned');
  }
  return {
    transaction_ref,
    payment_ref: cell('payment_id') || null,
    type,
    fee,
    currency,
    at: timeOf(cell('created_at'), line),
  };
}

function timeOf(text: string, line: number): Timestamp {
  try {
    return timestamp(Temporal.Instant.from(text));
  } catch {
    throw new OperatorError(
      `Line ${line}: created_at must be a time such as 2026-11-17T08:00:00Z.`,
    );
  }
}
