import type { Invariant } from './invariant.ts';

export const payoutInvariants: Invariant[] = [
  {
    name: 'P1',
    description:
      'what a merchant is owed for a payment is what the books say was collected of it, less refunds and disputes',
    sql: (within) => `
      with settled as (
        select merchant_id, checkout_id, instalment, sum(gross) as gross,
          count(*) filter (where kind = 'sale') as sales
        from settlement_entries
        where ${within('checkout_id')} and instalment is not null and kind in
          ('sale', 'refund', 'refund_reversed', 'dispute', 'dispute_reversed')
        group by merchant_id, checkout_id, instalment
      ), booked as (
        select merchant_id, checkout_id, instalment,
          sum(case debit when 'collected' then amount else -amount end) as gross
        from postings
        -- Many ranges have nothing to compare.
        where ${within('checkout_id')} and (select count(*) from settled) > 0
          and 'collected' in (debit, credit)
        group by merchant_id, checkout_id, instalment
      )
      select s.checkout_id, s.instalment, s.gross, b.gross as booked, s.sales
      from settled s left join booked b on b.checkout_id = s.checkout_id
        and b.merchant_id = s.merchant_id and b.instalment = s.instalment
      where s.gross is distinct from b.gross or s.sales <> 1`,
  },
  {
    name: 'P2',
    description:
      'the lines of a payout are numbered from 1, sum to its amount and are before its day',
    by: 'merchant',
    sql: (within) => `
      select p.id, p.status, p.amount, p.lines, count(e.id) as found, sum(e.net) as sum
      from payouts p
      left join settlement_entries e on e.payout_id = p.id and e.merchant_id = p.merchant_id
        and ${within('e.merchant_id')}
      where ${within('p.merchant_id')}
      group by p.id, p.merchant_id
      having p.amount is distinct from sum(e.net) or p.lines <> count(e.id)
        or min(e.line) <> 1 or max(e.line) <> p.lines
        or bool_or(e.kind not in ('reserve', 'reserve_released') and e.at >= p.created_at)`,
  },
  {
    name: 'P3',
    description:
      'a payout left what the merchant is owed exactly when the bank had it, and what came back is owed again',
    by: 'merchant',
    sql: (within) => `
      select p.id, p.status, p.amount
      from payouts p
      left join settlement_entries e on e.paid_payout_id = p.id and e.merchant_id = p.merchant_id
        and ${within('e.merchant_id')}
      where ${within('p.merchant_id')}
      group by p.id, p.merchant_id
      having coalesce(sum(e.net) filter (where e.kind = 'paid_out'), 0)
          <> case when p.status in ('paid', 'returned') then -p.amount else 0 end
        or coalesce(sum(e.net) filter (where e.kind = 'payout_returned'), 0)
          <> case when p.status = 'returned' then p.amount else 0 end`,
  },
  {
    name: 'P4',
    description: 'sold less fees, VAT, refunds and disputes is payable, reserve and paid out',
    by: 'merchant',
    sql: (within) => `
      -- Two partial indexes cover a merchant's entries, except those that were paid out. P3
      -- compares those.
      with entries as (
        select merchant_id, kind, gross, fee, vat, net, net as unpaid from settlement_entries
        where ${within('merchant_id')} and payout_id is null and kind <> 'paid_out'
        union all
        select merchant_id, kind, gross, fee, vat, net, 0 from settlement_entries
        where ${within('merchant_id')} and payout_id is not null
      ), earned as (
        select merchant_id,
          sum(case when kind in ('reserve', 'reserve_released', 'payout_returned')
            then 0 else gross - fee - vat end) as earned,
          sum(case when kind in ('reserve', 'reserve_released') then -net else 0 end) as reserve,
          sum(unpaid) as unpaid
        from entries group by merchant_id
      ), issued as (
        select merchant_id,
          sum(case when status in ('draft', 'approved', 'exported') then amount else 0 end) as open,
          sum(case when status = 'paid' then amount else 0 end) as paid
        from payouts where ${within('merchant_id')} group by merchant_id
      )
      select e.merchant_id, e.earned, e.reserve, e.unpaid, i.open, i.paid
      from earned e left join issued i on i.merchant_id = e.merchant_id
      where e.earned <> e.unpaid + e.reserve + coalesce(i.open, 0) + coalesce(i.paid, 0)
        or e.reserve < 0`,
  },
  {
    name: 'A2',
    description: 'an approved payout has the actions of two operators',
    by: 'merchant',
    sql: (within) => `
      select p.id, p.status, p.first_approver, p.approver
      from payouts p
      left join operator_actions o on o.subject_id = p.id and o.action = 'payouts approve'
      where p.status <> 'draft' and ${within('p.merchant_id')}
      group by p.id, p.merchant_id having count(distinct o.operator) < 2`,
  },
];
