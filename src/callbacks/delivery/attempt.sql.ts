import type pg from 'pg';
import type { Handle } from '../../database/database.ts';
import { rowGroup } from '../../database/row-group.ts';
import type { Timestamp } from '../../shared/clock.ts';
import type { CallbackAttempt } from '../callback.ts';

type CallbackKey = { merchant_id: string; id: string };

/** When an attempt began, or null if it does not exist. */
export async function findAttemptStart(
  db: Handle,
  callback: CallbackKey,
  number: number,
): Promise<Timestamp | null> {
  const row = await db
    .selectFrom('callback_attempts')
    .select('started_at')
    .where('merchant_id', '=', callback.merchant_id)
    .where('callback_id', '=', callback.id)
    .where('number', '=', number)
    .executeTakeFirst();
  return row?.started_at ?? null;
}

/** What identifies an attempt. */
type AttemptKey = Pick<CallbackAttempt, 'merchant_id' | 'callback_id' | 'number' | 'id'>;

const opened = rowGroup({
  merchant_id: 'uuid',
  callback_id: 'uuid',
  number: 'int',
  id: 'uuid',
  lease: 'uuid',
  trigger: 'text',
  operator: 'text',
  started_at: 'timestamptz',
  request_headers: 'json',
});

/**
 * Writes attempts. Leaves out an attempt whose callback is no longer under the given lease, or whose
 * number exists. Returns how many were written.
 */
export function insertCallbackAttempts(
  client: pg.ClientBase,
  attempts: (AttemptKey &
    Pick<CallbackAttempt, 'trigger' | 'operator' | 'started_at' | 'request_headers'> & {
      lease: string | null;
    })[],
): Promise<number> {
  const written = client.query({
    name: 'callback-attempts-insert',
    text: `
      insert into callback_attempts (merchant_id, callback_id, number, id, run, trigger, operator,
        started_at, request_headers, outcome)
      select i.merchant_id, i.callback_id, i.number, i.id, c.run, i.trigger, i.operator,
        i.started_at, i.request_headers, 'unknown'
      from ${opened.from}
      join callbacks c on c.merchant_id = i.merchant_id and c.id = i.callback_id
      where c.lease = i.lease
      on conflict (merchant_id, callback_id, number) do nothing`,
    values: opened.values(attempts),
  });
  return written.then(({ rowCount }) => rowCount ?? 0);
}

/** Which of these attempts exist. */
export async function listWrittenAttempts(
  db: Handle,
  attempts: Pick<AttemptKey, 'merchant_id' | 'callback_id' | 'id'>[],
): Promise<string[]> {
  const column = (name: keyof (typeof attempts)[number]) => attempts.map((one) => one[name]);
  const rows = await db
    .selectFrom('callback_attempts')
    .select('id')
    .where('merchant_id', 'in', column('merchant_id'))
    .where('callback_id', 'in', column('callback_id'))
    .where('id', 'in', column('id'))
    .execute();
  return rows.map(({ id }) => id);
}

const finished = rowGroup({
  merchant_id: 'uuid',
  callback_id: 'uuid',
  number: 'int',
  id: 'uuid',
  finished_at: 'timestamptz',
  outcome: 'text',
  reason: 'text',
  address: 'text',
  tls_version: 'text',
  response_status: 'int',
  response_headers: 'json',
  response_body: 'bytea',
  timings: 'json',
});

/** Records how attempts ended, each once. Returns how many had not ended before. */
export async function moveAttemptsFinished(
  client: pg.ClientBase,
  attempts: (AttemptKey &
    Pick<
      CallbackAttempt,
      | 'finished_at'
      | 'outcome'
      | 'reason'
      | 'address'
      | 'tls_version'
      | 'response_status'
      | 'response_headers'
      | 'response_body'
      | 'timings'
    >)[],
): Promise<number> {
  const { rowCount } = await client.query({
    name: 'callback-attempts-finish',
    text: `
      update callback_attempts as a
      set finished_at = i.finished_at, outcome = i.outcome, reason = i.reason, address = i.address,
        tls_version = i.tls_version, response_status = i.response_status,
        response_headers = i.response_headers, response_body = i.response_body, timings = i.timings
      from ${finished.from}
      where a.merchant_id = i.merchant_id and a.callback_id = i.callback_id
        and a.number = i.number and a.id = i.id and a.finished_at is null`,
    values: finished.values(attempts),
  });
  return rowCount ?? 0;
}
