import type { Handle } from '#platform/database/database.ts';
import { type Timestamp, timestamp } from '#platform/shared/clock.ts';
import type { Logger } from '#platform/shared/logger.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import type { QueueDeps } from '#purchases/messages/queue-messages.ts';
import {
  actorOf,
  type OperatorDeps,
  OperatorError,
  operate,
  personOf,
} from '#record/actions/operate.ts';
import { refuseStale } from '#record/actions/refuse-stale.ts';
import { operateOnAccess } from '#record/alerts/operate-on-access.ts';
import { raiseAlert } from '#record/alerts/raise-alert.ts';
import { endConsoleSession, endSessionsOf, findConsoleSession } from './console-session.sql.ts';
import type { SecondPersonSettings } from './console-session.ts';
import { deletePasskeysOf, listWithPasskey } from './passkey.sql.ts';
import { operatorRoles, permissionsOf } from './permission.ts';
import {
  findPerson,
  listKnownMerchants,
  lockAdministrators,
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
 * Changes what a person may do. Their sessions continue, because every request reads the person.
 * `was` is the access that the operator read; the change is refused if the access has changed since.
 * If access grows, the person and the operators are told, as after an invitation, and the person
 * counts as one of two people only after some time. If a merchant's administrator made the change,
 * the service's staff must also confirm them.
 */
export async function changeAccess(
  deps: OperatorDeps & QueueDeps & SecondPersonSettings & { log: Logger },
  operator: string,
  id: string,
  wanted: Partial<Access> & { name?: string | undefined; was?: Partial<Access> | undefined },
): Promise<Person> {
  return await operateOnAccess(deps, operator, 'operators change', async (db, now) => {
    const administrators = await lockAdministrators(db);
    const person = await mustLockId(db, id);
    refuseOwnAccess(deps, person);
    refuseRevoked(person);
    const giver = await giverOf(deps, db);
    refuseToManage(giver, person);
    await refuseStale(db, person, wanted.was, personOf(deps));
    const before = accessOf(person);
    const access = checkAccess({ ...before, ...definedOf(wanted) });
    refuseBeyondOwn(giver, access);
    await checkMerchants(db, access.merchant_ids);
    if (isAdministrator(before) && !isAdministrator(access)) {
      await refuseToStayAlone(deps, db, { administrators, person, now });
    }
    const name = wanted.name === undefined ? person.name : checkName(wanted.name);
    const isWider = grows(before, access);
    // A change by the service's staff does not confirm a person: they may have looked only at the
    // roles.
    const unconfirmed = isWider && !confirms(giver) ? unconfirmedBy(deps, giver, now) : {};
    const change = { ...access, name, ...(isWider && { access_since: now }), ...unconfirmed };
    await updatePerson(db, id, change);
    // A session that began at the merchants' console must not become a staff session.
    if (before.merchant_ids !== null && access.merchant_ids === null) {
      await endSessionsOf(db, id, now);
    }
    const changed = { ...person, ...change };
    if (isWider) await tellWider(deps, db, operator, { before: person, person: changed, now });
    const details = { email: person.email, before, after: access };
    const merchant_id = onlyMerchantOf(before, access);
    return { subject_id: id, merchant_id, details, result: changed };
  });
}

const grows = (before: Access, after: Access): boolean =>
  after.roles.some((role) => !before.roles.includes(role)) ||
  (before.merchant_ids !== null &&
    (after.merchant_ids === null ||
      after.merchant_ids.some((id) => !before.merchant_ids?.includes(id))));

/** Otherwise one person with two identities could make the second one an approver for the first. */
async function tellWider(
  deps: OperatorDeps & QueueDeps & { log: Logger },
  db: Handle,
  operator: string,
  { before, person, now }: { before: Access; person: Person; now: Timestamp },
): Promise<void> {
  const { id: person_id, email } = person;
  const by = actorOf(deps, operator);
  const detail = `${by.name} made ${email} ${showAccess(person)}. Before: ${showAccess(before)}.${explainUnconfirmed(person)} If this was not agreed, revoke their access and look at what was done since then.`;
  const about = { subject_id: person_id, caused_by: operator };
  await raiseAlert(deps, db, { kind: 'access_widened', ...about, detail });
  await queuePersonMail(deps, db, { person_id, kind: 'access_widened', by, at: now });
}

/** The sentence of an alert about a person whom a merchant's administrator gave access. */
export const explainUnconfirmed = ({ unconfirmed_since, email }: Person): string =>
  unconfirmed_since === null
    ? ''
    : ` A merchant’s administrator did it: they count where two people are needed once you know them and confirm them, in the console or with \`tranche operators confirm ${email}\`.`;

export const showAccess = ({ roles, merchant_ids }: Access): string =>
  `${roles.join(', ')} of ${merchant_ids === null ? 'all merchants' : merchant_ids.length === 1 ? 'one merchant' : `${merchant_ids.length} merchants`}`;

const isAdministrator = ({ roles, merchant_ids }: Access) =>
  merchant_ids === null && roles.includes('admin');

/**
 * Prevents a person at the console from removing the last other administrator of all merchants,
 * which would leave them the only one. An administrator counts only if they could be the second of
 * two people, so one who was invited today does not. The command line can still do it (decision
 * 0072).
 */
async function refuseToStayAlone(
  deps: OperatorDeps & SecondPersonSettings,
  db: Handle,
  taken: { administrators: Person[]; person: Person; now: Timestamp },
): Promise<void> {
  const own = personOf(deps);
  if (own === null) return;
  const { administrators, person, now } = taken;
  const hours = deps.secondPersonHours;
  const since = timestamp(Temporal.Instant.from(now).subtract({ hours }));
  const ids = administrators.map(({ id }) => id);
  const ready = await listWithPasskey(db, ids, since);
  const others = administrators.filter(({ id, registered_at, access_since, unconfirmed_since }) => {
    const aged = hours === 0 ? registered_at !== null : ready.has(id) && access_since <= since;
    return aged && unconfirmed_since === null && id !== own;
  });
  // A person who does not count yet may be removed at once.
  if (others.length !== 1 || others[0]?.id !== person.id) return;
  throw new OperatorError(
    `This would leave you as the only administrator of all merchants who can act. Invite another one first, who counts after ${hours} hours, or run \`tranche operators revoke ${person.email}\` at the server.`,
  );
}

/**
 * Revokes a person: their sessions end, and their passkeys and links are deleted. The other operators
 * get an alert.
 */
export async function revokePerson(
  deps: OperatorDeps & QueueDeps & SecondPersonSettings & { log: Logger },
  operator: string,
  wanted: { id: string } | { email: string },
): Promise<Person> {
  return await operateOnAccess(deps, operator, 'operators revoke', async (db, now) => {
    const administrators = await lockAdministrators(db);
    const person =
      'id' in wanted
        ? await mustLockId(db, wanted.id)
        : await mustLock(
            await lockPersonByEmail(db, foldAddress(wanted.email.trim())),
            wanted.email,
          );
    refuseOwnAccess(deps, person);
    refuseRevoked(person);
    refuseToManage(await giverOf(deps, db), person);
    if (isAdministrator(person)) {
      await refuseToStayAlone(deps, db, { administrators, person, now });
    }
    await updatePerson(db, person.id, { revoked_at: now });
    const details = { email: person.email, ...(await endAccess(db, person.id, now)) };
    const by = actorOf(deps, operator);
    await raiseAlert(deps, db, {
      ...{ kind: 'person_revoked', subject_id: person.id, caused_by: operator },
      detail: `${by.name} revoked ${person.email}, ${showAccess(person)}. If this was not agreed, invite them again, and look at what was done since then.`,
    });
    await queuePersonMail(deps, db, { person_id: person.id, kind: 'revoked', by, at: now });
    const result = { ...person, revoked_at: now };
    return { subject_id: person.id, merchant_id: onlyMerchantOf(person), details, result };
  });
}

/**
 * Ends a person's sessions, passkeys and unused links. Returns how many sessions and passkeys there
 * were. The caller holds the person's lock.
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
    let merchant_id: string | null = null;
    if (wanted.person_id !== personOf(deps)) {
      const person = await mustLockId(db, wanted.person_id);
      refuseToManage(await giverOf(deps, db), person);
      merchant_id = onlyMerchantOf(person);
    }
    await endConsoleSession(db, session.id, now);
    const { origin } = deps;
    const endsOwnSession =
      origin !== undefined && 'session_id' in origin && origin.session_id === session.id;
    const details = { session_id: session.id };
    const result = undefined;
    return { subject_id: wanted.person_id, merchant_id, details, result, endsOwnSession };
  });
}

/** Ends all of a person's sessions but this one. */
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

/**
 * The merchant of an action on people's access. Null if it is about several: the audit of each would
 * name the others.
 */
export function onlyMerchantOf(...access: Access[]): string | null {
  const [id = null, ...others] = new Set(access.flatMap(({ merchant_ids }) => merchant_ids ?? []));
  return others.length === 0 ? id : null;
}

/** The access of the person who acts. Null at the command line, which may give any access. */
export async function giverOf(deps: OperatorDeps, db: Handle): Promise<Access | null> {
  const id = personOf(deps);
  if (id === null) return null;
  const person = await findPerson(db, id);
  return person ? accessOf(person) : { roles: [], merchant_ids: [] };
}

/** Whether access that this person gives needs no confirmation by the service's staff. */
export const confirms = (giver: Access | null): boolean =>
  giver === null ||
  permissionsOf(giver.roles, giver.merchant_ids === null).includes('people.confirm');

/** Whether the access that this person gives makes another person unconfirmed. */
export const unconfirmedBy = (
  deps: OperatorDeps,
  giver: Access | null,
  now: Timestamp,
): Pick<Person, 'unconfirmed_since' | 'unconfirmed_by'> =>
  confirms(giver)
    ? { unconfirmed_since: null, unconfirmed_by: null }
    : { unconfirmed_since: now, unconfirmed_by: personOf(deps) };

const isWithin = (access: Access, giver: Access): boolean =>
  giver.merchant_ids === null ||
  (access.merchant_ids?.every((id) => giver.merchant_ids?.includes(id)) ?? false);

function hasMoreRights(access: Access, giver: Access): boolean {
  const own = permissionsOf(giver.roles, giver.merchant_ids === null);
  const others = permissionsOf(access.roles, access.merchant_ids === null);
  return others.some((permission) => !own.includes(permission));
}

/** Refuses to give more than the giver has: other merchants, or more rights. */
export function refuseBeyondOwn(giver: Access | null, access: Access): void {
  if (giver === null) return;
  if (!isWithin(access, giver)) {
    throw new OperatorError('You can give access to your own merchants only.');
  }
  if (hasMoreRights(access, giver)) {
    throw new OperatorError('These roles have more rights than yours. Choose others.');
  }
}

/**
 * Whether a person at the console may know of another one. A merchant's people know their
 * colleagues.
 */
export const sees = (giver: Access | null, person: Access): boolean =>
  giver?.merchant_ids === undefined ||
  giver.merchant_ids === null ||
  (person.merchant_ids?.some((id) => giver.merchant_ids?.includes(id)) ?? false);

const notManaged = () =>
  new OperatorError(
    'Only an administrator of the payment service can change the access of this person.',
  );

/** Refuses to change a person who also works for other merchants, or has more rights. */
export function refuseToManage(giver: Access | null, person: Access): void {
  refuseMoreRights(giver, person);
  if (giver !== null && !isWithin(person, giver)) throw notManaged();
}

/** Refuses a person who has more rights, at whatever merchants. */
export function refuseMoreRights(giver: Access | null, person: Access): void {
  if (giver !== null && hasMoreRights(person, giver)) throw notManaged();
}

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

export function refuseRevoked(person: Person): void {
  if (person.revoked_at === null) return;
  throw new OperatorError(
    `${person.email} was revoked at ${person.revoked_at}. Invite them again.`,
  );
}

/** Refuses people who change their own access: another administrator has to do that. */
export function refuseOwnAccess({ origin }: OperatorDeps, person: Person): void {
  if (origin && 'person_id' in origin && origin.person_id === person.id) {
    throw new OperatorError('You cannot change your own access. Ask another administrator.');
  }
}

/**
 * The characters that an address may have without quotation marks, and letters of other scripts.
 * `$`, "`" and `|` are allowed by the standard but not used in practice, and dangerous in a copied
 * command.
 */
const emailPattern =
  /^[^\s@\p{C}()<>[\]:;,"\\$`|]{1,64}@[\p{L}\p{M}\p{N}-]+(\.[\p{L}\p{M}\p{N}-]+)+$/u;

/**
 * Folds A to Z only. Other letters that Unicode folds to ASCII, such as the Kelvin sign U+212A,
 * would turn two addresses into one.
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
