import assert from 'node:assert/strict';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { authorised, type Credentials, request } from '../support/http.ts';
import {
  findDamage,
  kill,
  liftLimits,
  type Sandbox,
  startLoad,
  startSandbox,
  stop,
  tranche,
} from '../support/sandbox-process.ts';
import { isLong, rules } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let sandbox: Sandbox;
const callers: Credentials[] = [];

before(async () => {
  folder = await temporaryFolder();
  sandbox = await startSandbox(path.join(folder.path, 'data'));
  const named = ['merchants', 'create', '--name', 'Second', '--rules', JSON.stringify(rules)];
  const { id: merchant } = await tranche(named, sandbox.env);
  const second = await tranche(['integrations', 'create', '--merchant', merchant], sandbox.env);
  callers.push(sandbox.file.integration, second);
  for (const { id } of callers) await liftLimits(sandbox.file.database_url, id);
});
after(async () => {
  await kill(sandbox);
  await folder.remove();
});

test('a service killed under load loses no acknowledged checkout, and recovers at its next start', async (t) => {
  const rounds = isLong ? 20 : 1;
  const load = startLoad({ baseUrl: () => sandbox.file.base_url, callers });
  t.after(load.stop);
  for (let round = 0; round < rounds; round += 1) {
    // Kill it at a random point: sometimes early, sometimes in the middle of a full load.
    const target = load.acknowledged() + 1 + Math.floor(Math.random() * 100);
    await until('checkouts to be created', () => load.acknowledged() >= target);
    await kill(sandbox);
    sandbox = await startSandbox(sandbox.dataDir);
    // Requests in flight were cut. Only answers that came count.
    const damage = await findDamage(sandbox.file.database_url, structuredClone(load.attempts));
    assert.deepEqual(damage, [], `after kill ${round + 1}`);
  }
  const target = load.acknowledged() + 50;
  await until('the load to continue after the last kill', () => load.acknowledged() >= target);
  await load.stop();
  assert.deepEqual(await findDamage(sandbox.file.database_url, load.attempts), []);

  const keyed = load.attempts.filter(({ key, id }) => key !== null && id !== null);
  const retried = keyed.filter(({ unanswered }) => unanswered > 0);
  t.diagnostic(
    `${rounds} kills, ${load.attempts.length} attempts, ${load.acknowledged()} acknowledged, ` +
      `${retried.length} keys retried after a kill`,
  );
  assert.ok(retried.length > 0, 'some requests with a key were cut and retried');
  const faults = load.attempts.filter(({ statuses }) => statuses.some((one) => one !== 200));
  assert.deepEqual(faults, [], 'every answer was a 200');

  for (const { id, integration_id } of load.attempts.filter(({ id }) => id !== null).slice(-20)) {
    const caller = callers.find((one) => one.id === integration_id) as Credentials;
    const url = `${sandbox.file.base_url}/api/checkouts/${id}`;
    assert.equal((await request(url, { headers: authorised(caller) })).status, 200);
  }
  assert.equal((await stop(sandbox)).code, 0);
});
