import type { IncomingMessage } from 'node:http';
import type { Account, Context } from './books/context.ts';
import type { Faults } from './faults.ts';
import { header } from './http.ts';
import type { Store } from './store.ts';

/** A running gateway, as its APIs see it. */
export type Running = {
  readonly secretKey: string;
  readonly publishableKey: string;
  /**
   * The current time in milliseconds since the epoch, for merchants whose own time is not known.
   */
  readonly now: () => number;
  readonly store: Store;
  readonly faults: Faults;
  readonly account: Account;
  readonly notify: Context['notify'];
  /** The URL where browsers reach the gateway. It may be empty until the gateway listens. */
  publicUrl: string;
};

/**
 * Makes the context of a request. The headers of a trusted caller name the merchant that it acts
 * for, and the time on that merchant's clock. Other callers act for no merchant.
 */
export function contextFor(
  running: Running,
  request: IncomingMessage,
  isTrusted: boolean,
): Context {
  const { store, publicUrl, account, notify } = running;
  const merchant = (isTrusted && header(request, 'tranche-merchant')) || '';
  const time = Date.parse(header(request, 'tranche-merchant-time') ?? '');
  if (merchant !== '' && Number.isFinite(time)) store.advanceTime(merchant, time);
  const timeOf = (id: string) => {
    const known = id === '' ? null : store.time(id);
    return Math.floor((known ?? running.now()) / 1000);
  };
  const now = timeOf(merchant);
  return { store, publicUrl, merchant, now, timeOf, decline: null, account, notify };
}
