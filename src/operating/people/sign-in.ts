import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server';
import { findAccessStop } from '#checks/reconciliation/gateway-heartbeat.sql.ts';
import type { Handle } from '#platform/database/database.ts';
import { reading, transaction } from '#platform/database/transaction.ts';
import { type Timestamp, timestamp } from '#platform/shared/clock.ts';
import type { Logger } from '#platform/shared/logger.ts';
import {
  accessIdOf,
  type OperatorDeps,
  OperatorError,
  operate,
  SessionEnded,
} from '#record/actions/operate.ts';
import { operateOnAccess } from '#record/alerts/operate-on-access.ts';
import { raiseAlert } from '#record/alerts/raise-alert.ts';
import { checkName } from './check-person.ts';
import { mayUse } from './console-place.ts';
import {
  type ConsoleSession,
  endConsoleSession,
  endSessionsOfPasskey,
  findConsoleSession,
  recordReauthentication,
  type SessionMethod,
} from './console-session.sql.ts';
import { hashToken, newToken, openConsoleSession, renewToken } from './console-session.ts';
import {
  deletePasskey,
  deletePasskeysOf,
  insertPasskey,
  listPasskeys,
  movePasskeyUsed,
  type Passkey,
} from './passkey.sql.ts';
import {
  findPerson,
  identityOf,
  isOfStaff,
  listLiveAccesses,
  listWithSignInMethod,
  lockPerson,
  moveRegistered,
  type Person,
  updatePerson,
} from './person.sql.ts';
import { findLiveLink, type LinkPurpose, moveLinkUsed } from './person-link.sql.ts';
import { queuePersonMail } from './queue-person-mail.ts';
import {
  NotRecognised,
  offerAuthentication,
  offerRegistration,
  verifyAuthentication,
  verifyRegistration,
  type WebauthnDeps,
} from './webauthn.ts';

/** A one-time link that is unknown, used or expired. */
export class LinkEnded extends Error {}

export type Browser = {
  address: string;
  user_agent: string;
  /** The session token in the browser's cookie. */
  token: string | null;
};

/** A new session's token, for the cookie. */
export type Opened = { token: string };

/**
 * The name of the action that accepts an invitation. It is the same for every sign-in method, and
 * for a person who could already sign in, because the merchant need not know that.
 */
export const accepting = 'operators accept';

const passkeysMax = 10;

/** A restore may have brought back people who were revoked, and passkeys that were removed. */
const accessStopped = {
  staff:
    'The database has lost changes. People can sign in once an operator has confirmed them at the command line: `tranche operators confirm`.',
  merchant:
    'No one can sign in at the moment, because the service’s database was restored. If it is urgent, ask the payment service.',
};

/**
 * The person that a link is for. If another merchant gave them access already, they accept the
 * invitation in a session, and register no passkey with it.
 */
export async function findInvited(
  deps: WebauthnDeps,
  token: string,
  purpose: LinkPurpose,
): Promise<{ person: Person; by_staff: boolean; expires_at: string; must_sign_in: boolean }> {
  const found = await reading(deps, async (db) => {
    const link = await findLiveLink(db, hashToken(token), purpose, timestamp(deps.clock.now()));
    const person = link && (await findPerson(db, link.person_id));
    if (!link || !person) return null;
    const { by_staff, expires_at } = link;
    return { person, by_staff, expires_at, must_sign_in: await mustSignIn(db, person, by_staff) };
  });
  if (!found || found.person.revoked_at !== null) throw new LinkEnded();
  if (!mayUse(deps.console, found.person)) throw new LinkEnded();
  return found;
}

/**
 * Whether a person accepts an invitation in a session, because they also have access elsewhere. A
 * person whose sign-in methods were revoked cannot sign in. They register a new passkey with an
 * invitation to an access that they had accepted before, or with one from the service's staff, but
 * not with another merchant's.
 */
async function mustSignIn(db: Handle, invited: Person, by_staff: boolean): Promise<boolean> {
  const identity = identityOf(invited);
  if ((await listLiveAccesses(db, identity)).length === 0) return false;
  if (invited.registered_at === null && !by_staff) return true;
  return (await listWithSignInMethod(db, [identity])).size > 0;
}

const signInFirst = () =>
  new OperatorError(
    'You have access already. Sign in, then open this link again. If you can no longer sign in, ask for a new invitation to the access that you have.',
  );

export async function offerInvited(deps: WebauthnDeps, token: string) {
  const { person, must_sign_in } = await findInvited(deps, token, 'register');
  if (must_sign_in) throw signInFirst();
  return await offerRegistration(deps, { ...person, id: identityOf(person) }, []);
}

