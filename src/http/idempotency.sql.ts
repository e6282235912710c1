import { sql } from 'kysely';
import type { Handle } from '../database/database.ts';
import type { Timestamp } from '../shared/clock.ts';

export const keptHours = 24;

/** A request that carried an Idempotency-Key. */
export type KeyedRequest = { integration_id: string; key: string; fingerprint: Buffer };

export type KeyedAnswer = KeyedRequest & { status: 200 | 422; answer: object };

/**
 * Records first answers; says for each whether it is the first. An answer that is being written
 * by another transaction is waited for, so the loser finds it committed. One that is older than
 * it is kept is no longer in the way (D9). Keys must be distinct.
 *
 * For Citus these are values, not a select, and the rule of the conflict is immutable: so it asks
 * only the nodes of these integrations.
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

/** One spelling for a key of an integration: to tell two apart, and to lock them in one order. */
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

/** Forgets some answers that are too old to be asked for. */
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
