import { sql } from 'kysely';
import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';

const keysMax = 10;
/**
 * Older disputes mostly have earlier deadlines, so only this many of the oldest disputes are read.
 */
const disputesMax = 100;

/** The earliest deadline of the disputes that are waiting for an answer. */
export async function findFirstDeadline(
  db: Handle,
  merchant_id: string,
): Promise<Timestamp | null> {
  const waiting = db
    .selectFrom('disputes')
    .select('due_by')
    .where('merchant_id', '=', merchant_id)
    .where('status', '=', sql.lit('needs_response'))
    .where('submitted_at', 'is', null)
    .orderBy('created_at')
    .orderBy('id')
    .limit(sql.lit(disputesMax));
  const row = await db
    .selectFrom(waiting.as('waiting'))
    .select((select) => select.fn.min('due_by').as('due_by'))
    .executeTakeFirst();
  return row?.due_by ?? null;
}

type EndingKey = {
  integration_id: string;
  kind: 'client_secret' | 'signing_key';
  expires_at: Timestamp;
};

/** Secrets and signing keys of the merchant's own integrations that will expire. */
export async function listEndingKeys(
  db: Handle,
  merchant_id: string,
  now: Timestamp,
): Promise<EndingKey[]> {
  const ending = (table: 'client_secrets' | 'signing_keys') =>
    db
      .selectFrom(table)
      .innerJoin('integrations', 'integrations.id', `${table}.integration_id`)
      .select(['integration_id', `${table}.expires_at`])
      .where('integrations.merchant_id', '=', merchant_id)
      .where('integrations.revoked_at', 'is', null)
      .where(`${table}.expires_at`, '>', now)
      .orderBy(`${table}.expires_at`)
      .limit(keysMax);
  const [secrets, keys] = await Promise.all([
    ending('client_secrets').execute(),
    ending('signing_keys').execute(),
  ]);
  return [
    ...secrets.map((row) => ({ ...row, kind: 'client_secret' as const })),
    ...keys.map((row) => ({ ...row, kind: 'signing_key' as const })),
  ]
    .map((row) => ({ ...row, expires_at: row.expires_at as Timestamp }))
    .sort((one, other) => (one.expires_at < other.expires_at ? -1 : 1))
    .slice(0, keysMax);
}

export type Steps = {
  requires_signing: boolean;
  has_checkouts: boolean;
  /** Whether the newest order makes no callbacks: a shop without a server sells by payment link. */
  has_no_server: boolean;
  callback_delivered: boolean;
  refund_requested: boolean;
  drill_passed: boolean;
  bank_account: boolean;
};

/** The steps towards going live that the service can observe. Each reads an index. */
export async function findSteps(db: Handle, merchant_id: string): Promise<Steps> {
  const hasList = (list: string) =>
    sql<boolean>`exists (select from list_totals
      where merchant_id = ${merchant_id} and list = ${list} and total > 0)`;
  return await db
    .selectNoFrom([
      // A single condition over both tables would scan the integrations of all merchants.
      sql<boolean>`exists (select from integrations
          where merchant_id = ${merchant_id} and signing_required_at is not null)
        or exists (select from managed_merchants m join integrations i on i.id = m.integration_id
          where m.merchant_id = ${merchant_id} and i.signing_required_at is not null)`.as(
        'requires_signing',
      ),
      hasList('checkouts').as('has_checkouts'),
      sql<boolean>`coalesce((select notify_url is null from checkouts
        where merchant_id = ${merchant_id} order by number desc limit 1), false)`.as(
        'has_no_server',
      ),
      // Statistics expire, so a merchant without any may have had a delivery long ago.
      sql<boolean>`exists (select from destination_days
          where merchant_id = ${merchant_id} and delivered > 0)
        or exists (select from (select status from callbacks
            where merchant_id = ${merchant_id} order by listed_id desc limit 1000) newest
          where status = 'delivered')`.as('callback_delivered'),
      hasList('refund_requests').as('refund_requested'),
      sql<boolean>`exists (select from operator_actions
        where subject_id = ${merchant_id} and action = 'sandbox drill'
          and details ->> 'passed' = 'true')`.as('drill_passed'),
      sql<boolean>`exists (select from bank_accounts
        where merchant_id = ${merchant_id} and confirmed_at is not null)`.as('bank_account'),
    ])
    .executeTakeFirstOrThrow();
}
