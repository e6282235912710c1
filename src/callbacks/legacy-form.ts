import { type Checkout, verifyContext } from '../checkouts/checkout.ts';
import type { Sealing } from '../shared/sealing.ts';
import type { Callback } from './callback.ts';

// The callback of v1 (D32): a form that proves itself by a value which only the plugin and we know.
// v1 knows no signatures.

export function isForm({ sealed_verify }: Pick<Callback, 'sealed_verify'>): boolean {
  return sealed_verify !== null;
}

/**
 * The bytes that are kept, fields in the spec's order. Whoever knows a `transaction_verify` can forge
 * the callback, so its place is empty until they are sent.
 */
export function formPayload(
  checkout: Pick<Checkout, 'status' | 'client_reference_id' | 'number_of_payments'>,
): Buffer {
  const { status, client_reference_id, number_of_payments } = checkout;
  const form = new URLSearchParams({
    status: status === 'successful' ? 'success' : status,
    order_id: client_reference_id,
    transaction_verify: '',
    number_of_payments: String(number_of_payments),
  });
  return Buffer.from(form.toString());
}

export function formHeaders(callback: Callback, number: number): Record<string, string> {
  return {
    'content-type': 'application/x-www-form-urlencoded',
    'user-agent': 'Tranche-Callback/1',
    'x-callback-id': callback.id,
    'x-callback-attempt': String(number),
  };
}

/** The bytes as they are sent; null when no master key at hand opens what proves them. */
export function formBody(sealing: Sealing, callback: Callback): Buffer | null {
  const { payload, sealed_verify, merchant_id, checkout_id } = callback;
  if (sealed_verify === null || !sealing.isKnown(sealed_verify)) return null;
  const transaction_verify = sealing.open(sealed_verify, verifyContext(merchant_id, checkout_id));
  // No other field can hold what is looked for: `&` and `=` are encoded in them.
  const [before = '', after = ''] = payload.toString('utf8').split('&transaction_verify=&');
  return Buffer.from(`${before}&${new URLSearchParams({ transaction_verify })}&${after}`);
}
