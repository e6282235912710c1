import type { Clock } from '#platform/shared/clock.ts';
import type { Logger } from '#platform/shared/logger.ts';
import { inSpan } from '#platform/tracing/trace.ts';
import { createBreaker } from './breaker.ts';
import { type Gateway, OutcomeUnknown } from './gateway.ts';
import { createPacer, type Pacer } from './pacer.ts';

export type GatewayLimits = {
  /** The limit for all users of the gateway in this process. Null if there is no limit. */
  requestsPerSecond: number | null;
  /** The limit for one kind of call, if the gateway has one. */
  requestsPerSecondOfKind?: number;
  /** How many unanswered requests in a row open the breaker. Only tests set it, to a low number. */
  failuresMax?: number;
};

/** Called with each call that was sent, its outcome and how long it took. */
export type ObserveCall = (operation: string, outcome: string, milliseconds: number) => void;

/** Shoppers wait for these. The worker also calls them, but seldom many at once. */
const shopperCalls = new Set([
  'createCustomer',
  'begin',
  'payment',
  'findPayment',
  'void',
  'enteredCard',
  'beginVerification',
  'cardVerification',
  'findCardVerification',
  'voidVerification',
]);

/**
 * These send nothing to the gateway. Strangers can post events, so events must not use up the
 * budget.
 */
const localCalls = new Set(['readEvent']);

/** Calls that the gateway counts as one kind: both make a payment. */
const sameKind = new Map([['charge', 'begin']]);

/** A reconciliation reads thousands of pages and no shopper waits for it. */
const readCalls = new Set(['listRecords']);

/** The shoppers' part of the budget. Shoppers and worker may each use what the other leaves. */
const shopperShare = 0.3;
/** A reconciliation has a small separate share, which it never exceeds. */
const reconciliationShare = 0.1;
const burstSeconds = 0.5;

/** A call that would wait longer than this fails at once. Its row stays due, so it is retried. */
const waitMsMax = { shopper: 5_000, worker: 15_000, reconciliation: 60_000 };
const tooManyPauseMs = 1_000;
/**
 * We never wait longer than this, whatever the gateway asks for. Its rate limits are per second.
 */
const tooManyPauseMsMax = 30_000;

/**
 * Gives all uses of the gateway in this process one budget of requests and one circuit breaker
 * (decision 0049). A call that may not be sent throws `OutcomeUnknown`, like one that got no
 * answer: its row stays due.
 */
export function limitGateway(
  gateway: Gateway,
  { clock, log, observe = () => {} }: { clock: Clock; log: Logger; observe?: ObserveCall },
  limits: GatewayLimits,
): Gateway {
  const breaker = createBreaker(limits);
  const pacers = createPacers(limits.requestsPerSecond);
  const limiter = { clock, log, observe, breaker, pacers, pacersOf: pacersByKind(limits) };
  const limited = Object.entries(gateway).map(([name, member]) => {
    if (typeof member !== 'function' || localCalls.has(name)) return [name, member];
    const call = member as (...args: unknown[]) => Promise<unknown>;
    return [name, (...args: unknown[]) => callLimited(limiter, name, () => call(...args))];
  });
  const isAnswering = () => breaker.isAnswering(clock.monotonic());
  return { ...(Object.fromEntries(limited) as Gateway), isAnswering };
}

type User = keyof typeof waitMsMax;

type Limiter = {
  readonly clock: Clock;
  readonly log: Logger;
  readonly observe: ObserveCall;
  readonly breaker: ReturnType<typeof createBreaker>;
  readonly pacers: Pacers | null;
  /** The pacers for this kind of call. Null if the kind has no limit of its own. */
  readonly pacersOf: (name: string) => Pacers | null;
};

function userOf(name: string): User {
  if (shopperCalls.has(name)) return 'shopper';
  return readCalls.has(name) ? 'reconciliation' : 'worker';
}

