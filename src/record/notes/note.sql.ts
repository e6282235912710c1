import { sql } from 'kysely';
import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';

/** A note that a person wrote about a checkout, for other people. */
export type Note = {
  merchant_id: string;
  id: string;
  checkout_id: string;
  at: Timestamp;
  person_id: string | null;
  name: string;
  /** Whether the service's staff wrote it. The merchant's people do not read it then. */
  by_staff: boolean;
  text: string;
};

/** Writes a note whose `at` is on the real clock. Returns it with the merchant's time. */
export async function insertNote(db: Handle, note: Note): Promise<Note> {
  // Citus refuses a subquery among the values of an insert.
  const { at } = await db
    .selectFrom('merchants')
    .select(
      sql<Timestamp>`${note.at}::timestamptz + clock_ahead_ms * interval '1 millisecond'`.as('at'),
    )
    .where('id', '=', note.merchant_id)
    .executeTakeFirstOrThrow();
  return await db
    .insertInto('notes')
    .values({ ...note, at })
    .returningAll()
    .executeTakeFirstOrThrow();
}

/**
 * Locks a checkout against an erasure, and returns when it was erased, or null. A foreign key does
 * not lock it: a note that is inserted during an erasure would stay.
 */
export async function lockErasure(
  db: Handle,
  merchant_id: string,
  checkout_id: string,
): Promise<Timestamp | null> {
  const { erased_at } = await db
    .selectFrom('checkouts')
    .select('erased_at')
    .where('merchant_id', '=', merchant_id)
    .where('id', '=', checkout_id)
    .forShare()
    .executeTakeFirstOrThrow();
  return erased_at;
}

export async function countNotes(
  db: Handle,
  merchant_id: string,
  checkout_id: string,
): Promise<number> {
  const { count } = await db
    .selectFrom('notes')
    .select(db.fn.countAll<number>().as('count'))
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id)
    .executeTakeFirstOrThrow();
  return Number(count);
}
