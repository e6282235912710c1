import type { Invariant } from './invariant.ts';

export const refundInvariants: Invariant[] = [
  {
    name: 'M2',
    description:
      'refund requests, and what failed ones could not undo, sum to at most the amount of a successful checkout; no other checkout has any',
    sql: (within) => `
      select c.id, sum(case r.status when 'failed' then r.kept else r.amount end) as refunded, c.amount
      from refund_requests r join checkouts c on c.id = r.checkout_id and c.merchant_id = r.merchant_id
      where ${within('r.checkout_id')} and ${within('c.id')}
      group by c.id, c.merchant_id
      having sum(case r.status when 'failed' then r.kept else r.amount end) > c.amount
        or c.status <> 'successful'`,
  },
  {
    name: 'M6',
    description:
      'the parts of a complete refund sum to its amount, those of a failed one to what it kept, and a requested one has none',
    // A grouped subquery finds the last round. With a window function, PostgreSQL would read all
    // parts through an index.
    sql: (within) => `
      select r.id, r.status, r.amount, r.kept
      from refund_requests r
      left join refund_parts p on p.refund_id = r.id and p.merchant_id = r.merchant_id
        and ${within('p.checkout_id')}
      left join (
        select merchant_id, refund_id, max(round) as round
        from refund_parts where ${within('checkout_id')} group by merchant_id, refund_id
      ) l on l.refund_id = r.id and l.merchant_id = r.merchant_id
      where ${within('r.checkout_id')}
      group by r.id, r.merchant_id
      having case r.status
        when 'requested' then count(p.id) > 0
        when 'pending' then r.amount is distinct from
          sum(p.amount) filter (where p.status in ('done', 'open')
            or p.status = 'failed' and p.round = l.round)
        when 'complete' then bool_or(p.status = 'open')
          or r.amount is distinct from sum(p.amount) filter (where p.status = 'done')
        else bool_or(p.status = 'open')
          or r.kept <> coalesce(sum(p.amount) filter (where p.status = 'done'), 0) end`,
  },
];
