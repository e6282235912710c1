import type { MerchantRow } from '#merchants/merchant.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { Environment } from '#platform/shared/environment.ts';
import type { Amounts } from '#platform/shared/fees.ts';
import type { Language } from '#platform/shared/language.ts';
import type { EntryKind, KindSums } from '#record/ledger/settlement.ts';
import { type Calendar, nextBusinessDay } from './payout.ts';

/**
 * A merchant's statement for one month, which is also the tax invoice for the service's fees. It
 * has all entries from before the end of the month that no earlier statement has, so every entry is
 * a line of exactly one statement. Everything in it is fixed when it gets its number. A correction
 * is a separate statement with the same lines (decision 0140).
 */
export type MonthlyStatement = {
  merchant_id: string;
  id: string;
  /** Counts from 1, without gaps. */
  number: number;
  reference: string;
  /** The first day of the month. */
  month: string;
  created_at: Timestamp;
  /** The number of the statement that this one replaces. */
  corrects: number | null;
  /**
   * The number of the statement whose lines this one has: its own, or for a correction that of the
   * month's first statement.
   */
  lines_of: number;
  currency: string;
  lines: number;
  /** The merchant's balance before the month and after it. Reserves are not included. */
  opening: number;
  closing: number;
  /** The amount that is held in reserve after the month. */
  reserve: number;
  sums: KindSums[];
  merchant_name: string;
  merchant_address: string | null;
  merchant_vat_number: string | null;
  issuer_name: string;
  issuer_address: string | null;
  issuer_vat_number: string | null;
  language: Language;
  locale: string;
  time_zone: string;
  /** The end of the chain of operators' actions, as last posted before the statement was made. */
  record_end: string | null;
};

/** The service as the settings name it. A member that is not set is null. */
export type Issuer = { name: string | null; address: string | null; vat_number: string | null };

/** The service as a new statement names it. A sandbox has a made-up VAT number. */
export const namedIssuer = ({ name, address, vat_number }: Issuer, environment: Environment) => ({
  name: name ?? 'Tranche',
  address,
  vat_number: vat_number ?? (environment === 'production' ? null : '0000000000'),
});

/** The facts that a correction replaces with the current ones. Amounts are never corrected. */
export const correctable = [
  'merchant_name',
  'merchant_address',
  'merchant_vat_number',
  'issuer_name',
  'issuer_address',
  'issuer_vat_number',
  'language',
] as const satisfies (keyof MonthlyStatement)[];
type Correctable = Pick<MonthlyStatement, (typeof correctable)[number]>;
type Parties<Name> = Omit<Correctable, 'issuer_name'> & { issuer_name: Name };
export type Correction = {
  name: keyof Correctable;
  from: string | null;
  to: string | null;
};

export const partiesOf = <Named extends Issuer>(
  merchant: Pick<MerchantRow, 'name' | 'address' | 'vat_number' | 'language'>,
  issuer: Named,
): Parties<Named['name']> => ({
  merchant_name: merchant.name,
  merchant_address: merchant.address,
  merchant_vat_number: merchant.vat_number,
  issuer_name: issuer.name,
  issuer_address: issuer.address,
  issuer_vat_number: issuer.vat_number,
  language: merchant.language,
});

/**
 * The facts about the two parties that have changed since a statement was made. A setting that is
 * absent corrects nothing, because a command may run without the settings of the service.
 */
export const correctionsOf = (statement: Correctable, now: Parties<string | null>): Correction[] =>
  correctable
    .map((name) => ({ name, from: statement[name], to: now[name] }))
    .filter(({ from, to }) => from !== to)
    .filter(({ name, to }) => to !== null || !name.startsWith('issuer_'));

/** A merchant's next statement. */
export type StatementMonth = { month: string; number: number; lines: number };

export type StatementLine = Amounts & {
  line: number;
  kind: EntryKind;
  at: Timestamp;
  checkout_id: string | null;
  /** The merchant's own reference for the order. */
  client_reference_id: string | null;
  /** The reference of the payout that was paid or returned. */
  payout_reference: string | null;
};

/** Each merchant has its own numbers, so the reference begins with a part of the merchant's id. */
export const statementReference = (merchant_id: string, number: number) =>
  `${merchant_id.slice(-12).toUpperCase()}-${String(number).padStart(4, '0')}`;

/** Statements are made at this local time, after the day's payout. */
const statementTime = Temporal.PlainTime.from('06:00');

export const nextMonth = (month: string) =>
  Temporal.PlainDate.from(month).add({ months: 1 }).toString();

/** The first moment after a month. */
export const endOfMonth = (month: string, time_zone: string): Temporal.Instant =>
  Temporal.PlainDate.from(nextMonth(month)).toZonedDateTime(time_zone).toInstant();

/** The statement for a month is made on the first business day after it. */
export function statementDueAt(calendar: Calendar, month: string): Temporal.Instant {
  const last = Temporal.PlainDate.from(nextMonth(month)).subtract({ days: 1 });
  const day = nextBusinessDay(calendar, last);
  return day
    .toZonedDateTime({ timeZone: calendar.time_zone, plainTime: statementTime })
    .toInstant();
}

const reserveKinds: EntryKind[] = ['reserve', 'reserve_released'];

/** The amounts of a statement by purpose. They lead from `opening` to `closing`. */
export function groupSums(sums: KindSums[]) {
  const of = (column: keyof Amounts, ...kinds: EntryKind[]) =>
    sums.reduce((sum, one) => sum + (kinds.includes(one.kind) ? one[column] : 0), 0);
  const all = (column: keyof Amounts) => sums.reduce((sum, one) => sum + one[column], 0);
  return {
    sales: of('gross', 'sale'),
    refunds: of('gross', 'refund', 'refund_reversed'),
    disputes: of('gross', 'dispute', 'dispute_reversed', 'dispute_fee'),
    fees: -all('fee'),
    vat: -all('vat'),
    reserve: of('net', ...reserveKinds),
    paid: of('net', 'paid_out', 'payout_returned'),
  };
}

/**
 * The balances before and after a month with these sums. `before` has those of the last statement.
 */
export function balancesAfter(
  before: Pick<MonthlyStatement, 'closing' | 'reserve'> | null,
  sums: KindSums[],
): Pick<MonthlyStatement, 'opening' | 'closing' | 'reserve'> {
  const opening = before?.closing ?? 0;
  const closing = sums.reduce((sum, { net }) => sum + net, opening);
  return { opening, closing, reserve: (before?.reserve ?? 0) - groupSums(sums).reserve };
}
