import type { Handle } from '#platform/database/database.ts';
import type { Message } from '#purchases/messages/message.ts';
import { listPersonNames } from '#record/actions/person-names.sql.ts';
import type { Note } from '#record/notes/note.sql.ts';
import { type List, type PageRequest, readList } from './list.ts';
import { readRange } from './range.sql.ts';
import { mustSee, type Viewer } from './viewer.ts';

// The page of a checkout has its newest notes and messages. All of them are read here, in pages.

/** The notes beside a checkout, the newest first. */
export async function readNotes(
  viewer: Viewer,
  id: string,
  page: PageRequest,
): Promise<List<Note>> {
  const { merchant_id } = await mustSee(viewer, 'checkouts', id);
  return await readList(
    viewer.deps,
    page,
    (db, range) =>
      readRange<Note>(
        db
          .selectFrom('notes')
          .selectAll()
          .where('merchant_id', '=', merchant_id)
          .where('checkout_id', '=', id),
        range,
        ['at', 'id'],
        'desc',
      ),
    withAuthors,
  );
}

/** Notes with the names that their authors have now. */
export async function withAuthors(db: Handle, notes: Note[]): Promise<Note[]> {
  const ids = notes.map(({ person_id }) => person_id);
  const names = await listPersonNames(db, ids);
  return notes.map((note) => ({ ...note, name: names.get(note.person_id ?? '') ?? note.name }));
}

/** The messages to the shopper of a checkout, the newest first. */
export async function readMessages(
  viewer: Viewer,
  id: string,
  page: PageRequest,
): Promise<List<Message>> {
  const { merchant_id } = await mustSee(viewer, 'checkouts', id);
  return await readList(
    viewer.deps,
    page,
    (db, range) =>
      readRange<Message>(
        db
          .selectFrom('messages')
          .selectAll()
          .where('merchant_id', '=', merchant_id)
          .where('checkout_id', '=', id),
        range,
        ['id'],
        'desc',
      ),
    async (_, rows) => rows,
  );
}
