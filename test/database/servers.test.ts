import assert from 'node:assert/strict';
import net from 'node:net';
import { after, afterEach, before, describe, test } from 'node:test';
import { openDatabase } from '#platform/database/database.ts';
import { reading } from '#platform/database/transaction.ts';
import { postgresRateLimitStore } from '#platform/http/rate-limits.sql.ts';
import { createRateLimits } from '#platform/http/rate-limits.ts';
import { systemClock } from '#platform/shared/clock.ts';
import { commandLine, masterKey } from '../support/cli.ts';
import { onDatabase } from '../support/database-server.ts';
import { kill, startServe } from '../support/sandbox-process.ts';
import { createTestDatabase, log } from '../support/service.ts';
import { until } from '../support/until.ts';

let created: Awaited<ReturnType<typeof createTestDatabase>>;
const hosts: { close(): void }[] = [];
before(async () => {
  created = await createTestDatabase();
});
afterEach(() => {
  for (const host of hosts.splice(0)) host.close();
});
after(() => created.drop());

/** A message after which a server waits for statements. */
const readyForQuery = Buffer.from('Z\0\0\0\x05I', 'latin1');

/** Adds a setting of the session to a startup message. */
function makeReadOnly(startup: Buffer): Buffer {
  const setting = Buffer.from('options\0-c default_transaction_read_only=on\0\0', 'latin1');
  const changed = Buffer.concat([startup.subarray(0, -1), setting]);
  changed.writeInt32BE(changed.length, 0);
  return changed;
}

/**
 * Opens a separate host in front of the test server. A standby is read only, and has another start
 * time. A frozen host greets, and then says nothing.
 */
