import type { Invariant } from './invariant.ts';

export const statusInvariants: Invariant[] = [
  {
    name: 'S1',
    description: 'a checkout that has ended has one recorded move, into its status',
    sql: `
      select c.id, c.status, m.to_status
      from checkouts c left join checkout_moves m
        on m.checkout_id = c.id and m.merchant_id = c.merchant_id
      where c.status <> coalesce(m.to_status, 'received')`,
  },
  {
    name: 'S2',
    description:
      'a successful or cancelled checkout with a notify_url has exactly one callback, any other has none',
    sql: `
      select c.id, c.status, count(k.id) as callbacks
      from checkouts c left join callbacks k
        on k.listed_id = c.id and k.merchant_id = c.merchant_id and k.event is null
      group by c.id, c.merchant_id
      having count(k.id) <> case
        when c.status in ('successful', 'cancelled') and c.notify_url is not null then 1 else 0 end`,
  },
];
