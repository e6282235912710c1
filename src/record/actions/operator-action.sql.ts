import { sql } from 'kysely';
import { compileOnce } from '#platform/database/compile-once.ts';
import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import { withTexts } from './free-text.ts';

export type OperatorAction = {
  id: string;
  at: Timestamp;
  operator: string;
  action: string;
  subject_id: string | null;
  details: object;
  /**
   * The system's user and host at the command line. The command asks the system for them, while
   * `operator` is only stated.
   */
  os_user: string | null;
  host: string | null;
  /** The person at the console, as they were at that time. */
  person_id: string | null;
  roles: string[] | null;
  address: string | null;
  session_id: string | null;
  /** The merchant that one of its own people acted for. Null for the service's staff. */
  merchant_id: string | null;
};

export async function hasOperatorAction(db: Handle, id: string): Promise<boolean> {
  const row = await db
    .selectFrom('operator_actions')
    .select('id')
    .where('id', '=', id)
    .executeTakeFirst();
  return row !== undefined;
}

/** Whether a session has done this to a row since a time. */
export async function hasActedOn(
  db: Handle,
  by: { session_id: string; action: string; subject_id: string; since: Timestamp },
): Promise<boolean> {
  const row = await db
    .selectFrom('operator_actions')
    .select('id')
    .where('subject_id', '=', by.subject_id)
    .where('action', '=', by.action)
    .where('session_id', '=', by.session_id)
    .where('at', '>', by.since)
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}

/** The columns of an action, without its position in the chain. */
const actionColumns = [
  'id',
  'at',
  'operator',
  'action',
  'subject_id',
  'details',
  'os_user',
  'host',
  'person_id',
  'roles',
  'address',
  'session_id',
  'merchant_id',
] as const;

/** The texts of an action by field. An erased text says that it was erased. */
const texts = sql<Record<string, string> | null>`(
  select jsonb_object_agg(t.field,
    coalesce(t.text, 'erased on ' || to_char(t.erased_at at time zone 'UTC', 'YYYY-MM-DD')))
  from action_texts t where t.action_id = operator_actions.id)`;

/** Actions with their texts beside them; `presentAction` puts the texts into the details. */
export const selectActions = (db: Handle) =>
  db.selectFrom('operator_actions').select([...actionColumns, 'number', texts.as('texts')]);

export type NumberedAction = OperatorAction & { number: number };

export const presentAction = ({
  texts,
  ...action
}: NumberedAction & { texts: Record<string, string> | null }): NumberedAction => ({
  ...action,
  details: withTexts(action.details, texts),
});

/** The newest actions first. */
export async function listOperatorActions(
  db: Handle,
  filter: { subject_ids?: string[]; operator?: string },
  limit: number,
): Promise<NumberedAction[]> {
  let query = selectActions(db);
  if (filter.subject_ids !== undefined) {
    query = query.where('subject_id', 'in', filter.subject_ids);
  }
  if (filter.operator !== undefined) query = query.where('operator', '=', filter.operator);
  const rows = await query.orderBy('at', 'desc').orderBy('id', 'desc').limit(limit).execute();
  return rows.map(presentAction);
}

/** The merchants whose own people acted on a row. */
export async function listMerchantsOfSubject(db: Handle, subject_id: string): Promise<string[]> {
  const rows = await db
    .selectFrom('operator_actions')
    .select('merchant_id')
    .distinct()
    .where('subject_id', '=', subject_id)
    .where('merchant_id', 'is not', null)
    .orderBy('merchant_id')
    .execute();
  return rows.map(({ merchant_id }) => merchant_id as string);
}

/** Waits for another run of the same action. The lock is held until the transaction ends. */
export async function lockOperatorAction(db: Handle, id: string): Promise<void> {
  await lockId(db, { id });
}

const lockId = compileOnce(
  (_db, { id }: { id: string }) => sql`select pg_advisory_xact_lock(hashtextextended(${id}, 0))`,
);
