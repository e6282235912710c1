import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';

/**
 * A `notice` opens nothing: it invites a person on the service's staff, who has all merchants
 * already. A merchant sees it like any other invitation.
 */
export type LinkPurpose = 'register' | 'sign_in' | 'notice';

/** The access that an invitation gives. If the name is absent, the person keeps theirs. */
export type InvitedAccess = { name?: string; roles: string[]; merchant_ids: string[] | null };

export type PersonLink = {
  token_hash: Buffer;
  person_id: string;
  purpose: LinkPurpose;
  created_at: Timestamp;
  expires_at: Timestamp;
  made_by: string;
  /** Null at the command line. */
  made_by_person_id: string | null;
  /**
   * Whether the service's staff or the command line made the link. Such a link replaces the
   * person's sign-in methods in all their accesses. A merchant's invitation replaces them only if
   * the person had accepted that access before.
   */
  by_staff: boolean;
  /** The access that the person gets once the link is approved. Null if they already have it. */
  access: InvitedAccess | null;
  /**
   * When a second administrator approved the link, or when it was made if it needs no approval.
   * Null while the link waits for approval: until then the link does not work.
   */
  released_at: Timestamp | null;
};

const columns = [
  'token_hash',
  'person_id',
  'purpose',
  'created_at',
  'expires_at',
  'made_by',
  'made_by_person_id',
  'by_staff',
  'access',
  'released_at',
] as const;

export async function insertPersonLink(db: Handle, link: PersonLink): Promise<void> {
  await db
    .insertInto('person_links')
    .values({ ...link, access: link.access && JSON.stringify(link.access), used_at: null })
    .execute();
}

/** Finds a link that does not wait for a second administrator, and is neither used nor expired. */
export async function findLiveLink(
  db: Handle,
  token_hash: Buffer,
  purpose: LinkPurpose,
  now: Timestamp,
): Promise<PersonLink | null> {
  const row = await db
    .selectFrom('person_links')
    .select(columns)
    .where('token_hash', '=', token_hash)
    .where('purpose', '=', purpose)
    .where('released_at', 'is not', null)
    .where('used_at', 'is', null)
    .where('expires_at', '>', now)
    .executeTakeFirst();
  return row ?? null;
}

/** Marks a link as used. If two requests use the same link, only one gets true. */
export async function moveLinkUsed(
  db: Handle,
  token_hash: Buffer,
  now: Timestamp,
): Promise<boolean> {
  const result = await db
    .updateTable('person_links')
    .set({ used_at: now })
    .where('token_hash', '=', token_hash)
    .where('released_at', 'is not', null)
    .where('used_at', 'is', null)
    .where('expires_at', '>', now)
    .executeTakeFirst();
  return Number(result.numUpdatedRows) === 1;
}

export async function deleteUnusedLinks(db: Handle, person_ids: string[]): Promise<void> {
  await db
    .deleteFrom('person_links')
    .where('person_id', 'in', person_ids)
    .where('used_at', 'is', null)
    .execute();
}

/**
 * Deletes the invitations that wait for a second administrator. The person's other links stay
 * valid. A merchant's request does not delete an invitation by the service's staff, and does not
 * reveal that it exists.
 */
export async function deleteHeldLinks(
  db: Handle,
  person_id: string,
  by: { isStaff: boolean },
): Promise<void> {
  await db
    .deleteFrom('person_links')
    .where('person_id', '=', person_id)
    .where('released_at', 'is', null)
    .$if(!by.isStaff, (query) => query.where('by_staff', '=', false))
    .execute();
}

/**
 * The invitations for these people that are neither used nor expired. Those that wait for a second
 * administrator come first, and among them those from the service's staff.
 */
export async function listInvitations(
  db: Handle,
  person_ids: string[],
  now: Timestamp,
): Promise<PersonLink[]> {
  if (person_ids.length === 0) return [];
  return await db
    .selectFrom('person_links')
    .select(columns)
    .where('person_id', 'in', person_ids)
    .where('purpose', 'in', ['register', 'notice'])
    .where('used_at', 'is', null)
    .where('expires_at', '>', now)
    .orderBy('released_at', (order) => order.desc().nullsFirst())
    .orderBy('by_staff', 'desc')
    .execute();
}

/**
 * The invitations for these people that can be accepted: they do not wait for a second
 * administrator, and are neither used nor expired.
 */
export async function listLiveInvitations(
  db: Handle,
  person_ids: string[],
  now: Timestamp,
): Promise<PersonLink[]> {
  const links = await listInvitations(db, person_ids, now);
  return links.filter(({ released_at, purpose }) => released_at !== null && purpose === 'register');
}

export async function deleteAllUnusedLinks(db: Handle): Promise<void> {
  await db.deleteFrom('person_links').where('used_at', 'is', null).execute();
}
