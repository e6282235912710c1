import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { Random } from '#platform/shared/random.ts';
import { insertEntries, insertTerms, moveToPayout } from './settlement.sql.ts';
import type { Amounts, Entry, EntryKind, Terms } from './settlement.ts';

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
};

/** Writes entries into a merchant's books, in the transaction of the change that causes them. */
export async function postEntries(
  deps: { random: Random },
  db: Handle,
  of: { merchant_id: string; currency: string; at: Timestamp },
  entries: NewEntry[],
): Promise<void> {
  await insertEntries(
    db,
    entries.map((entry) => ({ ...blank, id: deps.random.uuid(), ...of, ...entry })),
  );
}

/** Amounts of an entry on which no fee is charged. */
export const withoutFee = (net: number): Amounts => ({ gross: net, fee: 0, vat: 0, net });

/**
 * Makes all entries before a time lines of a payout, in order. Returns how many lines there are.
 */
export async function assignEntries(
  db: Handle,
  payout: { merchant_id: string; id: string },
  before: Timestamp,
): Promise<number> {
  return await moveToPayout(db, payout.merchant_id, payout.id, before);
}

/** Writes what a merchant pays from a date on. */
export async function writeTerms(db: Handle, terms: Terms): Promise<void> {
  await insertTerms(db, terms);
}
