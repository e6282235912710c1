import { sign } from '#platform/signing/signature.ts';
import { webhookHeaders } from '#platform/signing/webhook-headers.ts';

/**
 * The contract's header, our own, and those of Standard Webhooks, which protect against replays.
 */
export function callbackHeaders(message: {
  id: string;
  payload: Buffer;
  number: number;
  key: string;
  now: Temporal.Instant;
}): Record<string, string> {
  const { id, payload, number, key } = message;
  return {
    'content-type': 'application/json',
    'x-signature': sign(key, payload),
    'user-agent': 'Tranche-Callback/1',
    'x-callback-id': id,
    'x-callback-attempt': String(number),
    ...webhookHeaders(message),
  };
}
