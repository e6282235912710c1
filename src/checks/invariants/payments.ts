import type { Invariant } from './invariant.ts';

// A first payment that is being voided does not count as in flight: it can no longer succeed, but
// another attempt can.
const inFlight = `(status in ('starting', 'begun', 'challenged')
  or status = 'voiding' and purpose <> 'first_payment')`;

export const paymentInvariants: Invariant[] = [
  {
    name: 'M3',
    description: 'at most one payment attempt of a checkout is in flight',
    sql: `
      select checkout_id from payment_attempts where ${inFlight}
      group by merchant_id, checkout_id having count(*) > 1`,
  },
  {
    name: 'M4',
    description:
      'a checkout that has ended has no first payment in flight, and only a paid one has an attempt on its plan',
    sql: `
      select c.id, c.status, a.purpose, a.status as attempt
      from (select * from payment_attempts where ${inFlight} or purpose <> 'first_payment') a
      join checkouts c on c.id = a.checkout_id and c.merchant_id = a.merchant_id
      where c.status <> case a.purpose when 'first_payment' then 'received' else 'successful' end`,
  },
  {
    name: 'M12',
    description: 'every row of a payment names the gateway of its checkout',
    sql: `
      select c.id, c.gateway, r.kind, r.gateway as row_gateway
      from (
        select merchant_id, checkout_id, gateway, 'attempt' as kind from payment_attempts
        union all select merchant_id, checkout_id, gateway, 'instalment' from instalments
        union all select merchant_id, checkout_id, gateway, 'refund' from refund_requests
        union all select merchant_id, checkout_id, gateway, 'dispute' from disputes
        union all select merchant_id, checkout_id, gateway, 'card' from replaced_cards
        union all select merchant_id, checkout_id, gateway, 'customer' from deleted_customers
      ) r
      join checkouts c on c.id = r.checkout_id and c.merchant_id = r.merchant_id
      where c.gateway <> r.gateway`,
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
