import { findMerchant } from '../../merchants/merchant.sql.ts';
import { secondsAfter, timestamp } from '../../shared/clock.ts';
import { type DueDestination, listDueDestinations, moveReleased } from '../callback.sql.ts';
import { type Callback, leaseSeconds } from '../callback.ts';
import { claimCallbacks, type DeliveryDeps, deliverClaimed, handful } from './deliver-callback.ts';
import type { Exchange, SendCallback } from './send-callback.ts';

/** What one process has under way at once: in all, of one merchant, to one host. */
const mostAtOnce = 1_024;
const mostOfOne = 2 * handful;
/** Destinations that hang have their own places, so that they never take everybody's. */
const mostSlowAtOnce = 32;
const slowMilliseconds = 2_000;

/** How often we look who has something due: with many that are due it is not cheap. */
const lookMilliseconds = 1_000;
const pauseMilliseconds = 250;
const mostDestinations = { ofOne: mostOfOne, inAll: 1_000 };
/** Few, so that whoever opens or records an attempt need not wait for a connection. */
const mostClaimsAtOnce = 4;

/**
 * A receiver that answers quickly gets more than it takes at once, so that we need not claim as
 * often, and the next ones before it has run out. They have to leave in time for a whole exchange
 * under their lease.
 */
const quickMilliseconds = 200;
const mostInHand = 16 * handful;
const fewInHand = mostInHand / 2;
const handLeaseSeconds = 10 + leaseSeconds;

/** Failures that cost somebody's time, as opposed to an answer that says no. */
const slowReasons = new Set(['timeout', 'dns', 'connect', 'tls']);

/**
 * Somebody with something due: how many more, what we have in hand of it, and for how many places
 * a claim is under way (null: for none; a claim that only fills the hand needs no place).
 */
type Destination = DueDestination & { inHand: Callback[]; claiming: number | null };

/** A delivery under way, and since when its receiver keeps us waiting. */
type Flight = { callback: Callback; sentAt: number | null; landing: Promise<void> };

/**
 * Delivers callbacks that are due until nothing is: several at once, in turn between merchants and
 * their destinations, bounded for a merchant and for a host. Nobody waits for a round to end. A
 * host that hangs or cannot be reached gets one delivery at a time, from few places, until it
 * answers.
 */
