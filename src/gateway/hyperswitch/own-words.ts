import { RequestRefused, type Statement } from '#gateway/gateway.ts';
import type { Payment } from './answers.ts';
import { attemptIn, checkoutIn } from './ids.ts';

// The facts that the adapter states when it creates a payment, and believes later. A shopper's
// browser has the publishable key and the session's secret, with which it may replace the metadata
// when it confirms a payment. So metadata is written for people, and never read. The server takes
// the ids and the description only from a request with the secret key.

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
 * `Payment 2 of 3 to Bean There`, or `Plan payment 2, 4-12 of 12 to Bean There` if the shopper pays
 * on the plan. It contains no personal data. A request whose numbers do not fit is refused, because
 * its payment could not be found again; that takes a plan of about a hundred payments with as many
 * gaps.
 */
export function describePayment(
  { merchant_name, instalments, number_of_payments }: Statement,
  isOnPlan: boolean,
): string {
  const kind = isOnPlan ? 'Plan payment' : 'Payment';
  const said = `${kind} ${writeRuns(instalments)} of ${number_of_payments} to `;
  if (said.length > charactersMax) {
    throw new RequestRefused('the numbers of these payments do not fit into a description');
  }
  return `${said}${merchant_name}`.slice(0, charactersMax);
}

/** `2, 4-12` */
function writeRuns(numbers: number[]): string {
  const runs: { first: number; last: number }[] = [];
  for (const number of numbers) {
    const run = runs.at(-1);
    if (run && number === run.last + 1) run.last = number;
    else runs.push({ first: number, last: number });
  }
  return runs.map(({ first, last }) => (first === last ? first : `${first}-${last}`)).join(', ');
}

const readRuns = (text: string): number[] =>
  text.split(', ').flatMap((run) => {
    const [first = 0, last = first] = run.split('-').map(Number);
    return Array.from({ length: Math.max(0, last - first + 1) }, (_, index) => first + index);
  });

const form =
  /^(Plan payment|Payment) (\d{1,3}(?:-\d{1,3})?(?:, \d{1,3}(?:-\d{1,3})?)*) of (\d{1,3}) to /;

/** Reads what we said of a payment; nothing of one that this adapter did not create. */
export function ownWords({ payment_id, customer_id, description }: Payment): OwnWords {
  const [, kind, numbers = '', of] = form.exec(description ?? '') ?? [];
  return {
    attempt_id: attemptIn(payment_id),
    checkout_id: checkoutIn(customer_id ?? ''),
    instalments: numbers === '' ? [] : readRuns(numbers),
    number_of_payments: kind === 'Payment' ? Number(of) : null,
  };
}
