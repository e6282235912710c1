import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { commandLine, type Tranche, unknownId } from '../support/cli.ts';
import { assertSound, commandsOf, type Paying, startPaying } from '../support/payments.ts';
import { type Account, createAccount, send } from '../support/service.ts';

let paying: Paying;
let tranche: Tranche;
let sipho: Tranche;
before(async () => {
  paying = await startPaying();
  tranche = commandsOf(paying);
  sipho = commandsOf(paying, { TRANCHE_OPERATOR: 'sipho' });
});
after(async () => {
  try {
    await paying.clearFaults();
    await paying.pass({ days: 31 });
    await assertSound(paying);
  } finally {
    await paying.close();
  }
});

const refusesRefunds = '4000000000005126';
const settlesLater = '4000000000007726';

/** A paid checkout of R 1 500,00. */
async function paid(term = 3, options: { card?: string; account?: Account } = {}) {
  const shopper = await paying.shopper({}, options.account);
  await shopper.pay(term, options);
  return shopper;
}

async function ask(checkout_id: string, amount: number, account = paying.account) {
  const answer = await send(paying.service, account, 'POST', '/api/refunds', {
    body: { checkout_id, amount },
  });
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  return answer.body.data.id as string;
}

async function statusOf(id: string, account = paying.account): Promise<string> {
  const { body } = await send(paying.service, account, 'GET', `/api/refunds/${id}`);
  return body.data.attributes.status;
}

const taken = (parts: { instalment: number; kind: string; amount: number }[]) =>
  parts.map(({ instalment, kind, amount }) => [instalment, kind, amount]);

function assertFits(page: string): void {
  for (const line of page.split('\n')) assert.ok(line.length <= 80, line);
}

describe('refunds list', () => {
  test('shows requests that wait for review, the oldest first, by status and by merchant', async () => {
    const account = await createAccount(paying.service);
    const { id } = await paid(3, { account });
    const first = await ask(id, 10_000, account);
    paying.clock.advance({ minutes: 1 });
    const second = await ask(id, 20_000, account);
    const list = async (...how: string[]) => {
      const { data } = await tranche.json(
        'refunds',
        'list',
        '--merchant',
        account.merchant.id,
        ...how,
      );
      return data.map((one: { id: string }) => one.id);
    };
    assert.deepEqual(await list('--status', 'requested'), [first, second]);
    assert.deepEqual(await list(), [second, first]);
    assert.deepEqual(await list('--status', 'failed'), []);
    await tranche.json('refunds', 'decline', first, '--reason', 'not yet');
    assert.deepEqual(await list('--status', 'failed'), [first]);
    assert.deepEqual(await list('--status', 'requested'), [second]);

    const page = await tranche.run('refunds', 'list', '--merchant', account.merchant.id);
    assert.match(page.stdout, new RegExp(`${second}  .*  requested  R\\s200,00`));
    assertFits(page.stdout);
    await tranche.refused(2, /--status is "done"/, 'refunds', 'list', '--status', 'done');
    await tranche.refused(2, /must be an ID/, 'refunds', 'list', '--merchant', 'x');
  });
});

