import type { Database, Handle } from '#platform/database/database.ts';
import { type Transaction, transaction } from '#platform/database/transaction.ts';
import { type Writes, writeTogether } from '#platform/database/write-together.ts';
import type { Approver } from '#platform/shared/approver.ts';
import type { Clock, Timestamp } from '#platform/shared/clock.ts';
import { timestamp } from '#platform/shared/clock.ts';
import type { Random } from '#platform/shared/random.ts';
import { takeTexts } from './free-text.ts';
import {
  hasOperatorAction,
  lockOperatorAction,
  type OperatorAction,
} from './operator-action.sql.ts';
import { appendOperatorAction } from './operator-chain.sql.ts';

/**
 * Where an action came from. At the command line the process knows the system's user and the host,
 * but the operator's name is only stated. At the console the session identifies the person.
 */
export type Origin =
  | { os_user: string; host: string }
  | {
      person_id: string;
      /**
       * The access that the session uses: it determines the roles and merchants (decision 0072).
       */
      access_id: string;
      roles: string[];
      address: string;
      session_id: string;
      /**
       * The person's merchants, if they are one of a merchant's own people. Absent or null for the
       * service's staff.
       */
      merchant_ids?: string[] | null;
      /**
       * The time from which the person can be the second approver. Null if they have no passkey,
       * `unconfirmed` if an administrator of all merchants has to confirm them first (decision
       * 0072).
       */
      counts_from: Timestamp | 'unconfirmed' | null;
    };

export type OperatorDeps = {
  database: Database;
  clock: Clock;
  random: Random;
  /** Absent for an action of the service itself. */
  origin?: Origin;
};

/**
 * The person whose session the action comes from; null at the command line and in the service
 * itself.
 */
export const personOf = ({ origin }: Pick<OperatorDeps, 'origin'>): string | null =>
  origin && 'person_id' in origin ? origin.person_id : null;

/**
 * The access that the person's session uses (decision 0072). Null at the command line and in the
 * service itself.
 */
export const accessIdOf = ({ origin }: Pick<OperatorDeps, 'origin'>): string | null =>
  origin && 'access_id' in origin ? origin.access_id : null;

/**
 * The operator's name for other people to read. A name from the command line is followed by the
 * system's user.
 */
export const showOperator = ({ origin }: Pick<OperatorDeps, 'origin'>, operator: string): string =>
  origin && 'os_user' in origin ? `${operator} [${origin.os_user}@${origin.host}]` : operator;

/** The operator of an action, as other people see them. */
export const actorOf = (deps: Pick<OperatorDeps, 'origin'>, operator: string): Approver => ({
  person_id: personOf(deps),
  name: showOperator(deps, operator),
});

/**
 * The acting person's merchants, if the person belongs to certain merchants; null for all other
 * actions.
 */
export const merchantsOf = ({ origin }: Pick<OperatorDeps, 'origin'>): string[] | null =>
  (origin && 'person_id' in origin && origin.merchant_ids) || null;

function columnsOf({ origin }: Pick<OperatorDeps, 'origin'>) {
  const at = origin && 'os_user' in origin ? origin : null;
  const by = origin && 'person_id' in origin ? origin : null;
  return {
    os_user: at?.os_user ?? null,
    host: at?.host ?? null,
    person_id: by?.person_id ?? null,
    roles: by?.roles ?? null,
    address: by?.address ?? null,
    session_id: by?.session_id ?? null,
  };
}

/** The part of an action that is about one of several merchants. */
export type Share = { merchant_id: string; details: object };

/**
 * The merchants that an action is for, each with the details for its audit. A person who belongs to
 * several merchants acts on behalf of those that the action concerns, or of none if it concerns the
 * person themselves. The service's staff act on behalf of none.
 */
function sharesOf(
  deps: Pick<OperatorDeps, 'origin'>,
  about: { merchant_id?: string | null; details: object; shares?: Share[] },
): (Omit<Share, 'merchant_id'> & { merchant_id: string | null })[] {
  const { details, shares = [] } = about;
  const own = merchantsOf(deps) ?? [];
  if (own.length === 1) return [{ merchant_id: own[0] ?? null, details }];
  const ofOwn = shares.filter(({ merchant_id }) => own.includes(merchant_id));
  if (ofOwn.length > 0) return ofOwn;
  // A person may have typed the id in capitals.
  const id = about.merchant_id?.toLowerCase();
  return [{ merchant_id: id && own.includes(id) ? id : null, details }];
}

/** An operator asked for something that cannot be done. The message says what to do instead. */
export class OperatorError extends Error {}

