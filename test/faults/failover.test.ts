import assert from 'node:assert/strict';
import { once } from 'node:events';
import net from 'node:net';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { findViolations } from '#checks/invariants/invariants.ts';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '#hosting/embedded-postgres/server.ts';
import { migrate } from '#platform/database/migrate.ts';
import { systemClock } from '#platform/shared/clock.ts';
import { onDatabase } from '../support/database-server.ts';
import { frozenClock } from '../support/expectations.ts';
import { post, request } from '../support/http.ts';
import { copySandboxModel } from '../support/sandbox-model.ts';
import { findDamage, startLoad } from '../support/sandbox-process.ts';
import {
  type Account,
  checkoutBody,
  createAccount,
  createSuccessfulCheckout,
  isLong,
  log,
  type Service,
  send,
  startService,
} from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';

// Plays a change of the database server under a running service: the server takes no writes for a
// while, it commits without the standby that would take over, or it is away.

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let server: EmbeddedPostgres;
let service: Service;
let account: Account;
let baseUrl: string;
// A pause of the machine uses up no deadline.
const clock = frozenClock();

const startServer = () =>
  startEmbeddedPostgres({
    dataDir: path.join(folder.path, 'data'),
    log: { info: () => {}, warn: () => {}, error: () => {} },
    settings: { fsync: 'off', full_page_writes: 'off' },
  });

before(async () => {
  folder = await temporaryFolder();
  await copySandboxModel(path.join(folder.path, 'data'));
  server = await startServer();
  const { openDatabase } = await import('#platform/database/database.ts');
  const database = openDatabase(server.url, { log, maxConnections: 2 });
  await migrate(database, { clock: systemClock, log });
  await database.pool.query(
    `insert into installation (environment, created_at) values ('sandbox', '2026-11-15')`,
  );
  await database.close();
  service = await startService({ databaseUrl: server.url, clock });
  account = await createAccount(service);
  baseUrl = await service.app.listen({ port: 0, host: '127.0.0.1' });
});
after(async () => {
  await service?.close();
  await server?.stop();
  await folder?.remove();
});

/** Changes a setting of the whole server, for sessions that are open as well. */
async function configure(setting: string, value: string): Promise<void> {
  await onDatabase(server.url, async (client) => {
    await client.query(`alter system set ${setting} = ${value}`);
    await client.query('select pg_reload_conf()');
  });
  await until(`${setting} to apply`, () =>
    onDatabase(server.url, async (client) => {
      const { rows } = await client.query('select current_setting($1) as value', [setting]);
      return rows[0].value === value.replaceAll("'", '');
    }),
  );
}

const create = (headers: Record<string, string> = {}) =>
  post(`${baseUrl}/api/checkouts`, account, checkoutBody(), { headers });
const readiness = async () => (await request(`${baseUrl}/readyz`)).status;

async function countCheckouts(): Promise<number> {
  return await onDatabase(server.url, async (client) => {
    const { rows } = await client.query('select count(*)::int as count from checkouts');
    return rows[0].count;
  });
}

/** The invariants of what is written together, on whatever clock. */
const ofOneWrite = ['M1', 'M2', 'S1', 'S2', 'S3', 'A5', 'L1'];

async function assertWhole(): Promise<void> {
  const now = '2026-11-15T09:00:00.000Z';
  assert.deepEqual(await findViolations(service.deps.database, now, ofOneWrite), []);
}

describe('a server that takes no writes for a while', () => {
  test('delays requests and fails none, and /readyz reports it', async () => {
    assert.equal((await create()).status, 200);
    assert.equal(await readiness(), 200);
    const before = await countCheckouts();
    await configure('default_transaction_read_only', 'on');
    const sent = Array.from({ length: 20 }, () => create());
    await until('/readyz to report it', async () => (await readiness()) === 503);
    await configure('default_transaction_read_only', 'off');
    const answers = await Promise.all(sent);
    assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200]);
    assert.equal(await readiness(), 200);
    assert.equal(await countCheckouts(), before + 20);
    await assertWhole();
  });

  test('gets no connection: every connection of the pool takes writes', async () => {
    await configure('default_transaction_read_only', 'on');
    const { pool } = service.deps.database;
    await until('a refusal', async () => {
      try {
        // Close each connection that the pool has, until the pool needs a new one.
        (await pool.connect()).release(true);
      } catch (error) {
        // A server that is slow to greet does not say whether it takes writes.
        return (error as { code?: string }).code === '25006';
      }
    });
    await configure('default_transaction_read_only', 'off');
    assert.equal((await create()).status, 200);
  });
});

