import { attemptStatuses, finishMinutes, isInFlight } from '../../payments/payment-attempt.ts';
import type { Invariant } from './invariant.ts';

const inFlight = attemptStatuses
  .filter((status) => isInFlight({ status }))
  .map((status) => `'${status}'`)
  .join(', ');

export const paymentInvariants: Invariant[] = [
  {
    name: 'M3',
    says: 'at most one payment attempt of a checkout is in flight',
    sql: `
      select checkout_id from payment_attempts where status in (${inFlight})
      group by merchant_id, checkout_id having count(*) > 1`,
  },
  {
    name: 'M4',
    says: 'a successful checkout has exactly one authorised attempt, and no other checkout has any',
    sql: (within) => `
      select c.id, c.status, count(a.id) as authorised
      from checkouts c left join payment_attempts a
        on a.checkout_id = c.id and a.merchant_id = c.merchant_id and a.status = 'authorised'
        and ${within('a.checkout_id')}
      where ${within('c.id')}
      group by c.id, c.merchant_id
      having count(a.id) <> case when c.status = 'successful' then 1 else 0 end`,
  },
  {
    name: 'M4',
    says: 'the authorised attempt held the first instalment in the term of the checkout, and finished in time',
    sql: (within) => `
      select c.id, c.expires_at, c.completed_at, a.amount, a.number_of_payments
      from payment_attempts a
      join checkouts c on c.id = a.checkout_id and c.merchant_id = a.merchant_id
      left join instalments i on i.checkout_id = c.id and i.merchant_id = c.merchant_id
        and i.number = 1 and ${within('i.checkout_id')}
      where a.status = 'authorised' and ${within('a.checkout_id')} and ${within('c.id')}
        and (i.status = 'authorised' and i.payment_ref is distinct from a.payment_ref
          or a.number_of_payments is distinct from c.number_of_payments
          or a.currency <> c.currency or a.amount is distinct from i.amount
          or a.created_at >= c.expires_at
          or c.completed_at > c.expires_at + interval '${finishMinutes} minutes')`,
  },
  {
    name: 'M4',
    says: 'a checkout that has ended has no attempt in flight',
    sql: `
      select c.id, c.status, a.status as attempt
      from payment_attempts a
      join checkouts c on c.id = a.checkout_id and c.merchant_id = a.merchant_id
      where a.status in (${inFlight}) and c.status <> 'received'`,
  },
  {
    name: 'M4',
    says: 'a card is stored exactly when a successful checkout has several instalments',
    sql: `
      select c.id, c.status, c.number_of_payments, s.card_ref
      from checkouts c left join stored_cards s
        on s.checkout_id = c.id and s.merchant_id = c.merchant_id
      where (c.status = 'successful' and c.number_of_payments > 1) <> (s.card_ref is not null)`,
  },
];
