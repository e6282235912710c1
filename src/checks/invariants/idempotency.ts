import type { Invariant } from './invariant.ts';

export const idempotencyInvariants: Invariant[] = [
  {
    name: 'A5',
    description:
      'a successful answer kept under an idempotency key names a checkout, payment link or refund that exists',
    sql: `
      with kept as materialized (
        select integration_id, key, (answer ->> 'id')::uuid as id
        from idempotency_keys where status = 200
      ), found as materialized (
        select c.id from checkouts c join kept on kept.id = c.id
        union all
        select l.id from payment_links l join kept on kept.id = l.id
        union all
        select r.id from refund_requests r join kept on kept.id = r.id
      )
      select integration_id, key from kept left join found using (id) where found.id is null`,
  },
];
