import { createHmac } from 'node:crypto';
import { sign } from '#platform/signing/signature.ts';

/** The contract's header, our own, and those of Standard Webhooks, which protect against replays. */
export function callbackHeaders(message: {
  id: string;
  payload: Buffer;
  number: number;
  key: string;
  now: Temporal.Instant;
}): Record<string, string> {
  const { id, payload, number, key } = message;
  const seconds = Math.floor(message.now.epochMilliseconds / 1000);
  const standard = createHmac('sha256', key).update(`${id}.${seconds}.`);
  return {
    'content-type': 'application/json',
    'x-signature': sign(key, payload),
    'user-agent': 'Tranche-Callback/1',
    'x-callback-id': id,
    'x-callback-attempt': String(number),
    'webhook-id': id,
    'webhook-timestamp': String(seconds),
    'webhook-signature': `v1,${standard.update(payload).digest('base64')}`,
  };
}
