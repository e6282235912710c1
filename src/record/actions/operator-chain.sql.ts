import { sql } from 'kysely';
import type { Handle } from '#platform/database/database.ts';
import type { OperatorAction } from './operator-action.sql.ts';

/**
 * The canonical bytes of an action. jsonb has one text for one value, and the time is a number, so
 * no setting of a session changes them.
 */
const bytesOf = (prefix: string) =>
  sql.raw(`convert_to((jsonb_build_array(${prefix}id,
    (extract(epoch from ${prefix}at) * 1000)::bigint, ${prefix}operator, ${prefix}action,
    ${prefix}subject_id, ${prefix}details) || case when ${prefix}os_user is null
      then '[]' else jsonb_build_array(${prefix}os_user, ${prefix}host) end
    || case when ${prefix}person_id is null then '[]' else jsonb_build_array(${prefix}person_id,
      ${prefix}roles, ${prefix}address, ${prefix}session_id) end)::text, 'UTF8')`);

/**
 * Appends an action to the chain. The row of `operator_chain` is locked until the transaction ends,
 * so call this last: other operators wait for it.
 */
export async function appendOperatorAction(db: Handle, action: OperatorAction): Promise<void> {
  const end = await db
    .selectFrom('operator_chain')
    .select(['number', 'hash'])
    .forUpdate()
    .executeTakeFirstOrThrow();
  const number = end.number + 1;
  const { id, at, operator, subject_id, os_user, host } = action;
  const { person_id, roles, address, session_id } = action;
  const { rows } = await sql<{ hash: Buffer }>`
    select sha256(${end.hash}::bytea || ${bytesOf('a.')}) as hash
    from (select ${id}::uuid as id, ${at}::timestamptz(3) as at, ${operator}::text as operator,
      ${action.action}::text as action, ${subject_id}::uuid as subject_id,
      ${JSON.stringify(action.details)}::jsonb as details, ${os_user}::text as os_user,
      ${host}::text as host, ${person_id}::uuid as person_id, ${roles}::text[] as roles,
      ${address}::text as address, ${session_id}::uuid as session_id) a`.execute(db);
  const hash = rows[0]?.hash as Buffer;
  await db
    .insertInto('operator_actions')
    .values({ ...action, details: JSON.stringify(action.details), number, hash })
    .execute();
  await db.updateTable('operator_chain').set({ number, hash }).execute();
}

export type ChainEnd = { number: number; hash: Buffer };

/** Null when the row has been deleted. */
export async function findChainEnd(db: Handle): Promise<ChainEnd | null> {
  const row = await db.selectFrom('operator_chain').selectAll().executeTakeFirst();
  return row ?? null;
}

export type ChainLink = {
  number: number;
  hash: Buffer;
  /** The hash that the action should have after `before`. */
  expected: Buffer;
};

/** The next actions after a number, each with the hash that follows from the one before it. */
export async function listChainLinks(
  db: Handle,
  after: { number: number; hash: Buffer },
  batchSize: number,
): Promise<ChainLink[]> {
  const { rows } = await sql<ChainLink>`
    select number, hash,
      sha256(lag(hash, 1, ${after.hash}::bytea) over (order by number) || ${bytesOf('')})
        as expected
    from (
      select * from operator_actions where number > ${after.number}
      order by number limit ${batchSize}
    ) a
    order by number`.execute(db);
  return rows;
}
