import { isDistributed } from '#platform/database/distribute-database.ts';
import { type Timestamp, timestamp } from '#platform/shared/clock.ts';
import type { Client, Run } from './reconciliation.sql.ts';

/** The gateway's clock and ours may differ a little. */
const marginMinutes = 5;

/** Null stands for the beginning or the end of time. */
export type Span = { from: Timestamp | null; until: Timestamp | null };

/**
 * The range of a run, day by day, so that no statement reads more rows than a day brought. A
 * merchant's clock may be ahead, so the last day of a range without an end has no end either. A
 * range without a beginning is one span.
 */
export function* daysOf({
  from_at,
  to_at,
  began_at,
}: Pick<Run, 'from_at' | 'to_at' | 'began_at'>): Generator<Span> {
  const until =
    to_at && timestamp(Temporal.Instant.from(to_at).subtract({ minutes: marginMinutes }));
  if (from_at === null) return yield { from: null, until };
  const end = Temporal.Instant.from(until ?? began_at);
  for (let from = Temporal.Instant.from(from_at).add({ minutes: marginMinutes }); ; ) {
    const next = from.add({ hours: 24 });
    const isLast = Temporal.Instant.compare(next, end) >= 0;
    yield { from: timestamp(from), until: isLast ? until : timestamp(next) };
    if (isLast) return;
    from = next;
  }
}

/**
 * Payments, holds, refunds and disputes of ours that the gateway must have but did not list: the
 * record belongs to this span, and we knew it before the run began. Lists at most a thousand. A
 * payment is as old as its attempt, or as its collection if it has no attempt. A dispute may be
 * older than our row, but not older than its payment.
 */
export async function listUnseen(
  client: Client,
  run: Pick<Run, 'id' | 'gateway' | 'began_at'>,
  { from, until }: Span,
): Promise<{ reference: string; merchant_id: string; checkout_id: string }[]> {
  const isWithin = (time: string) =>
    `${time} >= coalesce($1::timestamptz, '-infinity') and ${time} < coalesce($2::timestamptz, 'infinity')`;
  const isPaying = `a.status = any ('{authorised,charged}')`;
  // On Citus the notes of a run stay on the coordinator, which can join them only after reading
  // them into a separate result. Elsewhere their index finds each reference.
  const notes = 'select reference from reconciliation_seen where run_id = $3';
  const [prefix, seen] = (await isDistributed(client))
    ? [`seen as materialized (${notes}),`, 'seen']
    : ['', `(${notes})`];
  const { rows } = await client.query(
    `with ${prefix} paid as (
       select k.payment_ref, k.merchant_id, k.checkout_id, k.settled_at
       from payment_attempts a join collections k on k.merchant_id = a.merchant_id
         and k.checkout_id = a.checkout_id and k.payment_ref = a.payment_ref
       where k.status = 'collected' and ${isPaying} and ${isWithin('a.created_at')}
       union all
       select k.payment_ref, k.merchant_id, k.checkout_id, k.settled_at
       from collections k left join payment_attempts a on a.merchant_id = k.merchant_id
         and a.checkout_id = k.checkout_id and a.payment_ref = k.payment_ref and ${isPaying}
       where k.status = 'collected' and a.id is null and ${isWithin('k.created_at')}
     ), own as (
       select payment_ref as reference, merchant_id, checkout_id, settled_at as known_at from paid
       union all
       select i.payment_ref, i.merchant_id, i.checkout_id, a.settled_at
       from payment_attempts a join instalments i on i.merchant_id = a.merchant_id
         and i.checkout_id = a.checkout_id and i.status = 'authorised'
       where a.status = 'authorised' and ${isWithin('a.created_at')}
       union all
       select refund_ref, merchant_id, checkout_id, settled_at from refund_parts
       where status = 'done' and refund_ref is not null and ${isWithin('keyed_at')}
       union all
       select d.dispute_ref, d.merchant_id, d.checkout_id, d.created_at
       from disputes d join paid p on p.merchant_id = d.merchant_id
         and p.checkout_id = d.checkout_id and p.payment_ref = d.payment_ref
     )
     select distinct o.reference, o.merchant_id, o.checkout_id
     from own o join merchants m on m.id = o.merchant_id
     join checkouts c on c.id = o.checkout_id and c.merchant_id = o.merchant_id and c.gateway = $5
     where not exists (select from ${seen} s where s.reference = o.reference)
       and o.known_at < $4::timestamptz + m.clock_ahead_ms * interval '1 millisecond'
         - interval '${marginMinutes} minutes'
     order by o.reference limit 1000`,
    [from, until, run.id, run.began_at, run.gateway],
  );
  return rows;
}
