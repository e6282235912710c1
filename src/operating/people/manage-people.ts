import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { Logger } from '#platform/shared/logger.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import type { QueueDeps } from '#purchases/messages/queue-messages.ts';
import {
  type OperatorDeps,
  OperatorError,
  operate,
  showOperator,
} from '#record/actions/operate.ts';
import { refuseStale } from '#record/actions/refuse-stale.ts';
import { operateOnAccess } from '#record/alerts/operate-on-access.ts';
import { raiseAlert } from '#record/alerts/raise-alert.ts';
import { endConsoleSession, endSessionsOf, findConsoleSession } from './console-session.sql.ts';
import { deletePasskeysOf } from './passkey.sql.ts';
import { operatorRoles } from './permission.ts';
import {
  listKnownMerchants,
  lockPerson,
  lockPersonByEmail,
  type Person,
  updatePerson,
} from './person.sql.ts';
import { deleteUnusedLinks } from './person-link.sql.ts';
import { queuePersonMail } from './queue-person-mail.ts';

const nameMax = 100;

export type Access = { roles: string[]; merchant_ids: string[] | null };

/**
 * Changes what a person may do. Sessions go on: every request reads the person. `was` is the access
 * that the operator read; the change is refused if another one was made since. Access that grows is
 * told as an invitation is, and the person counts as one of two only later.
 */
export async function changeAccess(
  deps: OperatorDeps & QueueDeps & { log: Logger },
  operator: string,
  id: string,
  wanted: Partial<Access> & { name?: string | undefined; was?: Partial<Access> | undefined },
): Promise<Person> {
  return await operateOnAccess(deps, operator, 'operators change', async (db, now) => {
    const person = await mustLockId(db, id);
    refuseOwnAccess(deps, person);
    refuseRevoked(person);
    await refuseStale(db, person, wanted.was);
    const before = accessOf(person);
    const access = checkAccess({ ...before, ...definedOf(wanted) });
    await checkMerchants(db, access.merchant_ids);
    const name = wanted.name === undefined ? person.name : checkName(wanted.name);
    const isWider = grows(before, access);
    const change = { ...access, name, ...(isWider && { access_since: now }) };
    await updatePerson(db, id, change);
    if (isWider) await tellWider(deps, db, operator, { person, access, now });
    const details = { email: person.email, before, after: access };
    return { subject_id: id, details, result: { ...person, ...change } };
  });
}

const grows = (before: Access, after: Access): boolean =>
  after.roles.some((role) => !before.roles.includes(role)) ||
  (before.merchant_ids !== null &&
    (after.merchant_ids === null ||
      after.merchant_ids.some((id) => !before.merchant_ids?.includes(id))));

/** One person with two identities could otherwise make the second one an approver of the first. */
async function tellWider(
  deps: OperatorDeps & QueueDeps & { log: Logger },
  db: Handle,
  operator: string,
  { person, access, now }: { person: Person; access: Access; now: Timestamp },
): Promise<void> {
  const { id: person_id, email } = person;
  const by = showOperator(deps, operator);
  const detail = `${by} made ${email} ${showAccess(access)}. Before: ${showAccess(person)}. If this was not agreed, run \`tranche operators revoke ${email}\` and look at what was done since then.`;
  const about = { subject_id: person_id, caused_by: operator };
  await raiseAlert(deps, db, { kind: 'access_widened', ...about, detail });
  await queuePersonMail(deps, db, { person_id, kind: 'access_widened', facts: { by }, at: now });
}

export const showAccess = ({ roles, merchant_ids }: Access): string =>
  `${roles.join(', ')} of ${merchant_ids === null ? 'all merchants' : `merchants ${merchant_ids.join(', ')}`}`;

/** Revokes a person: their sessions end, and their passkeys and links are deleted. */
export async function revokePerson(
  deps: OperatorDeps & QueueDeps,
  operator: string,
  wanted: { id: string } | { email: string },
): Promise<Person> {
  return await operateOnAccess(deps, operator, 'operators revoke', async (db, now) => {
    const person =
      'id' in wanted
        ? await mustLockId(db, wanted.id)
        : await mustLock(
            await lockPersonByEmail(db, foldAddress(wanted.email.trim())),
            wanted.email,
          );
    refuseOwnAccess(deps, person);
    refuseRevoked(person);
    await updatePerson(db, person.id, { revoked_at: now });
    const details = { email: person.email, ...(await endAccess(db, person.id, now)) };
    const facts = { by: showOperator(deps, operator) };
    await queuePersonMail(deps, db, { person_id: person.id, kind: 'revoked', facts, at: now });
    return { subject_id: person.id, details, result: { ...person, revoked_at: now } };
  });
}

/**
 * Ends every way in that a person has here: their sessions, passkeys and unused links. Returns how
 * many of the first two there were. The caller has the person's lock.
 */
