import type { Socket } from 'node:net';

/**
 * Faults of a connection or a gateway, at a moment that a test chooses. A fault strikes the
 * requests that match it, a given number of times.
 */
export const faultKinds = [
  /** Waits before the effect. The request's key is in flight during the wait. */
  'latency',
  /** Waits between the effect and the answer. The key stays in flight. */
  'latency_after',
  /** A 500 without an effect. */
  'error_before',
  /** A 429 without an effect: too many requests. */
  'too_many',
  /** A 500 after the effect. */
  'error_after',
  /**
   * A 400 without an effect: the payment is being processed, and takes no cancellation yet. Only
   * Stripe's API has this fault.
   */
  'processing',
  /**
   * A 400 without a charge: no acquirer can charge the stored card now. Only Hyperswitch's API has
   * this fault, and has saved the payment by then.
   */
  'no_acquirer',
  /** Closes the connection before the effect. */
  'drop_before',
  /** Closes the connection after the effect. */
  'drop_after',
  /**
   * Waits before the effect, as `latency` does, but by default for 30 seconds: a test removes the
   * fault earlier.
   */
  'hold_key',
  /** Declines the card with `decline_code`. A refund fails, either at once or an hour later. */
  'decline',
] as const;

export type Fault = {
  id: string;
  fault: (typeof faultKinds)[number];
  method: string | null;
  /** A path in which `:id` stands for any single segment: `/v1/payment_intents/:id/capture`. */
  path: string | null;
  /**
   * The fault strikes only requests whose idempotency key contains this text. In Hyperswitch's API,
   * which has no such keys, the ids in the request are the key.
   */
  key_contains: string | null;
  /** How many matching requests pass before the fault strikes. */
  skip: number;
  /** How many requests the fault strikes. */
  times: number;
  ms: number;
  decline_code: string;
  struck: number;
};

type Waiting = { fault: string; release: () => void };

export type Faults = ReturnType<typeof createFaults>;

/** `onWait` is called when a fault makes a request wait. */
export function createFaults(onWait: () => void = () => {}) {
  const faults: Fault[] = [];
  const waiting = new Set<Waiting>();
  let count = 0;

  function release(matches: (waiter: Waiting) => boolean): void {
    for (const waiter of [...waiting].filter(matches)) waiter.release();
  }

  return {
    add(given: Record<string, unknown>): Fault | string {
      const problem = faultProblem(given);
      if (problem !== null) return problem;
      count += 1;
      const fault = makeFault(`fault_${count}`, given);
      faults.push(fault);
      return fault;
    },

    list: (): Fault[] => faults,

    remove(id: string | null): number {
      const gone = faults.filter((fault) => id === null || fault.id === id);
      for (const fault of gone) faults.splice(faults.indexOf(fault), 1);
      release((waiter) => id === null || waiter.fault === id);
      return gone.length;
    },

    /** The fault that strikes this request, if any. Each call counts as a request. */
    strike(request: { method: string; path: string; key: string | null }): Fault | null {
      // A decline comes last, because a fault of the connection strikes before the bank is asked.
      const isLater = ({ fault }: { fault: string }) => Number(fault === 'decline');
      for (const fault of faults.toSorted((one, other) => isLater(one) - isLater(other))) {
        if (!matches(fault, request) || fault.struck >= fault.times) continue;
        if (fault.skip > 0) {
          fault.skip -= 1;
          continue;
        }
        fault.struck += 1;
        return fault;
      }
      return null;
    },

    /** Resolves when the fault's time has passed or the fault was removed. */
    wait(fault: Fault): Promise<void> {
      return new Promise((resolve) => {
        const waiter: Waiting = {
          fault: fault.id,
          release() {
            clearTimeout(timer);
            waiting.delete(waiter);
            resolve();
          },
        };
        const timer = setTimeout(waiter.release, fault.ms);
        waiting.add(waiter);
        onWait();
      });
    },
  };
}

function makeFault(id: string, given: Record<string, unknown>): Fault {
  const text = (name: string) => (given[name] === undefined ? null : String(given[name]));
  return {
    id,
    fault: given.fault as Fault['fault'],
    method: text('method')?.toUpperCase() ?? null,
    path: text('path'),
    key_contains: text('key_contains'),
    skip: Number(given.skip ?? 0),
    times: Number(given.times ?? 1),
    ms: Number(given.ms ?? (given.fault === 'hold_key' ? 30_000 : 1_000)),
    decline_code: text('decline_code') ?? 'generic_decline',
    struck: 0,
  };
}

function matches(
  fault: Fault,
  request: { method: string; path: string; key: string | null },
): boolean {
  if (fault.method !== null && fault.method !== request.method) return false;
  if (fault.key_contains !== null && !request.key?.includes(fault.key_contains)) return false;
  if (fault.path === null) return true;
  const wanted = fault.path.split('/');
  const parts = request.path.split('/');
  return (
    wanted.length === parts.length && wanted.every((part, i) => part === ':id' || part === parts[i])
  );
}

const members = [
  'fault',
  'method',
  'path',
  'key_contains',
  'skip',
  'times',
  'ms',
  'decline_code',
] as const;

function faultProblem(given: Record<string, unknown>): string | null {
  const unknown = Object.keys(given).find((name) => !members.some((known) => known === name));
  if (unknown !== undefined) return `There is no member ${unknown}.`;
  if (!faultKinds.some((kind) => kind === given.fault)) {
    return `fault must be one of ${faultKinds.join(', ')}.`;
  }
  for (const name of ['skip', 'times', 'ms'] as const) {
    const value = given[name];
    if (value !== undefined && !(Number.isSafeInteger(value) && Number(value) >= 0)) {
      return `${name} must be an integer of at least 0.`;
    }
  }
  if (Number(given.ms ?? 0) > 600_000) return 'ms must be at most 600000.';
  return null;
}

/** Does the work and sends its answer. The fault may delay or prevent either of the two. */
export async function withFault(
  faults: Faults,
  fault: Fault | null,
  socket: Socket,
  work: () => () => void,
): Promise<void> {
  switch (fault?.fault) {
    case 'latency':
    case 'hold_key':
      await faults.wait(fault);
      work()();
      break;
    case 'latency_after': {
      const answer = work();
      await faults.wait(fault);
      answer();
      break;
    }
    case 'drop_before':
      socket.destroy();
      break;
    case 'drop_after':
      work();
      socket.destroy();
      break;
    default:
      work()();
  }
}
