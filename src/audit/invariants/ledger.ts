import type { Account } from '../../ledger/posting.ts';
import type { Invariant } from './invariant.ts';

const balance = (account: Account) =>
  `sum(case '${account}' when debit then amount when credit then -amount else 0 end)`;

export const ledgerInvariants: Invariant[] = [
  {
    name: 'M8',
    says: 'the postings of a checkout add up and agree with its instalments and refunds',
    sql: (within) => `
      with booked as (
        select merchant_id, checkout_id,
          -${balance('sale')} as sold, ${balance('outstanding')} as outstanding,
          ${balance('collected')} as collected, ${balance('refunded')} as refunded,
          ${balance('cancelled')} as cancelled, ${balance('disputed')} as disputed,
          ${balance('held')} as held,
          ${balance('reserved')} as reserved
        from postings where ${within('checkout_id')}
        group by merchant_id, checkout_id
      ), planned as (
        select merchant_id, checkout_id,
          sum(case when status in ('authorised', 'scheduled', 'overdue') then amount - reduced
            else 0 end) as outstanding,
          sum(case when status = 'collected' then amount - reduced else 0 end) as collected,
          sum(reduced) as cancelled,
          sum(case when status = 'authorised' then amount else 0 end) as held
        from instalments where ${within('checkout_id')}
        group by merchant_id, checkout_id
      ), returned as (
        select merchant_id, checkout_id, sum(amount) as amount
        from refund_parts where kind = 'card' and status = 'done' and ${within('checkout_id')}
        group by merchant_id, checkout_id
      ), taken as (
        select merchant_id, checkout_id, sum(withdrawn) as amount
        from disputes where ${within('checkout_id')}
        group by merchant_id, checkout_id
      ), claimed as (
        select r.merchant_id, r.checkout_id, sum(case when r.status = 'requested' then r.amount
          else (select sum(p.amount) from refund_parts p
            where p.refund_id = r.id and p.merchant_id = r.merchant_id
              and p.round = (select max(l.round) from refund_parts l
                where l.refund_id = r.id and l.merchant_id = r.merchant_id)) end) as amount
        from refund_requests r
        where r.status in ('requested', 'pending') and ${within('r.checkout_id')}
        group by r.merchant_id, r.checkout_id
      )
      select c.id, c.amount, b.sold, b.outstanding, b.collected, b.refunded, b.cancelled, b.disputed,
        b.held, b.reserved
      from checkouts c
      left join booked b on b.checkout_id = c.id and b.merchant_id = c.merchant_id
      left join planned p on p.checkout_id = c.id and p.merchant_id = c.merchant_id
      left join returned g on g.checkout_id = c.id and g.merchant_id = c.merchant_id
      left join taken d on d.checkout_id = c.id and d.merchant_id = c.merchant_id
      left join claimed k on k.checkout_id = c.id and k.merchant_id = c.merchant_id
      where ${within('c.id')} and case when c.status = 'successful' then
          b.sold is distinct from c.amount
          or b.outstanding + b.collected + b.refunded + b.cancelled + b.disputed <> c.amount
          or b.outstanding is distinct from p.outstanding
          or b.collected is distinct from p.collected - coalesce(g.amount, 0)
            - coalesce(d.amount, 0)
          or b.disputed is distinct from coalesce(d.amount, 0)
          or b.refunded is distinct from coalesce(g.amount, 0)
          or b.cancelled is distinct from p.cancelled
          or b.held is distinct from p.held
          or b.reserved is distinct from coalesce(k.amount, 0)
        else b.sold is not null end`,
  },
  {
    name: 'M10',
    says: 'every fee of the gateway is posted once',
    sql: `
      select checkout_id, sum(fee) as charged, sum(posted) as posted
      from (
        select merchant_id, checkout_id, fee, 0 as posted from gateway_fees
        union all
        select merchant_id, checkout_id, 0,
          case kind when 'gateway_fee' then amount else -amount end
        from postings where kind in ('gateway_fee', 'gateway_fee_returned')
      ) sides
      group by merchant_id, checkout_id having sum(fee) <> sum(posted)`,
  },
];
