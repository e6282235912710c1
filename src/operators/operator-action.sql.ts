import { sql } from 'kysely';
import type { Handle } from '../database/database.ts';
import type { Timestamp } from '../shared/clock.ts';

export async function insertOperatorAction(
  db: Handle,
  action: {
    id: string;
    at: Timestamp;
    operator: string;
    action: string;
    subject_id: string | null;
    details: object;
  },
): Promise<void> {
  await db
    .insertInto('operator_actions')
    .values({ ...action, details: JSON.stringify(action.details) })
    .execute();
}

export async function hasOperatorAction(db: Handle, id: string): Promise<boolean> {
  const row = await db
    .selectFrom('operator_actions')
    .select('id')
    .where('id', '=', id)
    .executeTakeFirst();
  return row !== undefined;
}

/** Held until the transaction ends: two runs of one action follow each other. */
export async function lockOperatorAction(db: Handle, id: string): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended(${id}, 0))`.execute(db);
}
