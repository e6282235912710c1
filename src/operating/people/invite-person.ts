import { isDeepStrictEqual } from 'node:util';
import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { Logger } from '#platform/shared/logger.ts';
import { plural } from '#platform/shared/plural.ts';
import type { Sealing } from '#platform/shared/sealing.ts';
import type { QueueDeps } from '#purchases/messages/queue-messages.ts';
import {
  actorOf,
  type OperatorDeps,
  OperatorError,
  operate,
  personOf,
} from '#record/actions/operate.ts';
import { mustBeApprover } from '#record/actions/second-person.ts';
import { raiseAlert } from '#record/alerts/raise-alert.ts';
import {
  checkAccess,
  checkEmail,
  checkMerchants,
  checkName,
  isAsRead,
  type ReadAccess,
} from './check-person.ts';
import { type ConsolePlaces, placeOf } from './console-place.ts';
import { hashToken, newToken } from './console-session.ts';
import { endOf, insertInvitation, mailLink } from './invitation-link.ts';
import {
  type Access,
  accessOf,
  confirms,
  explainUnconfirmed,
  giverOf,
  knownTo,
  mustLockId,
  onlyMerchantOf,
  othersOf,
  refuseBeyondOwn,
  refuseOwnAccess,
  refuseToManage,
  revokeSignInMethods,
  sees,
  showAccess,
  takeFromOthers,
  unconfirmedBy,
} from './manage-people.ts';
import {
  identityOf,
  insertPerson,
  isOfStaff,
  listAccesses,
  liveFirst,
  lockPersonByEmail,
  type Person,
  updateAccesses,
  updatePerson,
} from './person.sql.ts';
import {
  deleteHeldLinks,
  deleteUnusedLinks,
  type InvitedAccess,
  insertPersonLink,
  listInvitations,
} from './person-link.sql.ts';
import { queuePersonMail } from './queue-person-mail.ts';
import {
  type Confirmation,
  confirmationOf,
  explainBadReleaser,
  separateInvited,
  unconfirmedAt,
} from './released-access.ts';

export type InviteDeps = OperatorDeps & QueueDeps & { log: Logger; console: ConsolePlaces };
type Wanted = Access & { email: string; name?: string | undefined };
export type Invitation = { person: Person; url: string; expires_at: Timestamp };

/**
 * Invites a person, or invites them again, and returns the one-time link. Only the command line
 * uses this function, so that a sole administrator can get back in. People at the console never see
 * a link that they created (decision 0072).
 */
export async function invitePerson(
  deps: InviteDeps,
  operator: string,
  wanted: Wanted,
): Promise<Invitation> {
  if (personOf(deps) !== null) throw new Error('a person at the console requests an invitation');
  const invited = readWanted(deps, wanted);
  const token = newToken(deps.random);
  return await operate(deps, operator, 'operators invite', async (db, now) => {
    const { known, isNew, giver } = await admit(deps, db, invited, now);
    const by_staff = confirms(giver);
    const isReplaced = await replacesSignInMethods(db, known, by_staff);
    const unconfirmed = unconfirmedBy(deps, giver, now);
    const terms = { giver, isReplaced, link: 'command line' as const, unconfirmed, now };
    const given = isNew
      ? null
      : await giveAccess(deps, db, operator, known, wantedOf(invited), terms);
    const person = given?.person ?? known;
    await tell(deps, db, operator, { person, given, link: 'command line', now });
    const link = { token, purpose: 'register' as const, by_staff, now };
    const expires_at = await insertInvitation(deps, db, operator, person, link);
    const url = linkOf(deps, person, token);
    return {
      subject_id: person.id,
      details: { ...detailsOf(invited, given), expires_at },
      result: { person, url, expires_at },
    };
  });
}

