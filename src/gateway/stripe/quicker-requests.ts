import type Stripe from 'stripe';

// Both functions are only for speed. A request took 110 µs of processor time without them, and takes
// 88 µs.

/** Makes the SDK build the header that describes it once, and not for each request. */
export function keepClientUserAgent(stripe: Stripe): void {
  const described = stripe as unknown as { getClientUserAgent(take: (text: string) => void): void };
  const build = described.getClientUserAgent.bind(stripe);
  let known: string | null = null;
  described.getClientUserAgent = (take) => {
    if (known === null) {
      build((text) => {
        known = text;
        take(text);
      });
    } else take(known);
  };
}

/**
 * Sends a request without recording where it was sent from. The SDK would write down a stack for
 * each request, for an error that it may throw later. We throw our own errors instead.
 */
export function sendWithoutStack<T>(send: () => Promise<T>): Promise<T> {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    return send();
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}