async function openHost(kind: 'primary' | 'standby' | 'frozen' = 'primary') {
  const target = new URL(created.url);
  const startedOn = await onDatabase(created.url, async (client) => {
    const { rows } = await client.query(
      `select left(pg_postmaster_start_time()::text, 10) as day from
        (select set_config('TimeZone', 'UTC', false)) s`,
    );
    return rows[0].day as string;
  });
  const open = new Set<net.Socket>();
  const host = { opened: 0, refuses: new Set<number>(), losesAnswerTo: '', lost: 0 };
  const server = net.createServer((client) => {
    host.opened += 1;
    if (host.refuses.has(host.opened)) return void client.destroy();
    const database = net.connect(Number(target.port), target.hostname);
    for (const [one, other] of [
      [client, database],
      [database, client],
    ] as const) {
      open.add(one);
      one.on('error', () => {}).on('close', () => other.destroy());
    }
    let isFirst = true;
    let isFrozen = false;
    let isLost = false;
    client.on('data', (chunk: Buffer) => {
      if (isFrozen) return;
      if (host.losesAnswerTo !== '' && chunk.includes(host.losesAnswerTo)) {
        isLost = true;
        host.lost += 1;
        host.losesAnswerTo = '';
      }
      database.write(isFirst && kind === 'standby' ? makeReadOnly(chunk) : chunk);
      isFirst = false;
    });
    database.on('data', (chunk: Buffer) => {
      // The statement has run by now, and only its answer is lost.
      if (isLost) return void client.destroy();
      if (kind === 'frozen' && chunk.includes(readyForQuery)) isFrozen = true;
      const place = kind === 'standby' ? chunk.indexOf(startedOn) : -1;
      if (place >= 0) chunk.write('2001-01-01', place, 'latin1');
      client.write(chunk);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as net.AddressInfo;
  const close = () => {
    for (const socket of open) socket.destroy();
    server.close();
  };
  hosts.push({ close });
  return Object.assign(host, { address: `127.0.0.1:${port}` });
}

/** Finds a host at which nothing listens. */
async function closedHost(): Promise<string> {
  const server = net.createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as net.AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return `127.0.0.1:${port}`;
}

function urlOf(...addresses: string[]): string {
  const { username, password, pathname } = new URL(created.url);
  const credentials = `${username}${password && `:${password}`}`;
  return `postgres://${credentials}@${addresses}${pathname}?target_session_attrs=read-write`;
}

/** Reads once, with a deadline that does not end, however long the machine pauses. */
async function readOnce(database: ReturnType<typeof openDatabase>): Promise<void> {
  await reading({ database, clock: { ...systemClock, monotonic: () => 0 } }, (db) =>
    db.selectNoFrom((eb) => eb.val(1).as('one')).execute(),
  );
}

test('with several hosts, the one that takes writes is used', async () => {
  const silent = net.createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => silent.once('listening', resolve));
  const { port } = silent.address() as net.AddressInfo;
  const standby = await openHost('standby');
  const primary = await openHost();
  // These are a name that does not resolve, a server that never answers, one that refuses, and a
  // standby.
  const url = urlOf(
    'gone.invalid:5432',
    `127.0.0.1:${port}`,
    await closedHost(),
    standby.address,
    primary.address,
  );
  const database = openDatabase(url, { log, maxConnections: 3 });
  try {
    await readOnce(database);
    const opened = [standby.opened, primary.opened];
    assert.ok(opened.every((count) => count > 0));
    // The primary is looked for only once.
    for (let round = 0; round < 4; round += 1) await readOnce(database);
    assert.deepEqual([standby.opened, primary.opened], opened);
  } finally {
    await database.close();
    silent.close();
  }
});

test('a standby alone is refused', async () => {
  const standby = await openHost('standby');
  const database = openDatabase(urlOf(standby.address), { log, maxConnections: 1 });
  await assert.rejects(database.pool.query('select'), { code: '25006' });
  await database.close();
});

test('a server that freezes after its greeting delays a statement and does not stop it', async () => {
  const frozen = await openHost('frozen');
  const url = urlOf(frozen.address, (await openHost()).address);
  const day = 24 * 3_600_000;
  const database = openDatabase(url, { log, maxConnections: 1, queryTimeoutMilliseconds: day });
  try {
    await readOnce(database);
    assert.ok(frozen.opened > 0);
  } finally {
    await database.close();
  }
});

test('a command finds the host that takes writes, and names all hosts if none does', async () => {
  const standby = await openHost('standby');
  const addresses = ['gone.invalid:5432', standby.address];
  await commandLine({ DATABASE_URL: urlOf(...addresses) }).refused(
    1,
    new RegExp(`The database at ${addresses.join(', ')} does not answer`),
    'merchants',
    'list',
  );
  addresses.push((await openHost()).address);
  const found = await commandLine({ DATABASE_URL: urlOf(...addresses) }).run('merchants', 'list');
  assert.equal(found.code, 0, found.stderr);
});

test('a statement that waits for a lock continues while new connections try another host', async () => {
  const primary = await openHost();
  const standby = await openHost('standby');
  const database = openDatabase(urlOf(primary.address, standby.address), {
    log,
    maxConnections: 3,
    stallMilliseconds: 100,
  });
  try {
    await onDatabase(created.url, async (holder) => {
      await holder.query('select pg_advisory_lock(4712)');
      const first = await database.pool.connect();
      const waiting = first.query('select pg_advisory_lock(4712)');
      primary.refuses.add(primary.opened + 1);
      await Promise.race([waiting, assert.rejects(database.pool.connect())]);
      // Each time we check whether the server still runs the statement, we open a connection.
      const asked = () => primary.opened + standby.opened;
      const before = asked();
      await Promise.race([waiting, until('six questions', () => asked() >= before + 6)]);
      await holder.query('select pg_advisory_unlock(4712)');
      await waiting;
      first.release(true);
    });
  } finally {
    await database.close();
  }
});

test('a node that starts while one host is gone and another fails waits, and then serves', async () => {
  const primary = await openHost();
  // The node reads the time over the first connection, and opens the second one to migrate. On a
  // machine that pauses, a check of the first connection may open one in between.
  primary.refuses.add(2).add(3);
  const node = await startServe([], {
    DATABASE_URL: urlOf('gone.invalid:5432', primary.address),
    MASTER_KEY: masterKey,
  });
  try {
    assert.ok(node.lines().some(({ msg }) => /does not answer yet: waiting/.test(String(msg))));
  } finally {
    await kill(node);
  }
});

describe('counts of rate limits in the database', () => {
  const caller = (id: string) => ({ id, intermediary: false, limits: {} });

  test('a request whose count got no answer is not counted twice', async () => {
    const host = await openHost();
    const database = openDatabase(urlOf(host.address), { log, maxConnections: 1 });
    try {
      const limits = createRateLimits(postgresRateLimitStore({ database, clock: systemClock }));
      // This first request makes the statement known to the server, so that the next one sends its
      // name and not its text.
      await limits.request(caller('other'), 'POST /api/checkouts', null);
      host.losesAnswerTo = 'rate-limits-hit';
      const quota = await limits.request(caller('counted'), 'GET /api/refunds', null);
      assert.deepEqual([host.lost, quota.limit, quota.remaining], [1, 1, 0]);
      const again = limits.request(caller('counted'), 'GET /api/refunds', null);
      await assert.rejects(again, /Rate limit exceeded/);
    } finally {
      await database.close();
    }
  });

  test('a request that counts against two limits is answered while the process does nothing else', async () => {
    const database = openDatabase(created.url, { log, maxConnections: 1 });
    try {
      const limits = createRateLimits(postgresRateLimitStore({ database, clock: systemClock }));
      await limits.planLink('a checkout', '192.0.2.1');
      await limits.failedLogin('192.0.2.1', 'a client');
    } finally {
      await database.close();
    }
  });
});