/**
 * A person at the console invites another person, or invites them again. The link goes to the
 * invited person by mail. If mail is off, the invitation waits for a second administrator. It also
 * waits if it would replace the person's sign-in methods: otherwise the inviter could impersonate
 * that colleague. While it waits, the person's access stays as it is, so that no administrator can
 * lock others out alone. One of the service's staff can invite only once they can be the second
 * approver: otherwise a person who was invited a moment ago could invite the next one, and the
 * first inviter could close the alert about the second invitation. A merchant's administrator who
 * invites an e-mail address with access elsewhere gets the same answer as for a new person.
 */
export async function requestInvitation(
  deps: InviteDeps & { sealing: Sealing },
  operator: string,
  wanted: Wanted,
): Promise<{ person: Person; delivery: 'mailed' | 'held'; expires_at: Timestamp }> {
  const invited = readWanted(deps, wanted);
  const token = newToken(deps.random);
  const mailId = deps.random.uuid();
  return await operate(deps, operator, 'operators invite', async (db, now) => {
    const { known, isNew, giver } = await admit(deps, db, invited, now);
    const isRepeated = !isNew && isOpen(giver, known);
    if (isRepeated) refuseOtherTerms(giver, known, invited);
    const access = isRepeated ? accessOf(known) : accessFor(giver, known, invited);
    const by_staff = confirms(giver);
    if (by_staff) mustBeApprover(deps);
    const isReplaced = await replacesSignInMethods(db, known, by_staff);
    const isHeld = !deps.sendsMessages || isReplaced;
    if (isHeld) await deleteHeldLinks(db, known.id, { isStaff: by_staff });
    const given =
      isHeld || isNew || isRepeated
        ? null
        : await giveAccess(deps, db, operator, known, access, {
            ...{ giver, isReplaced, link: 'mail', now },
            // Another link does not confirm a person. They may be a second address of the
            // merchant's administrator who first invited them.
            unconfirmed: by_staff ? confirmationOf(known) : unconfirmedBy(deps, giver, now),
          });
    const person = given?.person ?? known;
    if (isReplaced) await tellRequested(deps, db, operator, known, access, now);
    else await tell(deps, db, operator, { person, given, link: 'mail', now });
    const purpose = !isHeld && (await isOfStaff(db, person)) ? 'notice' : 'register';
    const expires_at = await insertInvitation(deps, db, operator, person, {
      ...(isHeld ? { token: null, access } : { token }),
      ...{ purpose, by_staff, now },
    });
    if (!isHeld) {
      const by = actorOf(deps, operator);
      await mailLink(deps, db, { person, purpose, by, token, expires_at, mailId, now });
    }
    const delivery = isHeld ? ('held' as const) : ('mailed' as const);
    return {
      subject_id: person.id,
      // `delivery` reveals something about the merchants that the person already has, so the action
      // is also about those.
      merchant_id: onlyMerchantOf(invited, knownTo(giver, known)),
      details: { ...detailsOf(invited, given), delivery, expires_at },
      result: { person, delivery, expires_at },
    };
  });
}

/**
 * A second administrator releases an invitation. The person's earlier sign-in methods end, and the
 * person gets the roles in the invitation. A new link goes to the person by mail; if mail is off,
 * the second administrator gets it. That administrator could register with it, so the person cannot
 * be the second approver until another administrator has confirmed that person. The inviter never
 * sees the link. `was` is the access that the second administrator read; from the console it
 * includes the person's name. If the invitation has changed since, nothing is released. An
 * invitation by a merchant's administrator gives access only to that administrator's merchants.
 */
