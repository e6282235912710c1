import { attemptStatuses, isInFlight } from '#purchases/payments/payment-attempt.ts';
import type { Invariant } from './invariant.ts';

const inFlight = attemptStatuses
  .filter((status) => isInFlight({ status }))
  .map((status) => `'${status}'`)
  .join(', ');

export const paymentInvariants: Invariant[] = [
  {
    name: 'M3',
    description: 'at most one payment attempt of a checkout is in flight',
    sql: `
      select checkout_id from payment_attempts where status in (${inFlight})
      group by merchant_id, checkout_id having count(*) > 1`,
  },
  {
    name: 'M4',
    description: 'a checkout that has ended has no attempt in flight',
    sql: `
      select c.id, c.status, a.status as attempt
      from payment_attempts a
      join checkouts c on c.id = a.checkout_id and c.merchant_id = a.merchant_id
      where a.status in (${inFlight}) and c.status <> 'received'`,
  },
  {
    name: 'M4',
    description: 'a card is stored exactly when a successful checkout has several instalments',
    sql: `
      select c.id, c.status, c.number_of_payments, s.card_ref
      from checkouts c left join stored_cards s
        on s.checkout_id = c.id and s.merchant_id = c.merchant_id
      where (c.status = 'successful' and c.number_of_payments > 1) <> (s.card_ref is not null)`,
  },
];
