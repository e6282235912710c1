import {
  merchantsOf,
  type OperatorDeps,
  OperatorError,
  operate,
  personOf,
} from '#record/actions/operate.ts';
import { countNotes, insertNote, lockErasure, type Note } from './note.sql.ts';

const charactersMax = 2_000;

/** The limit for one checkout. People who write at the same moment may exceed it by a few. */
const notesMax = 300;

/**
 * Adds a person's note to a checkout. The text is not in the audit: it may name the shopper,
 * and erasing a shopper deletes notes but not the audit. An erased checkout takes no notes, because
 * nothing would erase them.
 */
export async function addNote(
  deps: OperatorDeps,
  operator: string,
  checkout: { merchant_id: string; id: string },
  text: string,
): Promise<Note> {
  const trimmed = text.trim();
  if (trimmed === '' || trimmed.length > charactersMax) {
    throw new OperatorError(`A note must have 1 to ${charactersMax} characters.`);
  }
  if (/[\p{Cc}]/u.test(withoutLines(trimmed))) {
    throw new OperatorError('The note has an invisible character. Type it instead of pasting it.');
  }
  const id = deps.random.uuid();
  return await operate(deps, operator, 'checkouts note', async (db, at) => {
    if ((await lockErasure(db, checkout.merchant_id, checkout.id)) !== null) {
      throw new OperatorError('This shopper’s data was erased, so the checkout takes no notes.');
    }
    if ((await countNotes(db, checkout.merchant_id, checkout.id)) >= notesMax) {
      throw new OperatorError(
        `This checkout has ${notesMax} notes, which is the limit. Keep further notes elsewhere.`,
      );
    }
    const note = await insertNote(db, {
      merchant_id: checkout.merchant_id,
      id,
      checkout_id: checkout.id,
      at,
      person_id: personOf(deps),
      name: operator,
      by_staff: merchantsOf(deps) === null,
      text: trimmed,
    });
    const { merchant_id, id: subject_id } = checkout;
    return { subject_id, merchant_id, details: { note_id: id }, result: note };
  });
}

const withoutLines = (text: string) => text.replaceAll(/[\n\t]/g, ' ');
