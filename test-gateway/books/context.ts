import type { Refusal } from '../cards.ts';
import type { Fees, Settlement } from '../objects/balance-transaction.ts';
import { completeDescriptor } from '../objects/charge.ts';
import type { EventObject } from '../objects/event.ts';
import type { Store } from '../store.ts';

/** Everything that the books need to handle one request. */
export type Context = {
  store: Store;
  /** The URL where browsers reach the gateway. */
  publicUrl: string;
  merchant: string;
  /** The time of the merchant that the caller named, in seconds. */
  now: number;
  /** The merchant's time in seconds, or the gateway's own time if the merchant's is not known. */
  timeOf(merchant: string): number;
  /** A decline that replaces the answer of the card's bank. Null if the bank answers. */
  decline: Refusal | null;
  account: Account;
  /** Calls the webhook; null without a webhook. */
  notify: ((event: EventObject) => void) | null;
};

/** The gateway's settings for the account. */
export type Account = {
  /** The smallest amount of a payment, in cents. */
  amountMin: number;
  /** The beginning of every statement descriptor. */
  descriptorPrefix: string;
  fees: Fees;
  /** Whether Hyperswitch translates the acquirer's error codes, or only passes them on. */
  mapsErrors: boolean;
  /** False if the acquirer behind Hyperswitch cannot charge stored cards. */
  hasAgreements: boolean;
  settlement: Settlement | null;
};

/** The rules of the card schemes for the text of a statement. Returns what is wrong, or null. */
export function descriptorProblem({ account }: Context, suffix: string): string | null {
  if (/[<>\\'"*]|[^\x20-\x7e]/.test(suffix) || !/[a-z]/i.test(suffix)) {
    return 'The statement descriptor suffix needs a letter, and must not contain <, >, \\, \', ", * or characters other than ASCII.';
  }
  const complete = completeDescriptor(account.descriptorPrefix, suffix);
  return complete.length < 5 || complete.length > 22
    ? `The statement descriptor must have 5 to 22 characters with its prefix: "${complete}" has ${complete.length}.`
    : null;
}

/** The largest amount of a payment, in cents. */
const amountMax = 99_999_999;

/** Why the account does not accept a payment of this amount; null if it does. */
export function amountProblem(
  { store, account }: Context,
  amount: number,
  customer: string | null,
): 'too_small' | 'too_large' | null {
  if (amount < account.amountMin) return 'too_small';
  const email = customer === null ? null : store.find('customer', customer)?.object.email;
  // Every payment of a shopper with such an e-mail address is refused (decision 0011).
  const isRefused = /^refused(\+[^@]*)?@/i.test(email ?? '');
  return amount > amountMax || isRefused ? 'too_large' : null;
}
