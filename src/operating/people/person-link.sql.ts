import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';

export type LinkPurpose = 'register' | 'sign_in';

export type PersonLink = {
  token_hash: Buffer;
  person_id: string;
  purpose: LinkPurpose;
  created_at: Timestamp;
  expires_at: Timestamp;
};

export async function insertPersonLink(db: Handle, link: PersonLink): Promise<void> {
  await db
    .insertInto('person_links')
    .values({ ...link, used_at: null })
    .execute();
}

/** A link that is neither used nor ended. */
export async function findLiveLink(
  db: Handle,
  token_hash: Buffer,
  purpose: LinkPurpose,
  now: Timestamp,
): Promise<PersonLink | null> {
  const row = await db
    .selectFrom('person_links')
    .select(['token_hash', 'person_id', 'purpose', 'created_at', 'expires_at'])
    .where('token_hash', '=', token_hash)
    .where('purpose', '=', purpose)
    .where('used_at', 'is', null)
    .where('expires_at', '>', now)
    .executeTakeFirst();
  return row ?? null;
}

/** Uses a link. Of two requests with the same link, one gets true. */
export async function moveLinkUsed(
  db: Handle,
  token_hash: Buffer,
  now: Timestamp,
): Promise<boolean> {
  const result = await db
    .updateTable('person_links')
    .set({ used_at: now })
    .where('token_hash', '=', token_hash)
    .where('used_at', 'is', null)
    .where('expires_at', '>', now)
    .executeTakeFirst();
  return Number(result.numUpdatedRows) === 1;
}

/** Ends the links that a person has not used. */
export async function deleteUnusedLinks(db: Handle, person_id: string): Promise<void> {
  await db
    .deleteFrom('person_links')
    .where('person_id', '=', person_id)
    .where('used_at', 'is', null)
    .execute();
}

/** Whether the person was invited, and the link is neither used nor ended. */
export async function hasLiveInvitation(
  db: Handle,
  person_id: string,
  now: Timestamp,
): Promise<boolean> {
  const row = await db
    .selectFrom('person_links')
    .select('person_id')
    .where('person_id', '=', person_id)
    .where('purpose', '=', 'register')
    .where('used_at', 'is', null)
    .where('expires_at', '>', now)
    .executeTakeFirst();
  return row !== undefined;
}
