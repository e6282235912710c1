import type { Sealing } from '#platform/shared/sealing.ts';
import type { Callback } from '#purchases/callbacks/callback.ts';
import type { Checkout } from '#purchases/checkouts/checkout.ts';

// The callback of v1 (decision 0040) is an unsigned form. Its `transaction_verify`, a secret that
// the plugin received when it created the checkout, proves that the callback is genuine.

/**
 * The context that a `transaction_verify` is sealed with, so that it opens for no other checkout.
 */
export const verifyContext = (merchant_id: string, checkout_id: string | null) =>
  `transaction_verify ${merchant_id} ${checkout_id}`;

export function isForm({ sealed_verify }: Pick<Callback, 'sealed_verify'>): boolean {
  return sealed_verify !== null;
}

/**
 * The form as it is stored, fields in the contract's order. A `transaction_verify` lets its reader
 * forge the callback, so its value stays empty until the form is sent.
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

/**
 * The form as it is sent. Null if the callback is not a form, or if no known master key opens its
 * `transaction_verify`.
 */
export function formBody(sealing: Sealing, callback: Callback): Buffer | null {
  const { payload, sealed_verify, merchant_id, checkout_id } = callback;
  if (sealed_verify === null || !sealing.isKnown(sealed_verify)) return null;
  const transaction_verify = sealing.open(sealed_verify, verifyContext(merchant_id, checkout_id));
  // The separator occurs once, because `&` and `=` are encoded in values.
  const [before = '', after = ''] = payload.toString('utf8').split('&transaction_verify=&');
  return Buffer.from(`${before}&${new URLSearchParams({ transaction_verify })}&${after}`);
}
