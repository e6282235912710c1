import type { GatewayName } from '#gateway/gateway-name.ts';
import { type Clock, type Timestamp, timestamp } from '#platform/shared/clock.ts';
import type { Language } from '#platform/shared/language.ts';
import { isPlainLine } from '#platform/shared/plain-text.ts';
import type { Territory } from '#platform/shared/territories.ts';

/** An amount band with its instalment terms. Bounds are cents, inclusive at both ends. */
export type Rule = { from_amount: number; to_amount: number; terms: number[] };

/** The facts about a merchant that pages, mails and receipts show to shoppers. */
export type MerchantProfile = {
  /** An e-mail address, a phone number or an https address. */
  contact: string | null;
  /** Up to six lines. */
  address: string | null;
  vat_number: string | null;
  /** The SHA-256 of its logo, which names the file. */
  logo: string | null;
};

/** A merchant as the database stores it. */
export type MerchantRow = MerchantProfile & {
  id: string;
  name: string;
  territory: Territory;
  rules: Rule[];
  created_at: string;
  /** How far a sandbox merchant's clock is ahead of real time (decision 0017). */
  clock_ahead_ms: number;
  /** The term that the hosted page selects at first. Null selects the shortest. */
  preselected_term: number | null;
  /**
   * The merchant's name on the shopper's card statement. If it is null, the beginning of `name` is
   * used.
   */
  short_name: string | null;
  /** Whether the hosted page may say that instalments cost the shopper nothing. */
  no_fees: boolean;
  /** The language of the merchant's statements, and of mails with its payment links. */
  language: Language;
  four_eyes_above: OwnThreshold;
  /** Whether an integration that acts for it has ever asked for events (decision 0033). */
  has_events: boolean;
  /**
   * The gateway for new checkouts, and the one that stands in for it. If `gateway` is null, the
   * default is chosen.
   */
  gateway: GatewayName | null;
  second_gateway: GatewayName | null;
};

/**
 * A refund above this many cents needs two people (decision 0074). `none` means that one person is
 * enough for any refund. Null follows the default for all merchants.
 */
export type OwnThreshold = number | 'none' | null;

/** The default for all merchants, in cents. Null if one person is enough. */
export type FourEyesDefault = { fourEyesAbove: number | null };

/** The amount above which refunds of a merchant need two people. Null if no refund does. */
export function thresholdOf(
  { fourEyesAbove }: FourEyesDefault,
  { four_eyes_above }: { four_eyes_above: OwnThreshold },
): number | null {
  return four_eyes_above === 'none' ? null : (four_eyes_above ?? fourEyesAbove);
}

/** An amount equal to the default is stored as "follow the default", not as the merchant's own. */
export const ownThreshold = (
  { fourEyesAbove }: FourEyesDefault,
  own: OwnThreshold,
): OwnThreshold => (own === (fourEyesAbove ?? 'none') ? null : own);

/** Whether fewer refunds need two people after a change of the threshold. */
export const isLooser = (to: number | null, before: number | null): boolean =>
  before !== null && (to === null || to > before);

/** Whether the new bands accept some amount in a term in which the earlier bands did not. */
export function isWider(to: Rule[], before: Rule[]): boolean {
  return to.some(({ from_amount, to_amount, terms }) =>
    terms.some((term) => {
      let covered = from_amount - 1;
      for (const band of before.toSorted((a, b) => a.from_amount - b.from_amount)) {
        const isNext = band.terms.includes(term) && band.from_amount <= covered + 1;
        if (isNext) covered = Math.max(covered, band.to_amount);
      }
      return covered < to_amount;
    }),
  );
}

export type Merchant = MerchantRow & {
  now(): Temporal.Instant;
  /** The merchant's id and time, for calls to the gateway. */
  forGateway(): { id: string; now: Timestamp };
  localDate(instant: Temporal.Instant): Temporal.PlainDate;
};

/** The current time on a merchant's clock. */
export function merchantNow(
  clock: Clock,
  { clock_ahead_ms }: Pick<MerchantRow, 'clock_ahead_ms'>,
): Temporal.Instant {
  const now = clock.now();
  // In production no clock runs ahead, and every request asks for this time.
  return clock_ahead_ms === 0 ? now : now.add({ milliseconds: clock_ahead_ms });
}

