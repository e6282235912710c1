import { findMerchant } from '#merchants/merchant.sql.ts';
import { type Clock, secondsAfter, timestamp } from '#platform/shared/clock.ts';
import type { Callback } from '#purchases/callbacks/callback.ts';
import {
  type Choice,
  type Destination as ChoiceDestination,
  type Flight as ChoiceFlight,
  chooseDeliveries,
  type Pace,
  paceAfter,
} from './choose-deliveries.ts';
import { claimCallbacks, type DeliveryDeps, deliverClaimed } from './deliver-callback.ts';
import { type DueDestination, listDueDestinations, releaseCallbacks } from './due-callbacks.sql.ts';
import {
  claimLeaseSeconds,
  destinationsMax,
  leaseSeconds,
  lookMilliseconds,
  merchantDestinationsMax,
  pauseMilliseconds,
} from './limits.ts';
import type { SendCallback } from './send-callback.ts';

/**
 * A dispatcher does three kinds of work at once, and none waits for another:
 *
 * - a look lists the destinations that have callbacks due, once a second, or sooner when idle;
 * - a claim takes callbacks of one destination under a lease, at most `claimsMax` at once;
 * - a flight delivers one callback: it opens the attempt, sends it and records the result.
 *
 * It goes through two modes.
 *
 * - `delivering`: whenever a look, a claim or a flight has ended, the dispatcher chooses again
 *   (choose-deliveries.ts) and begins what was chosen. This mode ends when nothing is left to do,
 *   when the worker stops, or when a look, a claim or a release fails.
 * - `finishing`: it begins nothing more. Claims and looks in flight end, callbacks that were
 *   claimed and not sent are released for other processes, and flights end and are recorded.
 *
 * Nothing is left to do when nothing is in flight, no destination has callbacks, and no flight has
 * begun or ended since the last look began. Callbacks that another process has claimed do not
 * count: their leases may last a long time.
 */
type Dispatch = {
  /** In the order of their turns. Written by looks, and by `carryOut` after each choice. */
  destinations: Destination[];
  /** Written by `launch`, when a flight begins and when it ends. */
  readonly flights: Set<Flight>;
  /** Written by `beginClaim`, when a claim begins and when it ends. */
  readonly claims: Set<Promise<void>>;
  /** The look in flight. Written by `beginLook`, when it begins and when it ends. */
  look: Promise<void> | null;
  /** When the last look began. Written by `beginLook`. */
  lookedAt: number;
  /** Whether a flight began or ended since the last look. Set by `launch`, reset by `beginLook`. */
  hasMoved: boolean;
  /** Written by `launch`, when a flight ends. */
  readonly paces: Map<string, Pace>;
  /** The number of each merchant's last turn. Written by `carryOut`. */
  readonly lastTurns: Map<string, number>;
  /** Written by `carryOut`. */
  turn: number;
  /** Written by `launch`, when a flight ends. */
  delivered: number;
  /** The error of a failed look or claim. Written by `beginLook` and `beginClaim`. */
  readonly failures: unknown[];
  /** Rings when a look, a claim or a flight ends. */
  readonly bell: Bell;
};

/**
 * `count` is written by looks and by the end of a claim, `claimed` by the end of a claim (adds) and
 * by `carryOut` (removes), `isClaiming` by `beginClaim`, `reserved` by `beginClaim` and by the
 * first `carryOut` after the claim.
 */
type Destination = ChoiceDestination<Callback>;

/** Only the delivery itself writes `sentAt`. */
type Flight = ChoiceFlight & { ended: Promise<void> };

/**
 * Delivers due callbacks until none are left: many at once, with merchants and their destinations
 * taking turns. Returns how many deliveries were made.
 */
export async function deliverDueCallbacks(
  deps: DeliveryDeps,
  stopping?: AbortSignal,
): Promise<number> {
  const dispatch: Dispatch = {
    destinations: [],
    flights: new Set(),
    claims: new Set(),
    look: null,
    lookedAt: Number.NEGATIVE_INFINITY,
    hasMoved: true,
    paces: new Map(),
    lastTurns: new Map(),
    turn: 0,
    delivered: 0,
    failures: [],
    bell: createBell(deps.clock),
  };
  // The mode `delivering` begins here.
  try {
    while (!stopping?.aborted) {
      if (dispatch.failures.length > 0) throw dispatch.failures[0];
      const isIdle = dispatch.flights.size === 0 && dispatch.claims.size === 0 && !dispatch.look;
      const isEmpty = isIdle && !dispatch.destinations.some(hasCallbacks);
      if (isEmpty && !dispatch.hasMoved) break;
      const isLookDue = deps.clock.monotonic() - dispatch.lookedAt >= lookMilliseconds;
      if (!dispatch.look && (isEmpty || isLookDue)) beginLook(deps, dispatch);
      const choice = chooseDeliveries({
        ...dispatch,
        claimsInFlight: dispatch.claims.size,
        milliseconds: deps.clock.monotonic(),
        leasedUntilMin: timestamp(secondsAfter(deps.clock.now(), leaseSeconds)),
      });
      await carryOut(deps, dispatch, choice);
      // Wait only if nothing was sent: a destination sends one batch per turn, and may have slots
      // left for another.
      if (choice.send.length === 0) await dispatch.bell.wait();
    }
    // The mode `finishing` begins here.
  } finally {
    await Promise.all([...dispatch.claims, dispatch.look]);
    const claimed = dispatch.destinations.flatMap((destination) => destination.claimed);
    await release(deps, claimed).catch(() => {});
    await Promise.all([...dispatch.flights].map(({ ended }) => ended));
    dispatch.bell.close();
  }
  return dispatch.delivered;
}

