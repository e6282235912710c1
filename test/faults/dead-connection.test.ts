import assert from 'node:assert/strict';
import net from 'node:net';
import { after, before, describe, test } from 'node:test';
import { sql } from 'kysely';
import pg from 'pg';
import { findViolations } from '#checks/invariants/invariants.ts';
import { openDatabase } from '#platform/database/database.ts';
import { reading, transaction } from '#platform/database/transaction.ts';
import { systemClock } from '#platform/shared/clock.ts';
import { addPerson, ask, openConsole } from '../support/console.ts';
import { urlThrough } from '../support/database-server.ts';
import { authorised, post, request } from '../support/http.ts';
import { kill, startServe } from '../support/sandbox-process.ts';
import {
  type Account,
  checkoutBody,
  createAccount,
  createTestDatabase,
  log,
  movableClock,
  type Service,
  startService,
} from '../support/service.ts';
import { until } from '../support/until.ts';

// The peer of a connection vanishes without a word, as when a machine loses power. This side
// notices nothing before a timeout (decision 0013).

/** Opens a proxy to the database. A frozen connection stays open but no longer carries anything. */
async function openLine(databaseUrl: string) {
  const target = new URL(databaseUrl);
  const open = new Set<net.Socket>();
  const line = {
    freezesNextCommit: false,
    frozen: 0,
    isAway: false,
    opened: 0,
    freezesBelow: 0,
    /** The server ends the connection with this code when it gets this text. */
    ends: null as { text: string; code: string } | null,
  };
  const server = net.createServer((client) => {
    if (line.isAway) return void client.destroy();
    const database = net.connect(Number(target.port), target.hostname);
    line.opened += 1;
    const number = line.opened;
    let isFrozen = false;
    for (const [one, other] of [
      [client, database],
      [database, client],
    ] as const) {
      open.add(one);
      one.on('error', () => {}).on('close', () => other.destroy());
      one.on('data', (chunk) => {
        const isCommit = one === client && chunk.includes('commit\0');
        if (isCommit && line.freezesNextCommit) {
          line.freezesNextCommit = false;
          line.frozen += 1;
          isFrozen = true;
        }
        if (one === client && line.ends && chunk.includes(line.ends.text)) {
          client.end(lastError(line.ends.code));
          line.ends = null;
          isFrozen = true;
        }
        if (!isFrozen && number >= line.freezesBelow) other.write(chunk);
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = urlThrough((server.address() as net.AddressInfo).port, databaseUrl);
  const cut = () => {
    for (const socket of open) socket.destroy();
  };
  return Object.assign(line, {
    url,
    cut,
    close() {
      cut();
      return new Promise((resolve) => server.close(resolve));
    },
  });
}

/**
 * Citus ends a statement that waits for a Citus worker with this code when the coordinator's
 * postmaster is gone.
 */
const citusEnd = 'XX000';

/** PostgreSQL's last message on a connection that it closes. */
function lastError(code: string): Buffer {
  const fields =
    code === citusEnd
      ? `SERROR\0VERROR\0C${code}\0Mpostmaster was shut down, exiting\0RWaitForAllConnections\0\0`
      : `SFATAL\0VFATAL\0C${code}\0Mthe server closes this connection\0\0`;
  const length = Buffer.alloc(4);
  length.writeInt32BE(4 + fields.length);
  return Buffer.concat([Buffer.from('E'), length, Buffer.from(fields)]);
}

let database: Awaited<ReturnType<typeof createTestDatabase>>;
let line: Awaited<ReturnType<typeof openLine>>;
let service: Service;
let account: Account;
let baseUrl: string;
const clock = movableClock();

before(async () => {
  database = await createTestDatabase();
  line = await openLine(database.url);
  service = await startService({ databaseUrl: line.url, clock });
  account = await createAccount(service);
  baseUrl = await service.app.listen({ port: 0, host: '127.0.0.1' });
});
after(async () => {
  line.isAway = false;
  const violations = await findViolations(service.deps.database, clock.now().toString());
  await service.close();
  await line.close();
  await database.drop();
  assert.deepEqual(violations, []);
});

const create = (reference: string) =>
  post(`${baseUrl}/api/checkouts`, account, checkoutBody({ client_reference_id: reference }));

test('a commit on a dead connection delays its own requests only, and is retried on another', async () => {
  assert.equal((await create('before')).status, 200);
  const references = ['before'];
  let earliest = '';
  // A machine that pauses for seconds hides the order, as all timers run out at once. A request
  // that waited for the dead connection would be the second one in every round.
  for (let round = 1; earliest !== 'behind' && round <= 5; round += 1) {
    line.frozen = 0;
    line.freezesNextCommit = true;
    const frozen = create(`frozen ${round}`);
    await until('the commit is in flight', () => line.frozen === 1);
    const behind = create(`behind ${round}`);
    earliest = await Promise.race([frozen.then(() => 'frozen'), behind.then(() => 'behind')]);
    for (const { status } of await Promise.all([frozen, behind])) assert.equal(status, 200);
    references.push(`frozen ${round}`, `behind ${round}`);
  }
  assert.equal(earliest, 'behind');
  const { rows } = await service.deps.database.pool.query(
    'select client_reference_id as reference from checkouts',
  );
  assert.deepEqual(rows.map(({ reference }) => reference).sort(), references.sort());
});

describe('a statement without an answer', () => {
  const open = () => openDatabase(line.url, { log, maxConnections: 2, stallMilliseconds: 100 });

  test('fails soon if its connection is dead, and new connections work', async () => {
    const database = open();
    try {
      await database.pool.query('select 1');
      line.freezesBelow = line.opened + 1;
      await assert.rejects(database.pool.query('select 2'), /Connection terminated/);
      const { rows } = await database.pool.query('select 3 as three');
      assert.deepEqual(rows, [{ three: 3 }]);
    } finally {
      line.freezesBelow = 0;
      line.cut();
      await database.close();
    }
  });

  test('continues while the server works on it, however long that takes', async () => {
    const database = open();
    const holder = new pg.Client({ connectionString: service.databaseUrl });
    try {
      await holder.connect();
      let outcome = '';
      // The connection is rightly cut if the server pauses for so long that it does not answer, so
      // a few rounds are allowed.
      for (let round = 1; outcome !== 'went on' && round <= 5; round += 1) {
        outcome = '';
        await holder.query('select pg_advisory_lock(4711)');
        const ended = database.pool.query('select pg_advisory_lock(4711)').then(
          () => {
            outcome = 'went on';
          },
          () => {
            outcome = 'cut';
          },
        );
        const before = line.opened;
        // Each time we check whether the server still runs the statement, we open a connection.
        await until('five questions', () => line.opened >= before + 6 || outcome !== '');
        await holder.query('select pg_advisory_unlock(4711)');
        await ended;
      }
      assert.equal(outcome, 'went on');
    } finally {
      await holder.end();
      await database.close();
    }
  });
});

describe('metrics while the database hangs', () => {
  const hang = () => {
    line.freezesBelow = Number.POSITIVE_INFINITY;
  };
  const goOn = () => {
    line.freezesBelow = 0;
    line.cut();
  };

  test('are answered by two processes, without the figures of the database', async (t) => {
    const node = await startServe(['--processes', '2', '--role', 'web'], {
      DATABASE_URL: line.url,
      MASTER_KEY: Buffer.alloc(32, 7).toString('base64'),
    });
    t.after(() => kill(node));
    t.after(goOn);
    hang();
    await request(`${node.baseUrl}/healthz`);
    await until('the metrics of the processes', async () => {
      const { status, body } = await request(node.metricsUrl);
      assert.equal(status, 200);
      assert.doesNotMatch(String(body), /^tranche_state_rows\{/m);
      return /^tranche_http_request_seconds_count\{.*\} 1$/m.test(String(body));
    });
  });

  test('show the last figures for a minute, then none, and new ones when the database answers', async (t) => {
    t.after(goOn);
    const read = () => service.deps.metrics.registry.metrics();
    const figure = /^tranche_state_rows\{state="open alerts"\} \d+$/m;
    const failures = /^tranche_metric_readings_failed_total\{reading="states"\} [1-9]\d*$/m;
    await until('figures', async () => figure.test(await read()));
    assert.doesNotMatch(await read(), failures);
    hang();
    clock.advance({ seconds: 11 });
    assert.match(await read(), figure);
    clock.advance({ seconds: 50 });
    assert.doesNotMatch(await read(), figure);
    goOn();
    await until('the reading to fail', async () => failures.test(await read()));
    clock.advance({ seconds: 11 });
    await until('new figures', async () => figure.test(await read()));
  });
});

describe('a connection that the server closes', () => {
  // The server is stopping, has crashed or is starting, or the session was idle for too long.
  for (const code of ['57P01', '57P02', '57P03', '57P05', citusEnd]) {
    test(`with ${code} is replaced, and its statement is retried where that is safe`, async () => {
      const database = openDatabase(line.url, { log, maxConnections: 1 });
      const deps = { database, clock: systemClock };
      const pid = async () => (await database.pool.query('select pg_backend_pid()')).rows[0];
      const name = `of ${code}`;
      const count = sql<{ count: number }>`
        select count(*)::int as count from territories where code <> ${name}`;
      const doubts: boolean[] = [];
      const write = () =>
        transaction(deps, async ({ client }, maybeCommitted) => {
          doubts.push(maybeCommitted);
          await client.query('select name from holidays where name = $1 for update', [name]);
        });
      try {
        for (const [text, retried] of [
          ['from territories', () => reading(deps, (db) => count.execute(db))],
          ['from holidays', write],
          ['commit\0', write],
        ] as const) {
          const before = await pid();
          line.ends = { text, code };
          await retried();
          assert.equal(line.ends, null, 'the connection was closed');
          assert.notDeepEqual(await pid(), before);
        }
        // Only an interrupted COMMIT leaves doubt.
        assert.deepEqual(doubts, [false, false, false, true]);
        // Nothing says whether a statement outside of a transaction was executed, so it is not
        // retried.
        line.ends = { text: 'update territories', code };
        const update = sql`update territories set code = code where code = ${name}`;
        await assert.rejects(update.execute(database.db), { code });
      } finally {
        line.ends = null;
        await database.close();
      }
    });
  }
});

test('a request that waits in several places has one deadline, and then says when to retry', async (t) => {
  const app = await openConsole(service);
  t.after(() => app.close());
  const person = await addPerson(service, { roles: ['admin'] });
  line.isAway = true;
  line.cut();
  const start = clock.monotonic();
  const sent = create('never');
  const read = request(`${baseUrl}/api/checkouts`, { headers: authorised(account) });
  const looked = ask({ app, deps: service.deps }, person, 'GET', '/api/session');
  // The last pause takes real time, so the test does not advance the clock to the very end of the
  // deadline.
  const hurry = setInterval(() => {
    if (clock.monotonic() - start < 28_000) clock.advance({ milliseconds: 100 });
  }, 10);
  try {
    const text =
      'The service cannot reach its database and nothing was changed. Try again in 5 seconds.';
    for (const { status, headers, body } of await Promise.all([sent, read])) {
      assert.deepEqual([status, headers['retry-after']], [503, '5']);
      assert.equal(body.errors[0].detail, text);
    }
    const { status, headers, body } = await looked;
    assert.deepEqual([status, headers['retry-after']], [503, '5']);
    assert.deepEqual(body.error, { code: 'unavailable', message: text });
  } finally {
    clearInterval(hurry);
  }
  const waited = clock.monotonic() - start;
  assert.ok(waited > 25_000 && waited < 58_000, `${waited} ms on the service's clock`);
});

test('a process that stops says so before it stops serving', async () => {
  line.isAway = false;
  service.deps.draining = true;
  const ready = await request(`${baseUrl}/readyz`);
  assert.deepEqual(
    [ready.status, ready.body],
    [503, { status: 'unavailable', reason: 'the process is stopping' }],
  );
  const served = await create('while draining');
  assert.deepEqual([served.status, served.headers.connection], [200, 'close']);
});