export async function endAccess(
  db: Handle,
  person_id: string,
  now: Timestamp,
): Promise<{ sessions: number; passkeys: number }> {
  const sessions = await endSessionsOf(db, person_id, now);
  const passkeys = await deletePasskeysOf(db, person_id);
  await deleteUnusedLinks(db, person_id);
  return { sessions, passkeys };
}

/** Ends a session of a person. */
export async function revokeSession(
  deps: OperatorDeps,
  operator: string,
  wanted: { person_id: string; session_id: string },
): Promise<void> {
  await operate(deps, operator, 'operators end session', async (db, now) => {
    const session = await findConsoleSession(db, wanted.session_id);
    if (session?.person_id !== wanted.person_id)
      throw new OperatorError('There is no such session.');
    await endConsoleSession(db, session.id, now);
    const details = { session_id: session.id };
    return { subject_id: wanted.person_id, details, result: undefined };
  });
}

/** A person ends all of their sessions but this one. */
export async function endOtherSessions(
  deps: OperatorDeps,
  operator: string,
  { id, person_id }: { id: string; person_id: string },
): Promise<void> {
  await operate(deps, operator, 'operators end other sessions', async (db, now) => {
    const sessions = await endSessionsOf(db, person_id, now, id);
    return { subject_id: person_id, details: { sessions }, result: undefined };
  });
}

export const accessOf = ({ roles, merchant_ids }: Person): Access => ({ roles, merchant_ids });

const definedOf = (wanted: Partial<Access>): Partial<Access> => ({
  ...(wanted.roles !== undefined && { roles: wanted.roles }),
  ...(wanted.merchant_ids !== undefined && { merchant_ids: wanted.merchant_ids }),
});

export const mustLockId = async (db: Handle, id: string) =>
  await mustLock(isUuid(id) ? await lockPerson(db, id) : null, id);

async function mustLock(person: Person | null, named: string): Promise<Person> {
  if (!person) throw new OperatorError(`There is no person ${named}.`);
  return person;
}

function refuseRevoked(person: Person): void {
  if (person.revoked_at === null) return;
  throw new OperatorError(
    `${person.email} was revoked at ${person.revoked_at}. Invite them again.`,
  );
}

/** Refuses people who change their own access: another administrator has to. */
export function refuseOwnAccess({ origin }: OperatorDeps, person: Person): void {
  if (origin && 'person_id' in origin && origin.person_id === person.id) {
    throw new OperatorError('You cannot change your own access. Ask another administrator.');
  }
}

/**
 * The characters that an address may have without quotation marks, and letters of other scripts.
 * `$`, "`" and `|` are allowed by the standard but not in use, and dangerous in a command that is
 * copied.
 */
const emailPattern =
  /^[^\s@\p{C}()<>[\]:;,"\\$`|]{1,64}@[\p{L}\p{M}\p{N}-]+(\.[\p{L}\p{M}\p{N}-]+)+$/u;

/**
 * Folds A to Z only. Other letters that Unicode folds to ASCII, such as the Kelvin sign U+212A,
 * would make two addresses one.
 */
export const foldAddress = (address: string) =>
  address.replace(/[A-Z]/g, (letter) => letter.toLowerCase());

export function checkEmail(text: string): string {
  const email = foldAddress(text.trim());
  if (email.length > 254 || !emailPattern.test(email)) {
    throw new OperatorError(`"${text}" is not an e-mail address.`);
  }
  return email;
}

export function checkName(text: string): string {
  const name = text.trim();
  if (name === '' || name.length > nameMax || /\p{C}/u.test(name)) {
    throw new OperatorError(`A name has 1 to ${nameMax} characters, without control characters.`);
  }
  return name;
}

export function checkAccess({ roles, merchant_ids }: Access): Access {
  const unknown = roles.filter((role) => !operatorRoles.includes(role as never));
  if (unknown.length > 0 || roles.length === 0) {
    const found = unknown.length > 0 ? `There is no role "${unknown.join(', ')}". ` : '';
    throw new OperatorError(`${found}Give one or more of ${operatorRoles.join(', ')}.`);
  }
  if (merchant_ids?.length === 0)
    throw new OperatorError('Name at least one merchant, or give access to all of them.');
  return {
    roles: operatorRoles.filter((role) => roles.includes(role)),
    merchant_ids: merchant_ids && [...new Set(merchant_ids.map((id) => id.toLowerCase()))].sort(),
  };
}

export async function checkMerchants(db: Handle, ids: string[] | null): Promise<void> {
  if (ids === null) return;
  const known = await listKnownMerchants(db, ids.filter(isUuid));
  const unknown = ids.filter((id) => !known.includes(id));
  if (unknown.length > 0) throw new OperatorError(`There is no merchant ${unknown.join(', ')}.`);
}
