import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { closeEndedAlerts } from '#operating/operations/close-ended-alerts.ts';
import { deliverDueCallbacks } from '#purchases/callbacks/delivery/deliver-due-callbacks.ts';
import { queueCallbacks, readCallback } from '../support/callbacks.ts';
import { commandLine, type Tranche, unknownId } from '../support/cli.ts';
import { type Receiver, type Reply, startReceiver } from '../support/receiver.ts';
import {
  type Account,
  createAccount,
  movableClock,
  type Service,
  startService,
} from '../support/service.ts';
import { until } from '../support/until.ts';

const clock = movableClock();
let service: Service;
let receiver: Receiver;
let tranche: Tranche;
let person: Tranche;
let account: Account;
let reply: Reply;
before(async () => {
  service = await startService({ clock });
  receiver = await startReceiver(() => reply);
  const env = { DATABASE_URL: service.databaseUrl };
  tranche = commandLine(env, { clock });
  person = commandLine(env, { clock, terminal: true });
  account = await createAccount(service);
});
after(async () => {
  await service.close();
  await receiver.close();
});

/** Callbacks that were delivered, or refused every time. */
async function endedCallbacks(count: number, status: 'delivered' | 'exhausted', owner = account) {
  reply = { status: status === 'delivered' ? 200 : 500, body: 'so it is' };
  const urls = Array.from({ length: count }, () => `${receiver.url}/callback`);
  const ids = await queueCallbacks(service, owner, urls);
  clock.advance({ seconds: 15 });
  for (let attempt = 0; attempt < 19; attempt += 1) {
    await deliverDueCallbacks(service.deps);
    clock.advance({ minutes: 10 });
  }
  return await Promise.all(ids.map((id) => readCallback(service, id)));
}

/** Columns of a single callback; a list adds the merchant and the order. */
const members = [
  'id',
  'merchant_id',
  'checkout_id',
  'status',
  'notify_url',
  'attempts',
  'created_at',
  'due_at',
  'delivered_at',
  'redirect_url',
  'event',
];
const listed = [
  ...members,
  'merchant_name',
  'client_reference_id',
  'email',
  'name',
  'reason',
  'response_status',
];

describe('callbacks list', () => {
  test('shows the newest first, by status and by merchant', async () => {
    const owner = await createAccount(service);
    const [lost] = await endedCallbacks(1, 'exhausted', owner);
    const [good] = await endedCallbacks(1, 'delivered', owner);
    assert.ok(lost && good);
    const list = async (...how: string[]) => {
      const { data } = await tranche.json(
        'callbacks',
        'list',
        '--merchant',
        owner.merchant.id,
        ...how,
      );
      return data.map(({ id }: { id: string }) => id);
    };
    assert.deepEqual(await list(), [good.id, lost.id]);
    assert.deepEqual(await list('--status', 'exhausted'), [lost.id]);
    assert.deepEqual(await list('--status', 'delivered'), [good.id]);
    assert.deepEqual(await list('--status', 'pending'), []);
    const { data } = await tranche.json('callbacks', 'list', '--status', 'exhausted');
    assert.deepEqual(Object.keys(data[0]), listed);
    assert.deepEqual([data[0].attempts, data[0].due_at], [19, null]);
    const { merchant_name, client_reference_id, email, response_status } = data[0];
    assert.deepEqual(
      [merchant_name, client_reference_id, email, response_status],
      [owner.merchant.name, 'order-1', 'thandi@example.com', 500],
    );
  });

  test('prints a table', async () => {
    const owner = await createAccount(service);
    const empty = await person.run('callbacks', 'list', '--merchant', owner.merchant.id);
    assert.deepEqual([empty.code, empty.stdout], [0, 'There are none.\n']);
    const [good] = await endedCallbacks(1, 'delivered', owner);
    const { stdout } = await person.run('callbacks', 'list', '--merchant', owner.merchant.id);
    assert.match(stdout, new RegExp(`${good?.id}.*delivered`));
  });

  test('refuses unknown statuses and merchants', async () => {
    await tranche.refused(2, /status/, 'callbacks', 'list', '--status', 'failed');
    await tranche.refused(2, /must be an ID/, 'callbacks', 'list', '--merchant', 'bean-there');
    await tranche.refused(2, /./, 'callbacks', 'list', 'everything');
  });
});

