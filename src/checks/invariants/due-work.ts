import type { Invariant } from './invariant.ts';

/**
 * How long a row may be overdue. Workers look for due rows much more often, but a loaded machine
 * may be slow.
 */
const graceSeconds = 60;

export const dueWorkInvariants: Invariant[] = [
  {
    name: 'W1',
    description: 'no row is past its due time by more than a minute without a live lease',
    sql: `
      select a.id, a.status, a.due_at
      from (
        select merchant_id, id, status, due_at, leased_until from payment_attempts
        union all
        select merchant_id, id, status, due_at, leased_until from callbacks
        union all
        select merchant_id, checkout_id, status, due_at, leased_until from instalments
        where not paused
        union all
        select merchant_id, id, status, due_at, leased_until from refund_requests
        union all
        select merchant_id, id, status, due_at, leased_until from messages
        union all
        select merchant_id, id, status, due_at, leased_until from disputes
        union all
        select merchant_id, id, status, due_at, leased_until from statement_mails
        union all
        select merchant_id, merchant_id, 'payout', due_at, leased_until from payout_days
        union all
        select merchant_id, merchant_id, 'statement', due_at, leased_until from statement_months
        union all
        select merchant_id, checkout_id, card_ref, due_at, leased_until from replaced_cards
        union all
        select merchant_id, merchant_id, 'retention', due_at, leased_until from retention_dates
        union all
        select merchant_id, checkout_id, 'erasure', due_at, leased_until from erasures
        union all
        select merchant_id, checkout_id, customer_ref, due_at, leased_until
        from deleted_customers
      ) a join merchants m on m.id = a.merchant_id
      where a.due_at < $1::timestamptz + m.clock_ahead_ms * interval '1 millisecond'
          - interval '${graceSeconds} seconds'
        and (a.leased_until is null or a.leased_until < $1::timestamptz)`,
  },
];
