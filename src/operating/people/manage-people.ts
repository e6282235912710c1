import type { Handle } from '#platform/database/database.ts';
import { type Timestamp, timestamp } from '#platform/shared/clock.ts';
import type { Logger } from '#platform/shared/logger.ts';
import { plural } from '#platform/shared/plural.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import type { QueueDeps } from '#purchases/messages/queue-messages.ts';
import {
  accessIdOf,
  actorOf,
  type OperatorDeps,
  OperatorError,
  operate,
  personOf,
  showOperator,
} from '#record/actions/operate.ts';
import { refuseStale } from '#record/actions/refuse-stale.ts';
import { mustBeApprover } from '#record/actions/second-person.ts';
import { operateOnAccess } from '#record/alerts/operate-on-access.ts';
import { raiseAlert } from '#record/alerts/raise-alert.ts';
import { checkAccess, checkMerchants, checkName, foldAddress } from './check-person.ts';
import { endConsoleSession, endSessionsOf, findConsoleSession } from './console-session.sql.ts';
import type { SecondPersonSettings } from './console-session.ts';
import { type SeparateDeps, separateInvitations } from './invitation-link.ts';
import { deletePasskeysOf, listWithPasskey } from './passkey.sql.ts';
import { permissionsOf } from './permission.ts';
import {
  findPerson,
  identityOf,
  insertPerson,
  listAccesses,
  listLiveAccesses,
  lockAdministrators,
  lockPerson,
  lockPersonByEmail,
  type Person,
  takeMerchants,
  updatePerson,
} from './person.sql.ts';
import { deleteUnusedLinks } from './person-link.sql.ts';
import { moveMails } from './person-mail.sql.ts';
import { queuePersonMail } from './queue-person-mail.ts';

export type Access = { roles: string[]; merchant_ids: string[] | null };

/**
 * Changes what a person may do. Their sessions continue, because every request reads the person.
 * Only when one of a merchant's people becomes staff, the sessions of that access end. A merchant's
 * administrator changes only the access to their own merchants. `was` is the access that the
 * operator read; the change is refused if the access has changed since. If access grows, the person
 * and the operators are told, as after an invitation. If it gains a right or a merchant, the person
 * can be the second approver only after some time, and if a merchant's administrator made the
 * change, the service's staff must also confirm them. A role that adds no right has neither effect:
 * otherwise an administrator could disqualify another one and then remove them. Only an
 * administrator of all merchants who can be the second approver gives more access, as with an
 * invitation.
 */
export async function changeAccess(
  deps: SeparateDeps & SecondPersonSettings & { log: Logger },
  operator: string,
  id: string,
  wanted: Partial<Access> & { name?: string | undefined; was?: Partial<Access> | undefined },
): Promise<Person> {
  return await operateOnAccess(deps, operator, 'operators change', async (db, now) => {
    const administrators = await lockAdministrators(db);
    const known = await mustLockId(db, id);
    refuseOwnAccess(deps, known);
    refuseRevoked(known);
    const giver = await giverOf(deps, db);
    refuseToManage(giver, known);
    const person = await separateOwn(deps, db, { giver, person: known, now });
    await refuseStale(db, person, wanted.was, deps);
    const before = { name: person.name, ...accessOf(person) };
    const access = checkAccess({ ...before, ...definedOf(wanted) });
    refuseBeyondOwn(giver, access);
    await checkMerchants(db, access.merchant_ids);
    if (access.merchant_ids === null && person.identity_id !== null) {
      throw new OperatorError(
        `${person.email} has access from several merchants. Give all merchants to the first access.`,
      );
    }
    if (isAdministrator(before) && !isAdministrator(access)) {
      await refuseToStayAlone(deps, db, { administrators, person, now });
    }
    const name = wanted.name === undefined ? person.name : checkName(wanted.name);
    const gains = gainsAccess(before, access);
    if (gains && confirms(giver)) mustBeApprover(deps);
    // A change by the service's staff does not confirm a person, because they may have looked only
    // at the roles. A person who is already waiting for confirmation keeps the name of the
    // administrator who may not confirm them.
    const isNew = gains && !confirms(giver) && person.unconfirmed_since === null;
    const unconfirmed = isNew ? unconfirmedBy(deps, giver, now) : {};
    const change = { ...access, name, ...(gains && { access_since: now }), ...unconfirmed };
    await updatePerson(db, id, change);
    // A session that began at the merchants' console must not become a staff session.
    if (before.merchant_ids !== null && access.merchant_ids === null) {
      await endSessionsOf(db, { access_id: id }, now);
    }
    const changed = { ...person, ...change };
    await takeFromOthers(deps, db, operator, { giver, person: changed, now });
    if (grows(before, access))
      await tellWider(deps, db, operator, { before: person, person: changed, now });
    const details = { email: person.email, before, after: { name, ...access } };
    const merchant_id = onlyMerchantOf(before, access);
    return { subject_id: id, merchant_id, details, result: changed };
  });
}

