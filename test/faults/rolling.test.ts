import assert from 'node:assert/strict';
import path from 'node:path';
import { after, afterEach, before, type TestContext, test } from 'node:test';
import { startBalancer } from '../support/balancer.ts';
import { request } from '../support/http.ts';
import { copyOfCommit, findReleasedCommit, withMigration } from '../support/program-copy.ts';
import {
  findDamage,
  kill,
  type Program,
  type ServeReady,
  startLoad,
  startServe,
  stop,
} from '../support/sandbox-process.ts';
import {
  type Account,
  createAccount,
  createEmptyDatabase,
  createTestDatabase,
  isLong,
  startService,
} from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';

// A release replaces the nodes behind a load balancer one by one, while merchants create checkouts.
// The newer program is this one with one more migration. `npm run test:long` also goes to and from
// the newest release, if this clone has its tag.

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
/** Another version of this program: its entry file, or the settings that make it of this one. */
type Version = { file?: string; settings?: NodeJS.ProcessEnv };
const current: Version = {};
let newer: Version;
const programs: Program[] = [];
before(async () => {
  folder = await temporaryFolder();
  const migration = 'alter table checkouts add column next_note text;\n';
  newer = { settings: await withMigration(path.join(folder.path, 'newer'), migration) };
});
afterEach(async () => {
  for (const program of programs.splice(0)) await kill(program);
});
after(() => folder.remove());

/** Longer than the balancer uses a node before it asks again whether the node is ready. */
const drainSeconds = 3;

/** Nodes behind a balancer under load. */
async function startNodes(t: TestContext, count: number, version = current) {
  // Another program migrates an empty database itself.
  const database = await (version === current ? createTestDatabase() : createEmptyDatabase());
  t.after(database.drop);
  const start = async ({ file, settings }: Version): Promise<ServeReady> => {
    const env = {
      ...settings,
      DATABASE_URL: database.url,
      MASTER_KEY: Buffer.alloc(32, 7).toString('base64'),
      STRIPE_SECRET_KEY: 'sk_test_of_tests',
      STRIPE_PUBLISHABLE_KEY: 'pk_test_of_tests',
      DRAIN_SECONDS: String(drainSeconds),
    };
    const node = await startServe([], env, file);
    programs.push(node);
    return node;
  };
  const balancer = await startBalancer();
  t.after(balancer.close);
  const nodes: ServeReady[] = [];
  for (let index = 0; index < count; index += 1) nodes.push(await start(version));
  const caller = await account(database.url);
  for (const node of nodes) await balancer.add(node.baseUrl);
  const load = startLoad({ baseUrl: () => balancer.url, callers: [caller] }, 2, isLong ? 20 : 250);
  t.after(load.stop);
  const add = async (next: Version): Promise<ServeReady> => {
    const node = await start(next);
    await balancer.add(node.baseUrl);
    await until('the new node to serve', () => balancer.requests(node.baseUrl) > 5);
    return node;
  };
  const retire = async (node: ServeReady): Promise<void> => {
    const { code } = await stop(node);
    assert.equal(code, 0, node.stderr());
    balancer.remove(node.baseUrl);
  };
  return { url: database.url, nodes, load, add, retire };
}

async function account(databaseUrl: string): Promise<Account> {
  const here = await startService({ databaseUrl });
  try {
    return await createAccount(here);
  } finally {
    await here.close();
  }
}

async function assertNothingFailed(
  t: TestContext,
  { url, load }: Pick<Awaited<ReturnType<typeof startNodes>>, 'url' | 'load'>,
): Promise<void> {
  await load.stop();
  const failed = load.attempts.filter(
    ({ statuses, unanswered }) => unanswered > 0 || statuses.some((status) => status !== 200),
  );
  assert.deepEqual(failed, []);
  assert.deepEqual(await findDamage(url, load.attempts), []);
  t.diagnostic(`${load.attempts.length} requests, none failed`);
}

test('a newer version migrates under load, takes over, and gives way to this one again', async (t) => {
  const running = await startNodes(t, 1);
  const [first] = running.nodes as [ServeReady];
  const second = await running.add(newer);
  assert.equal(second.lines().filter(({ msg }) => msg === 'migrated').length, 1);
  // The first node drains while the third one starts on the newer database.
  const [third] = await Promise.all([running.add(current), running.retire(first)]);
  await running.retire(second);
  assert.equal((await request(`${third.baseUrl}/readyz`)).status, 200);
  await assertNothingFailed(t, running);
});

test('six rolling restarts between the newest release, this version and a newer one cut no request', {
  skip: !isLong && 'only in npm run test:long',
}, async (t) => {
  const commit = findReleasedCommit();
  const released =
    commit === null
      ? current
      : { file: await copyOfCommit(path.join(folder.path, 'released'), commit) };
  const running = await startNodes(t, 2, released);
  let { nodes } = running;
  for (const version of [current, newer, current, released, current, newer]) {
    const next: ServeReady[] = [];
    for (const node of nodes) {
      next.push(await running.add(version));
      await running.retire(node);
    }
    nodes = next;
  }
  await assertNothingFailed(t, running);
});