function callLimited<T>(limiter: Limiter, name: string, call: () => Promise<T>): Promise<T> {
  const { clock, observe, breaker } = limiter;
  return inSpan(`gateway ${name}`, 'client', async (span) => {
    refuseIfOpen(limiter);
    await pace(limiter, name);
    // The breaker may have opened in the meantime.
    refuseIfOpen(limiter);
    breaker.enter();
    const start = clock.monotonic();
    const note = (outcome: string) => {
      observe(name, outcome, clock.monotonic() - start);
      if (span) span.attributes['tranche.outcome'] = outcome;
    };
    try {
      const answer = await call();
      noteAnswer(limiter);
      note('answered');
      return answer;
    } catch (error) {
      noteFailure(limiter, name, error);
      note(error instanceof OutcomeUnknown ? (error.why ?? 'unknown') : 'refused');
      throw error;
    }
  });
}

function refuseIfOpen({ breaker, clock }: Limiter): void {
  if (breaker.isOpen(clock.monotonic())) {
    throw new OutcomeUnknown('the gateway does not answer, and was not asked');
  }
}

/** Waits until the budgets allow a call, or throws if that takes too long. */
async function pace({ pacers, pacersOf, clock }: Limiter, name: string): Promise<void> {
  const now = clock.monotonic();
  const user = userOf(name);
  const chosen = [pacers, pacersOf(name)].flatMap((all) => all ?? []).map(choosePacer(user, now));
  const waitMs = Math.max(0, ...chosen.map((pacer) => pacer.waitMs(now)));
  if (waitMs > waitMsMax[user]) {
    throw new OutcomeUnknown('the budget of requests to the gateway is used up');
  }
  for (const pacer of chosen) pacer.take(now);
  if (waitMs > 0) await clock.sleep(waitMs);
}

const choosePacer = (user: User, now: number) => (all: Pacers) => {
  const [own, other] = [all[user], all[user === 'shopper' ? 'worker' : 'shopper']];
  const mayBorrow = user !== 'reconciliation' && own.waitMs(now) > 0 && other.waitMs(now) === 0;
  return mayBorrow ? other : own;
};

function noteFailure(limiter: Limiter, name: string, error: unknown): void {
  const { clock, log, breaker, pacers, pacersOf } = limiter;
  const now = clock.monotonic();
  const why = error instanceof OutcomeUnknown ? error.why : null;
  if (why === 'too_many') {
    const asked = (error as OutcomeUnknown).retryAfterMs ?? tooManyPauseMs;
    const pauseMs = Math.min(Math.max(asked, tooManyPauseMs), tooManyPauseMsMax);
    // If this kind of call has a limit of its own, only this kind pauses. That limit is never above
    // the one for all calls, so it is probably the one that was exceeded.
    for (const pacer of Object.values(pacersOf(name) ?? pacers ?? {})) pacer.pause(now, pauseMs);
  }
  if (why !== 'no_answer') noteAnswer(limiter);
  else if (breaker.failed(now)) log.error({ err: error }, 'the gateway does not answer');
}

function noteAnswer({ breaker, log }: Limiter): void {
  if (breaker.answered()) log.info('the gateway answers again');
}

function pacersByKind({ requestsPerSecondOfKind: limit }: GatewayLimits): Limiter['pacersOf'] {
  const byKind = new Map<string, Pacers | null>();
  return (name) => {
    // A reconciliation's share of all requests is already lower than the limit for a kind.
    if (limit === undefined || readCalls.has(name)) return null;
    const kind = sameKind.get(name) ?? name;
    if (!byKind.has(kind)) byKind.set(kind, createPacers(limit));
    return byKind.get(kind) ?? null;
  };
}

type Pacers = Record<User, Pacer>;

function createPacers(requestsPerSecond: number | null): Pacers | null {
  if (requestsPerSecond === null) return null;
  const share = (part: number) => {
    const perSecond = requestsPerSecond * part;
    return createPacer({ perSecond, burst: Math.max(1, Math.ceil(perSecond * burstSeconds)) });
  };
  return {
    shopper: share(shopperShare),
    worker: share(1 - shopperShare - reconciliationShare),
    reconciliation: share(reconciliationShare),
  };
}
