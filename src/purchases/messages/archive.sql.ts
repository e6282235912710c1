import { sql } from 'kysely';
import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { Message } from './message.ts';

/**
 * A merchant's next checkouts after `after` that have messages, in the order of their ids.
 * Checkouts made after `before` are left out. `is_old` means that all messages of the checkout are
 * settled and older than `before`. A checkout with a refused message is not old, because an alert
 * may be about it.
 */
export async function listCheckoutsWithMessages(
  db: Handle,
  merchant_id: string,
  { after, before, limit }: { after: string; before: string; limit: number },
): Promise<{ checkout_id: string; is_old: boolean }[]> {
  const { rows } = await sql<{ checkout_id: string; is_old: boolean }>`
    select checkout_id,
      bool_and(due_at is null and status <> 'refused' and id < ${before}::uuid) as is_old
    from messages
    where merchant_id = ${merchant_id} and checkout_id > ${after}::uuid
      and checkout_id < ${before}::uuid
    group by checkout_id order by checkout_id limit ${limit}`.execute(db);
  return rows;
}

/**
 * Columns that the archive leaves out of a message's JSON. They are the same in all messages of a
 * checkout, or null once a message is settled.
 */
const unarchivedColumns = [
  ...['merchant_id', 'checkout_id', 'payment_link_id'],
  ...['sealed_token', 'due_at', 'lease', 'leased_until'],
];

/**
 * All messages of a checkout, including archived ones, as rows of `messages`. Statements use it in
 * place of a table.
 */
export const messagesOf = ({ merchant_id, checkout_id }: CheckoutKey) => sql<Message>`(
  select merchant_id, id, checkout_id, kind, about, facts, sealed_token, status, created_at,
    planned_at, due_at, settled_at, attempts, lease, leased_until, payment_link_id
  from messages where merchant_id = ${merchant_id} and checkout_id = ${checkout_id}
  union all
  select a.merchant_id, m.id, a.checkout_id, m.kind, m.about, m.facts, null, m.status, m.created_at,
    m.planned_at, null, m.settled_at, m.attempts, null, null, null
  from archived_messages a cross join lateral jsonb_to_recordset(a.messages) as m(
    id uuid, kind text, about text, facts jsonb, status text, created_at timestamptz(3),
    planned_at timestamptz(3), settled_at timestamptz(3), attempts integer)
  where a.merchant_id = ${merchant_id} and a.checkout_id = ${checkout_id})`;

type CheckoutKey = { merchant_id: string; checkout_id: string };

/**
 * Inserts the messages that are older than `before` into the archive, and deletes them from
 * `messages`.
 */
export async function insertArchived(
  db: Handle,
  { merchant_id, checkout_ids }: { merchant_id: string; checkout_ids: string[] },
  before: string,
  archived_at: Timestamp,
): Promise<number> {
  const isMoved = sql<boolean>`m.merchant_id = ${merchant_id}
    and m.checkout_id = any(${checkout_ids}::uuid[]) and m.id < ${before}::uuid`;
  await sql`
    insert into archived_messages as a (merchant_id, checkout_id, archived_at, messages, attempts)
    select m.merchant_id, m.checkout_id, ${archived_at},
      jsonb_agg(to_jsonb(m) - ${unarchivedColumns}::text[] order by m.id),
      (select coalesce(jsonb_agg(to_jsonb(t) - 'merchant_id' order by t.message_id, t.number), '[]')
       from message_attempts t
       join messages o on o.id = t.message_id and o.merchant_id = t.merchant_id
       where o.merchant_id = m.merchant_id and o.checkout_id = m.checkout_id
         and o.id < ${before}::uuid)
    from messages m
    where ${isMoved}
    group by m.merchant_id, m.checkout_id
    on conflict (checkout_id, merchant_id) do update
    set archived_at = excluded.archived_at, messages = a.messages || excluded.messages,
      attempts = a.attempts || excluded.attempts`.execute(db);
  await sql`
    delete from message_attempts
    where merchant_id = ${merchant_id}
      and message_id in (select m.id from messages m where ${isMoved})`.execute(db);
  const { numAffectedRows } = await sql`delete from messages m where ${isMoved}`.execute(db);
  return Number(numAffectedRows ?? 0);
}
