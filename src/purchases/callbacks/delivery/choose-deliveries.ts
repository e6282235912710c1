import type { Timestamp } from '#platform/shared/clock.ts';
import type { Callback } from '#purchases/callbacks/callback.ts';
import { isOurFailure } from './failure-reason.ts';
import {
  claimBatchSize,
  claimsMax,
  deliveriesMax,
  hostDeliveriesMax,
  merchantDeliveriesMax,
  quickClaimBatchSize,
  quickClaimedMin,
  quickMilliseconds,
  sendBatchSize,
  slowDeliveriesMax,
  slowHostDeliveriesMax,
  slowMilliseconds,
} from './limits.ts';
import type { Exchange } from './send-callback.ts';

// The choice of the dispatcher: which callbacks to send, claim and release now. It is pure; the
// dispatcher (deliver-due-callbacks.ts) carries it out.

/**
 * How a host answers. The last delivery to it decides.
 *
 * - `steady` is how every host begins. The dispatcher claims as many callbacks as it can send at
 *   once.
 * - `quick`: it answered within `quickMilliseconds`. The dispatcher claims many callbacks at once
 *   and claims more before they run out, so that the host never waits for a claim.
 * - `slow`: the delivery took longer than `slowMilliseconds`, or the host could not be reached. The
 *   host gets one delivery at a time, from slots that only slow hosts use. They count neither
 *   against the other hosts nor against the merchant's other callbacks.
 *
 * A host also counts as slow while a delivery in flight has kept us waiting for longer than
 * `slowMilliseconds`.
 */
export type Pace = 'steady' | 'quick' | 'slow';

/** One merchant's callbacks to one host. The dispatcher writes it (deliver-due-callbacks.ts). */
export type Destination<Claimed = Pick<Callback, 'leased_until'>> = {
  readonly merchant_id: string;
  readonly host: string;
  /** Callbacks that, when they were last listed, were due and claimed by no process. */
  count: number;
  /** Claimed and not sent yet, the oldest claim first. */
  claimed: Claimed[];
  isClaiming: boolean;
  /**
   * Slots kept free for the callbacks that a claim in flight will bring. No other destination may
   * take them.
   */
  reserved: number;
};

/** A delivery in flight. `sentAt` is null while we are not waiting for its receiver. */
export type Flight = {
  readonly merchant_id: string;
  readonly host: string;
  sentAt: number | null;
};

export type DispatchState<D extends Destination> = {
  destinations: readonly D[];
  flights: Iterable<Flight>;
  claimsInFlight: number;
  /** The pace of each host. A host that is not listed is steady. */
  paces: ReadonlyMap<string, Pace>;
  /** The current time on the clock that `sentAt` uses. */
  milliseconds: number;
  /** A claimed callback may be sent if its lease lasts at least until this time. */
  leasedUntilMin: Timestamp;
};

/**
 * Callbacks are taken from the front of `claimed`: first those to release, then those to send.
 */
export type Choice<D extends Destination> = {
  release: { destination: D; count: number }[];
  send: { destination: D; count: number }[];
  /** Claim up to `rows` callbacks; `slots` of them may be sent as soon as the claim has ended. */
  claim: { destination: D; rows: number; slots: number }[];
};

/**
 * Gives one turn to every destination for which there is a slot, in order. Everything stays within
 * the limits of a process, a merchant and a host.
 */