export function onOwnClock(clock: Clock, row: MerchantRow): Merchant {
  const now = () => merchantNow(clock, row);
  return {
    ...row,
    now,
    forGateway: () => ({ id: row.id, now: timestamp(now()) }),
    localDate: (instant) => instant.toZonedDateTimeISO(row.territory.time_zone).toPlainDate(),
  };
}

/** The facts from which the text on the shopper's card statement is made. */
export function statementOf(
  { name, short_name }: Pick<Merchant, 'name' | 'short_name'>,
  instalments: number[],
  number_of_payments: number,
): { merchant_name: string; instalments: number[]; number_of_payments: number } {
  return { merchant_name: short_name ?? name, instalments, number_of_payments };
}

/** The band that an amount falls into. Bands do not overlap, so there is at most one. */
export function findRule(rules: Rule[], amount: number): Rule | undefined {
  return rules.find((rule) => rule.from_amount <= amount && amount <= rule.to_amount);
}

/** The terms of a band that split an amount into payments which the gateway accepts. */
export function offeredTerms(rule: Rule, amount: number, payment_min: number): number[] {
  return rule.terms.filter((term) => Math.floor(amount / term) >= payment_min);
}

/** Whether an amount falls into a band and can be paid in one of its terms. */
export function isPayable(
  { rules, territory }: Pick<Merchant, 'rules' | 'territory'>,
  amount: number,
): boolean {
  const rule = findRule(rules, amount);
  return rule !== undefined && amount >= (rule.terms[0] ?? 1) * territory.payment_min;
}

/**
 * The bands as merchants see them: each begins where its shortest term can be paid. Rules may begin
 * lower if they were set before the minimum was raised.
 */
export function payableRules({ rules, territory }: Pick<Merchant, 'rules' | 'territory'>): Rule[] {
  return rules
    .map((rule) => ({
      ...rule,
      from_amount: Math.max(rule.from_amount, (rule.terms[0] ?? 1) * territory.payment_min),
    }))
    .filter((rule) => rule.from_amount <= rule.to_amount);
}

/**
 * The longest term on offer that is at most the merchant's choice, or else the shortest term.
 */
export function preselectedTerm(
  { preselected_term }: Pick<Merchant, 'preselected_term'>,
  terms: readonly number[],
): number {
  const wanted = terms.findLast((term) => term <= (preselected_term ?? 0));
  return wanted ?? (terms[0] as number);
}

/** Returns what is wrong with an operator's choice of a term, or null. */
export function explainBadPreselection(term: unknown): string | null {
  if (term === null) return null;
  return Number.isInteger(term) && (term as number) >= 1 && (term as number) <= termMax
    ? null
    : `The preselected term must be an integer from 1 to ${termMax}.`;
}

const shortNameCharactersMax = 20;

/**
 * Returns what is wrong with the name for card statements, or null. The card schemes set the rules.
 */
