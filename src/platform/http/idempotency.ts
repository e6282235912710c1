import { createHash } from 'node:crypto';
import type { Database, Handle } from '#platform/database/database.ts';
import { reading, transaction } from '#platform/database/transaction.ts';
import type { Clock, Timestamp } from '#platform/shared/clock.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { ApiError, badRequest, unprocessable } from './errors.ts';
import {
  findAnswer,
  insertAnswers,
  type KeyedAnswer,
  type KeyedRequest,
  keptHours,
} from './idempotency.sql.ts';

/**
 * Thrown in the transaction of a request whose key already has an answer. The transaction rolls
 * back, and the caller gets the first answer.
 */
export class KeyTaken extends Error {}

export function answersCutoff(clock: Clock): Timestamp {
  return timestamp(clock.now().subtract({ hours: keptHours }));
}

/** The request's key, or null without one. Two bodies that differ only in white space are equal. */
export function readKey(
  header: string | string[] | undefined,
  integration_id: string,
  endpoint: string,
  compactBody: Uint8Array,
): KeyedRequest | null {
  if (header === undefined) return null;
  if (typeof header !== 'string' || header.length < 1 || header.length > 255) {
    throw badRequest('The Idempotency-Key header must be one value of 1 to 255 characters.');
  }
  const fingerprint = createHash('sha256').update(`${endpoint}\n`).update(compactBody).digest();
  return { integration_id, key: header, fingerprint };
}

/**
 * Gives every request with the same key the same answer (decision 0008). The first request records
 * its answer in the transaction of its effect (`recordAnswer`). A later one fails to record its
 * own, rolls back, and reads the first answer. So there is no claim that could expire or leak.
 *
 * A refusal is recorded only if it is lasting (decision 0008). Any other may no longer hold when
 * the caller retries, so it leaves the key free.
 */
export async function answerOnce<T extends object>(
  deps: { database: Database; clock: Clock },
  keyed: KeyedRequest | null,
  work: () => Promise<T>,
): Promise<{ answer: T; replayed: boolean }> {
  if (!keyed) return { answer: await work(), replayed: false };
  for (;;) {
    try {
      return { answer: await work(), replayed: false };
    } catch (error) {
      const refusal = error instanceof ApiError ? error : null;
      const isRecorded = refusal?.lasting ?? false;
      if (refusal && isRecorded && (await isFirstRefusal(deps, keyed, refusal))) throw refusal;
      // A retry may get a 404 or 422 although its first request succeeded: for example, a second
      // refund of the whole amount is refused. The first answer counts.
      const isRetryable = refusal !== null && (refusal.status === 404 || refusal.status === 422);
      if (!(error instanceof KeyTaken) && !isRetryable) throw error;
      const first = await reading(deps, (db) => findAnswer(db, keyed));
      if (first) return { answer: replay<T>(first, keyed), replayed: true };
      if (refusal && !isRecorded) throw refusal;
      // The stored answer has just expired, so this request is the first.
    }
  }
}

function replay<T>(
  first: { fingerprint: Buffer; status: 200 | 422; answer: object },
  keyed: KeyedRequest,
): T {
  if (!first.fingerprint.equals(keyed.fingerprint)) {
    throw unprocessable(
      'Validation failed: the Idempotency-Key was already used with another request.',
    );
  }
  if (first.status === 422) {
    const { details } = first.answer as { details: string[] };
    throw new ApiError(422, 'unprocessable_entity', details, { replayed: true });
  }
  return first.answer as T;
}

/** Call it in the transaction of the effect. */
export async function recordAnswer(db: Handle, clock: Clock, answer: KeyedAnswer): Promise<void> {
  const [isFirst] = await recordAnswers(db, [answer], timestamp(clock.now()));
  if (!isFirst) throw new KeyTaken();
}

/** Records the answers of a batch, and says for each whether it is the first for its key. */
export function recordAnswers(
  db: Handle,
  answers: KeyedAnswer[],
  now: Timestamp,
): Promise<boolean[]> {
  return insertAnswers(db, answers, now);
}

async function isFirstRefusal(
  deps: { database: Database; clock: Clock },
  keyed: KeyedRequest,
  error: ApiError,
): Promise<boolean> {
  const refusal: KeyedAnswer = { ...keyed, status: 422, answer: { details: error.details } };
  try {
    await transaction(deps, ({ db }) => recordAnswer(db, deps.clock, refusal));
    return true;
  } catch (taken) {
    if (taken instanceof KeyTaken) return false;
    throw taken;
  }
}
