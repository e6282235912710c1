import { createHmac } from 'node:crypto';

/**
 * The headers of Standard Webhooks. They prove who sent a post, and their time protects against
 * replays.
 */
export function webhookHeaders(message: {
  id: string;
  payload: Buffer;
  key: string;
  now: Temporal.Instant;
}): Record<string, string> {
  const { id, payload, key, now } = message;
  const seconds = Math.floor(now.epochMilliseconds / 1000);
  const signature = createHmac('sha256', key).update(`${id}.${seconds}.`).update(payload);
  return {
    'webhook-id': id,
    'webhook-timestamp': String(seconds),
    'webhook-signature': `v1,${signature.digest('base64')}`,
  };
}