/**
 * Registers an invited person's passkey and signs them in. The name stays the one that the
 * administrator gave: otherwise a person could take a colleague's name, and approvers are also
 * compared by name. The invitation has already ended the person's earlier access.
 */
export async function registerInvited(
  deps: WebauthnDeps,
  browser: Browser,
  wanted: { token: string; response: RegistrationResponseJSON },
): Promise<Opened> {
  const invited = await findInvited(deps, wanted.token, 'register');
  const { person } = invited;
  const person_id = identityOf(person);
  const verified = await verifyRegistration(deps, person_id, wanted.response);
  return await open(deps, browser, person, 'passkey', accepting, async (db, now) => {
    if (!(await moveLinkUsed(db, hashToken(wanted.token), now))) throw new LinkEnded();
    // The person may have accepted another invitation in the meantime.
    if (await mustSignIn(db, person, invited.by_staff)) throw signInFirst();
    // The account at the issuer may belong to an earlier holder of the e-mail address, whose last
    // access ended.
    await updatePerson(db, person_id, { oidc_subject: null });
    await deletePasskeysOf(db, person_id);
    const passkey = { ...verified, person_id, name: 'First passkey' };
    const passkey_id = await keepPasskey(deps, db, passkey, now);
    await moveRegistered(db, person.id, now);
    const facts = { address: browser.address };
    const mail = { person_id: person.id, kind: 'registered' as const, facts, at: now };
    await queuePersonMail(deps, db, mail);
    return { passkey_id, details: {} };
  });
}

/**
 * A person who is signed in accepts an invitation from another merchant, and continues with that
 * access.
 */
export async function acceptInvited(
  deps: WebauthnDeps,
  browser: Browser,
  session: ConsoleSession,
  token: string,
): Promise<Opened> {
  const { person } = await findInvited(deps, token, 'register');
  return await enter(deps, browser, session, person, accepting, async (db, now) => {
    if (!(await moveLinkUsed(db, hashToken(token), now))) throw new LinkEnded();
    await moveRegistered(db, person.id, now);
    return {};
  });
}

/**
 * A person continues with another of their accesses, in a new session that ends with this one. The
 * audit records it like a sign-in.
 */
export async function chooseAccess(
  deps: WebauthnDeps & { console: { oidc: { issuer: string } | null } },
  browser: Browser,
  session: ConsoleSession,
  access_id: string,
): Promise<Opened> {
  const accesses = await reading(deps, (db) => listLiveAccesses(db, session.person_id));
  const access = accesses.find(({ id }) => id === access_id);
  if (!access) throw new OperatorError('You do not have this access.');
  if (access_id === session.access_id)
    throw new OperatorError('You are already using this access.');
  return await enter(deps, browser, session, access, 'console sign-in', async (db) => {
    const { oidc } = deps.console;
    if (session.method === 'oidc') return oidc ? { issuer: oidc.issuer } : {};
    const passkeys = await listPasskeys(db, session.person_id);
    const used = passkeys.find(({ id }) => id === session.passkey_id);
    return used ? { passkey: used.name } : {};
  });
}

/**
 * The new session expires when the earlier one would have, and begins without re-authentication.
 * Each session is recorded only in the audit of its own merchants, because they need not know of
 * each other.
 */
async function enter(
  deps: WebauthnDeps,
  browser: Browser,
  earlier: ConsoleSession,
  access: Person,
  action: string,
  before: (db: Handle, now: Timestamp) => Promise<object>,
): Promise<Opened> {
  if (identityOf(access) !== earlier.person_id) {
    throw new OperatorError('This invitation is for another person. Sign in as that person.');
  }
  const { method, passkey_id, expires_at } = earlier;
  const continued = { isFresh: false, expires_at };
  return await open(
    deps,
    browser,
    access,
    method,
    action,
    async (db, now) => {
      if (!(await endConsoleSession(db, earlier.id, now))) throw new SessionEnded();
      return { passkey_id, details: await before(db, now) };
    },
    continued,
  );
}

export const offerSignIn = (deps: WebauthnDeps) =>
  offerAuthentication(deps, { purpose: 'sign_in' });

export async function signInByPasskey(
  deps: WebauthnDeps,
  browser: Browser,
  response: AuthenticationResponseJSON,
): Promise<Opened> {
  const { passkey, counter } = await verifyAuthentication(deps, response, { purpose: 'sign_in' });
  const person = await findAccess(deps, passkey.person_id);
  if (!person) throw new NotRecognised('the person has no access');
  return await open(deps, browser, person, 'passkey', 'console sign-in', async (db, now) => {
    // We hold the person's lock, so a registration that replaces the passkey either waits or is
    // already done.
    await noteUse(db, passkey, counter, now);
    return { passkey_id: passkey.id, details: { passkey: passkey.name } };
  });
}