export async function releaseInvitation(
  deps: InviteDeps & { sealing: Sealing },
  operator: string,
  id: string,
  was: ReadAccess,
): Promise<{ person: Person; url: string | null; expires_at: Timestamp }> {
  const token = newToken(deps.random);
  const mailId = deps.random.uuid();
  return await operate(deps, operator, 'operators release', async (db, now) => {
    const found = await mustLockId(db, id);
    const [held] = await listInvitations(db, [id], now);
    if (!held || held.released_at !== null) {
      throw new OperatorError(
        `No invitation for ${found.email} is waiting for a second administrator.`,
      );
    }
    const giver = await giverOf(deps, db);
    const releaser = { operator, person_id: personOf(deps), isStaff: confirms(giver) };
    const bad = explainBadReleaser(held, found, releaser);
    if (bad !== null) throw new OperatorError(bad);
    if (await isOfStaff(db, found)) {
      throw new OperatorError(
        `${found.email} is one of the service’s staff and has all merchants. Revoke this invitation.`,
      );
    }
    const asked: InvitedAccess = held.access ?? accessOf(found);
    refuseToManage(giver, found);
    refuseBeyondOwn(giver, asked);
    if (!isAsRead(was, { ...asked, name: asked.name ?? found.name })) {
      throw new OperatorError('This invitation was changed in the meantime. Look at it again.');
    }
    mustBeApprover(deps);
    const { by_staff } = held;
    const { known, access } = await separateInvited(deps, db, { found, asked, held, now });
    const isReplaced = await replacesSignInMethods(db, known, by_staff);
    const link = wayOf(deps);
    const unconfirmed = unconfirmedAt(held, { known, access, now });
    const terms = { giver, isReplaced, link, unconfirmed, now };
    const given = await giveAccess(deps, db, operator, known, access, terms);
    const { person } = given;
    const expires_at = endOf(now);
    await insertPersonLink(db, {
      ...{ person_id: id, purpose: 'register' as const, created_at: now, expires_at },
      ...{ made_by: held.made_by, made_by_person_id: held.made_by_person_id, by_staff },
      access: null,
      token_hash: hashToken(token),
      released_at: now,
    });
    await tell(deps, db, operator, { person, given, link, by: held.made_by, now });
    if (deps.sendsMessages) {
      const by = { person_id: held.made_by_person_id, name: held.made_by };
      const { purpose } = held;
      await mailLink(deps, db, { person, purpose, by, token, expires_at, mailId, now });
    }
    const url = link === 'mail' ? null : linkOf(deps, person, token);
    const details = { ...detailsOf(person, given), invited_by: held.made_by, expires_at };
    return { subject_id: id, details, result: { person, url, expires_at } };
  });
}

/** How a link reaches the person: by mail, or from the operator who reads it. */
type LinkWay = 'mail' | 'command line' | 'console';

function wayOf(deps: InviteDeps): LinkWay {
  if (deps.sendsMessages) return 'mail';
  return personOf(deps) === null ? 'command line' : 'console';
}

type Invited = Access & { id: string; email: string; name: string | undefined };

function readWanted(deps: InviteDeps, wanted: Wanted): Invited {
  return {
    id: deps.random.uuid(),
    email: checkEmail(wanted.email),
    name: wanted.name === undefined ? undefined : checkName(wanted.name),
    ...checkAccess(wanted),
  };
}

const wantedOf = ({ name, roles, merchant_ids }: Invited): InvitedAccess => ({
  ...(name !== undefined && { name }),
  ...{ roles, merchant_ids },
});

/**
 * The access that an invitation gives. A person who also works for other merchants keeps their
 * access to those. The inviter does not know of it, and the administrator who releases the
 * invitation sees all of it.
 */
function accessFor(giver: Access | null, known: Person, invited: Invited): InvitedAccess {
  const wanted = wantedOf(invited);
  const others = known.revoked_at === null ? othersOf(giver, known) : [];
  if (wanted.merchant_ids === null || others.length === 0) return wanted;
  return { ...wanted, merchant_ids: [...new Set([...wanted.merchant_ids, ...others])].sort() };
}

/**
 * Whether a merchant's administrator is inviting a person who was invited before and has not
 * accepted yet.
 */
const isOpen = (giver: Access | null, { registered_at, revoked_at }: Person): boolean =>
  !confirms(giver) && registered_at === null && revoked_at === null;

/**
 * A person who has not accepted yet gets another link and nothing else, because another merchant
 * may have invited them too. Their name, roles and merchants are changed in the list of people
 * instead.
 */