export async function deliverDueCallbacks(
  deps: DeliveryDeps,
  stopping?: AbortSignal,
): Promise<number> {
  const flights = new Set<Flight>();
  const claims = new Set<Promise<void>>();
  const slowHosts = new Set<string>();
  const quickHosts = new Set<string>();
  const lastTurn = new Map<string, number>();
  const nameOf = ({ merchant_id, host }: Omit<DueDestination, 'count'>) => `${merchant_id} ${host}`;
  /** In the order of their turns. */
  let due: Destination[] = [];
  let lookedAt = Number.NEGATIVE_INFINITY;
  let delivered = 0;
  let turn = 0;
  let wake = () => {};
  let sleeping: Promise<void> | null = null;
  const failures: unknown[] = [];
  let isOver = false;
  /** Whether a delivery has begun or ended since we looked. */
  let hasMoved = true;
  const ended = new AbortController();

  async function look(): Promise<void> {
    lookedAt = deps.clock.monotonic();
    hasMoved = false;
    const now = timestamp(deps.clock.now());
    const found = await listDueDestinations(deps.database.db, now, mostDestinations);
    const known = new Map(due.map((one) => [nameOf(one), one]));
    for (const one of due) one.count = 0;
    for (const one of found) {
      const destination = known.get(nameOf(one)) ?? { ...one, inHand: [], claiming: null };
      known.set(nameOf(one), Object.assign(destination, one));
    }
    due = [...known.values()].filter(isWaiting);
    // Every merchant in its turn; those that never had one come first.
    const lastOf = ({ merchant_id }: Destination) => lastTurn.get(merchant_id) ?? 0;
    due.sort((one, other) => lastOf(one) - lastOf(other));
  }

  /** Puts down what we shall not begin, for whoever comes next. */
  async function release(callbacks: Callback[]): Promise<void> {
    if (callbacks.length > 0) await moveReleased(deps.database.pool, callbacks);
  }

  /** Takes out of a hand what has been there for so long that its lease may end too soon. */
  function tooLate({ inHand }: Destination): Callback[] {
    if (inHand.length === 0) return [];
    const leastLease = timestamp(secondsAfter(deps.clock.now(), leaseSeconds));
    const inTime = inHand.findIndex(({ leased_until }) => (leased_until ?? '') >= leastLease);
    return inHand.splice(0, inTime < 0 ? inHand.length : inTime);
  }

  /** Whom to serve next, and with how many, within all bounds. */
  function choose(): { destination: Destination; take: number }[] {
    const now = deps.clock.monotonic();
    const slow = new Set(slowHosts);
    for (const { sentAt, callback } of flights) {
      if (sentAt !== null && now - sentAt > slowMilliseconds) slow.add(callback.host);
    }
    const counts = new Map<string, number>();
    const count = (name: string, by: number) => counts.set(name, (counts.get(name) ?? 0) + by);
    const add = ({ merchant_id, host }: Omit<DueDestination, 'count'>, by: number) => {
      count(host, by);
      // What hangs does not count against what else the merchant has.
      if (!slow.has(host)) count(merchant_id, by);
      count(slow.has(host) ? 'all slow' : 'all swift', by);
    };
    for (const { callback } of flights) add(callback, 1);
    for (const one of due) add(one, one.claiming ?? 0);
    const left = (name: string, most: number) => most - (counts.get(name) ?? 0);

    const chosen: ReturnType<typeof choose> = [];
    for (const destination of due) {
      if (left('all swift', mostAtOnce) <= 0 && left('all slow', mostSlowAtOnce) <= 0) break;
      const { merchant_id, host, inHand } = destination;
      const there = inHand.length + (destination.claiming === null ? destination.count : 0);
      const take = slow.has(host)
        ? Math.min(there, left(host, 1), left('all slow', mostSlowAtOnce))
        : Math.min(
            handful,
            there,
            left(host, mostOfOne),
            left(merchant_id, mostOfOne),
            left('all swift', mostAtOnce),
          );
      if (take <= 0) continue;
      add(destination, take);
      chosen.push({ destination, take });
    }
    return chosen;
  }

  /** Takes some in hand; as many as there are places for leave at once. */
  async function claim(destination: Destination): Promise<void> {
    const { merchant_id, host } = destination;
    const most = quickHosts.has(host) ? mostInHand : handful;
    const merchant = await findMerchant(deps.database.db, merchant_id);
    const callbacks = merchant
      ? await claimCallbacks(deps, merchant, most, host, handLeaseSeconds)
      : [];
    destination.inHand.push(...callbacks);
    // Others were quicker with the rest, or there is none.
    destination.count = callbacks.length < most ? 0 : Math.max(destination.count - most, 0);
    // It may have had to wait for the database.
    await release(tooLate(destination));
    if (!isOver && !stopping?.aborted) serveFromHand(destination, destination.claiming ?? 0);
  }

  function beginClaim(destination: Destination, places: number): void {
    destination.claiming = places;
    const claiming = claim(destination)
      .catch((error) => void failures.push(error))
      .finally(() => {
        destination.claiming = null;
        claims.delete(claiming);
        wake();
      });
    claims.add(claiming);
  }

  function serveFromHand({ merchant_id, inHand }: Destination, take: number): number {
    const callbacks = inHand.splice(0, take);
    for (const callback of callbacks) launch(callback);
    if (callbacks.length > 0) lastTurn.set(merchant_id, ++turn);
    return callbacks.length;
  }

  /** One turn for everybody that there is room for; says whether anybody had one. */
  async function serve(): Promise<boolean> {
    await release(due.flatMap(tooLate));
    const hadTurn = new Set<Destination>();
    let hasServed = false;
    for (const { destination, take } of choose()) {
      const taken = serveFromHand(destination, take);
      const { host, inHand, count, claiming } = destination;
      const isLacking = taken < take || (quickHosts.has(host) && inHand.length < fewInHand);
      const isClaimed =
        isLacking && count > 0 && claiming === null && claims.size < mostClaimsAtOnce;
      if (isClaimed) beginClaim(destination, take - taken);
      if (taken > 0 || isClaimed) hadTurn.add(destination);
      if (taken > 0) hasServed = true;
    }
    due = [...due.filter((one) => !hadTurn.has(one)), ...hadTurn].filter(isWaiting);
    return hasServed;
  }

  function launch(callback: Callback): void {
    const sendCallback: SendCallback = async (message) => {
      flight.sentAt = deps.clock.monotonic();
      const exchange = await deps.sendCallback(message);
      flight.sentAt = null;
      return exchange;
    };
    const landing = deliverClaimed({ ...deps, sendCallback }, callback).then((exchange) => {
      flights.delete(flight);
      hasMoved = true;
      delivered += 1;
      if (exchange) judge(callback.host, exchange);
      wake();
    });
    const flight: Flight = { callback, sentAt: null, landing };
    flights.add(flight);
    hasMoved = true;
  }

  function judge(host: string, { reason, timings: { total = 0 } }: Exchange): void {
    const isSlow = slowReasons.has(reason ?? '') || total > slowMilliseconds;
    slowHosts[isSlow ? 'add' : 'delete'](host);
    quickHosts[total < quickMilliseconds && !isSlow ? 'add' : 'delete'](host);
  }

  /** Until a delivery or a claim has ended, but not for long. */
  async function pause(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    wake = resolve;
    sleeping ??= deps.clock.sleep(pauseMilliseconds, ended.signal).then(() => {
      sleeping = null;
    });
    await Promise.race([promise, sleeping]);
  }

  try {
    while (!stopping?.aborted) {
      if (failures.length > 0) throw failures[0];
      // One that ends meanwhile may have kept us from claiming others.
      const isIdle = flights.size === 0 && claims.size === 0;
      // What was due by the last look is in other hands, and they may keep it for long.
      if (isIdle && !hasMoved && !due.some(isWaiting)) break;
      if (isIdle || deps.clock.monotonic() - lookedAt >= lookMilliseconds) await look();
      if (await serve()) continue;
      if (due.length > 0 || flights.size > 0) await pause();
    }
  } finally {
    // What is under way is recorded, what is not begun is left to others.
    isOver = true;
    await Promise.all(claims);
    await release(due.flatMap(({ inHand }) => inHand)).catch(() => {});
    await Promise.all([...flights].map(({ landing }) => landing));
    ended.abort();
  }
  return delivered;
}

const isWaiting = ({ count, inHand, claiming }: Destination) =>
  count > 0 || inHand.length > 0 || claiming !== null;