const gainsMerchants = (
  { merchant_ids: before }: Access,
  { merchant_ids: after }: Access,
): boolean => before !== null && (after === null || after.some((id) => !before.includes(id)));

/** Whether a change of access gives a right or a merchant that the person did not have. */
export const gainsAccess = (before: Access, after: Access): boolean =>
  gainsMerchants(before, after) || hasMoreRights(after, before);

const grows = (before: Access, after: Access): boolean =>
  gainsMerchants(before, after) || after.roles.some((role) => !before.roles.includes(role));

/**
 * Informs the operators and the person about wider access. Otherwise one person with two identities
 * could make the second one an approver for the first.
 */
async function tellWider(
  deps: OperatorDeps & QueueDeps & { log: Logger },
  db: Handle,
  operator: string,
  { before, person, now }: { before: Access; person: Person; now: Timestamp },
): Promise<void> {
  const { id: person_id, email } = person;
  const by = actorOf(deps, operator);
  const detail = `${by.name} changed the access of ${email} to: ${showAccess(person)}. Before: ${showAccess(before)}.${explainUnconfirmed(person)} If this was not agreed, revoke their access and review what they have done since.`;
  const about = { subject_id: person_id, caused_by: operator };
  await raiseAlert(deps, db, { kind: 'access_widened', ...about, detail });
  await queuePersonMail(deps, db, { person_id, kind: 'access_widened', by, at: now });
}

/** The sentence in an alert about a person who has to be confirmed. */
export const explainUnconfirmed = ({ unconfirmed_since, email }: Person): string =>
  unconfirmed_since === null
    ? ''
    : ` They can be the second approver once another administrator of all merchants, who knows them, confirms them, in the console or with \`tranche operators confirm ${email}\`.`;

export const showAccess = ({ roles, merchant_ids }: Access): string =>
  `${roles.join(', ')} for ${merchant_ids === null ? 'all merchants' : merchant_ids.length === 1 ? 'one merchant' : `${merchant_ids.length} merchants`}`;

const isAdministrator = ({ roles, merchant_ids }: Access) =>
  merchant_ids === null && roles.includes('admin');

/**
 * Prevents a person at the console from removing the last other administrator of all merchants and
 * so becoming the only one. An administrator counts only if they could be the second approver, so
 * one who was invited today does not. The command line can still do it (decision 0072).
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
  // A person who cannot be the second approver yet may be removed at once.
  if (others.length !== 1 || others[0]?.id !== person.id) return;
  throw new OperatorError(
    `This would leave you as the only administrator of all merchants who can act. Invite another one first (they can act ${hours === 0 ? 'at once' : `after ${plural(hours, 'hour')}`}), or run \`tranche operators revoke ${person.email}\` at the server.`,
  );
}

/**
 * Revokes an access of a person: its sessions and links end, and their passkeys too if it was the
 * last one. A merchant's administrator revokes only the access to their own merchants. The command
 * line revokes all accesses of an e-mail address. The other operators get an alert.
 */
