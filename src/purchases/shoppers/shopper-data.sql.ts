import { type RawBuilder, type Selectable, sql } from 'kysely';
import type { Handle } from '#platform/database/database.ts';
import type { Tables } from '#platform/database/tables.ts';
import { normalForms } from '#platform/shared/plain-text.ts';
import type { PlanKey } from './plan-access.sql.ts';

// Statements that select everything that is stored about a shopper. Any result may be long, so the
// results are read in pages.

type Row = Record<string, unknown>;

/** Whether a customer has this e-mail address, in any case and in either normal form of Unicode. */
export const isTheirs = (email: string) => {
  const [composed, decomposed] = normalForms(email);
  return sql<boolean>`lower(customer ->> 'email') in (lower(${composed}), lower(${decomposed}))`;
};

/** All merchants' checkouts with this e-mail address. */
export const selectShopperCheckouts = (db: Handle, email: string) =>
  db.selectFrom('checkouts').selectAll().where(isTheirs(email)).orderBy('created_at').orderBy('id');

/** How many checkouts have this e-mail address, and the ids of the first ones. */
export async function findShopperIds(
  db: Handle,
  email: string,
  limit: number,
): Promise<{ count: number; first_ids: string[] }> {
  const { rows } = await sql<{ count: number }>`
    select count(*) as count from checkouts where ${isTheirs(email)}`.execute(db);
  const first = await sql<{ id: string }>`
    select id from checkouts where ${isTheirs(email)}
    order by created_at, id limit ${limit}`.execute(db);
  return { count: Number(rows[0]?.count), first_ids: first.rows.map(({ id }) => id) };
}

/**
 * Locks out another export by the same operator until the transaction ends. Returns false if one is
 * already running.
 */
export async function lockExport(db: Handle, operator: string): Promise<boolean> {
  const { rows } = await sql<{ is_free: boolean }>`
    select pg_try_advisory_xact_lock(hashtextextended(${`shoppers export ${operator}`}, 0)) as is_free`.execute(
    db,
  );
  return rows[0]?.is_free === true;
}

/** The payment links of all merchants that were made for this e-mail address. */
export const selectShopperLinks = (
  email: string,
): RawBuilder<{ row: Selectable<Tables['payment_links']> }> => sql`
  select to_jsonb(l) as row from payment_links l
  where customer is not null and ${isTheirs(email)}
  order by created_at, id`;

/**
 * Requests whose signature was refused and whose body may contain this e-mail address. They are
 * kept for a few days. A body may escape any character that is not a plain letter, a digit, a dot
 * or a hyphen, so only these are compared, and `namesAddress` decides.
 */
export const selectShopperRequests = (
  email: string,
): RawBuilder<{ row: Row & { id: string; body: string } }> => {
  const plain = normalForms(email)[0]
    .replaceAll(/[^\w.-]+|_/g, '%')
    .toLowerCase();
  return sql`
    select to_jsonb(r) - '{header,expected}'::text[] as row from refused_requests r
    where lower(body) like ${`%${plain}%`} order by id`;
};

/** Tables whose rows belong to one checkout, besides those that need a join. */
export const checkoutTables = [
  'checkout_moves',
  'checkout_opens',
  'payment_attempts',
  'instalments',
  'collections',
  'stored_cards',
  'replaced_cards',
  'refund_requests',
  'refund_parts',
  'disputes',
  'dispute_files',
  'postings',
  'messages',
  'archived_messages',
  'mailbox',
  'plan_links',
  'late_links',
  'conversations',
  'conversation_entries',
  'plan_sessions',
  'notes',
] as const;
export type CheckoutTable = (typeof checkoutTables)[number];

/** Credentials, hashes and leases say nothing about the shopper. */
const hiddenColumns = [
  'sealed_card_token',
  'sealed_network',
  'sealed_token',
  'token_hash',
  'session_hash',
  'staged_hash',
  'hash',
  'lease',
  'leased_until',
];

/** The rows of a checkout in a table, as JSON. */
export const selectRows = (
  table: CheckoutTable,
  { merchant_id, checkout_id }: PlanKey,
): RawBuilder<{ row: Row }> => sql`
  select to_jsonb(t) - ${hiddenColumns}::text[] as row from ${sql.table(table)} t
  where t.merchant_id = ${merchant_id} and t.checkout_id = ${checkout_id}`;

/** The ids of everything about a checkout that an alert or an action can be about. */
export const selectSubjects = ({
  merchant_id,
  checkout_id,
}: PlanKey): RawBuilder<{ id: string }> => sql`
  select id from checkouts where merchant_id = ${merchant_id} and id = ${checkout_id}
  union all
  select id from callbacks where merchant_id = ${merchant_id} and checkout_id = ${checkout_id}
  union all
  select id from refund_requests where merchant_id = ${merchant_id} and checkout_id = ${checkout_id}
  union all
  select id from disputes where merchant_id = ${merchant_id} and checkout_id = ${checkout_id}`;

/** The integrations that created a checkout or requested a refund of it. */
export async function listIntegrationIds(
  db: Handle,
  { merchant_id, checkout_id }: PlanKey,
): Promise<string[]> {
  const { rows } = await sql<{ integration_id: string }>`
    select integration_id from checkouts
    where merchant_id = ${merchant_id} and id = ${checkout_id}
    union
    select integration_id from refund_requests
    where merchant_id = ${merchant_id} and checkout_id = ${checkout_id}`.execute(db);
  return rows.map(({ integration_id }) => integration_id);
}

/** The mails of the payment links that were made for this e-mail address. */
export const selectShopperLinkMails = (email: string): RawBuilder<{ row: Row }> => sql`
  select to_jsonb(m) - ${hiddenColumns}::text[] as row
  from messages m
  join payment_links l on l.id = m.payment_link_id and l.merchant_id = m.merchant_id
  where customer is not null and ${isTheirs(email)}
  order by m.created_at, m.id`;

/** The answers of mail servers about the mails of those payment links. */
export const selectShopperLinkMailAnswers = (email: string): RawBuilder<{ row: Row }> => sql`
  select to_jsonb(a) as row
  from message_attempts a
  join messages m on m.id = a.message_id and m.merchant_id = a.merchant_id
  join payment_links l on l.id = m.payment_link_id and l.merchant_id = m.merchant_id
  where customer is not null and ${isTheirs(email)}
  order by a.at, a.message_id, a.number`;

/** The answers of mail servers about the messages of a checkout. */
export const selectMailAnswers = ({
  merchant_id,
  checkout_id,
}: PlanKey): RawBuilder<{ row: Row }> => sql`
  select to_jsonb(a) as row
  from message_attempts a
  join messages m on m.id = a.message_id and m.merchant_id = a.merchant_id
  where m.merchant_id = ${merchant_id} and m.checkout_id = ${checkout_id}
  order by a.at, a.number`;

/** Alerts about a checkout, its callbacks, its refunds or its disputes. */
export const selectAlerts = (
  subject_ids: string[],
): RawBuilder<{ row: Row & { id: string } }> => sql`
  select to_jsonb(t) - ${hiddenColumns}::text[] as row from alerts t
  where t.subject_id = any(${subject_ids}::uuid[])
  order by t.at, t.id`;

/** Answers that are kept for retries of the requests that created these rows. */
export const selectKeptAnswers = (
  integration_ids: string[],
  ids: string[],
): RawBuilder<{ row: Row }> => sql`
  select jsonb_build_object('key', key, 'created_at', created_at, 'answer', answer) as row
  from idempotency_keys
  where integration_id = any(${integration_ids}::uuid[])
    and answer ->> 'id' = any(${ids}::text[])
  order by created_at, key`;
