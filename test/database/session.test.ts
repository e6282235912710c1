import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import net from 'node:net';
import { after, before, describe, test } from 'node:test';
import type pg from 'pg';
import { pino } from 'pino';
import type { Role } from '#config.ts';
import { startService as supervise } from '#hosting/running/supervisor.ts';
import { type Database, openDatabase, verifyConnection } from '#platform/database/database.ts';
import { migrate } from '#platform/database/migrate.ts';
import {
  PoolerNeedsSettings,
  ServerReadOnly,
  SettingsRefused,
  verifySession,
} from '#platform/database/session.ts';
import { systemClock } from '#platform/shared/clock.ts';
import { urlThrough } from '../support/database-server.ts';
import {
  checkoutBody,
  createAccount,
  createEmptyDatabase,
  createTestDatabase,
  log,
  send,
  startService,
  testConfig,
} from '../support/service.ts';

// The settings of a connection, whatever DATABASE_URL, the role or the database say.

let url: string;
let drop: () => Promise<void>;
before(async () => {
  ({ url, drop } = await createTestDatabase());
});
after(() => drop());

function withOptions(options: string): string {
  const address = new URL(url);
  address.search += `&options=${encodeURIComponent(options)}`;
  return address.href;
}

async function withDatabase<T>(
  address: string,
  work: (database: Database) => Promise<T>,
  queryTimeoutMilliseconds?: number,
): Promise<T> {
  const database = openDatabase(address, {
    log,
    maxConnections: 2,
    ...(queryTimeoutMilliseconds !== undefined && { queryTimeoutMilliseconds }),
  });
  try {
    return await work(database);
  } finally {
    await database.close();
  }
}

async function settingsOf({ pool }: Database): Promise<Record<string, string>> {
  const names = [
    ...['TimeZone', 'DateStyle', 'lock_timeout', 'statement_timeout', 'synchronous_commit'],
    ...['idle_in_transaction_session_timeout', 'default_transaction_isolation'],
  ];
  const { rows } = await pool.query(
    'select name, current_setting(name) as value from unnest($1::text[]) as name',
    [names],
  );
  return Object.fromEntries(rows.map(({ name, value }) => [name, value]));
}

const needed = {
  TimeZone: 'UTC',
  DateStyle: 'ISO, MDY',
  lock_timeout: '10s',
  statement_timeout: '25s',
  synchronous_commit: 'on',
  idle_in_transaction_session_timeout: '30s',
  default_transaction_isolation: 'read committed',
};

describe('a connection has the settings that we need', () => {
  test('when DATABASE_URL has options of its own, which apply as well', async () => {
    const options = '-c timezone=Africa/Johannesburg -c lock_timeout=0 -c work_mem=8MB';
    await withDatabase(withOptions(options), async (database) => {
      assert.deepEqual(await settingsOf(database), needed);
      const { rows } = await database.pool.query('show work_mem');
      assert.deepEqual(rows, [{ work_mem: '8MB' }]);
      await verifyConnection(database);
    });
  });

  test('when the database has other defaults', async () => {
    const name = new URL(url).pathname.slice(1);
    const defaults = {
      timezone: 'America/New_York',
      datestyle: 'German',
      default_transaction_isolation: 'serializable',
      synchronous_commit: 'off',
      statement_timeout: '0',
    };
    await withDatabase(url, async ({ pool }) => {
      for (const [setting, value] of Object.entries(defaults)) {
        await pool.query(`alter database ${name} set ${setting} = '${value}'`);
      }
    });
    await withDatabase(url, async (database) => {
      assert.deepEqual(await settingsOf(database), needed);
      for (const setting of Object.keys(defaults)) {
        await database.pool.query(`alter database ${name} reset ${setting}`);
      }
    });
  });

  test('and a checkout is dated by the right time', async () => {
    const databaseUrl = withOptions('-c timezone=Africa/Johannesburg');
    const service = await startService({ databaseUrl });
    try {
      const account = await createAccount(service);
      const created = await send(service, account, 'POST', '/api/checkouts', {
        body: checkoutBody(),
      });
      assert.equal(created.status, 200);
      const { rows } = await service.deps.database.pool.query('select created_at from checkouts');
      const age = Date.now() - Date.parse(rows[0].created_at);
      // The zone is two hours ahead, so a time that was read in it would be wrong by that much.
      assert.ok(Math.abs(age) < 3_600_000, rows[0].created_at);
    } finally {
      await service.close();
    }
  });

  test('and a connection that loses one is refused, with the name of the setting', async () => {
    await withDatabase(url, async ({ pool }) => {
      const client = await pool.connect();
      await client.query("set timezone = 'Africa/Johannesburg'");
      client.release();
      await assert.rejects(
        withClient(pool, verifySession),
        (error) => error instanceof SettingsRefused && /TimeZone/.test(error.message),
      );
    });
  });
});

async function withClient<T>(
  pool: Database['pool'],
  work: (client: pg.PoolClient) => Promise<T>,
): Promise<T> {
  const client = await pool.connect();
  try {
    return await work(client);
  } finally {
    client.release();
  }
}

