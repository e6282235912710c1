import type { Clock } from '#platform/shared/clock.ts';
import type { Logger } from '#platform/shared/logger.ts';
import { inSpan } from '#platform/tracing/trace.ts';
import { createBreaker } from './breaker.ts';
import { type Gateway, OutcomeUnknown } from './gateway.ts';
import { createPacer } from './pacer.ts';

export type GatewayLimits = {
  /** The limit for all users of the gateway in this process. Null if there is no limit. */
  requestsPerSecond: number | null;
  /** Tests need fewer. */
  failuresMax?: number;
};

/** Called with each call that was sent, its outcome and how long it took. */
type ObserveCall = (operation: string, outcome: string, milliseconds: number) => void;

/** Shoppers wait for these. The worker calls them, too, but seldom many at once. */
const shopperCalls = new Set([
  'createCustomer',
  'authorise',
  'payment',
  'findPayment',
  'void',
  'pay',
  'verifyCard',
  'cardVerification',
  'findCardVerification',
  'voidVerification',
]);

/** These ask nothing of the gateway. Anyone may post an event, so it must not use up the budget. */
const localCalls = new Set(['readEvent']);

/** A reconciliation reads thousands of pages and no shopper waits for it. */
const walkCalls = new Set(['listRecords']);

/** The shoppers' part of the budget. Shoppers and worker may each use what the other leaves. */
const shopperShare = 0.3;
/** Reading through the records has a small share of its own, which it never exceeds. */
const walkShare = 0.1;
const burstSeconds = 0.5;

/** A call that does not get through in this time is retried from its row. */
const waitMsMax = { shopper: 5_000, worker: 15_000, walk: 60_000 };
const tooManyPauseMs = 1_000;
/**
 * We never wait longer than this, whatever the gateway asks for. Its rate limits are per second.
 */
const tooManyPauseMsMax = 30_000;

/**
 * One budget of requests and one circuit breaker for everything in this process that uses the
 * gateway (decision 0049). A call that may not be sent throws `OutcomeUnknown`, like one that got
 * no answer: its row stays due.
 */
export function limitGateway(
  gateway: Gateway,
  { clock, log, observe = () => {} }: { clock: Clock; log: Logger; observe?: ObserveCall },
  limits: GatewayLimits,
): Gateway {
  const breaker = createBreaker(limits);
  const pacers = createPacers(limits.requestsPerSecond);

  async function pace(user: keyof typeof waitMsMax): Promise<void> {
    if (pacers === null) return;
    const now = clock.monotonic();
    const [own, other] = [pacers[user], pacers[user === 'shopper' ? 'worker' : 'shopper']];
    const mayBorrow = user !== 'walk' && own.waitMs(now) > 0 && other.waitMs(now) === 0;
    const pacer = mayBorrow ? other : own;
    const waitMs = pacer.waitMs(now);
    if (waitMs > waitMsMax[user]) {
      throw new OutcomeUnknown('the budget of requests to the gateway is used up');
    }
    pacer.take(now);
    if (waitMs > 0) await clock.sleep(waitMs);
  }

  function refuseIfOpen(): void {
    if (breaker.isOpen(clock.monotonic())) {
      throw new OutcomeUnknown('the gateway does not answer, and was not asked');
    }
  }

  function noteFailure(error: unknown): void {
    const now = clock.monotonic();
    const why = error instanceof OutcomeUnknown ? error.why : null;
    if (why === 'too_many') {
      const asked = (error as OutcomeUnknown).retryAfterMs ?? tooManyPauseMs;
      const pauseMs = Math.min(Math.max(asked, tooManyPauseMs), tooManyPauseMsMax);
      for (const pacer of Object.values(pacers ?? {})) pacer.pause(now, pauseMs);
    }
    if (why !== 'no_answer') noteAnswer();
    else if (breaker.failed(now)) log.error({ err: error }, 'the gateway does not answer');
  }

  function noteAnswer(): void {
    if (breaker.answered()) log.info('the gateway answers again');
  }

  const limited = Object.entries(gateway).map(([name, member]) => {
    if (typeof member !== 'function' || localCalls.has(name)) return [name, member];
    const call = member as (...args: unknown[]) => Promise<unknown>;
    const user = shopperCalls.has(name) ? 'shopper' : walkCalls.has(name) ? 'walk' : 'worker';
    return [
      name,
      (...args: unknown[]) =>
        inSpan(`gateway ${name}`, 'client', async (span) => {
          refuseIfOpen();
          await pace(user);
          // It may have opened meanwhile.
          refuseIfOpen();
          breaker.enter();
          const start = clock.monotonic();
          const note = (outcome: string) => {
            observe(name, outcome, clock.monotonic() - start);
            if (span) span.attributes['tranche.outcome'] = outcome;
          };
          try {
            const answer = await call(...args);
            noteAnswer();
            note('answered');
            return answer;
          } catch (error) {
            noteFailure(error);
            note(error instanceof OutcomeUnknown ? (error.why ?? 'unknown') : 'refused');
            throw error;
          }
        }),
    ];
  });
  return Object.fromEntries(limited) as Gateway;
}

function createPacers(requestsPerSecond: number | null) {
  if (requestsPerSecond === null) return null;
  const share = (part: number) => {
    const perSecond = requestsPerSecond * part;
    return createPacer({ perSecond, burst: Math.max(1, Math.ceil(perSecond * burstSeconds)) });
  };
  return {
    shopper: share(shopperShare),
    worker: share(1 - shopperShare - walkShare),
    walk: share(walkShare),
  };
}
