import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { findViolations } from '#checks/invariants/invariants.ts';
import { type Database, openDatabase } from '#platform/database/database.ts';
import { listMigrations, migrate } from '#platform/database/migrate.ts';
import { systemClock } from '#platform/shared/clock.ts';
import { createEmptyDatabase, log } from '../support/service.ts';

// Migrating a database that an earlier version used keeps its rows.

let database: Database;
let drop: () => Promise<void>;
before(async () => {
  const created = await createEmptyDatabase();
  drop = created.drop;
  database = openDatabase(created.url, { log, maxConnections: 2 });
});
after(async () => {
  await database.close();
  await drop();
});

/** Makes the database as an earlier version of the program left it. */
async function migrateTo(version: number): Promise<void> {
  await database.pool.query(
    `create table schema_migrations (version integer primary key, name text not null,
       hash text not null, applied_at timestamptz(3) not null)`,
  );
  for (const migration of await listMigrations()) {
    if (migration.version > version) return;
    const file = new URL(`../../migrations/${migration.name}`, import.meta.url);
    const text = await readFile(file, 'utf8');
    const hash = createHash('sha256').update(text).digest('hex');
    await database.pool.query(text);
    await database.pool.query(`insert into schema_migrations values ($1, $2, $3, '2026-11-01')`, [
      migration.version,
      migration.name,
      hash,
    ]);
  }
}

const id = (digit: number) => `'0000000${digit}-0000-7000-8000-000000000000'`;

test('payments and refund requests from before the ledger get due times and postings, and callback attempts stay', async () => {
  await migrateTo(3);
  const checkout = (number: number, status: string, term: number) => `
    insert into checkouts values (${id(1)}, ${id(number)}, ${number}, ${id(2)}, '${status}', 100001,
      'ZAR', 'r', 'https://n.example', 'https://s.example', 'https://c.example', '{}', '[]',
      '{1,3}', ${term || null}, true, '2026-11-01T21:50:00Z', '2026-11-01T22:20:00Z',
      ${term ? "'2026-11-01T21:59:00Z'" : null})`;
  await database.pool.query(`
    insert into merchants values (${id(1)}, 'M', 'ZA', '[]', '2026-11-01');
    insert into integrations values (${id(2)}, ${id(1)}, false, 'auto', null, null, '2026-11-01');
    ${checkout(3, 'successful', 3)}; ${checkout(4, 'received', 0)};
    insert into payment_attempts (merchant_id, id, checkout_id, number, status, number_of_payments,
      amount, currency, payment_ref, created_at)
      values (${id(1)}, ${id(5)}, ${id(3)}, 1, 'authorised', 3, 33335, 'ZAR', 'pi_1',
        '2026-11-01T21:58:00Z');
    insert into instalments values
      (${id(1)}, ${id(3)}, 1, 33335, 'ZAR', '2026-11-01', 'authorised'),
      (${id(1)}, ${id(3)}, 2, 33333, 'ZAR', '2026-12-01', 'scheduled'),
      (${id(1)}, ${id(3)}, 3, 33333, 'ZAR', '2027-01-01', 'scheduled');
    insert into refund_requests values (${id(1)}, ${id(6)}, 1, ${id(3)}, ${id(2)}, 'requested', 500,
      'ZAR', true, '2026-11-02T09:00:00Z');
    insert into callbacks (merchant_id, id, checkout_id, integration_id, notify_url, payload, status,
      created_at, attempts, run_attempts)
      values (${id(1)}, ${id(7)}, ${id(3)}, ${id(2)}, 'https://n.example', '{}', 'delivered',
        '2026-11-01T21:59:00Z', 1, 1);
    insert into callback_attempts (merchant_id, id, callback_id, number, run, trigger, started_at,
      finished_at, outcome, request_headers, response_headers, timings)
      values (${id(1)}, ${id(8)}, ${id(7)}, 1, 1, 'first', '2026-11-01T21:59:00Z',
        '2026-11-01T21:59:01Z', 'delivered', '{"x-callback-attempt": "1"}', null, '{"total": 12}')`);
  await migrate(database, { clock: systemClock, log });
  const { rows } = await database.pool.query(
    'select number, payment_ref, due_at from instalments order by number',
  );
  assert.deepEqual(rows, [
    { number: 1, payment_ref: 'pi_1', due_at: '2026-11-02T00:00:00.000Z' },
    { number: 2, payment_ref: null, due_at: '2026-12-01T06:00:00.000Z' },
    { number: 3, payment_ref: null, due_at: '2027-01-01T06:00:00.000Z' },
  ]);
  const refunds = await database.pool.query('select approved_at, due_at from refund_requests');
  const asked = '2026-11-02T09:00:00.000Z';
  assert.deepEqual(refunds.rows, [{ approved_at: asked, due_at: asked }]);
  const attempts = await database.pool.query(
    'select number, request_headers, response_headers, timings from callback_attempts',
  );
  assert.deepEqual(attempts.rows, [
    {
      number: 1,
      request_headers: { 'x-callback-attempt': '1' },
      response_headers: null,
      timings: { total: 12 },
    },
  ]);
  const money = ['M1', 'M2', 'M5', 'M6', 'M7', 'M8'];
  assert.deepEqual(await findViolations(database, '2026-11-01T00:00:00Z', money), []);
});
