import { sql } from 'kysely';
import type { Handle } from '#platform/database/database.ts';
import type { Checkout } from '#purchases/checkouts/checkout.ts';
import type { PlanKey } from './plan-proof.sql.ts';

type Row = Record<string, unknown>;

/** All checkouts with this e-mail address, of every merchant, in any case of letters. */
export async function listShopperCheckouts(db: Handle, email: string): Promise<Checkout[]> {
  return await db
    .selectFrom('checkouts')
    .selectAll()
    .where(sql<boolean>`lower(customer ->> 'email') = lower(${email})`)
    .orderBy('created_at')
    .orderBy('id')
    .execute();
}

/** Tables whose rows belong to one checkout, beside those that need a join. */
const checkoutTables = [
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
  'postings',
  'messages',
  'mailbox',
  'plan_links',
  'plan_sessions',
  'notes',
] as const;
export type CheckoutTable = (typeof checkoutTables)[number];

/** Credentials, hashes and leases say nothing about the shopper. */
const hiddenColumns = [
  'sealed_card_token',
  'sealed_token',
  'token_hash',
  'session_hash',
  'staged_hash',
  'hash',
  'lease',
  'leased_until',
];

/** The rows of a checkout by table, as JSON. */
export async function listCheckoutRows(
  db: Handle,
  { merchant_id, checkout_id }: PlanKey,
): Promise<Record<CheckoutTable, Row[]>> {
  const found: Partial<Record<CheckoutTable, Row[]>> = {};
  for (const table of checkoutTables) {
    const { rows } = await sql<{ row: Row }>`
      select to_jsonb(t) - ${hiddenColumns}::text[] as row from ${sql.table(table)} t
      where t.merchant_id = ${merchant_id} and t.checkout_id = ${checkout_id}`.execute(db);
    found[table] = rows.map(({ row }) => row);
  }
  return found as Record<CheckoutTable, Row[]>;
}

/** The answers of mail servers about the messages of a checkout. */
export async function listMailAnswers(
  db: Handle,
  { merchant_id, checkout_id }: PlanKey,
): Promise<Row[]> {
  const { rows } = await sql<{ row: Row }>`
    select to_jsonb(a) as row
    from message_attempts a
    join messages m on m.id = a.message_id and m.merchant_id = a.merchant_id
    where m.merchant_id = ${merchant_id} and m.checkout_id = ${checkout_id}
    order by a.at, a.number`.execute(db);
  return rows.map(({ row }) => row);
}

/** Operators' actions on a checkout, its callback or its refunds, and what they read. */
export async function listOperatorRows(
  db: Handle,
  table: 'alerts' | 'operator_actions',
  subject_ids: string[],
): Promise<Row[]> {
  const { rows } = await sql<{ row: Row }>`
    select to_jsonb(t) - ${hiddenColumns}::text[] as row from ${sql.table(table)} t
    where t.subject_id = any(${subject_ids}::uuid[])
    order by t.at, t.id`.execute(db);
  return rows.map(({ row }) => row);
}

/** Answers that are kept for retries of the requests that created these rows. */
export async function listKeptAnswers(
  db: Handle,
  integration_ids: string[],
  ids: string[],
): Promise<Row[]> {
  const { rows } = await sql<{ row: Row }>`
    select jsonb_build_object('key', key, 'created_at', created_at, 'answer', answer) as row
    from idempotency_keys
    where integration_id = any(${integration_ids}::uuid[])
      and answer ->> 'id' = any(${ids}::text[])
    order by created_at, key`.execute(db);
  return rows.map(({ row }) => row);
}
