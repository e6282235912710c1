import type { Invariant } from './invariant.ts';

export const listInvariants: Invariant[] = [
  {
    name: 'L1',
    description:
      "the numbers of a merchant's list run from 1 to its total without a gap, in the order of creation",
    sql: `
      with listed as (
        select 'checkouts' as list, merchant_id, number, created_at from checkouts
        union all
        select 'payment_links', merchant_id, number, created_at from payment_links
        union all
        select 'refund_requests', merchant_id, number, created_at from refund_requests
        union all
        select 'payouts', merchant_id, number, created_at from payouts
      ), ordered as (
        select list, merchant_id, number,
          created_at < lag(created_at) over (partition by list, merchant_id order by number)
            as is_earlier
        from listed
      ), counted as (
        select list, merchant_id, count(*) as rows, min(number) as first, max(number) as last,
          bool_or(is_earlier) as is_disordered
        from ordered group by list, merchant_id
      )
      select list, merchant_id, l.total, c.rows, c.first, c.last, c.is_disordered
      from list_totals l full join counted c using (list, merchant_id)
      where coalesce(l.total, 0) <> coalesce(c.rows, 0)
        or c.first <> 1 or c.last <> c.rows or c.is_disordered`,
  },
];