describe('callbacks show', () => {
  test('shows the payload and every attempt with its response', async () => {
    const [lost] = await endedCallbacks(1, 'exhausted');
    assert.ok(lost);
    const shown = await tranche.json('callbacks', 'show', lost.id);
    assert.deepEqual(Object.keys(shown), [...members, 'payload', 'history']);
    assert.equal(shown.payload, lost.payload.toString());
    assert.equal(shown.attempts, 19);
    assert.equal(shown.history.length, 19);
    const [first] = shown.history;
    assert.deepEqual(
      {
        number: first.number,
        trigger: first.trigger,
        operator: first.operator,
        outcome: first.outcome,
        reason: first.reason,
        status: first.response_status,
        body: first.response_body,
        address: first.address,
      },
      {
        number: 1,
        trigger: 'first',
        operator: null,
        outcome: 'failed',
        reason: 'http_500',
        status: 500,
        body: 'so it is',
        address: '127.0.0.1',
      },
    );
    assert.equal(first.request_headers['x-callback-attempt'], '1');
    const { stdout } = await person.run('callbacks', 'show', lost.id);
    assert.match(stdout, /"status":"cancelled"/);
    assert.equal(stdout.match(/http_500/g)?.length, 19);
  });

  test('shows a callback without attempts', async () => {
    const [id = ''] = await queueCallbacks(service, account, [`${receiver.url}/callback`]);
    const callback = await readCallback(service, id);
    const { stdout } = await person.run('callbacks', 'show', callback.id);
    assert.match(stdout, /There are no attempts yet/);
  });

  test('refuses an unknown callback', async () => {
    await tranche.refused(1, /There is no callback/, 'callbacks', 'show', unknownId);
    await tranche.refused(1, /There is no callback/, 'callbacks', 'show', 'x');
    await tranche.refused(2, /./, 'callbacks', 'show');
  });
});

describe('callbacks retry', () => {
  test('delivers one callback now and records the operator', async () => {
    const [lost] = await endedCallbacks(1, 'exhausted');
    assert.ok(lost);
    reply = { status: 204 };
    const answer = await tranche.json('callbacks', 'retry', lost.id);
    assert.deepEqual(Object.keys(answer), [...members, 'reason']);
    assert.deepEqual([answer.status, answer.attempts], ['delivered', 20]);
    const { tried } = await readCallback(service, String(lost.checkout_id));
    assert.deepEqual([tried.at(-1)?.trigger, tried.at(-1)?.operator], ['operator', 'nomsa']);
    const { stdout } = await person.run('callbacks', 'show', lost.id);
    assert.match(stdout, /operator nomsa/);
  });

  test('reports a failed delivery, and a new run of retries begins', async () => {
    const [lost] = await endedCallbacks(1, 'exhausted');
    assert.ok(lost);
    reply = { status: 500 };
    const answer = await tranche.json('callbacks', 'retry', lost.id);
    assert.equal(answer.status, 'pending');
    assert.ok(answer.due_at !== null);
    assert.match(answer.reason, /500/);
    const { stdout } = await person.run('callbacks', 'retry', lost.id.slice(0, 30));
    assert.match(stdout, /Failed.*500/);
    assert.match(stdout, /Next attempt/);
    reply = { status: 200 };
    clock.advance({ minutes: 10 });
    await deliverDueCallbacks(service.deps);
    assert.equal((await readCallback(service, String(lost.checkout_id))).status, 'delivered');
  });

  test('delivers all exhausted callbacks of one merchant; --dry-run only lists them', async () => {
    const [owner, other] = [await createAccount(service), await createAccount(service)];
    const lost = await endedCallbacks(3, 'exhausted', owner);
    await endedCallbacks(2, 'delivered', owner);
    const [theirs] = await endedCallbacks(1, 'exhausted', other);
    const how = ['--status', 'exhausted', '--merchant', owner.merchant.id];
    reply = { status: 200 };
    const before = receiver.received.length;
    const dry = await tranche.json('callbacks', 'retry', ...how, '--dry-run');
    const ids = (data: { id: string }[]) => data.map(({ id }) => id).sort();
    assert.deepEqual(ids(dry.data), ids(lost));
    assert.equal(receiver.received.length, before);
    const wet = await tranche.json('callbacks', 'retry', ...how);
    assert.deepEqual(ids(wet.data), ids(lost));
    for (const { status } of wet.data) assert.equal(status, 'delivered');
    assert.equal(receiver.received.length, before + 3);
    assert.equal((await readCallback(service, theirs?.checkout_id ?? '')).status, 'exhausted');
    assert.deepEqual(await tranche.json('callbacks', 'retry', ...how), { data: [] });
    const { stdout } = await person.run('callbacks', 'retry', ...how);
    assert.equal(stdout, 'There are none.\n');
    const { rows } = await service.deps.database.pool.query(
      `select operator, action, count(*) from operator_actions
       where subject_id = any($1) group by 1, 2`,
      [lost.map(({ id }) => id)],
    );
    assert.deepEqual(rows, [{ operator: 'nomsa', action: 'callbacks retry', count: 3 }]);
  });

  test('refuses a callback that is being delivered, and wrong arguments', async () => {
    const [lost] = await endedCallbacks(1, 'exhausted');
    assert.ok(lost);
    const held = Promise.withResolvers<Reply>();
    const before = receiver.received.length;
    receiver.answer = () => held.promise;
    const first = tranche.json('callbacks', 'retry', lost.id);
    await until('the receiver to be told', () => receiver.received.length > before);
    await tranche.refused(1, /being delivered right now/, 'callbacks', 'retry', lost.id);
    held.resolve({});
    assert.equal((await first).status, 'delivered');
    receiver.answer = () => reply;
    assert.equal(receiver.received.length, before + 1);

    const { id } = account.merchant;
    await tranche.refused(1, /There is no callback/, 'callbacks', 'retry', unknownId);
    await tranche.refused(1, /There is no callback/, 'callbacks', 'retry', 'x');
    for (const wrong of [
      [],
      [lost.id, '--status', 'exhausted'],
      [lost.id, '--dry-run'],
      [lost.id, '--merchant', id],
      ['--status', 'exhausted'],
      ['--status', 'pending', '--merchant', id],
      ['--status', 'exhausted', '--merchant', 'x'],
      ['--merchant', id],
    ]) {
      await tranche.refused(2, /./, 'callbacks', 'retry', ...wrong);
    }
    assert.equal(receiver.received.length, before + 1);
  });
});

