import type { Statement } from '#gateway/gateway.ts';
import type { Payment } from './answers.ts';
import { attemptIn, checkoutIn } from './ids.ts';

// The facts that the adapter states when it creates a payment, and believes later. A shopper's
// browser has the publishable key and the session's secret, and with these the server lets it
// replace the metadata when it confirms. So metadata is written for people, and never read. The
// server takes the ids and the description only from a request with the secret key.

type OwnWords = {
  attempt_id: string | null;
  checkout_id: string | null;
  instalments: number[];
  /** Null for what a shopper pays on the plan. */
  number_of_payments: number | null;
};

/** The gateway stores no longer text. Our numbers come first, so that the name is what is cut. */
const charactersMax = 255;

/**
 * `Payment 2 of 3 to Bean There`, or `Plan payment 2, 3 of 3 to Bean There` if the shopper pays on
 * the plan. It contains no personal data.
 */
export function describePayment(
  { merchant_name, instalments, number_of_payments }: Statement,
  isOnPlan: boolean,
): string {
  const kind = isOnPlan ? 'Plan payment' : 'Payment';
  const which = `${instalments.join(', ')} of ${number_of_payments}`;
  return `${kind} ${which} to ${merchant_name}`.slice(0, charactersMax);
}

const form = /^(Plan payment|Payment) (\d+(?:, \d+)*) of (\d+) to /;

/** Reads what we said of a payment; nothing of one that this adapter did not create. */
export function ownWords({ payment_id, customer_id, description }: Payment): OwnWords {
  const [, kind, numbers = '', of] = form.exec(description ?? '') ?? [];
  return {
    attempt_id: attemptIn(payment_id),
    checkout_id: checkoutIn(customer_id ?? ''),
    instalments: numbers === '' ? [] : numbers.split(', ').map(Number),
    number_of_payments: kind === 'Payment' ? Number(of) : null,
  };
}
