import type { Handle } from '#platform/database/database.ts';
import { type Timestamp, timestamp } from '#platform/shared/clock.ts';
import type { Logger } from '#platform/shared/logger.ts';
import type { Sealing } from '#platform/shared/sealing.ts';
import type { QueueDeps } from '#purchases/messages/queue-messages.ts';
import {
  type OperatorDeps,
  OperatorError,
  operate,
  personOf,
  showOperator,
} from '#record/actions/operate.ts';
import { mustCountAsPerson } from '#record/actions/second-person.ts';
import { raiseAlert } from '#record/alerts/raise-alert.ts';
import { hashToken, newToken } from './console-session.ts';
import {
  type Access,
  accessOf,
  checkAccess,
  checkEmail,
  checkMerchants,
  checkName,
  endAccess,
  mustLockId,
  refuseOwnAccess,
  showAccess,
} from './manage-people.ts';
import { insertPerson, lockPersonByEmail, type Person, updatePerson } from './person.sql.ts';
import {
  deleteUnusedLinks,
  insertPersonLink,
  listInvitations,
  type PersonLink,
} from './person-link.sql.ts';
import { personMailContext } from './person-mail.ts';
import { queuePersonMail } from './queue-person-mail.ts';

const invitationHours = 72;

export type InviteDeps = OperatorDeps & QueueDeps & { log: Logger; console: { url: string } };
type Wanted = Access & { email: string; name?: string | undefined };
export type Invitation = { person: Person; url: string; expires_at: Timestamp };

/**
 * Invites a person, or invites them again, and returns the one-time link. This is for the command
 * line of the server, the way back for an only administrator. People at the console never see a
 * link that they made (decision 0072).
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
    const { person, details } = await admit(deps, db, operator, invited, 'command line', now);
    const expires_at = await insertInvitation(deps, db, operator, person, { token, now });
    const url = linkOf(deps, token);
    return {
      subject_id: person.id,
      details: { ...details, expires_at },
      result: { person, url, expires_at },
    };
  });
}

/**
 * A person at the console invites another one, or invites them again. The link goes to the invited
 * person by mail. It waits for a second administrator if mail is off, and always if the person ever
 * had a way in: the inviter could become that colleague.
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
    const admitted = await admit(deps, db, operator, invited, 'second administrator', now);
    const { person, details } = admitted;
    const isHeld = !deps.sendsMessages || person.registered_at !== null;
    const link = { token: isHeld ? null : token, now };
    const expires_at = await insertInvitation(deps, db, operator, person, link);
    if (!isHeld) {
      const by = showOperator(deps, operator);
      await mailLink(deps, db, { person, by, token, expires_at, mailId, now });
    }
    const delivery = isHeld ? ('held' as const) : ('mailed' as const);
    return {
      subject_id: person.id,
      details: { ...details, delivery, expires_at },
      result: { person, delivery, expires_at },
    };
  });
}

/**
 * A second administrator releases an invitation. The link is new. It goes to the person by mail; if
 * mail is off, the second administrator gets it, and the one who invited never sees it.
 */
export async function releaseInvitation(
  deps: InviteDeps & { sealing: Sealing },
  operator: string,
  id: string,
): Promise<{ person: Person; url: string | null; expires_at: Timestamp }> {
  const token = newToken(deps.random);
  const mailId = deps.random.uuid();
  return await operate(deps, operator, 'operators release', async (db, now) => {
    const person = await mustLockId(db, id);
    const [held] = await listInvitations(db, [id], now);
    if (!held || held.released_at !== null) {
      throw new OperatorError(`No invitation of ${person.email} waits for a second administrator.`);
    }
    const bad = explainBadReleaser(held, { operator, person_id: personOf(deps) });
    if (bad !== null) throw new OperatorError(bad);
    mustCountAsPerson(deps);
    await deleteUnusedLinks(db, id);
    const made = { made_by: held.made_by, made_by_person_id: held.made_by_person_id };
    const expires_at = endOf(now);
    const link = { person_id: id, purpose: 'register' as const, created_at: now, expires_at };
    await insertPersonLink(db, {
      ...link,
      ...made,
      token_hash: hashToken(token),
      released_at: now,
    });
    if (deps.sendsMessages) {
      await mailLink(deps, db, { person, by: held.made_by, token, expires_at, mailId, now });
    }
    const url = deps.sendsMessages ? null : linkOf(deps, token);
    const details = { email: person.email, invited_by: held.made_by, expires_at };
    return { subject_id: id, details, result: { person, url, expires_at } };
  });
}

