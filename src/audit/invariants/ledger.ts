import type { Invariant } from './invariant.ts';

export const ledgerInvariants: Invariant[] = [
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
