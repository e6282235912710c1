import type { Checkout } from '../checkouts/checkout.ts';
import type { Timestamp } from '../shared/clock.ts';

/**
 * What a merchant is told once a checkout ended `successful` or `cancelled`: `pending` until a
 * receiver answered 2xx (`delivered`) or every try failed (`exhausted`).
 */
export const callbackStatuses = ['pending', 'delivered', 'exhausted'] as const;
export type CallbackStatus = (typeof callbackStatuses)[number];

export type Callback = {
  merchant_id: string;
  id: string;
  checkout_id: string;
  integration_id: string;
  notify_url: string;
  payload: Buffer;
  status: CallbackStatus;
  created_at: Timestamp;
};

/** The bytes that will be sent, whenever that is: members in the spec's order, compact. */
export function callbackPayload(checkout: Checkout): Buffer {
  const { status, amount, currency, client_reference_id, number_of_payments } = checkout;
  return Buffer.from(
    JSON.stringify({ status, amount, currency, client_reference_id, number_of_payments }),
  );
}