export async function revokePerson(
  deps: SeparateDeps & SecondPersonSettings & { log: Logger },
  operator: string,
  wanted: { id: string } | { email: string },
): Promise<Person> {
  return await operateOnAccess(deps, operator, 'operators revoke', async (db, now) => {
    const administrators = await lockAdministrators(db);
    const giver = await giverOf(deps, db);
    const known =
      'id' in wanted ? [await mustLockId(db, wanted.id)] : await mustLock(db, wanted.email);
    let sessions = 0;
    const revoked: Person[] = [];
    for (const one of known) {
      refuseOwnAccess(deps, one);
      refuseRevoked(one);
      refuseToManage(giver, one);
      const person = await separateOwn(deps, db, { giver, person: one, now });
      if (isAdministrator(person)) {
        await refuseToStayAlone(deps, db, { administrators, person, now });
      }
      await updatePerson(db, person.id, { revoked_at: now });
      sessions += await endRevoked(db, person, now);
      await tellRevoked(deps, db, operator, person, now);
      revoked.push({ ...person, revoked_at: now });
    }
    const result = revoked[0] as Person;
    const details = { email: result.email, sessions };
    const merchant_id = onlyMerchantOf(...revoked);
    return { subject_id: result.id, merchant_id, details, result };
  });
}

async function tellRevoked(
  deps: OperatorDeps & QueueDeps & { log: Logger },
  db: Handle,
  operator: string,
  person: Person,
  at: Timestamp,
): Promise<void> {
  const { id: person_id, email } = person;
  const by = actorOf(deps, operator);
  await raiseAlert(deps, db, {
    ...{ kind: 'person_revoked', subject_id: person_id, caused_by: operator },
    detail: `${by.name} revoked the access of ${email} (${showAccess(person)}). If this was not agreed, invite them again, and review what has been done since.`,
  });
  await queuePersonMail(deps, db, { person_id, kind: 'revoked', by, at });
}

/**
 * Separates the part of an access that a merchant's administrator manages. Other merchants keep
 * their part, in a separate row, so that neither side learns of the other. The caller holds the
 * person's lock.
 */
export async function separateOwn(
  deps: SeparateDeps,
  db: Handle,
  { giver, person, now }: { giver: Access | null; person: Person; now: Timestamp },
): Promise<Person> {
  if (giver === null || isWithin(person, giver)) return person;
  const others = othersOf(giver, person);
  const { merchant_ids } = knownTo(giver, person);
  const id = deps.random.uuid();
  const rest = { ...person, id, merchant_ids: others, oidc_subject: null };
  const other = { ...rest, identity_id: identityOf(person) };
  await insertPerson(db, other);
  await updatePerson(db, person.id, { merchant_ids });
  await moveMails(db, { from: [person.id], to: id, merchant_ids: others });
  await separateInvitations(deps, db, { first: person, other, now });
  return { ...person, merchant_ids };
}

/**
 * Takes the merchants that one access now has from the person's other accesses, each of which the
 * giver must manage. An access that is left without merchants is revoked.
 */
export async function takeFromOthers(
  deps: OperatorDeps & QueueDeps & { log: Logger },
  db: Handle,
  operator: string,
  { giver, person, now }: { giver: Access | null; person: Person; now: Timestamp },
): Promise<void> {
  const accesses = await listAccesses(db, identityOf(person));
  const others = accesses.filter(
    (one) =>
      one.id !== person.id &&
      one.revoked_at === null &&
      one.merchant_ids !== null &&
      sees(person, one),
  );
  if (others.length === 0) return;
  for (const one of others) refuseToManage(giver, one);
  const had = others.flatMap(({ merchant_ids }) => merchant_ids ?? []);
  const merchant_ids = had.filter((id) => person.merchant_ids?.includes(id));
  await moveMails(db, { from: others.map(({ id }) => id), to: person.id, merchant_ids });
  for (const ended of await takeMerchants(db, person, now)) {
    await endSessionsOf(db, { access_id: ended.id }, now);
    await deleteUnusedLinks(db, [ended.id]);
    await tellRevoked(deps, db, operator, ended, now);
    const access = JSON.stringify({ email: ended.email, ...accessOf(ended) });
    const detail = `${showOperator(deps, operator)} moved all merchants of an access to another access of the same person: ${access}`;
    const about = { subject_id: ended.id, caused_by: operator };
    await raiseAlert(deps, db, { kind: 'access_ended', ...about, detail });
  }
}

