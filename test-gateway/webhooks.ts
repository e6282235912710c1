import { createHmac } from 'node:crypto';
import { webhookOf } from './hyperswitch/disputes.ts';
import type { EventObject } from './objects/event.ts';

/** Where events are posted, and the protocol that determines their form and signature. */
export type Webhook = { url: string; secret: string; protocol?: 'stripe' | 'hyperswitch' };

type Message = { body: string; headers: Record<string, string> };

const attemptsMax = 5;
const firstPauseMs = 200;
const postMs = 5_000;

export type Webhooks = { notify(event: EventObject): void; close(): Promise<void> };

/** The body and the signature of an event. Null if the protocol announces no such event. */
export function messageOf({ secret, protocol }: Webhook, event: EventObject): Message | null {
  if (protocol !== 'hyperswitch') {
    const body = JSON.stringify(event);
    const seconds = Math.floor(Date.now() / 1000);
    const signature = `t=${seconds},v1=${signatureOf(secret, seconds, body)}`;
    return { body, headers: { 'stripe-signature': signature } };
  }
  const content = webhookOf(event);
  if (content === null) return null;
  const body = JSON.stringify(content);
  return { body, headers: { 'x-webhook-signature-512': bodySignatureOf(secret, body) } };
}

/**
 * Posts events, signed as the protocol demands, and retries a few times. Stripe's API still lists
 * an event that was not delivered. Receivers must accept events twice and in any order.
 */
export function createWebhooks(webhook: Webhook): Webhooks {
  const stopped = new AbortController();
  const deliveries = new Set<Promise<void>>();

  async function deliver(event: EventObject): Promise<void> {
    for (let attempt = 0; attempt < attemptsMax && !stopped.signal.aborted; attempt += 1) {
      const message = messageOf(webhook, event);
      if (message === null) return;
      try {
        const response = await fetch(webhook.url, {
          method: 'POST',
          headers: { 'content-type': 'application/json; charset=utf-8', ...message.headers },
          body: message.body,
          redirect: 'error',
          signal: AbortSignal.any([stopped.signal, AbortSignal.timeout(postMs)]),
        });
        await response.body?.cancel();
        if (response.ok) return;
      } catch {
        // The receiver does not answer. The next attempt may reach it.
      }
      await pause(firstPauseMs * 2 ** attempt, stopped.signal);
    }
  }

  return {
    notify(event) {
      // The request's transaction is synchronous, so it is committed before the event is posted.
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

/** Hyperswitch's signature does not include a time. */
function bodySignatureOf(secret: string, body: string): string {
  return createHmac('sha512', secret).update(body).digest('hex');
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
