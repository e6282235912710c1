/** After this many requests in a row without an answer, the gateway counts as down. */
const failuresMax = 50;
/**
 * After this many unanswered requests in a row, new shoppers get another gateway, until `doubtMs`
 * after the last unanswered request.
 */
const doubtfulFailures = 3;
const doubtMs = 60_000;
const firstPauseMs = 1_000;
const pauseMsMax = 30_000;

/**
 * Stops asking a gateway that does not answer. All times are in milliseconds on a monotonic clock.
 *
 * Closed: requests pass. After `failuresMax` in a row without an answer, the breaker opens.
 * Open: no request passes until the pause is over.
 * Probing: one request has passed after the pause. Its answer closes the breaker. Without an answer
 * the breaker opens again, for twice as long.
 */
export function createBreaker(options: { failuresMax?: number } = {}) {
  const limit = options.failuresMax ?? failuresMax;
  let failures = 0;
  let pauseMs = firstPauseMs;
  /** When the next probe may pass; null while closed. */
  let probesAt: number | null = null;
  let isProbing = false;
  let failedAt = Number.NEGATIVE_INFINITY;
  return {
    /**
     * Whether a new shopper may be sent to this gateway. A shopper who is sent once `doubtMs` is
     * over acts as a probe.
     */
    isAnswering: (now: number): boolean => failures < doubtfulFailures || now - failedAt >= doubtMs,
    isOpen: (now: number): boolean => probesAt !== null && (isProbing || now < probesAt),
    /** Lets a request pass. While the breaker is open, that request is the probe. */
    enter(): void {
      isProbing = probesAt !== null;
    },
    /** The gateway answered, whatever it said. Returns true if this closes the breaker. */
    answered(): boolean {
      const isClosing = probesAt !== null;
      failures = 0;
      pauseMs = firstPauseMs;
      probesAt = null;
      isProbing = false;
      return isClosing;
    },
    /** The gateway did not answer. Returns true if this opens the breaker. */
    failed(now: number): boolean {
      failures += 1;
      failedAt = now;
      const isOpening = probesAt === null && failures >= limit;
      if (isOpening || isProbing) {
        probesAt = now + pauseMs;
        pauseMs = Math.min(pauseMs * 2, pauseMsMax);
        isProbing = false;
      }
      return isOpening;
    },
  };
}