function refuseOtherTerms(giver: Access | null, known: Person, invited: Invited): void {
  const access = knownTo(giver, known);
  const isSame =
    isDeepStrictEqual(access, { roles: invited.roles, merchant_ids: invited.merchant_ids }) &&
    (invited.name === undefined || invited.name === known.name);
  if (isSame) return;
  throw new OperatorError(
    `${known.email} is already invited, as ${known.name}: ${showAccess(access)}. To send them another link, invite them with the same name, roles and merchants. To change these, open the person in the list.`,
  );
}

type Admitted = { known: Person; isNew: boolean; giver: Access | null };

/**
 * Returns the person whose e-mail address an invitation names. A new person gets its roles but
 * cannot sign in yet. A person whom the inviter may not see stays unchanged, and gets a second
 * access.
 */
async function admit(
  deps: InviteDeps,
  db: Handle,
  invited: Invited,
  now: Timestamp,
): Promise<Admitted> {
  const { id, email, name, roles, merchant_ids } = invited;
  const giver = await giverOf(deps, db);
  refuseBeyondOwn(giver, invited);
  await checkMerchants(db, merchant_ids);
  const fresh: Person = {
    id,
    email,
    name: name ?? email.slice(0, email.indexOf('@')),
    ...{ roles, merchant_ids },
    oidc_subject: null,
    created_at: now,
    registered_at: null,
    access_since: now,
    ...unconfirmedBy(deps, giver, now),
    revoked_at: null,
    identity_id: null,
  };
  if (await insertPerson(db, fresh)) return { known: fresh, isNew: true, giver };
  const known = (await lockPersonByEmail(db, email)) as Person;
  refuseOwnAccess(deps, known);
  const all = giver?.merchant_ids ? await listAccesses(db, known.id) : [known];
  const [seen] = all.filter((one) => sees(giver, one)).sort(liveFirst);
  if (seen) {
    refuseToManage(giver, seen);
    return { known: seen, isNew: false, giver };
  }
  const access = { ...fresh, identity_id: known.id };
  await insertPerson(db, access);
  return { known: access, isNew: true, giver };
}

/**
 * `before` is the person's earlier name and access as the giver knows it, because a merchant's
 * people also read the audit.
 */
type Given = {
  person: Person;
  before: Access & { name: string };
  isReplaced: boolean;
  sessions: number;
  passkeys: number;
};

/**
 * Whether an invitation replaces the person's sign-in methods, because they had accepted this
 * access. An invitation by the service's staff also replaces them if the person had accepted
 * another access.
 */
async function replacesSignInMethods(
  db: Handle,
  known: Person,
  by_staff: boolean,
): Promise<boolean> {
  const accesses = by_staff ? await listAccesses(db, identityOf(known)) : [known];
  return accesses.some(({ registered_at }) => registered_at !== null);
}

/**
 * Gives an existing person the roles in an invitation. If the invitation replaces their sign-in
 * methods, their e-mail address may have passed to a colleague, or their device may be lost. So
 * every way to act as them ends at once: passkeys, sessions, links, and their subject at the
 * issuer. None of these can use the new roles (decision 0072).
 */
async function giveAccess(
  deps: InviteDeps,
  db: Handle,
  operator: string,
  known: Person,
  { name, roles, merchant_ids }: InvitedAccess,
  terms: {
    giver: Access | null;
    isReplaced: boolean;
    link: LinkWay;
    /** The confirmation that the person then has, unless the administrator sees their link. */
    unconfirmed: Confirmation;
    now: Timestamp;
  },
): Promise<Given> {
  const { giver, isReplaced, link, now } = terms;
  const isSeen = link === 'console';
  const unconfirmed = isSeen
    ? { unconfirmed_since: now, unconfirmed_by: personOf(deps) }
    : terms.unconfirmed;
  const renewed = { access_since: now, ...unconfirmed, revoked_at: null };
  const change = { roles, merchant_ids, ...renewed, ...(name && { name }) };
  await updatePerson(db, known.id, change);
  const person = { ...known, ...change };
  await takeFromOthers(deps, db, operator, { giver, person, now });
  const before = { name: known.name, ...knownTo(giver, known) };
  if (!isReplaced) {
    await deleteUnusedLinks(db, [known.id]);
    return { person, before, isReplaced, sessions: 0, passkeys: 0 };
  }
  const identity = identityOf(known);
  await updatePerson(db, identity, { oidc_subject: null });
  // The administrator sees the link, which also opens the person's other accesses. So these need a
  // confirmation too.
  if (isSeen) await updateAccesses(db, identity, unconfirmed);
  return { person, before, isReplaced, ...(await revokeSignInMethods(db, identity, now)) };
}

