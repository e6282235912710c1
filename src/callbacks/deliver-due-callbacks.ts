import { listMerchants } from '../merchants/merchant.sql.ts';
import { timestamp } from '../shared/clock.ts';
import { type DueDestination, listDueDestinations, moveReleased } from './callback.sql.ts';
import { type Callback, leaseSeconds } from './callback.ts';
import { claimCallbacks, type DeliveryDeps, deliverClaimed, handful } from './deliver-callback.ts';
import type { Exchange, SendCallback } from './send-callback.ts';

/** What one process has under way at once: in all, of one merchant, to one host. */
const mostAtOnce = 256;
const mostOfOne = 2 * handful;
/** Destinations that hang have their own places, so that they never take everybody's. */
const mostSlowAtOnce = 32;
const slowMilliseconds = 2_000;

/** How often we look who has something due: with many that are due it is not cheap. */
const lookMilliseconds = 1_000;
const pauseMilliseconds = 250;
const mostDestinations = { ofOne: mostOfOne, inAll: 1_000 };
const mostClaimsAtOnce = 32;

/**
 * A receiver that answers quickly gets more than it takes at once, so that we need not claim as
 * often. They have to leave in time for a whole exchange under their lease.
 */
const quickMilliseconds = 200;
const mostInHand = 16 * handful;
const handMilliseconds = 10_000;
const handLeaseSeconds = handMilliseconds / 1000 + leaseSeconds;

/** Failures that cost somebody's time, as opposed to an answer that says no. */
const slowReasons = new Set(['timeout', 'dns', 'connect', 'tls']);

/** Somebody with something due: how many more, and what we have in hand, taken at what time. */
type Destination = DueDestination & { inHand: Callback[]; takenAt: number };

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
  const slowHosts = new Set<string>();
  const quickHosts = new Set<string>();
  const lastTurn = new Map<string, number>();
  const nameOf = ({ merchant_id, host }: Omit<DueDestination, 'count'>) => `${merchant_id} ${host}`;
  /** In the order of their turns. */
  let due: Destination[] = [];
  let lookedAt = Number.NEGATIVE_INFINITY;
  let delivered = 0;
  let turn = 0;
  let onLanding = () => {};
  let sleeping: Promise<void> | null = null;
  const ended = new AbortController();

  async function look(): Promise<void> {
    lookedAt = deps.clock.monotonic();
    const now = timestamp(deps.clock.now());
    const found = await listDueDestinations(deps.database.db, now, mostDestinations);
    const known = new Map(due.map((one) => [nameOf(one), one]));
    const fresh = found.map(
      (one): Destination => ({ inHand: [], takenAt: 0, ...known.get(nameOf(one)), ...one }),
    );
    for (const one of fresh) known.delete(nameOf(one));
    const left = [...known.values()].filter(({ inHand }) => inHand.length > 0);
    for (const one of left) one.count = 0;
    due = [...fresh, ...left];
    // Every merchant in its turn; those that never had one come first.
    const lastOf = ({ merchant_id }: Destination) => lastTurn.get(merchant_id) ?? 0;
    due.sort((one, other) => lastOf(one) - lastOf(other));
  }

  /** Puts down what we shall not begin, for whoever comes next. */
  async function release(destinations: Destination[]): Promise<void> {
    const callbacks = destinations.flatMap(({ inHand }) => inHand.splice(0));
    if (callbacks.length > 0) await moveReleased(deps.database.db, callbacks);
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
    const left = (name: string, most: number) => most - (counts.get(name) ?? 0);

    const chosen: ReturnType<typeof choose> = [];
    for (const destination of due) {
      const { merchant_id, host } = destination;
      const take = slow.has(host)
        ? Math.min(left(host, 1), left('all slow', mostSlowAtOnce))
        : Math.min(
            handful,
            destination.count + destination.inHand.length,
            left(host, mostOfOne),
            left(merchant_id, mostOfOne),
            left('all swift', mostAtOnce),
          );
      if (take <= 0) continue;
      add(destination, take);
      chosen.push({ destination, take });
      if (chosen.length === mostClaimsAtOnce) break;
    }
    return chosen;
  }

  async function claim(destinations: Destination[]): Promise<void> {
    if (destinations.length === 0) return;
    const ids = new Set(destinations.map(({ merchant_id }) => merchant_id));
    const found = await listMerchants(deps.database.db, [...ids]);
    const merchants = new Map(found.map((merchant) => [merchant.id, merchant]));
    await Promise.all(
      destinations.map(async (one) => {
        const merchant = merchants.get(one.merchant_id);
        const most = quickHosts.has(one.host) ? mostInHand : handful;
        if (one.inHand.length === 0) one.takenAt = deps.clock.monotonic();
        const callbacks = merchant
          ? await claimCallbacks(deps, merchant, most, one.host, handLeaseSeconds)
          : [];
        one.inHand.push(...callbacks);
        // Others were quicker with the rest, or there is none.
        one.count = callbacks.length < most ? 0 : Math.max(one.count - most, 0);
      }),
    );
  }

  /** One turn for everybody that there is room for; says whether anybody had one. */
  async function serve(): Promise<boolean> {
    const tooLate = deps.clock.monotonic() - handMilliseconds;
    await release(due.filter(({ takenAt }) => takenAt < tooLate));
    const chosen = choose();
    const lacking = chosen.filter(({ destination, take }) => destination.inHand.length < take);
    await claim(lacking.map(({ destination }) => destination).filter(({ count }) => count > 0));
    let hasServed = false;
    for (const { destination, take } of chosen) {
      lastTurn.set(destination.merchant_id, ++turn);
      for (const callback of destination.inHand.splice(0, take)) {
        launch(callback);
        hasServed = true;
      }
    }
    const served = new Set(chosen.map(({ destination }) => destination));
    due = [...due.filter((one) => !served.has(one)), ...served].filter(
      ({ count, inHand }) => count > 0 || inHand.length > 0,
    );
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
      delivered += 1;
      if (exchange) judge(callback.host, exchange);
      onLanding();
    });
    const flight: Flight = { callback, sentAt: null, landing };
    flights.add(flight);
  }

  function judge(host: string, { reason, timings: { total = 0 } }: Exchange): void {
    const isSlow = slowReasons.has(reason ?? '') || total > slowMilliseconds;
    slowHosts[isSlow ? 'add' : 'delete'](host);
    quickHosts[total < quickMilliseconds && !isSlow ? 'add' : 'delete'](host);
  }

  /** Until a delivery has ended, but not for long. */
  async function pause(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    onLanding = resolve;
    sleeping ??= deps.clock.sleep(pauseMilliseconds, ended.signal).then(() => {
      sleeping = null;
    });
    await Promise.race([promise, sleeping]);
  }

  try {
    while (!stopping?.aborted) {
      // One that ends meanwhile may have kept us from claiming others.
      const isIdle = flights.size === 0;
      if (isIdle || deps.clock.monotonic() - lookedAt >= lookMilliseconds) await look();
      if (await serve()) continue;
      if (isIdle && due.length === 0) break;
      await pause();
    }
  } finally {
    // What is under way is recorded, what is not begun is left to others.
    await release(due).catch(() => {});
    await Promise.all([...flights].map(({ landing }) => landing));
    ended.abort();
  }
  return delivered;
}
