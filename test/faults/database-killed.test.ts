import assert from 'node:assert/strict';
import { once } from 'node:events';
import net from 'node:net';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { startEmbeddedPostgres } from '#hosting/embedded-postgres/server.ts';
import { onDatabase } from '../support/database-server.ts';
import { request } from '../support/http.ts';
import { copySandboxModel } from '../support/sandbox-model.ts';
import {
  type Attempt,
  findDamage,
  kill,
  liftLimits,
  type Sandbox,
  startLoad,
  startSandbox,
  startServe,
  stop,
} from '../support/sandbox-process.ts';
import { createAccount, runs, startService } from '../support/service.ts';
import { postmasterPid, temporaryFolder } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
before(async () => {
  folder = await temporaryFolder();
});
after(() => folder.remove());

function summary(attempts: Attempt[]): string {
  const answers = Map.groupBy(
    attempts.flatMap(({ statuses }) => statuses),
    (status) => status,
  );
  const counted = [...answers].map(([status, all]) => `${all.length} × ${status}`);
  const unanswered = attempts.reduce((sum, one) => sum + one.unanswered, 0);
  return `${attempts.length} attempts: ${counted.join(', ')}, ${unanswered} unanswered`;
}

test('PostgreSQL killed under load', async (t) => {
  const sandbox: Sandbox = await startSandbox(path.join(folder.path, 'killed'));
  const { base_url, database_url, integration } = sandbox.file;
  await liftLimits(database_url, integration.id);
  try {
    await t.test('loses nothing acknowledged, and the service recovers by itself', async (t) => {
      const load = startLoad({ baseUrl: () => base_url, callers: [integration] });
      t.after(load.stop);
      const rounds = runs(10);
      for (let round = 0; round < rounds; round += 1) {
        const target = load.acknowledged() + 1 + Math.floor(Math.random() * 300);
        await until('checkouts to be created', () => load.acknowledged() >= target);
        const pid = await postmasterPid(sandbox.dataDir);
        assert.ok(pid !== null);
        process.kill(pid, 'SIGKILL');
        const before = load.acknowledged();
        await until('the service to be back', () => load.acknowledged() > before + 20);
        assert.equal(sandbox.hasExited(), false);
      }
      await load.stop();
      t.diagnostic(`${rounds} kills, ${summary(load.attempts)}`);
      assert.deepEqual(await findDamage(database_url, load.attempts), []);
    });

    await t.test('connections that are cut are replaced, and no request fails', async (t) => {
      const load = startLoad({ baseUrl: () => base_url, callers: [integration] });
      t.after(load.stop);
      const rounds = runs(100);
      let cut = 0;
      await onDatabase(database_url, async (client) => {
        for (let round = 0; round < rounds; round += 1) {
          const target = load.acknowledged() + 1 + Math.floor(Math.random() * 20);
          await until('checkouts to be created', () => load.acknowledged() >= target);
          const { rows } = await client.query(
            `select pg_terminate_backend(pid) from pg_stat_activity
             where application_name = 'tranche'`,
          );
          cut += rows.length;
        }
      });
      const target = load.acknowledged() + 20;
      await until('the load to continue', () => load.acknowledged() >= target);
      await load.stop();
      t.diagnostic(`${cut} connections cut in ${rounds} rounds, ${summary(load.attempts)}`);
      assert.deepEqual(await findDamage(database_url, load.attempts), []);
      const noticed = load.attempts.filter(({ id, unanswered }) => id === null || unanswered > 0);
      assert.deepEqual(noticed, []);
    });
    assert.equal((await stop(sandbox)).code, 0);
  } finally {
    await kill(sandbox);
  }
});

test('while the database is away longer than a request waits, a 503 means that nothing was created', async (t) => {
  const log = { info: () => {}, warn: () => {}, error: () => {} };
  const dataDir = path.join(folder.path, 'away');
  await copySandboxModel(dataDir);
  let server = await startEmbeddedPostgres({ dataDir, log });
  const env = {
    DATABASE_URL: server.url,
    MASTER_KEY: Buffer.alloc(32, 7).toString('base64'),
    REQUEST_DEADLINE_SECONDS: '5',
  };
  const serve = await startServe([], env);
  const ready = async () => (await request(`${serve.baseUrl}/readyz`)).status;
  try {
    const here = await startService({ databaseUrl: server.url });
    const account = await createAccount(here);
    await here.close();
    assert.equal(await ready(), 200);

    const load = startLoad({ baseUrl: () => serve.baseUrl, callers: [account] });
    t.after(load.stop);
    await until('checkouts to be created', () => load.acknowledged() >= 30);
    await server.stop();
    // No other program may take the port meanwhile.
    const holder = net.createServer((socket) => socket.destroy());
    holder.listen(Number(new URL(server.url).port), '127.0.0.1');
    await once(holder, 'listening');
    t.after(() => holder.close());
    await until('the service to report that it is not ready', async () => (await ready()) === 503);
    assert.equal((await request(`${serve.baseUrl}/healthz`)).status, 200, 'it is alive');
    const failed = () =>
      load.attempts.filter(
        ({ statuses, unanswered }) => statuses.some((status) => status !== 200) || unanswered > 0,
      );
    await until('every request to fail', () => failed().length >= 8);
    await new Promise((resolve) => holder.close(resolve));
    server = await startEmbeddedPostgres({ dataDir, log });
    await until('the service to report that it is ready', async () => (await ready()) === 200);
    const before = load.acknowledged();
    await until('the load to continue', () => load.acknowledged() >= before + 30);
    await load.stop();

    t.diagnostic(summary(load.attempts));
    const others = load.attempts.flatMap(({ statuses }) => statuses).filter((one) => one !== 200);
    assert.ok(others.every((status) => status === 503));
    assert.deepEqual(
      await findDamage(server.url, load.attempts),
      [],
      'a 503 means that nothing was committed',
    );
    assert.equal((await stop(serve)).code, 0);
  } finally {
    await kill(serve);
    await server.stop();
  }
});