/**
 * Returns the access that a person's session starts with: of the accesses that this console allows,
 * the one that they used last. Null if it allows none.
 */
export async function findAccess(deps: WebauthnDeps, identity: string): Promise<Person | null> {
  const accesses = await reading(deps, (db) => listLiveAccesses(db, identity));
  return accesses.find((one) => mayUse(deps.console, one)) ?? null;
}

/** Signs in with a one-time link from the command line. The caller allows it only in sandboxes. */
export async function signInByLink(
  deps: WebauthnDeps,
  browser: Browser,
  token: string,
): Promise<Opened> {
  const { person } = await findInvited(deps, token, 'sign_in');
  return await open(deps, browser, person, 'sandbox_link', 'console sign-in', async (db, now) => {
    if (!(await moveLinkUsed(db, hashToken(token), now))) throw new LinkEnded();
    return { passkey_id: null, details: {} };
  });
}

/** Opens a person's session and records it in the audit, in one transaction. */
export async function open(
  deps: WebauthnDeps,
  browser: Browser,
  access: Person,
  method: SessionMethod,
  action: string,
  before: (db: Handle, now: Timestamp) => Promise<{ passkey_id: string | null; details: object }>,
  // A sign-in at the issuer does not count as re-authentication, because it may be hours old.
  begun: { isFresh: boolean; expires_at?: Timestamp } = { isFresh: method !== 'oidc' },
): Promise<Opened> {
  const { id: access_id, email, roles, merchant_ids } = access;
  const person_id = identityOf(access);
  const id = deps.random.uuid();
  // The token is always new: another person could know one that the browser already had.
  const token = newToken(deps.random);
  const { address, user_agent } = browser;
  const known = { person_id, access_id, roles, merchant_ids };
  const origin = { ...known, address, session_id: id, counts_from: null };
  return await operate({ ...deps, origin }, email, action, async (db, now) => {
    // An administrator who revokes the person waits for this lock, and then ends the new session
    // too.
    const person = await lockPerson(db, access_id);
    if (person?.revoked_at !== null || !mayUse(deps.console, person)) throw new NotRecognised();
    if (await isOfStaff(db, person)) throw new NotRecognised('the person has all merchants');
    if ((await findAccessStop(db)) !== null) {
      throw new OperatorError(accessStopped[person.merchant_ids === null ? 'staff' : 'merchant']);
    }
    const { passkey_id, details } = await before(db, now);
    const of = { person_id, access_id, address, user_agent };
    await openConsoleSession(deps, db, { id, token, method, ...of, ...begun, passkey_id });
    // An earlier session of the browser may stay open for its bulk actions, but only under a new
    // token that no one knows.
    await renewToken(deps, db, browser);
    return { subject_id: access_id, details: { method, ...details }, result: { token } };
  });
}

export async function offerReauthentication(deps: WebauthnDeps, session: ConsoleSession) {
  const passkeys = await reading(deps, (db) => listPasskeys(db, session.person_id));
  if (passkeys.length === 0) throw new OperatorError('Register a passkey first.');
  return await offerAuthentication(deps, { purpose: 'proof', session_id: session.id, passkeys });
}

/**
 * Records a re-authentication of the session's person. Returns the session's new token, or null if
 * another request has already replaced the token.
 */
export async function reauthenticateWithPasskey(
  deps: WebauthnDeps,
  browser: Browser,
  session: ConsoleSession,
  response: AuthenticationResponseJSON,
): Promise<string | null> {
  const about = { session_id: session.id, person_id: session.person_id };
  const verified = await verifyAuthentication(deps, response, { purpose: 'proof', ...about });
  return await transaction(deps, async ({ db }) => {
    const now = timestamp(deps.clock.now());
    await noteUse(db, verified.passkey, verified.counter, now);
    await recordReauthentication(db, session.id, {
      proof_at: now,
      passkey_id: verified.passkey.id,
    });
    return await renewToken(deps, db, browser);
  });
}

async function noteUse(
  db: Handle,
  { id }: Passkey,
  counter: number,
  now: Timestamp,
): Promise<void> {
  if (await movePasskeyUsed(db, id, counter, now)) return;
  throw new NotRecognised('the passkey was deleted after it had answered');
}

