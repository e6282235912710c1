import assert from 'node:assert/strict';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { findViolations } from '#checks/invariants/invariants.ts';
import { openDatabase } from '#platform/database/database.ts';
import type { PayPage } from '#purchases/shoppers/pay-page.ts';
import { onDatabase } from '../support/database-server.ts';
import { post, request } from '../support/http.ts';
import { challengeCard, visa } from '../support/payments.ts';
import { kill, liftLimits, type Sandbox, startSandbox } from '../support/sandbox-process.ts';
import { checkoutBody, log } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';

// The real processes: the sandbox is killed while requests to its gateway are in flight. Stories
// kill a process at every other step.

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let sandbox: Sandbox;
before(async () => {
  folder = await temporaryFolder();
  sandbox = await startSandbox(path.join(folder.path, 'data'));
});
after(async () => {
  await kill(sandbox);
  await folder.remove();
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

/**
 * Where the requests to the gateway are when the service is killed, and how their checkouts end.
 */
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

/** A shopper who pays or cancels, and whose request is in flight at the gateway. */
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

test('a service that was killed finds the outcome of each request in flight when it starts again', async (t) => {
  await liftLimits(sandbox.file.database_url, sandbox.file.integration.id);
  const begun: Awaited<ReturnType<typeof begin>>[] = [];
  for (const one of cases) begun.push(await begin(one));
  await kill(sandbox);
  sandbox = await startSandbox(sandbox.dataDir);
  // End the dead process's lease now instead of waiting for it.
  const { database_url } = sandbox.file;
  await onDatabase(database_url, (client) =>
    client.query("update payment_attempts set leased_until = now() - interval '1 second'"),
  );
  for (const { about, id, ending, send } of begun) {
    await t.test(about, async () => {
      const status = ending === 'pay' ? 'successful' : 'cancelled';
      await until('the outcome', async () => (await send('state')).status === status);
      await until('everything to be settled', async () => {
        const { rowCount } = await onDatabase(database_url, (client) =>
          client.query(
            'select 1 from payment_attempts where due_at is not null and checkout_id = $1',
            [id],
          ),
        );
        return rowCount === 0;
      });
      const { payment_intents } = await gateway('GET', `/_test/books?checkout=${id}`);
      assert.deepEqual(
        payment_intents.map((intent: { status: string }) => intent.status),
        [ending === 'pay' ? 'requires_capture' : 'canceled'],
      );
    });
  }
  const database = openDatabase(database_url, { log, maxConnections: 1 });
  const violations = await findViolations(database, new Date().toISOString());
  await database.close();
  assert.deepEqual(violations, []);
});
