import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import type pg from 'pg';
import { openDatabase } from '#platform/database/database.ts';
import { listMigrations, migrate } from '#platform/database/migrate.ts';
import { systemClock } from '#platform/shared/clock.ts';
import { commandLine } from '../support/cli.ts';
import { findNodes, onDatabase, serverUrl } from '../support/database-server.ts';
import { assertSound, gatewayEnv, type Paying, startPaying } from '../support/payments.ts';
import { createTestDatabase, log, send } from '../support/service.ts';

// Roles with as few rights as docs/operators/running.md says.

const { hasCitus } = await findNodes();
const suffix = randomBytes(6).toString('hex');
const roles = { serve: `serve_${suffix}`, read: `read_${suffix}` };
const password = randomBytes(12).toString('hex');

describe('separate roles', () => {
  let owner: { url: string; drop(): Promise<void> };
  const as = (role: string) => {
    const url = new URL(owner.url);
    url.username = role;
    url.password = password;
    return url.href;
  };

  before(async () => {
    owner = await createTestDatabase();
    const tranche = commandLine({ DATABASE_URL: owner.url });
    for (const [kind, role] of Object.entries(roles)) {
      await onDatabase(serverUrl, (client) =>
        client.query(`create role ${role} login password '${password}'`),
      );
      assert.deepEqual(await tranche.json('database', 'grant', kind, role), { kind, role });
    }
  });
  after(async () => {
    await owner.drop();
    for (const role of Object.values(roles)) {
      await onDatabase(serverUrl, (client) => client.query(`drop role if exists ${role}`));
    }
  });

  test('the service runs as a role that serves: checkout, payment, callback, collection, refund', async () => {
    const paying: Paying = await startPaying({ databaseUrl: as(roles.serve) });
    try {
      const shopper = await paying.shopper({ amount: 100_000 });
      await shopper.pay(3);
      await paying.pass({ days: 33 });
      const answer = await send(paying.service, paying.account, 'POST', '/api/refunds', {
        body: { checkout_id: shopper.id, amount: 60_000 },
      });
      assert.equal(answer.status, 200);
      const tranche = commandLine(
        { DATABASE_URL: as(roles.serve), ...gatewayEnv(paying.gateway) },
        { clock: paying.clock },
      );
      await tranche.json('refunds', 'approve', answer.body.data.id);
      await paying.work();
      const { status } = await paying.service.deps.database.db
        .selectFrom('refund_requests')
        .select('status')
        .executeTakeFirstOrThrow();
      assert.equal(status, 'complete');
      assert.deepEqual((await tranche.json('audit', 'verify')).differences, []);
      await assertSound(paying);
    } finally {
      await paying.close();
    }
  });

  test('a role that serves finds the database migrated and cannot migrate it', async () => {
    await connected(roles.serve, async (pool, database) => {
      const known = await listMigrations();
      const version = await migrate(database, { clock: systemClock, log });
      assert.equal(version, known.at(-1)?.version);
      const next = known.slice(0, 1).map((first) => ({ ...first, version: 9999 }));
      await assert.rejects(
        migrate(database, { clock: systemClock, log }, [...known, ...next]),
        /this role may not apply them/,
      );
      for (const statement of [
        'create table more ()',
        'alter table postings disable trigger user',
        'drop table postings',
        'set session_replication_role = replica',
        `insert into schema_migrations values (99, 'x', 'x', now())`,
      ]) {
        await assert.rejects(pool.query(statement), { code: '42501' }, statement);
      }
    });
  });

  test('a role that serves cannot change history, even where there are no triggers', async () => {
    // Citus has no triggers.
    if (!hasCitus) {
      await onDatabase(owner.url, (client) =>
        client.query(`alter table postings disable trigger user;
          alter table operator_actions disable trigger user;
          alter table callback_attempts disable trigger user;
          alter table message_attempts disable trigger user`),
      );
    }
    await connected(roles.serve, async (pool) => {
      for (const statement of [
        'update postings set amount = 1',
        'delete from postings',
        'truncate postings',
        "update operator_actions set operator = ''",
        'delete from operator_actions',
        'delete from action_texts',
        'update action_texts set digest = digest',
        'delete from operator_chain',
        'update operator_chain set id = true',
        'update callback_attempts set started_at = started_at',
        'update callback_attempts set number = number',
        'update message_attempts set number = number',
        'delete from message_attempts',
        'truncate callback_attempts',
      ]) {
        await assert.rejects(pool.query(statement), { code: '42501' }, statement);
      }
    });
  });

  test('a role that reads sees everything but credentials, and writes nothing', async () => {
    await connected(roles.read, async (pool) => {
      for (const table of ['checkouts', 'postings', 'operator_actions', 'callback_attempts']) {
        await pool.query(`select * from ${table}`);
      }
      for (const statement of [
        'select * from signing_keys',
        'select * from client_secrets',
        'select * from legacy_credentials',
        'select * from plan_links',
        'select * from mailbox',
        'update checkouts set amount = 1',
        'delete from alerts',
        'insert into territories select * from territories',
      ]) {
        await assert.rejects(pool.query(statement), { code: '42501' }, statement);
      }
    });
  });

  test('a role that reads sees no table with secrets or hashes of tokens', async () => {
    await connected(roles.read, async (pool) => {
      const { rows } = await pool.query<{ name: string }>(
        `select c.relname || '.' || a.attname as name
         from pg_class c join pg_attribute a on a.attrelid = c.oid
         where c.relkind = 'r' and c.relnamespace = current_schema()::regnamespace
           and a.attname ~ '(_hash$|secret|token|password)' and not a.attisdropped
           -- Sealed under the master key, which is not in the database.
           and a.attname !~ '^sealed_' and has_table_privilege(c.oid, 'select')
         order by name`,
      );
      // These are hashes of rows that the role may read anyway.
      assert.deepEqual(
        rows.map(({ name }) => name),
        ['disputes.staged_hash'],
      );
    });
  });

  test('a grant to a role that does not exist, or by one that is not the owner, is refused', async () => {
    const tranche = commandLine({ DATABASE_URL: owner.url });
    await tranche.refused(
      1,
      /"nobody_here" does not exist/,
      'database',
      'grant',
      'read',
      'nobody_here',
    );
    await tranche.refused(2, /serve or read/, 'database', 'grant', 'own', roles.read);
    const serving = commandLine({ DATABASE_URL: as(roles.serve) });
    await serving.refused(1, /not granted/, 'database', 'grant', 'read', roles.read);
  });

  test('a program older than the database revokes no rights', async () => {
    const newest = (await listMigrations()).at(-1)?.version ?? 0;
    const granted = () =>
      onDatabase(owner.url, async (client) => {
        const { rows } = await client.query(
          `select has_table_privilege($1, 'next_things', 'insert') as granted`,
          [roles.serve],
        );
        return rows[0].granted;
      });
    // A newer program has added a table and granted the rights on it.
    await onDatabase(owner.url, (client) =>
      client.query(`create table next_things ();
        grant select, insert on next_things to ${roles.serve};
        insert into schema_migrations values (${newest + 1}, 'next', 'x', now())`),
    );
    try {
      const tranche = commandLine({ DATABASE_URL: owner.url });
      const refusal = new RegExp(
        `at migration ${newest + 1}.*Run this command from the newer version`,
      );
      await tranche.refused(1, refusal, 'database', 'grant', 'serve', roles.serve);
      assert.equal(await granted(), true);
    } finally {
      await onDatabase(owner.url, (client) =>
        client.query(`drop table next_things;
          delete from schema_migrations where version > ${newest}`),
      );
    }
  });

  async function connected(
    role: string,
    work: (pool: pg.Pool, database: ReturnType<typeof openDatabase>) => Promise<void>,
  ): Promise<void> {
    const database = openDatabase(as(role), { log, maxConnections: 2 });
    try {
      await work(database.pool, database);
    } finally {
      await database.close();
    }
  }
});