/** Records a re-authentication without a passkey. The caller allows it only in sandboxes. */
export async function reauthenticateInSandbox(
  deps: WebauthnDeps,
  session: ConsoleSession,
): Promise<void> {
  const proof_at = timestamp(deps.clock.now());
  await recordReauthentication(deps.database.db, session.id, { proof_at, passkey_id: null });
}

export async function offerPasskey(deps: WebauthnDeps, person_id: string) {
  const { person, passkeys } = await reading(deps, async (db) => ({
    person: await findPerson(db, person_id),
    passkeys: await listPasskeys(db, person_id),
  }));
  if (!person) throw new NotRecognised();
  return await offerRegistration(deps, person, passkeys);
}

type TellDeps = WebauthnDeps & Pick<OperatorDeps, 'origin'> & { log: Logger };

/** Adds a passkey for a person who is signed in. */
export async function addPasskey(
  deps: TellDeps,
  operator: string,
  { id: session_id, person_id }: ConsoleSession,
  wanted: { name: string; response: RegistrationResponseJSON },
): Promise<void> {
  const name = checkName(wanted.name);
  const verified = await verifyRegistration(deps, person_id, wanted.response);
  await operate(deps, operator, 'passkeys add', async (db, now) => {
    await lockPerson(db, person_id);
    // A revocation or a new invitation may have ended the session while this waited for the lock.
    const session = await findConsoleSession(db, session_id);
    if (session?.ended_at !== null) throw new NotRecognised('the session has ended');
    if ((await listPasskeys(db, person_id)).length >= passkeysMax) {
      throw new OperatorError(`A person has at most ${passkeysMax} passkeys.`);
    }
    await keepPasskey(deps, db, { ...verified, person_id, name }, now);
    await moveRegistered(db, session.access_id, now);
    const facts = { passkey: name, ...addressOf(deps) };
    await queuePersonMail(deps, db, { person_id, kind: 'passkey_added', facts, at: now });
    await tellSignInMethod(deps, db, {
      operator,
      access_id: session.access_id,
      did: 'added a passkey',
    });
    return { subject_id: session.access_id, details: { name }, result: undefined };
  });
}

/**
 * Informs the operators that a session added a sign-in method. Another person may have used the
 * open session, and could later be the second approver in its owner's name.
 */
export async function tellSignInMethod(
  deps: TellDeps,
  db: Handle,
  { operator, access_id, did }: { operator: string; access_id: string; did: string },
): Promise<void> {
  const { address } = addressOf(deps);
  const from = address === undefined ? '' : ` from the address ${address}`;
  await raiseAlert(deps, db, {
    ...{ kind: 'sign_in_method_added', subject_id: access_id, caused_by: operator },
    detail: `${operator} ${did}${from}. Ask them, over a channel other than mail. If they did not do this, revoke their access and review what they have done since.`,
  });
}

/**
 * Removes a person's passkey, and ends the sessions whose last authentication used it, except the
 * current one.
 */
export async function removePasskey(
  deps: WebauthnDeps & Pick<OperatorDeps, 'origin'>,
  operator: string,
  wanted: { person_id: string; session_id: string; id: string },
): Promise<void> {
  await operateOnAccess(deps, operator, 'passkeys remove', async (db, at) => {
    await lockPerson(db, wanted.person_id);
    const passkeys = await listPasskeys(db, wanted.person_id);
    const passkey = passkeys.find(({ id }) => id === wanted.id);
    if (!passkey) throw new OperatorError('There is no such passkey.');
    if (passkeys.length === 1) {
      throw new OperatorError('This is your only passkey. Add another one first.');
    }
    await deletePasskey(db, wanted.id);
    await endSessionsOfPasskey(db, wanted.id, at, wanted.session_id);
    const { person_id } = wanted;
    const facts = { passkey: passkey.name, ...addressOf(deps) };
    await queuePersonMail(deps, db, { person_id, kind: 'passkey_removed', facts, at });
    const details = { name: passkey.name };
    return { subject_id: accessIdOf(deps), details, result: undefined };
  });
}

/** The network address of the person at the console, for the mail to them. */
const addressOf = ({ origin }: Pick<OperatorDeps, 'origin'>): { address?: string } =>
  origin && 'address' in origin ? { address: origin.address } : {};

async function keepPasskey(
  deps: WebauthnDeps,
  db: Handle,
  passkey: Omit<Passkey, 'id' | 'created_at' | 'used_at'>,
  now: Timestamp,
): Promise<string> {
  const row = { ...passkey, id: deps.random.uuid(), created_at: now, used_at: null };
  if (!(await insertPasskey(db, row)))
    throw new OperatorError('This passkey is already registered.');
  return row.id;
}