test('the server ends a statement that takes too long, before the client gives up', async () => {
  await withDatabase(
    url,
    async ({ pool }) => {
      // The client gives up five seconds later than the server. Only a pause of this machine uses
      // them up.
      const codes: unknown[] = [];
      while (codes.length < 3 && codes.at(-1) !== '57014') {
        codes.push(await pool.query('select pg_sleep(20)').catch(({ code }) => code));
      }
      assert.equal(codes.at(-1), '57014');
    },
    5_200,
  );
});

test('a connection is replaced after half an hour', async () => {
  await withDatabase(url, async ({ pool }) => {
    assert.equal(pool.options.maxLifetimeSeconds, 1_800);
  });
});

test('a connection to a server that is read only is refused', async () => {
  await withDatabase(withOptions('-c default_transaction_read_only=on'), async (database) => {
    await assert.rejects(database.pool.connect(), ServerReadOnly);
    await assert.rejects(database.db.selectFrom('merchants').selectAll().execute(), {
      code: '25006',
    });
    assert.equal(database.pool.totalCount, 0, 'no connection stays in the pool');
  });
});

test('a connection on which the server became read only leaves the pool', async () => {
  await withDatabase(url, async (database) => {
    await withClient(database.pool, (client) =>
      client.query('set default_transaction_read_only = on'),
    );
    assert.equal(database.pool.idleCount, 1);
    await assert.rejects(database.db.updateTable('merchants').set({ name: 'x' }).execute(), {
      code: '25006',
    });
    await database.db.updateTable('merchants').set({ name: 'x' }).execute();
  });
});

describe('a connection pooler, which shows process ids of its own', () => {
  /** Starts a proxy that changes the process id in the server's greeting. */
  async function startPooler(address: string): Promise<{ url: string; close(): void }> {
    const target = new URL(address);
    const open = new Set<net.Socket>();
    const server = net.createServer((client) => {
      const database = net.connect(Number(target.port), target.hostname);
      for (const [one, other] of [
        [client, database],
        [database, client],
      ] as const) {
        open.add(one);
        one.on('error', () => {}).on('close', () => other.destroy());
      }
      client.on('data', (chunk) => database.write(chunk));
      let isGreeted = false;
      database.on('data', (chunk: Buffer) => {
        // BackendKeyData: K, a length of 12, the process id, a key.
        const place = isGreeted ? -1 : chunk.indexOf(Buffer.from([0x4b, 0, 0, 0, 12]));
        if (place >= 0) {
          isGreeted = true;
          chunk.writeInt32BE(1, place + 5);
        }
        client.write(chunk);
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = urlThrough((server.address() as net.AddressInfo).port, address);
    const close = () => {
      for (const socket of open) socket.destroy();
      server.close();
    };
    return { url, close };
  }

  /**
   * Starts a node behind a pooler on an empty database, and returns its warnings. The start fails,
   * because the node must migrate.
   */
  async function warningsOf(role: Role, { username, password }: URL): Promise<string[]> {
    const empty = await createEmptyDatabase();
    const address = Object.assign(new URL(empty.url), { username, password });
    const pooler = await startPooler(address.href);
    const warnings: string[] = [];
    const written = { write: (line: string) => void warnings.push(JSON.parse(line).msg) };
    const warned = pino({ level: 'warn' }, written);
    try {
      const start = supervise(testConfig(pooler.url), { role, processes: 1, log: warned });
      await assert.rejects(start, /names the server itself/);
    } finally {
      pooler.close();
      await empty.drop();
    }
    return warnings;
  }

  test('needs the settings on the role, and gets none on its connections', async () => {
    const role = `pooled_${randomBytes(4).toString('hex')}`;
    await withDatabase(url, ({ pool }) =>
      pool.query(`create role ${role} login superuser password 'of-tests'`),
    );
    const own = new URL(url);
    own.username = role;
    own.password = 'of-tests';
    const pooler = await startPooler(own.href);
    try {
      const refusal = await withDatabase(pooler.url, async (database) => {
        const { lock_timeout } = await settingsOf(database);
        assert.equal(lock_timeout, '0', 'nothing was set');
        return await verifyConnection(database).then(
          () => null,
          (error) => error,
        );
      });
      assert.ok(refusal instanceof PoolerNeedsSettings);
      // The message has the statements that make it work.
      const statements = refusal.message.match(/^ {2}alter role .*;$/gm) ?? [];
      assert.ok(statements.length > 5);
      await withDatabase(url, ({ pool }) => pool.query(statements.join('')));
      const found = await withDatabase(pooler.url, verifyConnection);
      assert.deepEqual(found, { isPooled: true });
      assert.deepEqual(await warningsOf('web', own), []);
      const [warning, ...more] = await warningsOf('worker', own);
      assert.match(warning ?? '', /daily reconciliation needs a direct connection/);
      assert.deepEqual(more, []);
    } finally {
      pooler.close();
      await withDatabase(url, ({ pool }) => pool.query(`drop role ${role}`));
    }
  });

  test('takes no migrations: their timeouts would stay on connections of other clients', async () => {
    const empty = await createEmptyDatabase();
    const pooler = await startPooler(empty.url);
    try {
      await withDatabase(pooler.url, async (database) => {
        const migrated = migrate(database, { clock: systemClock, log });
        await assert.rejects(migrated, /names the server itself/);
      });
    } finally {
      pooler.close();
      await empty.drop();
    }
  });

  test('is not reported where there is none', async () => {
    assert.deepEqual(await withDatabase(url, verifyConnection), { isPooled: false });
  });
});
