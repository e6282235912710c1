import { finishMinutes } from '#purchases/payments/payment-attempt.ts';
import type { Account } from '#record/ledger/posting.ts';
import type { RowInvariants, Within } from './invariant.ts';

const balance = (account: Account) =>
  `coalesce(sum(case '${account}' when debit then amount when credit then -amount end), 0)`;

const plans = (within: Within) => `
    select merchant_id, checkout_id, count(*) as instalments, min(number) as lowest,
      max(number) as highest, sum(amount) as sum,
      max(amount) filter (where number = 1) as first,
      max(amount) filter (where number > 1) as most_later,
      min(amount) filter (where number > 1) as least_later,
      sum(case when status in ('authorised', 'scheduled', 'overdue') then amount - reduced
        else 0 end) as outstanding,
      sum(case status when 'collected' then amount - reduced else 0 end) as collected,
      sum(reduced) as cancelled,
      sum(case status when 'authorised' then amount else 0 end) as held,
      max(coalesce(payment_ref, '')) filter (where number = 1 and status = 'authorised') as held_ref
    from instalments where ${within('checkout_id')}
    group by merchant_id, checkout_id`;

const books = (within: Within) => `
    select merchant_id, checkout_id, -${balance('sale')} as sold,
      ${balance('outstanding')} as outstanding, ${balance('collected')} as collected,
      ${balance('refunded')} as refunded, ${balance('cancelled')} as cancelled,
      ${balance('disputed')} as disputed, ${balance('held')} as held,
      ${balance('reserved')} as reserved, ${balance('gateway_fees')} as gateway_fees
    from postings where ${within('checkout_id')}
    group by merchant_id, checkout_id`;

const givenBack = (within: Within) => `
    select merchant_id, checkout_id, sum(amount) as amount
    from refund_parts where kind = 'card' and status = 'done' and ${within('checkout_id')}
    group by merchant_id, checkout_id`;

const disputed = (within: Within) => `
    select merchant_id, checkout_id, sum(withdrawn) as amount
    from disputes where ${within('checkout_id')}
    group by merchant_id, checkout_id`;

const reserved = (within: Within) => `
    select r.merchant_id, r.checkout_id, sum(case when r.status = 'requested' then r.amount
      else (select sum(p.amount) from refund_parts p
        where p.refund_id = r.id and p.merchant_id = r.merchant_id
          and p.round = (select max(l.round) from refund_parts l
            where l.refund_id = r.id and l.merchant_id = r.merchant_id)) end) as amount
    from refund_requests r
    where r.status in ('requested', 'pending') and ${within('r.checkout_id')}
    group by r.merchant_id, r.checkout_id`;

const settled = (within: Within) => `
    select merchant_id, checkout_id, sum(gross) filter (where instalment is null) as gross,
      count(*) filter (where instalment is null and kind = 'sale') as sales,
      count(instalment) as parts
    from settlement_entries
    where ${within('checkout_id')} and kind in
      ('sale', 'refund', 'refund_reversed', 'dispute', 'dispute_reversed')
    group by merchant_id, checkout_id`;

const fees = (within: Within) => `
    select merchant_id, checkout_id, sum(fee) as fees
    from gateway_fees where ${within('checkout_id')}
    group by merchant_id, checkout_id`;