describe('refunds approve', () => {
  test('above the merchant’s threshold, a second operator has to approve it too', async () => {
    const account = await createAccount(paying.service);
    const { id } = account.merchant;
    await tranche.json('merchants', 'rules', id, '--four-eyes-above', '20000');
    const checkout = await paid(3, { account });
    const refund = await ask(checkout.id, 20_001, account);
    const { stdout } = await tranche.run('refunds', 'approve', refund);
    assert.match(stdout.replaceAll(/\s+/g, ' '), /Another person has to approve it too/);
    await tranche.refused(1, /Another person has to give/, 'refunds', 'approve', refund);
    assert.equal(await statusOf(refund, account), 'requested');
    assert.equal((await sipho.json('refunds', 'approve', refund)).status, 'complete');
    await tranche.json('merchants', 'rules', id, '--four-eyes-above', 'none');
    const next = await ask(checkout.id, 20_001, account);
    assert.equal((await tranche.json('refunds', 'approve', next)).status, 'complete');
  });

  test('does what the preview showed, and `show` has the gateway’s references', async () => {
    const { id, books } = await paid();
    await paying.pass('2026-12-16T06:00:00Z');
    const preview = await tranche.json('refunds', 'preview', id, '--amount', '120000');
    assert.deepEqual(taken(preview.parts), [
      [3, 'cancel', 50_000],
      [2, 'card', 50_000],
      [1, 'card', 20_000],
    ]);
    assert.deepEqual([preview.remainder, preview.refusal, preview.warnings], [150_000, null, []]);
    const refund = await ask(id, 120_000);
    const asked = await tranche.json('refunds', 'show', refund);
    assert.deepEqual([asked.status, asked.parts], ['requested', []]);
    assert.deepEqual(asked.planned, preview.parts);
    const { stdout } = await tranche.run('refunds', 'show', refund);
    assert.match(stdout, /If it began now, it would be taken from/);
    assertFits(stdout);

    const done = await tranche.json('refunds', 'approve', refund);
    assert.equal(done.status, 'complete');
    assert.deepEqual(taken(done.parts), taken(preview.parts));
    assert.deepEqual(
      done.actions.map(({ operator, action }: Record<string, string>) => [operator, action]),
      [['nomsa', 'refunds approve']],
    );
    assert.equal(await statusOf(refund), 'complete');
    const given = (await books()).refunds;
    assert.deepEqual(
      given.map(({ id, amount }) => [id, amount]).sort(),
      done.parts
        .filter(({ kind }: { kind: string }) => kind === 'card')
        .map((part: { refund_ref: string; amount: number }) => [part.refund_ref, part.amount])
        .sort(),
    );
    assert.deepEqual(await tranche.json('refunds', 'show', refund), done);
    const page = await tranche.run('refunds', 'show', refund);
    assert.match(page.stdout, /Approved.*by nomsa/);
    for (const { id } of given) assert.ok(page.stdout.includes(id), id);
    assertFits(page.stdout);
  });

  test('by two operators at once takes effect once', async () => {
    const { id, books } = await paid(1);
    await paying.pass({ days: 2 });
    const refund = await ask(id, 30_000);
    const outcomes = await Promise.all(
      [tranche, sipho, tranche, sipho].map((one) => one.run('refunds', 'approve', refund)),
    );
    assert.deepEqual(outcomes.map(({ code }) => code).sort(), [0, 1, 1, 1]);
    for (const { code, stderr } of outcomes) {
      if (code === 1) assert.match(stderr, /only a refund that is waiting for review/);
    }
    const { actions, parts } = await tranche.json('refunds', 'show', refund);
    assert.equal(actions.length, 1);
    assert.equal(parts.length, 1);
    assert.deepEqual(
      (await books()).refunds.map(({ amount }) => amount),
      [30_000],
    );
    await tranche.refused(1, /is complete: only a refund that is/, 'refunds', 'approve', refund);
  });

  test('waits while a payment is being collected, and then the service starts it', async () => {
    const { id } = await paid();
    await paying.pass({ days: 2 });
    const refund = await ask(id, 120_000);
    await paying.gateway.fault({ fault: 'error_after', key_contains: `${id}:i2:a1` });
    paying.clock.advance({ days: 30 });
    await paying.work();
    const { warnings } = await tranche.json('refunds', 'preview', id, '--amount', '100');
    assert.match(warnings[0], /A payment is being collected right now/);
    const { stdout } = await tranche.run('refunds', 'approve', refund);
    assert.match(stdout, /It has to wait: payment 2 of this checkout is being collected/);
    assert.match(stdout, /Status +approved/);
    assertFits(stdout);
    const waiting = await tranche.json('refunds', 'show', refund);
    assert.deepEqual([waiting.status, waiting.waits_for, waiting.parts], ['requested', 2, []]);
    await tranche.refused(1, /already approved/, 'refunds', 'approve', refund);
    await tranche.refused(1, /already approved/, 'refunds', 'decline', refund, '--reason', 'no');

    await paying.pass({ minutes: 1 });
    const { status, parts } = await tranche.json('refunds', 'show', refund);
    assert.equal(status, 'complete');
    assert.deepEqual(taken(parts), [
      [3, 'cancel', 50_000],
      [2, 'card', 50_000],
      [1, 'card', 20_000],
    ]);
  });

  test('leaves the rest to the service when the gateway has not settled it', async () => {
    const [{ id }, slow] = [await paid(1), await paid(1, { card: settlesLater })];
    await paying.pass({ days: 2 });
    const [refund, late] = [await ask(id, 10_000), await ask(slow.id, 10_000)];
    await paying.gateway.fault({ fault: 'drop_after', path: '/v1/refunds', times: 2 });
    for (const one of [refund, late]) {
      const { code, stdout } = await tranche.run('refunds', 'approve', one);
      assert.equal(code, 0);
      assert.match(stdout, /The service\s+keeps\s+asking/);
      assert.equal(await statusOf(one), 'pending');
      await paying.clearFaults();
    }
    await paying.pass({ days: 20 });
    assert.deepEqual([await statusOf(refund), await statusOf(late)], ['complete', 'complete']);
    assert.equal((await paying.gateway.books({ checkout: id })).refunds.length, 1);
  });

  test('changes nothing without the gateway of the payments', async () => {
    const { id } = await paid(1);
    const refund = await ask(id, 10_000);
    const { databaseUrl } = paying.service;
    const lost = commandLine({ DATABASE_URL: databaseUrl, DATA_DIR: '/nonexistent' });
    await lost.refused(1, /No sandbox is running/, 'refunds', 'approve', refund);
    assert.equal((await tranche.json('refunds', 'show', refund)).approved_at, null);
    for (const what of [unknownId, 'x']) {
      for (const words of [['show'], ['approve'], ['retry'], ['decline', '--reason', 'no']]) {
        const [verb = '', ...rest] = words;
        await tranche.refused(1, /There is no refund/, 'refunds', verb, what, ...rest);
      }
    }
  });
});

