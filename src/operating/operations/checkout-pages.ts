import { findMerchant } from '#merchants/merchant.sql.ts';
import type { Scope } from '#operating/search/scope.sql.ts';
import type { Handle } from '#platform/database/database.ts';
import { reading } from '#platform/database/transaction.ts';
import { messagesOf } from '#purchases/messages/archive.sql.ts';
import { findMessage } from '#purchases/messages/message.sql.ts';
import type { Message } from '#purchases/messages/message.ts';
import type { QueueDeps } from '#purchases/messages/queue-messages.ts';
import { showMessage } from '#purchases/messages/sending/send-again.ts';
import type { Note } from '#record/notes/note.sql.ts';
import { namesFor } from './actors.ts';
import type { MessageDetails } from './checkout.schema.ts';
import { type List, type PageRequest, readList } from './list.ts';
import { readRange } from './range.sql.ts';
import { mustSee, NotFound, type Viewer, type ViewerDeps } from './viewer.ts';

// The page of a checkout shows only the newest notes and messages. These functions read all of
// them, in pages.

/** The column values of the notes that may be read: the staff's notes are for the staff only. */
export const notesFor = (scope: Scope) => (scope === 'all merchants' ? {} : { by_staff: false });

/** The notes on a checkout, the newest first. */
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
          .where('checkout_id', '=', id)
          .where((where) => where.and(notesFor(viewer.scope))),
        range,
        ['at', 'id'],
        'desc',
      ),
    (db, notes) => withAuthors(viewer, db, notes),
  );
}

export async function withAuthors(
  viewer: Pick<Viewer, 'scope'>,
  db: Handle,
  notes: Note[],
): Promise<Note[]> {
  const ids = notes.map(({ person_id }) => person_id);
  const show = await namesFor(viewer, db, ids);
  return notes.map((note) => ({ ...note, ...show(note.person_id, note.name) }));
}

/** One message to the shopper, as it would be written today. */
export async function readMessage(
  viewer: Viewer<ViewerDeps & QueueDeps>,
  id: string,
  message_id: string,
): Promise<MessageDetails & { merchant_id: string }> {
  const { deps } = viewer;
  const { merchant_id } = await mustSee(viewer, 'checkouts', id);
  const { merchant, message } = await reading(deps, async (db) => ({
    merchant: await findMerchant(db, deps.clock, merchant_id),
    message: await findMessage(db, merchant_id, id, message_id),
  }));
  if (!merchant || !message) throw new NotFound(`This order has no message ${message_id}.`);
  const { kind, status, settled_at } = message;
  const shown = await showMessage(deps, merchant, message);
  return { id: message.id, merchant_id, kind, status, settled_at, ...shown };
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
        db.selectFrom(messagesOf({ merchant_id, checkout_id: id }).as('messages')).selectAll(),
        range,
        ['id'],
        'desc',
      ),
    async (_, rows) => rows,
  );
}
