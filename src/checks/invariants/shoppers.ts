import type { Invariant } from './invariant.ts';

export const shopperInvariants: Invariant[] = [
  {
    name: 'M9',
    description: 'a payment is left to the shopper exactly while an attempt in flight covers it',
    sql: (within) => `
      select merchant_id, checkout_id, number, attempt
      from (
        select merchant_id, checkout_id, unnest(instalments) as number, id as attempt
        from payment_attempts
        where purpose = 'plan_payment' and due_at is not null and ${within('checkout_id')}
        union all
        select merchant_id, checkout_id, number, shopper_attempt
        from instalments where shopper_attempt is not null and ${within('checkout_id')}
      ) sides
      group by merchant_id, checkout_id, number, attempt having count(*) <> 2`,
  },
  {
    name: 'M9',
    description:
      'a collection by the shopper is open exactly while an attempt in flight covers its payment',
    sql: (within) => `
      select merchant_id, checkout_id, number
      from (
        select merchant_id, checkout_id, unnest(instalments) as number
        from payment_attempts
        where purpose = 'plan_payment' and due_at is not null and ${within('checkout_id')}
        union all
        select merchant_id, checkout_id, instalment
        from collections
        where kind = 'shopper' and status = 'open' and ${within('checkout_id')}
      ) sides
      group by merchant_id, checkout_id, number having count(*) <> 2`,
  },
  {
    name: 'M9',
    description:
      'a charged attempt by the shopper brought its amount, in one payment, for exactly the payments that it covers',
    sql: (within) => `
      select a.checkout_id, a.number, a.amount, sum(k.amount) as brought
      from payment_attempts a left join collections k
        on k.checkout_id = a.checkout_id and k.merchant_id = a.merchant_id
        and k.kind = 'shopper' and k.status = 'collected' and k.payment_ref = a.payment_ref
        and k.instalment = any (a.instalments) and ${within('k.checkout_id')}
      where a.status = 'charged' and ${within('a.checkout_id')}
      group by a.id, a.merchant_id
      having count(k.id) <> cardinality(a.instalments) or sum(k.amount) <> a.amount`,
  },
  {
    name: 'M9',
    description: 'what a shopper paid belongs to a charged attempt',
    sql: (within) => `
      select k.checkout_id, k.instalment, k.number, k.payment_ref
      from collections k left join payment_attempts a
        on a.checkout_id = k.checkout_id and a.merchant_id = k.merchant_id
        and a.status = 'charged' and a.payment_ref = k.payment_ref
        and k.instalment = any (a.instalments) and ${within('a.checkout_id')}
      where k.kind = 'shopper' and k.status = 'collected' and ${within('k.checkout_id')}
        and a.id is null`,
  },
  {
    name: 'M9',
    description: 'a card that a shopper added is stored, or was replaced by another',
    sql: (within) => `
      select a.checkout_id, a.number, a.card_ref
      from payment_attempts a
      left join stored_cards s on s.checkout_id = a.checkout_id
        and s.merchant_id = a.merchant_id and s.card_ref = a.card_ref
        and ${within('s.checkout_id')}
      left join replaced_cards r on r.checkout_id = a.checkout_id
        and r.merchant_id = a.merchant_id and r.card_ref = a.card_ref
        and ${within('r.checkout_id')}
      where ${within('a.checkout_id')} and a.consent is not null and a.card_ref is not null
        and a.status in ('charged', 'verified')
        and s.card_ref is null and r.card_ref is null`,
  },
  {
    name: 'M9',
    description: 'a stored card is not also a replaced card, which the gateway detaches',
    sql: (within) => `
      select s.checkout_id, s.card_ref, r.due_at, r.detached_at
      from replaced_cards r join stored_cards s on s.checkout_id = r.checkout_id
        and s.merchant_id = r.merchant_id and s.card_ref = r.card_ref
      where ${within('r.checkout_id')} and ${within('s.checkout_id')}`,
  },
];