describe('refunds decline', () => {
  test('needs a reason, moves no money, and makes the amount refundable again', async () => {
    const { id, books } = await paid();
    const refund = await ask(id, 150_000);
    const decline = ['refunds', 'decline', refund];
    await tranche.refused(2, /--reason is missing/, ...decline);
    await tranche.refused(2, /--reason is missing/, ...decline, '--reason', ' ');
    await tranche.refused(1, /at most 500/, ...decline, '--reason', 'x'.repeat(501));
    await tranche.refused(1, /another invisible character/, ...decline, '--reason', 'no\x1b[31m');
    await tranche.refused(1, /another invisible character/, ...decline, '--reason', 'no\n');
    assert.equal(await statusOf(refund), 'requested');

    const answer = await sipho.json(...decline, '--reason', 'The goods were kept.');
    assert.deepEqual([answer.status, answer.reason], ['failed', 'The goods were kept.']);
    assert.equal(await statusOf(refund), 'failed');
    await tranche.refused(1, /is failed: only a refund that is/, ...decline, '--reason', 'again');
    await tranche.refused(1, /is failed: only a refund that is/, 'refunds', 'approve', refund);
    const { remainder } = await tranche.json('refunds', 'preview', id, '--amount', '1');
    assert.equal(remainder, 150_000);
    assert.deepEqual((await books()).refunds, []);
    const { stdout } = await tranche.run('refunds', 'show', refund);
    assert.match(stdout, /Declined +by sipho/);
    assert.match(stdout, /Reason +The goods were kept\./);
  });

  test('and approval at once have one winner', async () => {
    const { id } = await paid(1);
    const refund = await ask(id, 10_000);
    const outcomes = await Promise.all([
      tranche.run('refunds', 'approve', refund),
      sipho.run('refunds', 'decline', refund, '--reason', 'no'),
    ]);
    assert.deepEqual(outcomes.map(({ code }) => code).sort(), [0, 1]);
    const { actions } = await tranche.json('refunds', 'show', refund);
    assert.equal(actions.length, 1);
  });
});

describe('refunds retry', () => {
  test('splits the rest again if the remainder allows it', async () => {
    const { id } = await paid(1, { card: refusesRefunds });
    await paying.pass({ days: 2 });
    const refund = await ask(id, 100_000);
    const first = await tranche.json('refunds', 'approve', refund);
    await tranche.refused(1, /only a failed refund can be retried/, 'refunds', 'retry', refund);
    await paying.pass({ days: 10 });
    const failed = await tranche.json('refunds', 'show', refund);
    assert.equal(failed.status, 'failed');
    assert.match(failed.reason, /returned/);
    const again = await sipho.json('refunds', 'retry', refund);
    assert.equal(again.status, 'complete');
    assert.deepEqual(
      again.parts.map(({ round, status }: { round: number; status: string }) => [round, status]),
      [
        [1, 'failed'],
        [2, 'done'],
      ],
    );
    assert.notEqual(again.parts[1].refund_ref, first.parts[0].refund_ref);
    const { stdout } = await tranche.run('refunds', 'show', refund);
    assert.match(stdout, /Retried +by sipho/);
    assertFits(stdout);

    await paying.pass({ days: 10 });
    assert.equal(await statusOf(refund), 'failed');
    await ask(id, 60_000);
    await tranche.refused(1, /only R\s900,00/, 'refunds', 'retry', refund);
  });
});

describe('refunds preview', () => {
  test('says why a refund is not possible, and warns when the merchant could not request it', async () => {
    const auto = await createAccount(paying.service, { refund_mode: 'auto' });
    const preview = (id: string, amount: number) =>
      tranche.json('refunds', 'preview', id, '--amount', String(amount));
    const waiting = await paying.shopper();
    const refused = await preview(waiting.id, 100);
    assert.match(refused.refusal, /is received: only successful ones can be refunded/);
    assert.deepEqual([refused.remainder, refused.parts], [0, []]);

    const { id } = await paid(3, { account: auto });
    const sameDay = await preview(id, 160_000);
    assert.match(sameDay.refusal, /refundable remainder of R\s1\s500,00/);
    const early = await preview(id, 120_000);
    assert.deepEqual(taken(early.parts), [
      [3, 'cancel', 50_000],
      [2, 'cancel', 50_000],
      [1, 'hold', 20_000],
    ]);
    assert.match(early.warnings[0], /can't be refunded on the day of purchase/);
    const { code, stdout } = await tranche.run('refunds', 'preview', id, '--amount', '160000');
    assert.equal(code, 0);
    assert.match(stdout, /It cannot be refunded\. The amount exceeds/);
    assertFits(stdout);
    await paying.pass({ days: 101 });
    const late = await preview(id, 1);
    assert.match(late.warnings[0], /within 100 days/);
    assert.deepEqual(taken(late.parts), [[3, 'card', 1]]);

    await tranche.refused(1, /no checkout/, 'refunds', 'preview', unknownId, '--amount', '1');
    await tranche.refused(2, /--amount is missing/, 'refunds', 'preview', id);
    for (const amount of ['0', '1.5', '-5', 'R5', '1e3']) {
      await tranche.refused(2, /--amount/, 'refunds', 'preview', id, `--amount=${amount}`);
    }
  });
});
