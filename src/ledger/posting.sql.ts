import type { Handle } from '../database/database.ts';
import type { Posting } from './posting.ts';

export async function insertPostings(db: Handle, postings: Posting[]): Promise<void> {
  await db.insertInto('postings').values(postings).execute();
}

/** All postings of a checkout, oldest first. */
export async function listPostings(
  db: Handle,
  merchant_id: string,
  checkout_id: string,
): Promise<Posting[]> {
  return await db
    .selectFrom('postings')
    .selectAll()
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id)
    .orderBy('at')
    .orderBy('id')
    .execute();
}