export function explainBadShortName(name: string | null): string | null {
  if (name === null) return null;
  const isPrintable = /^[\x20-\x7e]+$/.test(name) && !/[<>\\'"*]/.test(name);
  const isShort = name.length >= 2 && name.length <= shortNameCharactersMax;
  return isPrintable && isShort && name.trim() === name && /[a-z]/i.test(name)
    ? null
    : `The short name must have 2 to ${shortNameCharactersMax} ASCII characters, at least one of them a letter, and none of < > \\ ' " *.`;
}

const addressLinesMax = 6;

/** Returns what is wrong with a merchant's profile, or null. */
export function explainBadProfile(profile: Partial<MerchantProfile>): string | null {
  const { contact = null, address = null, vat_number = null } = profile;
  if (contact !== null && !(isPlainLine(contact) && isContact(contact))) {
    return 'The contact must be an e-mail address, a phone number or an https address.';
  }
  const lines = address?.split('\n') ?? [];
  const isPlain = lines.every((line) => isPlainLine(line) && line.trim() !== '');
  if (address !== null && !(isPlain && lines.length <= addressLinesMax && address.length <= 300)) {
    return `The address must have 1 to ${addressLinesMax} lines of text, and 300 characters at most.`;
  }
  if (vat_number !== null && !/^[A-Z0-9][A-Z0-9 .-]{0,19}$/i.test(vat_number)) {
    return 'The VAT number must have 1 to 20 letters and digits.';
  }
  return null;
}

export const isMailAddress = (text: string) => /^[^\s@<>"]+@[^\s@<>"]+\.[^\s@<>"]+$/.test(text);

function isContact(text: string): boolean {
  if (text.length > 200) return false;
  if (isMailAddress(text)) return true;
  if (/^\+?[0-9][0-9 ()-]{5,25}$/.test(text)) return true;
  return /^https:\/\/[^\s<>"']+$/.test(text) && URL.canParse(text);
}

/** Returns what is wrong with an operator's threshold for two people, or null. */
export function explainBadThreshold(threshold: OwnThreshold): string | null {
  return threshold === null || threshold === 'none' || threshold === 0 || isAmount(threshold)
    ? null
    : 'The threshold for two people must be a whole number of cents, or none.';
}

/**
 * Describes bands: `between 10000 and 99999 or between 200000 and 300000 cents`. Adjoining bands
 * form one range (decision 0002).
 */
export function describeBands(rules: Rule[]): string {
  const ranges: { from: number; to: number }[] = [];
  for (const { from_amount, to_amount } of rules) {
    const last = ranges.at(-1);
    if (last && last.to + 1 === from_amount) last.to = to_amount;
    else ranges.push({ from: from_amount, to: to_amount });
  }
  if (ranges.length === 0) return 'between the limits of a band, and this merchant has no bands';
  return `${ranges.map(({ from, to }) => `between ${from} and ${to}`).join(' or ')} cents`;
}

/** No real plan is longer, and the payment page can still list every date. */
const termMax = 120;
/** A hundred billion rand. Sums of many such amounts are still exact. */
const amountMax = 10_000_000_000_000;

/** Returns what is wrong with an operator's rules, or null. */
export function explainBadRules(rules: unknown): string | null {
  if (!Array.isArray(rules) || rules.length === 0) {
    return 'Rules must be a list of at least one band.';
  }
  let previousTo = 0;
  for (const [index, rule] of rules.entries()) {
    const band = `Band ${index + 1}`;
    if (typeof rule !== 'object' || rule === null) return `${band} must be an object.`;
    const { from_amount, to_amount, terms, ...rest } = rule as Record<string, unknown>;
    const [unknownMember] = Object.keys(rest);
    if (unknownMember !== undefined) return `${band} has the unknown member ${unknownMember}.`;
    if (!isAmount(from_amount)) return `${band}: from_amount must be a positive integer, in cents.`;
    if (!isAmount(to_amount)) return `${band}: to_amount must be a positive integer, in cents.`;
    if (to_amount < from_amount) return `${band}: to_amount is below from_amount.`;
    if (from_amount <= previousTo) {
      return `${band} must begin above ${previousTo}: bands ascend and do not overlap.`;
    }
    previousTo = to_amount;
    if (!Array.isArray(terms) || terms.length === 0) {
      return `${band}: terms must be a list of at least one number of months.`;
    }
    let previousTerm = 0;
    for (const term of terms) {
      if (!Number.isInteger(term) || term <= previousTerm || term > termMax) {
        return `${band}: terms must be distinct integers from 1 to ${termMax}, ascending.`;
      }
      previousTerm = term;
    }
  }
  return null;
}

/**
 * Explains which band begins below what its shortest term needs; null if none does. Longer terms
 * are offered once the amount can be split into payments that the gateway accepts.
 */
export function explainSmallPayments(
  rules: Rule[],
  { payment_min }: Pick<Territory, 'payment_min'>,
): string | null {
  const index = rules.findIndex(
    (rule) => offeredTerms(rule, rule.from_amount, payment_min).length === 0,
  );
  const rule = rules[index];
  if (rule === undefined) return null;
  const count = rule.terms[0] === 1 ? '1 payment' : `${rule.terms[0]} payments`;
  return `Band ${index + 1}: ${rule.from_amount} cents cannot be split into ${count} of at least ${payment_min} cents.`;
}

function isAmount(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) > 0 && (value as number) <= amountMax;
}
