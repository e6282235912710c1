import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { Amounts } from '#platform/shared/fees.ts';
import type { Random } from '#platform/shared/random.ts';
import {
  insertEntries,
  insertEntryRows,
  insertTerms,
  moveToPayout,
  moveToStatement,
} from './settlement.sql.ts';
import type { Entry, EntryKind, Terms } from './settlement.ts';

/** An entry as its cause describes it. Fields that do not apply are absent. */
export type NewEntry = Amounts & { kind: EntryKind } & Partial<Omit<Entry, 'merchant_id'>>;

const blank = {
  checkout_id: null,
  instalment: null,
  refund_id: null,
  dispute_id: null,
  release_on: null,
  reserve_id: null,
  paid_payout_id: null,
  payout_id: null,
  line: null,
  statement: null,
  statement_line: null,
};

type Of = { merchant_id: string; currency: string; at: Timestamp };

/**
 * Entries of one transaction have the same time, and ids that are made in the same millisecond have
 * a random order. The ids are sorted, so that the entries are read in the order in which they were
 * written: a later reversal must find the same cents of the sale.
 */
function rowsOf(deps: { random: Random }, of: Of, entries: NewEntry[]): Entry[] {
  const ids = entries.map(() => deps.random.uuid()).sort();
  return entries.map((entry, index) => ({ ...blank, id: ids[index] as string, ...of, ...entry }));
}

/** Writes entries into a merchant's books, in the transaction of the change that causes them. */
export async function postEntries(
  deps: { random: Random },
  db: Handle,
  of: Of,
  entries: NewEntry[],
): Promise<void> {
  await insertEntries(db, rowsOf(deps, of, entries));
}

/** Entries to write together with other rows; null if there are none. They must not be sales. */
export const entriesOf = (deps: { random: Random }, of: Of, entries: NewEntry[]) =>
  entries.length === 0 ? null : insertEntryRows(rowsOf(deps, of, entries));

/** The amounts of an entry without a fee. */
export const withoutFee = (net: number): Amounts => ({ gross: net, fee: 0, vat: 0, net });

/** One UPDATE moves this many entries in a second or two. A payout may have half a million. */
export const entriesTogether = 10_000;

/** Turns all open entries older than `before` into lines of a payout. Returns how many. */
export async function assignEntries(
  db: Handle,
  payout: { merchant_id: string; id: string },
  before: Timestamp,
): Promise<number> {
  const to = { payout_id: payout.id, before, max: entriesTogether };
  for (let lines = 0; ; ) {
    const moved = await moveToPayout(db, payout.merchant_id, { ...to, lines });
    lines += moved;
    if (moved < entriesTogether) return lines;
  }
}

/** Turns entries into lines of a monthly statement, the oldest first. Returns how many. */
export async function stateEntries(
  db: Handle,
  merchant_id: string,
  /** `lines` is how many lines the statement already has. */
  to: { number: number; lines: number; before: Timestamp; max: number },
): Promise<number> {
  return await moveToStatement(db, merchant_id, to);
}

/** Writes the terms that a merchant has from a given date. */
export async function writeTerms(db: Handle, terms: Terms): Promise<void> {
  await insertTerms(db, terms);
}
