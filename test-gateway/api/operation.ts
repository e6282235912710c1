import type { Refusal } from '../cards.ts';
import { invalidRequest } from '../errors.ts';
import type { Fees, Settlement } from '../objects/balance-transaction.ts';
import type { EventObject } from '../objects/event.ts';
import type { Store } from '../store.ts';

/** The facts about the request that an operation knows besides its form. */
export type Context = {
  store: Store;
  /** Where browsers reach the gateway. */
  publicUrl: string;
  merchant: string;
  /** Seconds: the time of the merchant that the caller named. */
  now: number;
  /** Seconds: the time of the merchant whose object it is. */
  timeOf(merchant: string): number;
  /** The decline that a fault demands. */
  decline: Refusal | null;
  account: Account;
  /** Calls the webhook, if there is one. */
  notify: ((event: EventObject) => void) | null;
};

/** Stripe's facts about the account. */
export type Account = {
  /** The smallest amount of a payment, in cents. */
  amountMin: number;
  /** The beginning of every statement descriptor. */
  descriptorPrefix: string;
  fees: Fees;
  settlement: Settlement | null;
};

/**
 * An answer to send and, for a POST with a key, to keep. A decline is an answer and not an
 * exception, so that what it wrote is committed.
 */
export type Answer = { status: number; body: object };

export const ok = (body: object): Answer => ({ status: 200, body });

export function throwMissing(param: string): never {
  throw invalidRequest(`Missing required param: ${param}.`, { code: 'parameter_missing', param });
}

export function oneOf(value: string | undefined, allowed: string[], param: string): void {
  if (value === undefined || allowed.includes(value)) return;
  throw invalidRequest(`Invalid ${param}: must be one of ${allowed.join(', ')}`, { param });
}
