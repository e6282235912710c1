import { listMerchantsWithDue } from '../database/due-work.sql.ts';
import { findMerchant } from '../merchants/merchant.sql.ts';
import type { Merchant } from '../merchants/merchant.ts';
import { timestamp } from '../shared/clock.ts';
import { dueCallbacks, type Hosts } from './callback.sql.ts';
import type { Callback } from './callback.ts';
import { claimCallbacks, type DeliveryDeps, deliverClaimed, handful } from './deliver-callback.ts';
import type { Exchange } from './send-callback.ts';

/** What one process has under way at once: in all, of one merchant, to one host. */
const mostAtOnce = 128;
const mostOfOne = 2 * handful;
/** Destinations that hang have their own places, so that they never take everybody's. */
const mostSlowAtOnce = 32;
const slowMilliseconds = 2_000;

const mostMerchants = 200;
const pauseMilliseconds = 250;

/** Failures that cost somebody's time, as opposed to an answer that says no. */
const slowReasons = new Set(['timeout', 'dns', 'connect', 'tls']);

/**
 * Delivers callbacks that are due until nothing is: several at once, in turn between merchants,
 * bounded for a merchant and for a host. Nobody waits for a round to end. A host that hung or
 * could not be reached gets one delivery at a time, from few places, until it answers.
 */
export async function deliverDueCallbacks(
  deps: DeliveryDeps,
  stopping?: AbortSignal,
): Promise<number> {
  const flights = new Map<Promise<void>, Callback>();
  const slowHosts = new Set<string>();
  const lastTurn = new Map<string, number>();
  let delivered = 0;
  let turn = 0;

  const under = (isOne: (callback: Callback) => boolean) =>
    flights.values().reduce((count, callback) => count + (isOne(callback) ? 1 : 0), 0);
  const busyHosts = (most: number) => {
    const counts = new Map<string, number>();
    for (const { host } of flights.values()) counts.set(host, (counts.get(host) ?? 0) + 1);
    return [...counts].filter(([, count]) => count > most).map(([host]) => host);
  };

  function start(merchant: Merchant, callback: Callback): void {
    const flight = deliverClaimed(deps, merchant, callback).then((exchange) => {
      flights.delete(flight);
      delivered += 1;
      if (exchange && isSlow(exchange)) slowHosts.add(callback.host);
      else if (exchange) slowHosts.delete(callback.host);
    });
    flights.set(flight, callback);
  }

  /** One turn for every merchant that has something due there, as long as there is room. */
  async function claim(hosts: () => Hosts, room: () => number, most: number): Promise<number> {
    const { db } = deps.database;
    const now = timestamp(deps.clock.now());
    const due = await listMerchantsWithDue(db, dueCallbacks(hosts()), now, mostMerchants);
    due.sort((one, other) => (lastTurn.get(one) ?? 0) - (lastTurn.get(other) ?? 0));
    let claimed = 0;
    for (const id of due) {
      const ofMerchant = mostOfOne - under(({ merchant_id }) => merchant_id === id);
      const take = Math.min(most, room(), ofMerchant);
      if (take <= 0) continue;
      const merchant = await findMerchant(db, id);
      if (!merchant) continue;
      turn += 1;
      lastTurn.set(id, turn);
      const callbacks = await claimCallbacks(deps, merchant, hosts(), take);
      for (const callback of callbacks) start(merchant, callback);
      claimed += callbacks.length;
    }
    return claimed;
  }

  const swift = () => ({ except: [...slowHosts, ...busyHosts(mostOfOne - handful)] });
  const slow = () => ({ only: [...slowHosts.difference(new Set(busyHosts(0)))] });
  const slowRoom = () => mostSlowAtOnce - under(({ host }) => slowHosts.has(host));
  const swiftRoom = () => mostAtOnce - under(({ host }) => !slowHosts.has(host));

  while (!stopping?.aborted) {
    // One that ends meanwhile may have kept us from claiming others.
    const isIdle = flights.size === 0;
    let claimed = 0;
    try {
      if (swiftRoom() >= handful) claimed += await claim(swift, swiftRoom, handful);
      if (slowRoom() > 0 && slow().only.length > 0) claimed += await claim(slow, slowRoom, 1);
    } catch (error) {
      // What is under way is recorded first.
      await Promise.all(flights.keys());
      throw error;
    }
    if (claimed === 0 && isIdle) break;
    const waking = new AbortController();
    const pause = deps.clock.sleep(pauseMilliseconds, waking.signal);
    if (flights.size > 0) await Promise.race([...flights.keys(), pause]);
    waking.abort();
  }
  await Promise.all(flights.keys());
  return delivered;
}

function isSlow({ reason, timings }: Exchange): boolean {
  return slowReasons.has(reason ?? '') || (timings.total ?? 0) > slowMilliseconds;
}
