import { sql } from 'kysely';
import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';

export const keptHours = 24;

/** A request that carried an Idempotency-Key. */
export type KeyedRequest = { integration_id: string; key: string; fingerprint: Buffer };

export type KeyedAnswer = KeyedRequest & { status: 200 | 422; answer: object };

/**
 * Records answers, and says for each whether it is the first for its key. If another transaction is
 * writing the same key, this one waits for it, so the loser finds the first answer committed. An
 * answer past its 24 hours is replaced (decision 0008). The keys must be distinct.
 *
 * Citus contacts only the nodes of these integrations, because the rows are VALUES rather than a
 * SELECT and the conflict rule is immutable.
 */
export async function insertAnswers(
  db: Handle,
  answers: KeyedAnswer[],
  now: Timestamp,
): Promise<boolean[]> {
  const sorted = [...answers].sort((a, b) => (orderOf(a) < orderOf(b) ? -1 : 1));
  const { rows } = await sql<{ integration_id: string; key: string }>`
    insert into idempotency_keys as k (integration_id, key, fingerprint, status, answer, created_at)
    values ${sql.join(
      sorted.map(
        ({ integration_id, key, fingerprint, status, answer }) =>
          sql`(${integration_id}, ${key}, ${fingerprint}, ${status}, ${JSON.stringify(answer)}, ${now})`,
      ),
    )}
    on conflict (integration_id, key) do update set
      fingerprint = excluded.fingerprint, status = excluded.status,
      answer = excluded.answer, created_at = excluded.created_at
      where excluded.created_at - k.created_at >= ${sql.lit(keptHours)} * interval '1 hour'
    returning integration_id, key`.execute(db);
  const first = new Set(rows.map(orderOf));
  return answers.map((one) => first.has(orderOf(one)));
}

/** The identity of a key, which is also the order in which keys are locked. */
export function orderOf(keyed: { integration_id: string; key: string }): string {
  return `${keyed.integration_id} ${keyed.key}`;
}

export async function findAnswer(
  db: Handle,
  keyed: KeyedRequest,
): Promise<{ fingerprint: Buffer; status: 200 | 422; answer: object } | null> {
  const row = await db
    .selectFrom('idempotency_keys')
    .select(['fingerprint', 'status', 'answer'])
    .where('integration_id', '=', keyed.integration_id)
    .where('key', '=', keyed.key)
    .executeTakeFirst();
  return row ?? null;
}

/** Deletes a batch of answers that are too old to be replayed. */
export async function deleteAnswersBefore(
  db: Handle,
  cutoff: Timestamp,
  count: number,
): Promise<number> {
  const result = await sql`
    delete from idempotency_keys where (integration_id, key) in (
      select integration_id, key from idempotency_keys
      where created_at <= ${cutoff} order by created_at limit ${count})`.execute(db);
  return Number(result.numAffectedRows ?? 0n);
}
