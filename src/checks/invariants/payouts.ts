import type { Invariant } from './invariant.ts';

export const payoutInvariants: Invariant[] = [
  {
    name: 'P1',
    description:
      'what a merchant is owed for a payment is what the books say was collected for it, less refunds and disputes',
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
        -- Most ranges have nothing to compare.
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
      'a payout is deducted from what the merchant is owed exactly when the bank has paid it, and a returned one is owed again',
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
    description:
      'sales less fees, VAT, refunds and disputes are the sum of what is payable, held in reserve and paid out',
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
    name: 'P5',
    description: 'the sums of what a merchant is owed, by kind, are those of its open entries',
    by: 'merchant',
    sql: (within) => `
      -- The sums include the entries up to the stream's position. Later ones are added here, as the
      -- pages add them. A reserve that is a line stays in the sums until it is released.
      with summed as (
        select merchant_id, kind, sum(gross) as gross, sum(fee) as fee, sum(vat) as vat,
          sum(net) as net
        from (
          select merchant_id, kind, gross, fee, vat, net from merchant_entries
          where ${within('merchant_id')}
          union all
          select merchant_id, kind, gross, fee, vat, net from settlement_entries
          where ${within('merchant_id')}
            and id > (select after from rollups where stream = 'entries')
          union all
          select merchant_id, kind, -gross, -fee, -vat, -net from payout_sums
          where ${within('merchant_id')} and kind not in ('reserve', 'reserve_released')
        ) every
        where kind <> 'paid_out'
        group by merchant_id, kind
      ), open as (
        select merchant_id, kind, sum(gross) as gross, sum(fee) as fee, sum(vat) as vat,
          sum(net) as net
        from (
          select merchant_id, kind, gross, fee, vat, net from settlement_entries
          where ${within('merchant_id')} and payout_id is null and kind <> 'paid_out'
          union all
          select merchant_id, kind, gross, fee, vat, net from settlement_entries
          where ${within('merchant_id')} and payout_id is not null
            and kind in ('reserve', 'reserve_released')
        ) every
        group by merchant_id, kind
      )
      select merchant_id, kind, s.net as summed, o.net
      from summed s full join open o using (merchant_id, kind)
      where coalesce(s.gross, 0) <> coalesce(o.gross, 0) or coalesce(s.fee, 0) <> coalesce(o.fee, 0)
        or coalesce(s.vat, 0) <> coalesce(o.vat, 0) or coalesce(s.net, 0) <> coalesce(o.net, 0)`,
  },
  {
    name: 'P6',
    description:
      'the statements of a merchant are numbered from 1, every stated entry is a line of one, and each has the sums of its lines and begins where the month before it ended, as do its corrections',
    by: 'merchant',
    sql: (within) => `
      with lines as (
        select merchant_id, statement, count(*) as lines, sum(net) as net, sum(gross) as gross,
          sum(fee) as fee, sum(vat) as vat, min(statement_line) as first, max(statement_line) as last,
          coalesce(sum(net) filter (where kind in ('reserve', 'reserve_released')), 0) as reserved
        from settlement_entries
        where ${within('merchant_id')} and statement is not null
        group by merchant_id, statement
      ), months as (
        select merchant_id, number, lag(closing, 1, 0::bigint) over earlier as closing,
          lag(reserve, 1, 0::bigint) over earlier as reserve
        from monthly_statements
        where ${within('merchant_id')} and corrects is null
        window earlier as (partition by merchant_id order by number)
      ), stated as (
        select merchant_id, number, lines_of, lines, opening, closing, reserve,
          row_number() over (partition by merchant_id order by number) as place,
          (select sum((s ->> 'gross')::bigint) from jsonb_array_elements(sums) s) as gross,
          (select sum((s ->> 'fee')::bigint) from jsonb_array_elements(sums) s) as fee,
          (select sum((s ->> 'vat')::bigint) from jsonb_array_elements(sums) s) as vat
        from monthly_statements
        where ${within('merchant_id')}
      )
      select coalesce(s.merchant_id, l.merchant_id) as merchant_id,
        coalesce(s.number, l.statement) as number, s.lines, l.lines as found, s.opening, s.closing,
        l.net
      from stated s full join lines l on l.merchant_id = s.merchant_id and l.statement = s.lines_of
      left join months b on b.merchant_id = s.merchant_id and b.number = s.lines_of
      left join statement_months m on m.merchant_id = l.merchant_id and m.number = l.statement
      -- A statement that is being made has lines already, and its due row counts them.
      where case when s.number is null then l.lines is distinct from m.lines
        else s.number <> s.place or s.opening is distinct from b.closing
          or l.lines is distinct from s.lines or l.first <> 1 or l.last <> s.lines
          or s.closing <> s.opening + l.net
          or s.gross <> l.gross or s.fee <> l.fee or s.vat <> l.vat
          or s.reserve <> b.reserve - l.reserved end`,
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