const hasCallbacks = ({ count, claimed, isClaiming }: Destination) =>
  count > 0 || claimed.length > 0 || isClaiming;

/** Begins what was chosen, and moves the destinations that were served to the end of the queue. */
async function carryOut(
  deps: DeliveryDeps,
  dispatch: Dispatch,
  choice: Choice<Destination>,
): Promise<void> {
  const late = choice.release.flatMap(({ destination, count }) =>
    destination.claimed.splice(0, count),
  );
  const served = new Set<Destination>();
  for (const { destination, count } of choice.send) {
    for (const callback of destination.claimed.splice(0, count)) launch(deps, dispatch, callback);
    dispatch.turn += 1;
    dispatch.lastTurns.set(destination.merchant_id, dispatch.turn);
    served.add(destination);
  }
  for (const destination of dispatch.destinations) {
    if (!destination.isClaiming) destination.reserved = 0;
  }
  for (const { destination, rows, slots } of choice.claim) {
    beginClaim(deps, dispatch, destination, rows, slots);
    served.add(destination);
  }
  const others = dispatch.destinations.filter((destination) => !served.has(destination));
  dispatch.destinations = [...others, ...served].filter(hasCallbacks);
  await release(deps, late);
}

async function release(deps: DeliveryDeps, callbacks: Callback[]): Promise<void> {
  if (callbacks.length === 0) return;
  const unchanged = callbacks.map((callback) => ({ ...callback, attempts_made: 0 }));
  await releaseCallbacks(deps.database.pool, unchanged);
}

function beginLook(deps: DeliveryDeps, dispatch: Dispatch): void {
  dispatch.lookedAt = deps.clock.monotonic();
  dispatch.hasMoved = false;
  dispatch.look = look(deps, dispatch)
    .catch((error) => void dispatch.failures.push(error))
    .finally(() => {
      dispatch.look = null;
      dispatch.bell.ring();
    });
}

async function look(deps: DeliveryDeps, dispatch: Dispatch): Promise<void> {
  const found = await listDueDestinations(deps.database.db, timestamp(deps.clock.now()), {
    ofMerchant: merchantDestinationsMax,
    inAll: destinationsMax,
  });
  const known = new Map(dispatch.destinations.map((one) => [nameOf(one), one]));
  for (const destination of known.values()) destination.count = 0;
  for (const { merchant_id, host, count } of found) {
    const name = nameOf({ merchant_id, host });
    const destination = known.get(name);
    if (destination) destination.count = count;
    else {
      known.set(name, { merchant_id, host, count, claimed: [], isClaiming: false, reserved: 0 });
    }
  }
  // Merchants take turns. Those that have not had one come first.
  const lastTurn = ({ merchant_id }: Destination) => dispatch.lastTurns.get(merchant_id) ?? 0;
  dispatch.destinations = [...known.values()]
    .filter(hasCallbacks)
    .sort((one, other) => lastTurn(one) - lastTurn(other));
}

const nameOf = ({ merchant_id, host }: Pick<DueDestination, 'merchant_id' | 'host'>) =>
  `${merchant_id} ${host}`;

function beginClaim(
  deps: DeliveryDeps,
  dispatch: Dispatch,
  destination: Destination,
  rows: number,
  slots: number,
): void {
  destination.isClaiming = true;
  destination.reserved = slots;
  const claiming = claim(deps, destination, rows)
    .catch((error) => void dispatch.failures.push(error))
    .finally(() => {
      destination.isClaiming = false;
      dispatch.claims.delete(claiming);
      dispatch.bell.ring();
    });
  dispatch.claims.add(claiming);
}

async function claim(deps: DeliveryDeps, destination: Destination, rows: number): Promise<void> {
  const { merchant_id, host } = destination;
  const merchant = await findMerchant(deps.database.db, deps.clock, merchant_id);
  const callbacks = merchant
    ? await claimCallbacks(deps, merchant, rows, { host, seconds: claimLeaseSeconds })
    : [];
  destination.claimed.push(...callbacks);
  // A batch that is not full is the last one: other processes claimed the rest.
  destination.count = callbacks.length < rows ? 0 : Math.max(destination.count - rows, 0);
}

function launch(deps: DeliveryDeps, dispatch: Dispatch, callback: Callback): void {
  const { merchant_id, host } = callback;
  const sendCallback: SendCallback = async (message) => {
    flight.sentAt = deps.clock.monotonic();
    const exchange = await deps.sendCallback(message);
    flight.sentAt = null;
    return exchange;
  };
  const ended = deliverClaimed(deps, callback, sendCallback).then((exchange) => {
    dispatch.flights.delete(flight);
    dispatch.hasMoved = true;
    dispatch.delivered += 1;
    const pace = exchange && paceAfter(exchange);
    if (pace) dispatch.paces.set(host, pace);
    dispatch.bell.ring();
  });
  const flight: Flight = { merchant_id, host, sentAt: null, ended };
  dispatch.flights.add(flight);
  dispatch.hasMoved = true;
}

/** Wakes the dispatcher when something has ended, and every `pauseMilliseconds` in any case. */
type Bell = { ring(): void; wait(): Promise<void>; close(): void };

function createBell(clock: Clock): Bell {
  const closing = new AbortController();
  let rung = Promise.withResolvers<void>();
  // One timer serves many waits, because most of them end long before it does.
  let timer: Promise<void> | null = null;
  return {
    ring: () => rung.resolve(),
    async wait() {
      timer ??= clock.sleep(pauseMilliseconds, closing.signal).then(() => {
        timer = null;
      });
      await Promise.race([rung.promise, timer]);
      rung = Promise.withResolvers();
    },
    close: () => closing.abort(),
  };
}
