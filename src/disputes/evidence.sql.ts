import { sql } from 'kysely';
import type { Handle } from '../database/database.ts';
import type { Timestamp } from '../shared/clock.ts';

/** What we hold about a disputed order. */
export type Facts = {
  client_reference_id: string;
  ordered_at: Timestamp;
  completed_at: Timestamp;
  amount: number;
  customer: {
    email: string;
    first_name?: string;
    last_name?: string;
    phone_number?: string;
    billing_address?: string;
  };
  line_items: { name: string; amount: number; quantity: number }[] | null;
  number_of_payments: number;
  card: { brand: string | null; last4: string | null } | null;
  consent: {
    version: string;
    payments: { number: number; amount: number; due_on: string }[];
  } | null;
  authentication: object | null;
  payments: {
    number: number;
    amount: number;
    due_on: string;
    status: string;
    collected_at: Timestamp | null;
  }[];
  refunds: { amount: number; status: string; created_at: Timestamp }[];
  messages: { kind: string; sent_at: Timestamp }[];
};

/** Everything about the order that supports our side, in one statement. */
export async function findFacts(
  db: Handle,
  { merchant_id, checkout_id }: { merchant_id: string; checkout_id: string },
): Promise<Facts> {
  const utc = (column: string) =>
    sql`to_char(${sql.ref(column)} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;
  const of = sql`merchant_id = ${merchant_id} and checkout_id = ${checkout_id}`;
  const { rows } = await sql<Facts>`
    select c.client_reference_id, c.created_at as ordered_at, c.completed_at, c.amount, c.customer,
      c.line_items, c.number_of_payments,
      (select jsonb_build_object('brand', a.card_brand, 'last4', a.card_last4)
       from payment_attempts a where ${of} and a.status = 'authorised') as card,
      (select a.consent from payment_attempts a where ${of} and a.status = 'authorised') as consent,
      (select a.authentication from payment_attempts a where ${of} and a.status = 'authorised')
        as authentication,
      (select jsonb_agg(jsonb_build_object('number', i.number, 'amount', i.amount - i.reduced,
         'due_on', i.due_on, 'status', i.status, 'collected_at', ${utc('i.collected_at')})
         order by i.number)
       from instalments i where ${of}) as payments,
      coalesce((select jsonb_agg(jsonb_build_object('amount', r.amount, 'status', r.status,
         'created_at', ${utc('r.created_at')}) order by r.created_at, r.id)
       from refund_requests r where ${of}), '[]') as refunds,
      coalesce((select jsonb_agg(jsonb_build_object('kind', m.kind, 'sent_at', ${utc('m.settled_at')})
         order by m.settled_at, m.id)
       from messages m where ${of} and m.status = 'sent'), '[]') as messages
    from checkouts c
    where c.merchant_id = ${merchant_id} and c.id = ${checkout_id}`.execute(db);
  return rows[0] as Facts;
}
