import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';

/** A note that a person wrote beside a checkout, for other people. */
export type Note = {
  merchant_id: string;
  id: string;
  checkout_id: string;
  at: Timestamp;
  person_id: string | null;
  name: string;
  text: string;
};

export async function insertNote(db: Handle, note: Note): Promise<void> {
  await db.insertInto('notes').values(note).execute();
}

/** The notes of a checkout, oldest first. */
export async function listNotes(
  db: Handle,
  merchant_id: string,
  checkout_id: string,
): Promise<Note[]> {
  return await db
    .selectFrom('notes')
    .selectAll()
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id)
    .orderBy('at')
    .orderBy('id')
    .execute();
}