export function chooseDeliveries<D extends Destination>(state: DispatchState<D>): Choice<D> {
  const choice: Choice<D> = { release: [], send: [], claim: [] };
  const slots = countSlots(state);
  let { claimsInFlight } = state;
  for (const destination of state.destinations) {
    const late = countLate(destination, state.leasedUntilMin);
    if (late > 0) choice.release.push({ destination, count: late });

    // The claim has ended, so the reserved slots become free. They become free only at the turn of
    // their own destination, so that it has the first use of them.
    if (!destination.isClaiming) slots.take(destination, -destination.reserved);
    const claimed = destination.claimed.length - late;
    const claimable = destination.isClaiming ? 0 : destination.count;
    const turn = Math.min(slots.free(destination), claimed + claimable);
    if (turn <= 0) continue;

    const sent = Math.min(turn, claimed);
    if (sent > 0) {
      choice.send.push({ destination, count: sent });
      slots.take(destination, sent);
    }
    const isQuick = state.paces.get(destination.host) === 'quick';
    const isLacking = sent < turn || (isQuick && claimed - sent < quickClaimedMin);
    if (isLacking && claimable > 0 && claimsInFlight < claimsMax) {
      const rows = isQuick ? quickClaimBatchSize : claimBatchSize;
      choice.claim.push({ destination, rows, slots: turn - sent });
      slots.take(destination, turn - sent);
      claimsInFlight += 1;
    }
  }
  return choice;
}

/**
 * Claims are in the order of their leases, so the callbacks with too little time are at the front.
 */
function countLate({ claimed }: Destination, leasedUntilMin: Timestamp): number {
  const inTime = claimed.findIndex(({ leased_until }) => (leased_until ?? '') >= leasedUntilMin);
  return inTime < 0 ? claimed.length : inTime;
}

type SlotOwner = Pick<Destination, 'merchant_id' | 'host'>;

/** Counts the slots taken by deliveries in flight and by reservations. */
function countSlots({ destinations, flights, paces, milliseconds }: DispatchState<Destination>) {
  const hanging = new Set<string>();
  // Flights begin in batches, so most have the same destination as the previous one. Every choice
  // counts all flights, so they are counted in runs: a choice among 1,024 takes a third of the
  // time.
  const runs: { owner: SlotOwner; count: number }[] = [];
  let run: (typeof runs)[number] | undefined;
  for (const flight of flights) {
    const { merchant_id, host, sentAt } = flight;
    if (sentAt !== null && milliseconds - sentAt > slowMilliseconds) hanging.add(host);
    if (run?.owner.host === host && run.owner.merchant_id === merchant_id) {
      run.count += 1;
    } else {
      run = { owner: flight, count: 1 };
      runs.push(run);
    }
  }
  const isSlow = (host: string) => hanging.has(host) || paces.get(host) === 'slow';

  const ofHost = new Map<string, number>();
  const ofMerchant = new Map<string, number>();
  let ofSlow = 0;
  let ofOthers = 0;
  const take = ({ merchant_id, host }: SlotOwner, count: number) => {
    ofHost.set(host, (ofHost.get(host) ?? 0) + count);
    if (isSlow(host)) {
      ofSlow += count;
    } else {
      ofOthers += count;
      ofMerchant.set(merchant_id, (ofMerchant.get(merchant_id) ?? 0) + count);
    }
  };
  for (const { owner, count } of runs) take(owner, count);
  for (const destination of destinations) take(destination, destination.reserved);

  const free = ({ merchant_id, host }: SlotOwner) =>
    isSlow(host)
      ? Math.min(slowHostDeliveriesMax - (ofHost.get(host) ?? 0), slowDeliveriesMax - ofSlow)
      : Math.min(
          sendBatchSize,
          hostDeliveriesMax - (ofHost.get(host) ?? 0),
          merchantDeliveriesMax - (ofMerchant.get(merchant_id) ?? 0),
          deliveriesMax - ofOthers,
        );
  return { take, free };
}

/** The reasons of deliveries that hung or whose host could not be reached. */
const slowReasons = new Set(['timeout', 'dns', 'connect', 'tls']);

/**
 * The pace of a host after an exchange with it. Null if the exchange failed because of us, which
 * says nothing about the host.
 */
export function paceAfter({ reason, timings }: Pick<Exchange, 'reason' | 'timings'>): Pace | null {
  if (isOurFailure(reason)) return null;
  const { total = 0 } = timings;
  if (slowReasons.has(reason ?? '') || total > slowMilliseconds) return 'slow';
  return total < quickMilliseconds ? 'quick' : 'steady';
}