function detailsOf(
  { email, name, roles, merchant_ids }: Access & { email: string; name: string | undefined },
  given: Given | null,
): object {
  const { person: _, isReplaced: __, ...ended } = given ?? { person: null, isReplaced: false };
  return { email, ...(name !== undefined && { name }), roles, merchant_ids, ...ended };
}

const undo = 'If this was not agreed, revoke their access and review what they have done since.';

/**
 * Informs the operators about an invitation that takes effect, and also the person if they could
 * already sign in.
 */
async function tell(
  deps: InviteDeps,
  db: Handle,
  operator: string,
  told: {
    person: Person;
    given: Given | null;
    link: LinkWay;
    /** The inviter, if the operator releases an invitation. */
    by?: string;
    now: Timestamp;
  },
): Promise<void> {
  const { person, given, link, now } = told;
  const { id: person_id, email } = person;
  const by = actorOf(deps, operator);
  const about = { subject_id: person_id, caused_by: operator };
  const roles = showAccess(person);
  const did = told.by
    ? `${by.name} released the invitation for ${email} from ${told.by}, as ${roles}.`
    : `${by.name} invited ${email}${given?.isReplaced ? ' again,' : ''} as ${roles}.`;
  const shown = link === 'console' ? ` ${by.name} got the person’s link, because mail is off.` : '';
  if (!given?.isReplaced) {
    const known = person.identity_id === null ? '' : ' They keep their existing access.';
    const detail = `${did}${shown}${known || explainUnconfirmed(person)} ${undo}`;
    await raiseAlert(deps, db, { kind: 'person_invited', ...about, detail });
    return;
  }
  const ended = ` ${plural(given.passkeys, 'passkey')} and ${plural(given.sessions, 'session')} ended.`;
  const next = link === 'command line' ? ' The new link was printed at the command line.' : shown;
  await raiseAlert(deps, db, {
    kind: 'ways_in_replaced',
    ...about,
    detail: `${did}${ended}${next}${explainUnconfirmed(person)} ${undo}`,
  });
  const facts = { link: link === 'command line' ? link : ('mail' as const) };
  await queuePersonMail(deps, db, { person_id, kind: 'invited_again', by, facts, at: now });
}

/**
 * Informs the operators and the person about an invitation that waits for a second administrator.
 */
async function tellRequested(
  deps: InviteDeps,
  db: Handle,
  operator: string,
  { id: person_id, email }: Person,
  wanted: Access,
  now: Timestamp,
): Promise<void> {
  const by = actorOf(deps, operator);
  await raiseAlert(deps, db, {
    kind: 'person_invited',
    subject_id: person_id,
    caused_by: operator,
    detail: `${by.name} wants to invite ${email} again, as ${showAccess(wanted)}. ${email}’s passkeys and sessions stay valid until another administrator releases the invitation. Speak to ${email} first. If they did not ask for this, do not release it.`,
  });
  await queuePersonMail(deps, db, { person_id, kind: 'invitation_requested', by, at: now });
}

// The token is in the fragment, which neither servers nor Referer headers see.
const linkOf = ({ console }: InviteDeps, person: Person, token: string) =>
  `${placeOf(console, person)}/register#${token}`;