/** A part of an action was committed, and the rest failed. The message says what was done. */
export class DoneInPart extends OperatorError {}

/**
 * The session of an action ended, or its access was revoked or narrowed, before the action was
 * committed.
 */
export class SessionEnded extends OperatorError {
  constructor() {
    super('Your session has ended, or your access was changed. Nothing was done. Sign in again.');
  }
}

/**
 * Makes an operator's change and writes its audit row in one transaction, so every change names the
 * operator who made it. `details` never holds a secret, and holds what a person wrote only as a
 * `FreeText`. An action that waited, for its body or for a lock, is refused if its session has
 * ended or its person's access has been narrowed by then.
 */
export async function operate<T>(
  deps: OperatorDeps,
  operator: string,
  action: string,
  change: (
    db: Handle,
    now: Timestamp,
  ) => Promise<{
    subject_id: string | null;
    details: object;
    result: T;
    /**
     * The merchant that the action is about. It may be absent if the person belongs to a single
     * merchant.
     */
    merchant_id?: string | null;
    /**
     * If the action is about several merchants, the details for each. The action of one of their
     * own people leaves a row in the audit of each of these merchants, without the details of the
     * others.
     */
    shares?: Share[];
    /** Replaces `action` in the audit, if the change turned out to be a different action. */
    action?: string;
    /**
     * Whether the action is recorded even if its session has ended. An action may end its own
     * session, or record what was already sent.
     */
    outlivesSession?: boolean;
    /** Writes that the change has not sent yet. They are sent with the audit row and COMMIT. */
    writes?: Writes;
  }>,
): Promise<T> {
  const id = deps.random.uuid();
  let committed: T | undefined;
  return await transaction(deps, async ({ db, commit }, maybeCommitted) => {
    // An earlier COMMIT of this action that is still in flight holds this lock. Once we have the
    // lock, that COMMIT has either happened or failed.
    const locked = lockOperatorAction(db, id);
    if (maybeCommitted) {
      await locked;
      if (await hasOperatorAction(db, id)) return committed as T;
    }
    const at = timestamp(deps.clock.now());
    // The first statement of the change is sent together with the lock.
    const [changed] = await Promise.all([change(db, at), locked]);
    const { subject_id, result, outlivesSession = false, action: named = action } = changed;
    const merchant_ids = merchantsOf(deps);
    const about = { at, operator, action: named, subject_id, ...columnsOf(deps) };
    const rows = sharesOf(deps, changed).map(({ merchant_id, details: given }, place) => {
      const { details, texts } = takeTexts(deps.random, given);
      const row = { ...about, id: place === 0 ? id : deps.random.uuid(), merchant_id, details };
      return { row, texts };
    });
    committed = result;
    const written = changed.writes && writeTogether(db, changed.writes);
    // This only prevents an unhandled rejection: after a failed write PostgreSQL refuses the rest.
    written?.catch(() => {});
    for (const { row, texts } of rows) {
      const isLast = row === rows.at(-1)?.row;
      const options = { texts, merchant_ids, outlivesSession };
      const append = { ...options, commit: isLast ? commit : async () => {} };
      const [isAllowed] = await Promise.all([appendOperatorAction(db, row, append), written]);
      if (!isAllowed) throw new SessionEnded();
    }
    return result;
  });
}

/**
 * The operator's name in a merchant's audit if an API key acted. A person cannot pose as a key,
 * because the action of a person always has an origin.
 */
const keyOperators = ['API key', 'API key of an intermediary'] as const;

export const isKeyAction = (action: Pick<OperatorAction, 'operator' | 'os_user' | 'person_id'>) =>
  keyOperators.some((name) => name === action.operator) &&
  action.os_user === null &&
  action.person_id === null;

/**
 * Records what a key did for a merchant through the API, as the last step of the request's
 * transaction, and commits. Recorded actions wait for each other, and keys act far more often than
 * people. So only rare actions of keys are recorded.
 */
export async function recordKeyAction(
  deps: Pick<OperatorDeps, 'clock' | 'random'>,
  { db, commit }: Pick<Transaction, 'db' | 'commit'>,
  {
    intermediary,
    ...did
  }: Pick<OperatorAction, 'action' | 'subject_id' | 'merchant_id'> & {
    details: object;
    intermediary: boolean;
  },
): Promise<void> {
  const at = timestamp(deps.clock.now());
  const operator = keyOperators[intermediary ? 1 : 0];
  const row = { ...did, id: deps.random.uuid(), at, operator, ...columnsOf({}) };
  const options = { texts: [], merchant_ids: null, outlivesSession: false };
  await appendOperatorAction(db, row, { ...options, commit });
}