test('alerts list shows a failing receiver, and its exhausted callbacks once the alert is closed', async () => {
  const owner = await createAccount(service);
  const [lost] = await endedCallbacks(1, 'exhausted', owner);
  const listed = async (...how: string[]) =>
    (await tranche.json('alerts', 'list', '--merchant', owner.merchant.id, ...how)).data;
  const kindsOf = (alerts: { kind: string }[]) => alerts.map(({ kind }) => kind);
  const ours = await listed();
  assert.deepEqual(kindsOf(ours), ['destination_failing']);
  assert.deepEqual(await listed('--kind', 'callback_exhausted'), []);
  const [closed] = await listed('--status', 'closed');
  assert.deepEqual([closed.kind, closed.subject_id], ['callback_exhausted', lost?.id]);
  await closeEndedAlerts(service.deps);
  assert.deepEqual(kindsOf(await listed()), ['destination_failing'], 'callbacks wait for it');
  for (const member of ['id', 'at', 'kind', 'integration_id', 'merchant_id', 'detail']) {
    assert.ok(member in ours[0], member);
  }
  const { stdout } = await person.run('alerts', 'list');
  assert.match(stdout, /destination_failing/);
  await tranche.refused(2, /./, 'alerts', 'list', 'all');
});

test('an alert is taken by one operator and closed with a reason, and then leaves the list', async () => {
  const owner = await createAccount(service);
  await endedCallbacks(1, 'exhausted', owner);
  const ours = async (...how: string[]) => {
    const { data } = await tranche.json('alerts', 'list', '--limit', '1000', ...how);
    return data.filter((one: { merchant_id: string }) => one.merchant_id === owner.merchant.id);
  };
  const sipho = commandLine(
    { DATABASE_URL: service.databaseUrl, TRANCHE_OPERATOR: 'sipho' },
    { clock },
  );
  const [{ id }] = await ours('--status', 'open');
  const taken = await tranche.json('alerts', 'take', id);
  assert.deepEqual([taken.id, taken.taken_by], [id, 'nomsa']);
  assert.deepEqual(await tranche.json('alerts', 'take', id), taken);
  await sipho.refused(1, /nomsa took this alert/, 'alerts', 'take', id);
  assert.ok(!(await ours('--status', 'open')).some((one: { id: string }) => one.id === id));
  assert.ok((await ours('--status', 'taken')).some((one: { id: string }) => one.id === id));

  await sipho.refused(2, /--reason is missing/, 'alerts', 'close', id);
  const closed = await sipho.json('alerts', 'close', id, '--reason', 'The receiver is back.');
  assert.deepEqual([closed.closed_by, closed.close_reason], ['sipho', 'The receiver is back.']);
  assert.ok(!(await ours()).some((one: { id: string }) => one.id === id));
  const found = (await ours('--status', 'closed')).find((one: { id: string }) => one.id === id);
  assert.deepEqual([found.id, found.taken_by, found.closed_by], [id, 'nomsa', 'sipho']);
  await tranche.refused(1, /sipho closed this alert/, 'alerts', 'close', id, '--reason', 'x');
  await tranche.refused(1, /sipho closed this alert/, 'alerts', 'take', id);
  for (const unknown of [unknownId, 'x']) {
    await tranche.refused(1, /There is no alert/, 'alerts', 'take', unknown);
  }
  const { data: actions } = await tranche.json('audit', 'list', '--subject', id);
  assert.deepEqual(
    actions.map(({ action, operator }: Record<string, string>) => [action, operator]),
    [
      ['alerts close', 'sipho'],
      ['alerts take', 'nomsa'],
      ['alerts take', 'nomsa'],
    ],
  );
});

test('when two operators take an alert at once, one gets it', async () => {
  const owner = await createAccount(service);
  await endedCallbacks(1, 'exhausted', owner);
  const { data } = await tranche.json('alerts', 'list', '--limit', '1000');
  const { id } = data.find((one: { merchant_id: string }) => one.merchant_id === owner.merchant.id);
  const codes = await Promise.all(
    ['nomsa', 'sipho'].map(async (name) => {
      const env = { DATABASE_URL: service.databaseUrl, TRANCHE_OPERATOR: name };
      return (await commandLine(env, { clock }).run('alerts', 'take', id)).code;
    }),
  );
  assert.deepEqual(codes.sort(), [0, 1]);
});
