import assert from 'node:assert/strict';
import path from 'node:path';
import { after, before, test } from 'node:test';
import type { PayPage } from '#purchases/shoppers/pay-page.ts';
import { onDatabase } from '../support/database-server.ts';
import { authorised, type Credentials, post, request } from '../support/http.ts';
import { challengeCard, visa } from '../support/payments.ts';
import {
  type Attempt,
  findDamage,
  kill,
  liftLimits,
  type Sandbox,
  startLoad,
  startSandbox,
  stop,
  tranche,
} from '../support/sandbox-process.ts';
import { checkoutBody, isLong, rules, runs } from '../support/service.ts';
import { postmasterPid, temporaryFolder } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';

// The real processes: the sandbox is killed under load, and while requests to its gateway are in
// flight; and so is its database. Stories kill a process at every other step.

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
  const { code } = await stop(sandbox);
  await folder.remove();
  assert.equal(code, 0, 'after all kills it stops cleanly');
});

async function gateway(method: string, where: string, body?: URLSearchParams | string) {
  const { gateway_url, gateway_secret_key } = sandbox.file as Sandbox['file'] & {
    gateway_secret_key: string;
  };
  const answer = await fetch(`${gateway_url}${where}`, {
    method,
    headers: { authorization: `Bearer ${gateway_secret_key}`, connection: 'close' },
    ...(body !== undefined && { body }),
  });
  // biome-ignore lint/suspicious/noExplicitAny: assertions check the answer.
  return (await answer.json()) as any;
}

const fault = (given: object) => gateway('POST', '/_test/faults', JSON.stringify(given));

async function cardToken(number: string): Promise<string> {
  const { id } = await gateway(
    'POST',
    '/v1/test_helpers/confirmation_tokens',
    new URLSearchParams({
      'payment_method_data[type]': 'card',
      'payment_method_data[card][number]': number,
    }),
  );
  return id;
}

/** Where the requests to the gateway are when the service is killed, and how their checkouts end. */
const cases = [
  ['before the customer is created', { fault: 'latency', path: '/v1/customers' }, 'pay'],
  ['before the amount is held', { fault: 'latency', path: '/v1/payment_intents' }, 'pay'],
  ['after the amount is held', { fault: 'latency_after', path: '/v1/payment_intents' }, 'pay'],
  [
    'while a hold is voided',
    { fault: 'latency', path: '/v1/payment_intents/:id/cancel' },
    'cancel',
  ],
] as const;

/** Lets a shopper pay or cancel, until the request is in flight at the gateway. */
async function begin([about, strike, ending]: (typeof cases)[number]) {
  const created = await post(
    `${sandbox.file.base_url}/api/checkouts`,
    sandbox.file.integration,
    checkoutBody(),
  );
  const { id, payment_url } = created.body.data;
  const { pathname } = new URL(payment_url);
  const send = async (action: string, body?: object): Promise<PayPage> => {
    const answer = await request(`${sandbox.file.base_url}${pathname}/${action}`, {
      ...(body && {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      }),
    });
    return answer.body;
  };
  const pay = async (card: string) =>
    await send('pay', {
      number_of_payments: 1,
      card_token: await cardToken(card),
      consent: null,
    });

  if (ending === 'cancel') assert.equal((await pay(challengeCard)).status, 'challenge');
  const { id: faultId } = await fault({ ...strike, method: 'POST', ms: 600_000 });
  const last = ending === 'pay' ? pay(visa) : send('cancel', { number_of_payments: 1 });
  last.catch(() => {});
  await until('the gateway to have the request', async () => {
    const { data } = await gateway('GET', '/_test/faults');
    return data.find((one: { id: string }) => one.id === faultId).struck > 0;
  });
  return { about, id, ending, send };
}

/** Waits until the service that runs now has found the outcome of a request that was in flight. */
async function assertSettled({ id, ending, send }: Awaited<ReturnType<typeof begin>>) {
  const status = ending === 'pay' ? 'successful' : 'cancelled';
  await until('the outcome', async () => (await send('state')).status === status);
  await until('everything to be settled', async () => {
    const { rowCount } = await onDatabase(sandbox.file.database_url, (client) =>
      client.query('select 1 from payment_attempts where due_at is not null and checkout_id = $1', [
        id,
      ]),
    );
    return rowCount === 0;
  });
  const { payment_intents } = await gateway('GET', `/_test/books?checkout=${id}`);
  assert.deepEqual(
    payment_intents.map((intent: { status: string }) => intent.status),
    [ending === 'pay' ? 'requires_capture' : 'canceled'],
  );
}

test('a service killed under load loses no acknowledged checkout, recovers at its next start, replaces sandbox.json only once everything answers, and finds the outcome of each request that was in flight at its gateway', async (t) => {
  const begun: Awaited<ReturnType<typeof begin>>[] = [];
  for (const one of cases) begun.push(await begin(one));
  const rounds = isLong ? 20 : 1;
  const load = startLoad({ baseUrl: () => sandbox.file.base_url, callers });
  t.after(load.stop);
  for (let round = 0; round < rounds; round += 1) {
    // Kill it at a random point: sometimes early, sometimes in the middle of a full load.
    const target = load.acknowledged() + 1 + Math.floor(Math.random() * 100);
    await until('checkouts to be created', () => load.acknowledged() >= target);
    await kill(sandbox);
    // This waits for another sandbox.json than the one that the killed sandbox left.
    sandbox = await startSandbox(sandbox.dataDir);
    assert.equal((await request(`${sandbox.file.base_url}/readyz`)).status, 200);
    // The last kill is judged once the load has ended.
    if (round === rounds - 1) break;
    // The kill cut off the requests in flight. Only those that were answered count.
    const damage = await findDamage(sandbox.file.database_url, structuredClone(load.attempts));
    assert.deepEqual(damage, [], `after kill ${round + 1}`);
  }
  const target = load.acknowledged() + 50;
  await until('the load to continue after the last kill', () => load.acknowledged() >= target);
  await load.stop();
  // End the dead process's lease now instead of waiting for it.
  await onDatabase(sandbox.file.database_url, (client) =>
    client.query("update payment_attempts set leased_until = now() - interval '1 second'"),
  );
  for (const one of begun) await t.test(one.about, () => assertSettled(one));
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
});

test('a service whose PostgreSQL is killed under load loses nothing acknowledged, and recovers by itself', async (t) => {
  const load = startLoad({ baseUrl: () => sandbox.file.base_url, callers });
  t.after(load.stop);
  const rounds = runs(10);
  for (let round = 0; round < rounds; round += 1) {
    const target = load.acknowledged() + 1 + Math.floor(Math.random() * (isLong ? 300 : 100));
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
  assert.deepEqual(await findDamage(sandbox.file.database_url, load.attempts), []);
});

test('connections that are cut are replaced, and no request fails', async (t) => {
  const { base_url, database_url } = sandbox.file;
  const load = startLoad({ baseUrl: () => base_url, callers });
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

function summary(attempts: Attempt[]): string {
  const answers = Map.groupBy(
    attempts.flatMap(({ statuses }) => statuses),
    (status) => status,
  );
  const counted = [...answers].map(([status, all]) => `${all.length} × ${status}`);
  const unanswered = attempts.reduce((sum, one) => sum + one.unanswered, 0);
  return `${attempts.length} attempts: ${counted.join(', ')}, ${unanswered} unanswered`;
}