describe('a COMMIT whose wait for a synchronous standby was cancelled', () => {
  async function cancelWaiting(application = 'tranche'): Promise<number> {
    return await onDatabase(server.url, async (client) => {
      const { rows } = await client.query(
        `select pg_cancel_backend(pid) from pg_stat_activity
         where wait_event = 'SyncRep' and application_name = $1`,
        [application],
      );
      return rows.length;
    });
  }

  /** From here on a COMMIT waits for a standby that does not exist. */
  async function requireStandby(): Promise<void> {
    await configure('synchronous_standby_names', "'none'");
    // A COMMIT waits only once the checkpointer has read the setting too.
    await onDatabase(server.url, async (client) => {
      await client.query(`set application_name = 'probe'`);
      await until('a COMMIT to wait', async () => {
        let hasEnded = false;
        const committed = client.query("select pg_logical_emit_message(true, '', '')").then(() => {
          hasEnded = true;
        });
        const waited = await until('its end, or its wait', async () => {
          if ((await cancelWaiting('probe')) > 0) return 'waited';
          return hasEnded && 'ended';
        });
        await committed;
        return waited === 'waited';
      });
    });
  }

  test('is not acknowledged while no standby has it', async () => {
    const before = await countCheckouts();
    await requireStandby();
    const headers = { 'idempotency-key': 'unreplicated' };
    const sent = create(headers).then(
      ({ status }) => status,
      () => null,
    );
    try {
      await until('the COMMIT to wait', async () => (await cancelWaiting()) > 0);
      // The service looks for its row, but must not rely on one that no standby has.
      await until('the look-up to wait', async () => (await cancelWaiting()) > 0);
      // The service looks again until the deadline of the request.
      const hurry = setInterval(() => {
        clock.advance({ milliseconds: 500 });
        void cancelWaiting();
      }, 50);
      const status = await sent.finally(() => clearInterval(hurry));
      assert.equal(status, null, 'closed without an answer');
    } finally {
      await configure('synchronous_standby_names', "''");
    }
    const retried = await create(headers);
    assert.equal(retried.status, 200);
    assert.equal(await countCheckouts(), before + 1, 'exactly one exists');
    await assertWhole();
  });

  test('is acknowledged once a standby has it', async () => {
    const before = await countCheckouts();
    await requireStandby();
    const sent = create();
    await until('the COMMIT to wait', async () => (await cancelWaiting()) > 0);
    await configure('synchronous_standby_names', "''");
    assert.equal((await sent).status, 200);
    assert.equal(await countCheckouts(), before + 1);
    await assertWhole();
  });
});

test('two hundred refunds of one checkout at once are all answered, and none fails', async () => {
  const checkout_id = await createSuccessfulCheckout(service, account);
  // Each transaction takes a while, as over a slow disk or on several nodes.
  await onDatabase(server.url, (client) =>
    client.query(`
      create function slow_down() returns trigger language plpgsql as
        'begin perform pg_sleep(0.05); return new; end';
      create trigger slow_down before insert on refund_requests
        for each row execute function slow_down()`),
  );
  try {
    const answers = await Promise.all(
      Array.from({ length: 200 }, () =>
        send(service, account, 'POST', '/api/refunds', { body: { checkout_id, amount: 500 } }),
      ),
    );
    const statuses = Map.groupBy(answers, ({ status }) => status);
    assert.deepEqual(
      [...statuses].map(([status, all]) => [status, all.length]),
      [[200, 200]],
    );
  } finally {
    await onDatabase(server.url, (client) =>
      client.query('drop trigger slow_down on refund_requests; drop function slow_down'),
    );
  }
  await assertWhole();
});

test('while the database is away longer than a request waits, a 503 means that nothing was created', async (t) => {
  const env = { REQUEST_DEADLINE_SECONDS: '5' };
  const hurried = await startService({ databaseUrl: server.url, env });
  t.after(hurried.close);
  const url = await hurried.app.listen({ port: 0, host: '127.0.0.1' });
  const ready = async () => (await request(`${url}/readyz`)).status;
  assert.equal(await ready(), 200);
  const load = startLoad({ baseUrl: () => url, callers: [account] }, 8, isLong ? 20 : 100);
  t.after(load.stop);
  await until('checkouts to be created', () => load.acknowledged() >= 30);
  await server.stop();
  // No other program may take the port meanwhile.
  const holder = net.createServer((socket) => socket.destroy());
  holder.listen(Number(new URL(server.url).port), '127.0.0.1');
  await once(holder, 'listening');
  t.after(() => holder.close());
  await until('the service to report that it is not ready', async () => (await ready()) === 503);
  assert.equal((await request(`${url}/healthz`)).status, 200, 'it is alive');
  const failed = () =>
    load.attempts.filter(
      ({ statuses, unanswered }) => statuses.some((status) => status !== 200) || unanswered > 0,
    );
  await until('every request to fail', () => failed().length >= 8);
  await new Promise((resolve) => holder.close(resolve));
  server = await startServer();
  await until('the service to report that it is ready', async () => (await ready()) === 200);
  const before = load.acknowledged();
  await until('the load to continue', () => load.acknowledged() >= before + 30);
  await load.stop();
  const others = load.attempts.flatMap(({ statuses }) => statuses).filter((one) => one !== 200);
  t.diagnostic(`${load.attempts.length} attempts, ${others.length} answers other than 200`);
  assert.ok(others.every((status) => status === 503));
  assert.deepEqual(
    await findDamage(server.url, load.attempts, ofOneWrite),
    [],
    'a 503 means that nothing was committed',
  );
});