/** Why this operator may not release an invitation, or null. */
export function explainBadReleaser(
  link: Pick<PersonLink, 'made_by' | 'made_by_person_id' | 'person_id'>,
  releaser: { operator: string; person_id: string | null },
): string | null {
  const { operator, person_id } = releaser;
  const isMaker =
    person_id !== null && link.made_by_person_id !== null
      ? person_id === link.made_by_person_id
      : operator === link.made_by;
  if (isMaker) return 'You made this invitation. Another administrator has to release it.';
  if (person_id === link.person_id) return 'You cannot release your own invitation.';
  return null;
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

/**
 * Writes the person and tells them and the operators. The address of a person who exists may have
 * passed to a colleague, or their device may be lost. So every way to act as them ends at once:
 * passkeys, sessions, links, and their subject at the issuer. The new roles apply when the
 * invitation is accepted, because no earlier way in is left (decision 0072).
 */
async function admit(
  deps: InviteDeps,
  db: Handle,
  operator: string,
  invited: Invited,
  link: 'second administrator' | 'command line',
  now: Timestamp,
): Promise<{ person: Person; details: object }> {
  const { id, email, name, roles, merchant_ids } = invited;
  const access = { roles, merchant_ids };
  await checkMerchants(db, merchant_ids);
  const fresh: Person = {
    id,
    email,
    name: name ?? email.slice(0, email.indexOf('@')),
    ...access,
    oidc_subject: null,
    created_at: now,
    registered_at: null,
    access_since: now,
    revoked_at: null,
  };
  const isNew = await insertPerson(db, fresh);
  const known = isNew ? fresh : ((await lockPersonByEmail(db, email)) as Person);
  const renewed = { oidc_subject: null, access_since: now, revoked_at: null };
  const change = { ...access, ...renewed, ...(name && { name }) };
  let ended: { sessions: number; passkeys: number } | null = null;
  if (!isNew) {
    refuseOwnAccess(deps, known);
    await updatePerson(db, known.id, change);
    ended = await endAccess(db, known.id, now);
  }
  const person = { ...known, ...change };
  await tell(deps, db, operator, person, ended, link, now);
  const before = ended && { before: accessOf(known), ...ended };
  return { person, details: { email, ...access, ...before } };
}

async function tell(
  deps: InviteDeps,
  db: Handle,
  operator: string,
  person: Person,
  ended: { sessions: number; passkeys: number } | null,
  link: 'second administrator' | 'command line',
  now: Timestamp,
): Promise<void> {
  const { id: person_id, email } = person;
  const by = showOperator(deps, operator);
  const about = { subject_id: person_id, caused_by: operator };
  const roles = showAccess(person);
  const undo = `If this was not agreed, run \`tranche operators revoke ${email}\` and look at what was done since then.`;
  if (person.registered_at === null) {
    const detail = `${by} invited ${email} as ${roles}. ${undo}`;
    await raiseAlert(deps, db, { kind: 'person_invited', ...about, detail });
    return;
  }
  const next =
    link === 'command line'
      ? 'The new link was printed at the command line.'
      : 'The new link waits until another administrator has spoken to them and released it.';
  await raiseAlert(deps, db, {
    kind: 'ways_in_replaced',
    ...about,
    detail: `${by} invited ${email} again, as ${roles}. ${ended?.passkeys ?? 0} passkeys and ${ended?.sessions ?? 0} sessions ended. ${next} ${undo}`,
  });
  const facts = { by, link };
  await queuePersonMail(deps, db, { person_id, kind: 'invited_again', facts, at: now });
}

const endOf = (now: Timestamp) =>
  timestamp(Temporal.Instant.from(now).add({ hours: invitationHours }));

// In the fragment, which no server and no Referer header sees.
const linkOf = ({ console }: InviteDeps, token: string) => `${console.url}/register#${token}`;

/** A link without a token waits for a second administrator, and no token opens it. */
async function insertInvitation(
  deps: InviteDeps,
  db: Handle,
  operator: string,
  person: Person,
  { token, now }: { token: string | null; now: Timestamp },
): Promise<Timestamp> {
  const expires_at = endOf(now);
  await insertPersonLink(db, {
    token_hash: token === null ? deps.random.bytes(32) : hashToken(token),
    person_id: person.id,
    purpose: 'register',
    created_at: now,
    expires_at,
    made_by: operator,
    made_by_person_id: personOf(deps),
    released_at: token === null ? null : now,
  });
  return expires_at;
}

async function mailLink(
  deps: InviteDeps & { sealing: Sealing },
  db: Handle,
  mail: {
    person: Person;
    by: string;
    token: string;
    expires_at: Timestamp;
    mailId: string;
    now: Timestamp;
  },
): Promise<void> {
  const { person, by, token, expires_at, mailId: id, now: at } = mail;
  const sealed_token = deps.sealing.seal(token, personMailContext({ id }));
  const link = { id, sealed_token };
  const facts = { by, expires_at };
  await queuePersonMail(deps, db, { person_id: person.id, kind: 'invitation', facts, link, at });
}