/**
 * Ends a revoked access. The person keeps their passkeys while they have another access. Returns
 * how many sessions ended. The caller holds the person's lock.
 */
async function endRevoked(db: Handle, person: Person, now: Timestamp): Promise<number> {
  const sessions = await endSessionsOf(db, { access_id: person.id }, now);
  await deleteUnusedLinks(db, [person.id]);
  const identity = identityOf(person);
  if ((await listLiveAccesses(db, identity)).length === 0) await deletePasskeysOf(db, identity);
  return sessions;
}

/**
 * Ends all sessions, passkeys and unused links of a person, in each of their accesses. Returns how
 * many sessions and passkeys there were. The caller holds the person's lock.
 */
export async function revokeSignInMethods(
  db: Handle,
  person_id: string,
  now: Timestamp,
): Promise<{ sessions: number; passkeys: number }> {
  const sessions = await endSessionsOf(db, { person_id }, now);
  const passkeys = await deletePasskeysOf(db, person_id);
  const accesses = await listAccesses(db, person_id);
  await deleteUnusedLinks(
    db,
    accesses.map(({ id }) => id),
  );
  return { sessions, passkeys };
}

/** Ends a session of the operator, or a session of an access that they manage. */
export async function revokeSession(
  deps: OperatorDeps,
  operator: string,
  wanted: { id: string } & ({ person_id: string } | { access_id: string }),
): Promise<void> {
  await operate(deps, operator, 'operators end session', async (db, now) => {
    const session = await findConsoleSession(db, wanted.id);
    const isTheirs =
      'person_id' in wanted
        ? session?.person_id === wanted.person_id
        : session?.access_id === wanted.access_id;
    if (!session || !isTheirs) throw new OperatorError('There is no such session.');
    let merchant_id: string | null = null;
    // A merchant's audit names a person by the id that the merchant knows. It does not get the id
    // of an operator's own session, which may be at another merchant.
    let subject_id = accessIdOf(deps);
    let details = {};
    if (session.person_id !== personOf(deps)) {
      const giver = await giverOf(deps, db);
      const person = await mustLockId(db, session.access_id);
      refuseToManage(giver, person);
      merchant_id = onlyMerchantOf(knownTo(giver, person));
      subject_id = person.id;
      details = { session_id: session.id };
    }
    await endConsoleSession(db, session.id, now);
    const { origin } = deps;
    const outlivesSession =
      origin !== undefined && 'session_id' in origin && origin.session_id === session.id;
    const result = undefined;
    return { subject_id, merchant_id, details, result, outlivesSession };
  });
}

/** Ends all of a person's sessions but this one. */
export async function endOtherSessions(
  deps: OperatorDeps,
  operator: string,
  { id, person_id }: { id: string; person_id: string },
): Promise<void> {
  await operate(deps, operator, 'operators end other sessions', async (db, now) => {
    await endSessionsOf(db, { person_id }, now, id);
    // No count is recorded, because it would include sessions at other merchants.
    return { subject_id: accessIdOf(deps), details: {}, result: undefined };
  });
}

export const accessOf = ({ roles, merchant_ids }: Person): Access => ({ roles, merchant_ids });

/**
 * The merchant that an action on people's access is about. Null if there is none, if all merchants
 * are meant, and if there are several: the audit of each would name the others.
 */
