import { createHmac } from 'node:crypto';
import type { EventObject } from './objects/event.ts';

export type Webhook = { url: string; secret: string };

const attemptsMax = 5;
const firstPauseMs = 200;
const postMs = 5_000;

export type Webhooks = { notify(event: EventObject): void; close(): Promise<void> };

/**
 * Posts events, signed as Stripe signs them, and retries a few times. An event that was not
 * delivered can still be listed. Receivers must take events twice and in any order.
 */
export function createWebhooks({ url, secret }: Webhook): Webhooks {
  const stopped = new AbortController();
  const deliveries = new Set<Promise<void>>();

  async function deliver(event: EventObject): Promise<void> {
    const body = JSON.stringify(event);
    for (let attempt = 0; attempt < attemptsMax && !stopped.signal.aborted; attempt += 1) {
      const seconds = Math.floor(Date.now() / 1000);
      try {
        const response = await fetch(url, {
          method: 'POST',
          headers: {
            'content-type': 'application/json; charset=utf-8',
            'stripe-signature': `t=${seconds},v1=${signatureOf(secret, seconds, body)}`,
          },
          body,
          redirect: 'error',
          signal: AbortSignal.any([stopped.signal, AbortSignal.timeout(postMs)]),
        });
        await response.body?.cancel();
        if (response.ok) return;
      } catch {
        // The receiver is away. The next attempt may reach it.
      }
      await pause(firstPauseMs * 2 ** attempt, stopped.signal);
    }
  }

  return {
    notify(event) {
      // Not before the request's transaction is committed, which is synchronous.
      const delivery = Promise.resolve().then(() => deliver(event));
      deliveries.add(delivery);
      void delivery.finally(() => deliveries.delete(delivery));
    },
    async close() {
      stopped.abort();
      await Promise.all(deliveries);
    },
  };
}

export function signatureOf(secret: string, seconds: number, body: string): string {
  return createHmac('sha256', secret).update(`${seconds}.${body}`).digest('hex');
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
