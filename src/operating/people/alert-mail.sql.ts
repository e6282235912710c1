import { sql } from 'kysely';
import { localDay } from '#merchants/merchant.sql.ts';
import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { ExportKind, MerchantAlertKind } from '#purchases/messages/merchant-mail.ts';

/** A person's choices of mail about a merchant, by event. */
export async function listAlertChoices(
  db: Handle,
  of: { merchant_id: string; person_id: string },
): Promise<Map<string, boolean>> {
  const rows = await db
    .selectFrom('alert_mails')
    .select(['kind', 'is_wanted'])
    .where('merchant_id', '=', of.merchant_id)
    .where('person_id', '=', of.person_id)
    .execute();
  return new Map(rows.map(({ kind, is_wanted }) => [kind, is_wanted]));
}

export async function updateAlertChoices(
  db: Handle,
  of: { merchant_id: string; person_id: string },
  choices: { kind: MerchantAlertKind; is_wanted: boolean; due_on: string | null }[],
): Promise<void> {
  await db
    .insertInto('alert_mails')
    .values(choices.map((choice) => ({ ...of, ...choice })))
    .onConflict((conflict) =>
      conflict.columns(['merchant_id', 'person_id', 'kind']).doUpdateSet((set) => ({
        is_wanted: set.ref('excluded.is_wanted'),
        // An export that is already scheduled keeps its day.
        due_on: sql<string | null>`
          case when excluded.is_wanted then coalesce(alert_mails.due_on, excluded.due_on) end`,
      })),
    )
    .execute();
}

/** The merchant's people who get mail about an event. */
export async function listAlerted(
  db: Handle,
  {
    merchant_id,
    kind,
    may,
    byDefault,
  }: {
    merchant_id: string;
    kind: MerchantAlertKind;
    may: string[];
    byDefault: string[];
  },
  limit: number,
): Promise<string[]> {
  const rows = await db
    .selectFrom('people as p')
    .leftJoin('alert_mails as a', (join) =>
      join
        .onRef('a.person_id', '=', 'p.id')
        .on('a.merchant_id', '=', merchant_id)
        .on('a.kind', '=', kind),
    )
    .select('p.id')
    .where(sql<boolean>`p.merchant_ids @> array[${merchant_id}::uuid]`)
    .where(sql<boolean>`p.roles && ${may}::text[]`)
    .where(sql<boolean>`coalesce(a.is_wanted, p.roles && ${byDefault}::text[])`)
    .where('p.registered_at', 'is not', null)
    .where('p.revoked_at', 'is', null)
    .orderBy('p.id')
    .limit(limit)
    .execute();
  return rows.map(({ id }) => id);
}

type ExportKey = { merchant_id: string; person_id: string; kind: ExportKind; due_on: string };
type DueExport = ExportKey & {
  merchant_name: string;
  time_zone: string;
  clock_ahead_ms: number;
  has_merchant: boolean;
  is_registered: boolean;
};

/** Exports whose day has come on their merchant's clock. */
export async function listDueExports(
  db: Handle,
  now: Timestamp,
  limit: number,
): Promise<DueExport[]> {
  const { rows } = await sql<DueExport>`
    select a.merchant_id, a.person_id, a.kind, a.due_on::text as due_on, m.name as merchant_name,
      t.time_zone, m.clock_ahead_ms, p.registered_at is not null as is_registered,
      p.revoked_at is null and coalesce(p.merchant_ids @> array[a.merchant_id], false)
        as has_merchant
    from alert_mails a
    join merchants m on m.id = a.merchant_id
    join territories t on t.code = m.territory
    join people p on p.id = a.person_id
    where a.due_on <= ${localDay(now)}
    order by a.due_on, a.merchant_id, a.person_id, a.kind
    limit ${limit}`.execute(db);
  return rows;
}

/** Moves exports to their next days. An export without a next day is no longer chosen. */
export async function moveExportsDue(
  db: Handle,
  moved: (ExportKey & { next: string | null })[],
): Promise<void> {
  const of = (name: keyof (typeof moved)[number]) => moved.map((one) => one[name]);
  await sql`
    update alert_mails a set due_on = v.next, is_wanted = v.next is not null
    from unnest(${of('merchant_id')}::uuid[], ${of('person_id')}::uuid[], ${of('kind')}::text[],
      ${of('due_on')}::date[], ${of('next')}::date[]) as v(merchant_id, person_id, kind, due_on, next)
    where a.merchant_id = v.merchant_id and a.person_id = v.person_id and a.kind = v.kind
      and a.due_on = v.due_on`.execute(db);
}

type EndingKeyMail = {
  person_id: string;
  merchant_id: string;
  merchant_name: string;
  credential: 'client_secret' | 'signing_key';
  expires_at: Timestamp;
  /** The name of the event: a person gets one mail about each event. */
  event: string;
};

/**
 * Lists the mails to write about shops' credentials that expire within a span. Mails that already
 * exist are left out.
 */
export async function listEndingKeyMails(
  db: Handle,
  span: { from: Timestamp; to: Timestamp },
  { may, byDefault }: { may: string[]; byDefault: string[] },
  limit: number,
): Promise<EndingKeyMail[]> {
  const { rows } = await sql<EndingKeyMail>`
    select p.id as person_id, k.merchant_id, k.merchant_name, k.credential, k.expires_at, k.event
    from (
      select i.merchant_id, m.name as merchant_name, c.credential, c.expires_at,
        concat_ws(' ', 'key_ends', i.merchant_id, c.credential, i.id,
          to_char(c.expires_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')) as event
      from (
        select integration_id, 'client_secret' as credential, expires_at from client_secrets
        union all
        select integration_id, 'signing_key', expires_at from signing_keys
      ) c
      join integrations i on i.id = c.integration_id
      join merchants m on m.id = i.merchant_id
      where c.expires_at > ${span.from}::timestamptz and c.expires_at <= ${span.to}::timestamptz
        and i.revoked_at is null
    ) k
    join people p on p.merchant_ids @> array[k.merchant_id]
    left join alert_mails a on a.person_id = p.id and a.merchant_id = k.merchant_id
      and a.kind = 'key_ends'
    where p.roles && ${may}::text[] and coalesce(a.is_wanted, p.roles && ${byDefault}::text[])
      and p.registered_at is not null and p.revoked_at is null
      and not exists (
        select from person_mails s where s.person_id = p.id and s.event = k.event)
    order by k.expires_at, k.event, p.id
    limit ${limit}`.execute(db);
  return rows;
}
