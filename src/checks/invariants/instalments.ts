import { captureTime, collectionTime } from '#purchases/instalments/instalment.ts';
import type { Invariant, RowInvariants } from './invariant.ts';

const isEarly = (collection: string, due_on: string, zone: string) =>
  `${collection}.created_at < (case ${collection}.kind
    when 'capture' then ${due_on} + 1 + time '${captureTime}'
    else ${due_on} + time '${collectionTime}' end) at time zone ${zone}`;

/**
 * Each instalment with its checkout, the collection that collected it, and the amount that refunds
 * took from it.
 */
export const instalmentRows: RowInvariants = {
  // The unique index collections_collected allows one successful collection per instalment.
  rows: (within) => `
    select i.checkout_id, i.number, i.status, i.amount, i.reduced, i.amount - i.reduced as due,
      i.due_on, i.currency, i.payment_ref, c.completed_at, c.currency as sold_in,
      (c.completed_at at time zone t.time_zone)::date as sold_on,
      k.id is not null as is_brought, k.amount as brought, k.payment_ref as brought_ref,
      k.kind <> 'shopper' and ${isEarly('k', 'i.due_on', 't.time_zone')} as is_early,
      k.created_at as asked_at, coalesce(p.refunded, 0) as refunded, coalesce(p.taken, 0) as taken
    from instalments i
    join checkouts c on c.id = i.checkout_id and c.merchant_id = i.merchant_id
    join merchants m on m.id = c.merchant_id
    join territories t on t.code = m.territory
    left join collections k
      on k.checkout_id = i.checkout_id and k.instalment = i.number
      and k.merchant_id = i.merchant_id and k.status = 'collected' and ${within('k.checkout_id')}
    left join (
      select merchant_id, checkout_id, instalment,
        sum(case kind when 'card' then amount else 0 end) as refunded,
        sum(case kind when 'card' then 0 else amount end) as taken
      from refund_parts where status in ('open', 'done') and ${within('checkout_id')}
      group by merchant_id, checkout_id, instalment
    ) p on p.checkout_id = i.checkout_id and p.instalment = i.number
      and p.merchant_id = i.merchant_id
    where ${within('i.checkout_id')} and ${within('c.id')}`,
  each: [
    {
      name: 'M1',
      description:
        'instalments fall due month by month from the local date of the purchase, in the currency of their checkout',
      violated: `currency <> sold_in
        or due_on is distinct from (sold_on + (number - 1) * interval '1 month')::date`,
      shows: ['checkout_id', 'number', 'due_on', 'completed_at'],
    },
    {
      name: 'M5',
      description:
        'an instalment has the status collected if, and only if, exactly one collection took its amount less refunds',
      violated: `is_brought <> (status = 'collected')
        or is_brought and (brought <> due or brought_ref is distinct from payment_ref)`,
      shows: ['checkout_id', 'number', 'status', 'due', 'brought'],
    },
    {
      name: 'M5',
      description: 'no instalment was collected before it was due, except by the shopper',
      violated: 'is_early',
      shows: ['checkout_id', 'number', 'asked_at', 'due_on'],
    },
    {
      name: 'M7',
      description:
        'an instalment is reduced by what refunds took before it was collected, and no more than was collected is refunded to the card',
      violated: `reduced <> taken
        or refunded > case when status = 'collected' then due else 0 end`,
      shows: ['checkout_id', 'number', 'status', 'amount', 'reduced', 'taken', 'refunded'],
    },
  ],
};

export const instalmentInvariants: Invariant[] = [
  {
    name: 'M5',
    description:
      'no collection that failed or is open began before its instalment was due, except by the shopper',
    sql: (within) => `
      select k.checkout_id, k.instalment, k.number, k.created_at, i.due_on
      from collections k
      join instalments i on i.checkout_id = k.checkout_id and i.number = k.instalment
        and i.merchant_id = k.merchant_id
      join merchants m on m.id = k.merchant_id
      join territories t on t.code = m.territory
      where ${within('k.checkout_id')} and ${within('i.checkout_id')} and k.kind <> 'shopper'
        and k.status <> 'collected' and ${isEarly('k', 'i.due_on', 't.time_zone')}`,
  },
  {
    name: 'M5',
    description: 'a dispute pauses every instalment of its checkout that has no request in flight',
    sql: `
      select i.checkout_id, i.number, d.id as dispute_id
      from disputes d
      join instalments i on i.checkout_id = d.checkout_id and i.merchant_id = d.merchant_id
      where d.is_pausing and not i.paused
        and not exists (
          select from collections k
          where k.merchant_id = i.merchant_id and k.checkout_id = i.checkout_id
            and k.instalment = i.number and k.status = 'open')`,
  },
];
