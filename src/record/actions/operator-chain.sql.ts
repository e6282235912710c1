import { type RawBuilder, sql } from 'kysely';
import { compileOnce, send, statement } from '#platform/database/compile-once.ts';
import type { Handle } from '#platform/database/database.ts';
import type { ActionText } from './free-text.ts';
import type { OperatorAction } from './operator-action.sql.ts';

/** The session of an action, with the roles and merchants of its access when the action began. */
type Acting = Pick<OperatorAction, 'session_id' | 'person_id' | 'roles'> & {
  merchant_ids: string[] | null;
};

/**
 * Whether the session is open, and its access is not revoked and still has these roles and
 * merchants. Null stands for all merchants.
 */
export const isStillAllowed = ({ session_id, person_id, roles, merchant_ids }: Acting) =>
  sql<boolean>`exists (select from console_sessions s join people p on p.id = s.access_id
    where s.id = ${session_id}::uuid and s.person_id = ${person_id}::uuid
      and s.ended_at is null and p.revoked_at is null and p.roles @> ${roles}::text[]
      and (p.merchant_ids is null or p.merchant_ids @> ${merchant_ids}::uuid[]))`;

/**
 * The canonical bytes of an action. jsonb has exactly one text for each value, and the time is a
 * number, so no session setting changes the bytes.
 */
const bytesOf = (prefix: string) =>
  sql.raw(`convert_to((jsonb_build_array(${prefix}id,
    (extract(epoch from ${prefix}at) * 1000)::bigint, ${prefix}operator, ${prefix}action,
    ${prefix}subject_id, ${prefix}details) || case when ${prefix}os_user is null
      then '[]' else jsonb_build_array(${prefix}os_user, ${prefix}host) end
    || case when ${prefix}person_id is null then '[]' else jsonb_build_array(${prefix}person_id,
      ${prefix}roles, ${prefix}address, ${prefix}session_id) end
    || case when ${prefix}merchant_id is null then '[]'
      else jsonb_build_array(${prefix}merchant_id) end)::text, 'UTF8')`);

/**
 * Appends an action to the chain, and commits. The row of `operator_chain` stays locked until the
 * transaction ends, and other operators wait for it. So call this last: it sends all its statements
 * together with COMMIT. Returns false, and nothing is committed, if the session of the action has
 * ended or its access was revoked or narrowed. Every such change is an action too, so none can
 * commit between this check and our commit: the statement begins only once we have the lock.
 */
export async function appendOperatorAction(
  db: Handle,
  action: OperatorAction,
  options: {
    texts: ActionText[];
    /** The merchants of the acting person. Null for the service's staff. */
    merchant_ids: string[] | null;
    outlivesSession: boolean;
    /** Sends COMMIT with the last statements. */
    commit(): Promise<void>;
  },
): Promise<boolean> {
  const { texts, merchant_ids, outlivesSession, commit } = options;
  const { session_id } = action;
  const details = JSON.stringify(action.details);
  const isChecked = session_id !== null && !outlivesSession;
  const rows = texts.map((text) => ({ ...text, action_id: action.id }));
  const locked = lockEnd(db, {});
  const written = { ...action, details };
  const appended = isChecked
    ? insertNextIfAllowed(db, { ...written, merchant_ids })
    : insertNext(db, written);
  try {
    // Each statement begins after the previous one has ended. If the action was not appended, one
    // of the statements after it fails, and COMMIT rolls back.
    const added = rows.length > 0 ? send(db, insertTexts(rows)) : null;
    const moved = updateEnd(db, { id: action.id });
    await Promise.all([locked, appended, added, moved, commit()]);
    return true;
  } catch (error) {
    if ((await appended.catch(() => null))?.length === 0) return false;
    throw error;
  }
}

const lockEnd = compileOnce((db) => db.selectFrom('operator_chain').select('number').forUpdate());

type Written = Omit<OperatorAction, 'details'> & { details: string };

/**
 * Writes an action at its place in the chain: its number, and the hash of all actions up to it. It
 * fails if the chain has no end. Citus can return a column of such an insert only through an alias
 * of the table.
 */
const nextInsert = (action: Written, isAllowed: RawBuilder<boolean>) => {
  const { id, at, operator, subject_id, os_user, host } = action;
  const { person_id, roles, address, session_id, merchant_id, details } = action;
  return sql<{ number: number }>`
    insert into operator_actions as o (id, at, operator, action, subject_id, details, os_user, host,
      person_id, roles, address, session_id, merchant_id, number, hash)
    select a.*, c.number + 1, sha256(c.hash || ${bytesOf('a.')})
    from (select ${id}::uuid as id, ${at}::timestamptz(3) as at, ${operator}::text as operator,
      ${action.action}::text as action, ${subject_id}::uuid as subject_id,
      ${details}::jsonb as details, ${os_user}::text as os_user,
      ${host}::text as host, ${person_id}::uuid as person_id, ${roles}::text[] as roles,
      ${address}::text as address, ${session_id}::uuid as session_id,
      ${merchant_id}::uuid as merchant_id) a
    left join operator_chain c on true
    where ${isAllowed}
    returning o.number`;
};

const insertNext = compileOnce((_db, action: Written) => nextInsert(action, sql`true`));

const insertNextIfAllowed = compileOnce((_db, action: Written & Acting) =>
  nextInsert(action, isStillAllowed(action)),
);

const insertTexts = statement((db, texts: (ActionText & { action_id: string })[]) =>
  db.insertInto('action_texts').values(texts),
);

/** Moves the end of the chain to an action. It fails if there is no such action. */
const updateEnd = compileOnce(
  (_db, { id }: { id: string }) => sql`
    update operator_chain set
      number = (select a.number from operator_actions a where a.id = ${id}),
      hash = (select a.hash from operator_actions a where a.id = ${id})`,
);

export type ChainEnd = { number: number; hash: Buffer };

/** Returns null if the row has been deleted. */
export async function findChainEnd(db: Handle): Promise<ChainEnd | null> {
  const row = await db.selectFrom('operator_chain').selectAll().executeTakeFirst();
  return row ?? null;
}

export type ChainLink = {
  number: number;
  hash: Buffer;
  /** The hash that the action should have, by its content and the hash of the action before it. */
  expected: Buffer;
  /** Whether its texts match its digests. An erased text keeps its digest. */
  has_own_texts: boolean;
  texts_erased: number;
};

/** The next actions after a number, each with the hash that follows from the previous one. */
export async function listChainLinks(
  db: Handle,
  after: { number: number; hash: Buffer },
  batchSize: number,
): Promise<ChainLink[]> {
  const { rows } = await sql<ChainLink>`
    select number, hash,
      sha256(lag(hash, 1, ${after.hash}::bytea) over (order by number) || ${bytesOf('')})
        as expected,
      (select coalesce(jsonb_agg(d order by d), '[]')
        from jsonb_path_query(details, 'strict $.** ? (exists (@.text_sha256)).text_sha256') d)
      = (select coalesce(jsonb_agg(d order by d), '[]') from (
          select to_jsonb(encode(case when t.text is null then t.digest
            else sha256(t.salt || convert_to(t.text, 'UTF8')) end, 'hex')) as d
          from action_texts t where t.action_id = a.id) own)
        as has_own_texts,
      (select count(*)::int from action_texts t
        where t.action_id = a.id and t.text is null) as texts_erased
    from (
      select * from operator_actions where number > ${after.number}
      order by number limit ${batchSize}
    ) a
    order by number`.execute(db);
  return rows;
}
