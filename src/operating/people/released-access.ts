import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import { OperatorError } from '#record/actions/operate.ts';
import { listManaged, type SeparateDeps } from './invitation-link.ts';
import { type Access, gainsAccess, othersOf, sees, separateOwn } from './manage-people.ts';
import { identityOf, type Person } from './person.sql.ts';
import type { InvitedAccess, PersonLink } from './person-link.sql.ts';

/**
 * Why this operator may not approve an invitation as its second administrator, or null. Only the
 * service's staff may do so for a merchant's people, because only staff can see whether a person
 * has access elsewhere.
 */
export function explainBadReleaser(
  link: Pick<PersonLink, 'made_by' | 'made_by_person_id'>,
  person: Pick<Person, 'id' | 'identity_id'>,
  releaser: { operator: string; person_id: string | null; isStaff: boolean },
): string | null {
  const { operator, person_id, isStaff } = releaser;
  const isMaker =
    person_id !== null && link.made_by_person_id !== null
      ? person_id === link.made_by_person_id
      : operator === link.made_by;
  if (isMaker) return 'You made this invitation, so another administrator has to release it.';
  if (person_id === identityOf(person)) return 'You cannot release your own invitation.';
  if (!isStaff) return 'Only an administrator of the payment service can release this invitation.';
  return null;
}

export type Confirmation = Pick<Person, 'unconfirmed_since' | 'unconfirmed_by'>;

export const confirmationOf = ({ unconfirmed_since, unconfirmed_by }: Person): Confirmation => ({
  unconfirmed_since,
  unconfirmed_by,
});

/**
 * A release confirms no one. If a merchant's administrator asked for more access than the person
 * has, the service's staff must also confirm them.
 */
export function unconfirmedAt(
  { by_staff, made_by_person_id }: PersonLink,
  { known, access, now }: { known: Person; access: Access; now: Timestamp },
): Confirmation {
  const gives = known.revoked_at !== null || gainsAccess(known, access);
  return by_staff || !gives || known.unconfirmed_since !== null
    ? confirmationOf(known)
    : { unconfirmed_since: now, unconfirmed_by: made_by_person_id };
}

/**
 * If a person also works for other merchants, a merchant's invitation changes only the access to
 * the merchants that the inviter manages. The access to the other merchants moves to a separate
 * row.
 */
export async function separateInvited(
  deps: SeparateDeps,
  db: Handle,
  invited: { found: Person; asked: InvitedAccess; held: PersonLink; now: Timestamp },
): Promise<{ known: Person; access: InvitedAccess }> {
  const { found, asked, held, now } = invited;
  const { by_staff, made_by_person_id } = held;
  const isLive = found.registered_at !== null && found.revoked_at === null;
  if (by_staff || made_by_person_id === null || !isLive) return { known: found, access: asked };
  const inviter = { roles: [], merchant_ids: await listManaged(db, made_by_person_id) };
  if (!sees(inviter, found)) {
    throw new OperatorError(
      `${held.made_by} no longer manages the access of ${found.email}. Invite them again instead.`,
    );
  }
  const others = othersOf(inviter, found);
  const known = await separateOwn(deps, db, { giver: inviter, person: found, now });
  const merchant_ids = asked.merchant_ids?.filter((one) => !others.includes(one)) ?? null;
  return { known, access: { ...asked, merchant_ids } };
}