/** Each checkout with sums of its instalments, postings and refunds, and with its payment. */
export const saleRows: RowInvariants = {
  // The unique index payment_attempts_outcome allows one authorised attempt per checkout.
  rows: (within) => `
    select c.id, c.status, c.amount, c.terms, c.number_of_payments, c.expires_at, c.completed_at,
      c.currency, coalesce(p.instalments, 0) as instalments, p.lowest, p.highest, p.sum, p.first,
      p.most_later, p.least_later, p.outstanding as planned_outstanding,
      p.collected - coalesce(g.amount, 0) - coalesce(d.amount, 0) as planned_collected,
      p.cancelled as planned_cancelled, p.held as planned_held, p.held_ref,
      coalesce(g.amount, 0) as planned_refunded, coalesce(d.amount, 0) as planned_disputed,
      coalesce(k.amount, 0) as planned_reserved,
      a.id is not null as is_authorised, a.amount as authorised, a.payment_ref, a.created_at as paid_at,
      a.number_of_payments as authorised_payments, a.currency as authorised_in,
      b.sold, b.outstanding, b.collected, b.refunded, b.cancelled, b.disputed, b.held, b.reserved,
      s.gross, s.sales, s.parts, coalesce(b.gateway_fees, 0) as posted_fees,
      coalesce(f.fees, 0) as gateway_fees
    from checkouts c
    left join (${plans(within)}
    ) p on p.checkout_id = c.id and p.merchant_id = c.merchant_id
    left join payment_attempts a on a.checkout_id = c.id and a.merchant_id = c.merchant_id
      and a.status = 'authorised' and ${within('a.checkout_id')}
    left join (${books(within)}
    ) b on b.checkout_id = c.id and b.merchant_id = c.merchant_id
    left join (${givenBack(within)}
    ) g on g.checkout_id = c.id and g.merchant_id = c.merchant_id
    left join (${disputed(within)}
    ) d on d.checkout_id = c.id and d.merchant_id = c.merchant_id
    left join (${reserved(within)}
    ) k on k.checkout_id = c.id and k.merchant_id = c.merchant_id
    left join (${settled(within)}
    ) s on s.checkout_id = c.id and s.merchant_id = c.merchant_id
    left join (${fees(within)}
    ) f on f.checkout_id = c.id and f.merchant_id = c.merchant_id
    where ${within('c.id')}`,
  each: [
    {
      name: 'M1',
      description:
        'a successful checkout has as many instalments as the shopper chose, and they sum to its amount; any other checkout has none',
      violated: `case when status = 'successful' then
          instalments <> number_of_payments or lowest <> 1 or highest <> number_of_payments
          or sum <> amount or not number_of_payments = any (terms)
          or most_later > first or most_later <> least_later
          or first - least_later >= number_of_payments
        else instalments > 0 end`,
      shows: ['id', 'status', 'instalments', 'sum'],
    },
    {
      name: 'M4',
      description:
        'a successful checkout has exactly one authorised attempt, and no other checkout has any',
      violated: `is_authorised <> (status = 'successful')`,
      shows: ['id', 'status', 'is_authorised'],
    },
    {
      name: 'M4',
      description:
        'the authorised attempt held the first instalment of the term that the checkout has, and finished in time',
      violated: `is_authorised and (held_ref <> payment_ref
        or authorised_payments is distinct from number_of_payments
        or authorised_in <> currency or authorised is distinct from first
        or paid_at >= expires_at
        or completed_at > expires_at + interval '${finishMinutes} minutes')`,
      shows: ['id', 'expires_at', 'completed_at', 'authorised', 'authorised_payments'],
    },
    {
      name: 'M8',
      description: 'the postings of a checkout add up and agree with its instalments and refunds',
      violated: `case when status = 'successful' then
          sold is distinct from amount
          or outstanding + collected + refunded + cancelled + disputed <> amount
          or outstanding is distinct from planned_outstanding
          or collected is distinct from planned_collected
          or disputed is distinct from planned_disputed
          or refunded is distinct from planned_refunded
          or cancelled is distinct from planned_cancelled
          or held is distinct from planned_held
          or reserved is distinct from planned_reserved
        else sold is not null end`,
      shows: [
        ...['id', 'amount', 'sold', 'outstanding', 'collected', 'refunded', 'cancelled'],
        ...['disputed', 'held', 'reserved'],
      ],
    },
    {
      name: 'M10',
      description: 'every fee of the gateway is posted once',
      violated: 'gateway_fees <> posted_fees',
      shows: ['id', 'gateway_fees', 'posted_fees'],
    },
    {
      name: 'P1',
      description:
        'what a merchant is owed for a whole order is what the books say about it, less refunds, and none of its payments is also owed separately',
      violated: `gross is not null
        and (gross is distinct from outstanding + collected or sales <> 1 or parts > 0)`,
      shows: ['id', 'gross', 'outstanding', 'collected', 'sales', 'parts'],
    },
  ],
};