export function onlyMerchantOf(...access: Access[]): string | null {
  const [id = null, ...others] = new Set(access.flatMap(({ merchant_ids }) => merchant_ids ?? []));
  return others.length === 0 ? id : null;
}

/** The access of the person who acts. Null at the command line, which may give any access. */
export async function giverOf(deps: OperatorDeps, db: Handle): Promise<Access | null> {
  const id = accessIdOf(deps);
  if (id === null) return null;
  const person = await findPerson(db, id);
  return person ? accessOf(person) : { roles: [], merchant_ids: [] };
}

/** Returns true if access that this person gives needs no confirmation by the service's staff. */
export const confirms = (giver: Access | null): boolean =>
  giver === null ||
  permissionsOf(giver.roles, giver.merchant_ids === null).includes('people.confirm');

/**
 * Describes a person to whom this giver gives access: since when the person is unconfirmed, and who
 * must not confirm them. Both are null if no confirmation is needed.
 */
export const unconfirmedBy = (
  deps: OperatorDeps,
  giver: Access | null,
  now: Timestamp,
): Pick<Person, 'unconfirmed_since' | 'unconfirmed_by'> =>
  confirms(giver)
    ? { unconfirmed_since: null, unconfirmed_by: null }
    : { unconfirmed_since: now, unconfirmed_by: personOf(deps) };

/** The person's merchants that a merchant's administrator does not have. */
export const othersOf = (giver: Access | null, { merchant_ids }: Access): string[] =>
  giver?.merchant_ids ? (merchant_ids ?? []).filter((id) => !giver.merchant_ids?.includes(id)) : [];

/** The access of a person as the giver knows it. */
export function knownTo(giver: Access | null, person: Access): Access {
  const others = othersOf(giver, person);
  const merchant_ids = person.merchant_ids?.filter((id) => !others.includes(id)) ?? null;
  return { roles: person.roles, merchant_ids };
}

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

/** Whether a person may know of another. A merchant's people may know only their colleagues. */
export const sees = (giver: Access | null, person: Access): boolean =>
  giver?.merchant_ids === undefined ||
  giver.merchant_ids === null ||
  (person.merchant_ids?.some((id) => giver.merchant_ids?.includes(id)) ?? false);

const notManaged = () =>
  new OperatorError(
    'Only an administrator of the payment service can change the access of this person.',
  );

/** Refuses to manage a person who has more rights, or none of the giver's merchants. */
export function refuseToManage(giver: Access | null, person: Access): void {
  if (giver === null) return;
  if (hasMoreRights(person, giver) || !sees(giver, person)) throw notManaged();
}

/**
 * Finds a person by e-mail address, and locks their first access. Returns their live accesses, or
 * the first one if all are revoked.
 */
async function mustLock(db: Handle, address: string): Promise<Person[]> {
  const person = await lockPersonByEmail(db, foldAddress(address.trim()));
  if (!person) throw new OperatorError(`There is no person ${address}.`);
  const live = (await listAccesses(db, person.id)).filter((one) => one.revoked_at === null);
  return live.length > 0 ? live : [person];
}

const definedOf = (wanted: Partial<Access>): Partial<Access> => ({
  ...(wanted.roles !== undefined && { roles: wanted.roles }),
  ...(wanted.merchant_ids !== undefined && { merchant_ids: wanted.merchant_ids }),
});

export async function mustLockId(db: Handle, id: string): Promise<Person> {
  const person = isUuid(id) ? await lockPerson(db, id) : null;
  if (!person) throw new OperatorError(`There is no person ${id}.`);
  return person;
}

export function refuseRevoked(person: Person): void {
  if (person.revoked_at === null) return;
  throw new OperatorError(
    `${person.email} was revoked at ${person.revoked_at}. Invite them again.`,
  );
}

/** Refuses people who change their own access: another administrator has to do that. */
export function refuseOwnAccess(deps: OperatorDeps, person: Person): void {
  if (identityOf(person) === personOf(deps)) {
    throw new OperatorError('You cannot change your own access. Ask another administrator.');
  }
}
