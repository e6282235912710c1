import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { findViolations } from '#checks/invariants/invariants.ts';
import { createIntegration } from '#merchants/integrations/create-integration.ts';
import { timestamp } from '#platform/shared/clock.ts';
import {
  assertRefused,
  assertRefusedLike,
  countStatuses,
  inParallel,
  noSuchCheckout,
} from '../support/expectations.ts';
import {
  type Account,
  type Answer,
  completeTestCheckout,
  createAccount,
  createCheckout,
  createSuccessfulCheckout,
  liftLimits,
  movableClock,
  runs,
  type Service,
  send,
  startService,
} from '../support/service.ts';

const clock = movableClock('2026-11-15T08:00:00Z');
let service: Service;
let account: Account;
before(async () => {
  service = await startService({ clock });
  account = await createAccount(service);
});
after(() => service.close());

const post = (
  body: object | string,
  caller: Pick<Account, 'client_secret' | 'signing_key'> = account,
) => send(service, caller, 'POST', '/api/refunds', { body });
const refund = (checkout_id: string, amount: number, caller?: Account) =>
  post({ checkout_id, amount }, caller);

const exceeds = (remainder: number) =>
  `Refund amount exceeds the refundable remainder of ${remainder} cents.`;
const tooLate = 'Orders can only be refunded within 100 days of the purchase date.';
const sameDay = "Order can't be refunded on the day of purchase.";
const notSuccessful = 'Only successful checkouts can be refunded.';

async function sumOf(checkout_id: string): Promise<number> {
  const { rows } = await service.deps.database.pool.query(
    `select coalesce(sum(amount), 0)::int as sum from refund_requests
     where checkout_id = $1 and status <> 'failed'`,
    [checkout_id],
  );
  return rows[0].sum;
}

test('a refund of a successful checkout is requested', async () => {
  const checkout_id = await createSuccessfulCheckout(service, account);
  const answer = await refund(checkout_id, 1);
  assert.equal(answer.status, 200);
  const { id } = answer.body.data;
  assert.deepEqual(answer.body, {
    data: {
      id,
      type: 'refund_requests',
      attributes: {
        amount: 1,
        currency: 'ZAR',
        status: 'requested',
        created_at: clock.now().toString({ fractionalSecondDigits: 3 }),
        checkout_id,
      },
    },
  });
  assert.equal(await sumOf(checkout_id), 1);
});

test('an amount may be refunded in parts until nothing is left', async () => {
  const checkout_id = await createSuccessfulCheckout(service, account, { amount: 100_000 });
  assertRefused(await refund(checkout_id, 100_001), 422, exceeds(100_000));
  assert.equal((await refund(checkout_id, 60_000)).status, 200);
  assertRefused(await refund(checkout_id, 40_001), 422, exceeds(40_000));
  assert.equal((await refund(checkout_id, 40_000)).status, 200);
  assertRefused(await refund(checkout_id, 1), 422, exceeds(0));
});

test('the whole amount may be refunded at once', async () => {
  const checkout_id = await createSuccessfulCheckout(service, account, { amount: 2_000_000 });
  assert.equal((await refund(checkout_id, 2_000_000)).status, 200);
});

test('a failed refund frees its amount; a pending or complete one does not', async () => {
  const checkout_id = await createSuccessfulCheckout(service, account, { amount: 100_000 });
  const { body } = await refund(checkout_id, 70_000);
  const at = '2026-11-15T08:00:00Z';
  for (const [status, due_at, remainder] of [
    ['pending', at, 30_000],
    ['complete', null, 30_000],
    ['failed', null, 100_000],
  ] as const) {
    await service.deps.database.db
      .updateTable('refund_requests')
      .set({ status, approved_at: at, due_at })
      .where('id', '=', body.data.id)
      .execute();
    assertRefused(await refund(checkout_id, 100_001), 422, exceeds(remainder));
  }
});

test('a checkout that is not successful cannot be refunded', async () => {
  const id = await createCheckout(service, account);
  assertRefused(await refund(id, 1), 422, notSuccessful);
  for (const change of [
    "status = 'invalid_payload'",
    "status = 'cancelled', number_of_payments = 1, completed_at = created_at",
  ]) {
    await service.deps.database.pool.query(`update checkouts set ${change} where id = $1`, [id]);
    assertRefused(await refund(id, 1), 422, notSuccessful);
  }
  assert.equal(await sumOf(id), 0);
});

describe('the window', () => {
  // Johannesburg is UTC+2: local midnight is 22:00 UTC on the day before.
  for (const [mode, bought, asked, detail] of [
    ['manual', '2027-01-01T08:00:00Z', '2027-01-01T08:00:00Z', null],
    ['manual', '2027-01-01T08:00:00Z', '2027-04-11T21:59:59.999Z', null],
    ['manual', '2027-01-01T08:00:00Z', '2027-04-11T22:00:00Z', tooLate],
    ['manual', '2027-01-01T21:59:59.999Z', '2027-04-11T22:00:00Z', tooLate],
    ['manual', '2027-01-01T22:00:00Z', '2027-04-11T22:00:00Z', null],
    ['auto', '2027-01-01T08:00:00Z', '2027-01-01T08:00:00Z', sameDay],
    ['auto', '2027-01-01T08:00:00Z', '2027-01-01T21:59:59Z', sameDay],
    ['auto', '2027-01-01T08:00:00Z', '2027-01-02T07:59:59.999Z', sameDay],
    ['auto', '2027-01-01T08:00:00Z', '2027-01-02T08:00:00Z', null],
    ['auto', '2027-01-01T22:00:00Z', '2027-01-02T21:00:00Z', sameDay],
    ['auto', '2027-01-01T08:00:00Z', '2027-04-11T21:59:59.999Z', null],
    ['auto', '2027-01-01T08:00:00Z', '2027-04-11T22:00:00Z', tooLate],
  ] as const) {
    test(`${mode}: bought ${bought}, asked ${asked}: ${detail ?? 'accepted'}`, async () => {
      const caller = await createAccount(service, { refund_mode: mode });
      clock.set(bought);
      const id = await createSuccessfulCheckout(service, caller);
      clock.set(asked);
      const answer = await refund(id, 1, caller);
      if (detail) assertRefused(answer, 422, detail);
      else assert.equal(answer.status, 200, JSON.stringify(answer.body));
    });
  }

  test('the purchase date is the day of the payment, not of the creation', async () => {
    const caller = await createAccount(service);
    clock.set('2027-01-01T21:50:00Z');
    const id = await createCheckout(service, caller);
    clock.set('2027-01-01T22:05:00Z');
    await completeTestCheckout(service, caller.merchant, id);
    clock.set('2027-04-12T21:59:59Z');
    assert.equal((await refund(id, 1, caller)).status, 200);
    clock.set('2027-04-12T22:00:00Z');
    assertRefused(await refund(id, 1, caller), 422, tooLate);
  });

  test('the refund mode is that of the integration that created the checkout', async () => {
    clock.set('2027-05-01T08:00:00Z');
    const manual = await createAccount(service, { refund_mode: 'manual' });
    const second = await createIntegration(service.deps, 'test', {
      merchant_id: manual.merchant.id,
      refund_mode: 'auto',
    });
    await liftLimits(service.deps, second.id);
    const auto: Account = { ...second, merchant: manual.merchant };
    assertRefused(
      await refund(await createSuccessfulCheckout(service, auto), 1, manual),
      422,
      sameDay,
    );
    const byManual = await createSuccessfulCheckout(service, manual);
    assert.equal((await refund(byManual, 1, auto)).status, 200);
  });
});

describe('fields', () => {
  const checkout_id = randomUUID();
  const noInteger = 'amount must be an integer';
  const tooSmall = 'amount must be at least 1';
  for (const [raw, problem] of [
    ['"100"', noInteger],
    ['true', noInteger],
    ['[5]', noInteger],
    ['1.5', noInteger],
    ['null', noInteger],
    ['1e400', noInteger],
    ['0', tooSmall],
    ['-0', tooSmall],
    ['-1', tooSmall],
  ] as const) {
    test(`amount ${raw} is refused`, async () => {
      const answer = await post(`{"checkout_id":"${checkout_id}","amount":${raw}}`);
      assertRefused(answer, 422, `Validation failed: ${problem}.`);
    });
  }

  for (const raw of ['1e300', '9007199254740993']) {
    test(`amount ${raw} is more than any remainder`, async () => {
      const id = await createSuccessfulCheckout(service, account);
      const answer = await post(`{"checkout_id":"${id}","amount":${raw}}`);
      assertRefused(answer, 422, 'Refund amount exceeds the refundable remainder of 150000 cents.');
    });
  }

  test('1.0 and 1e2 are integers', async () => {
    const id = await createSuccessfulCheckout(service, account);
    for (const raw of ['1.0', '1e2']) {
      assert.equal((await post(`{"checkout_id":"${id}","amount":${raw}}`)).status, 200);
    }
    assert.equal(await sumOf(id), 101);
  });

  for (const value of [5, null, true, {}, [checkout_id]]) {
    test(`a checkout_id of ${JSON.stringify(value)?.slice(0, 20)} is a 422`, async () => {
      const answer = await post({ checkout_id: value, amount: 1 });
      assertRefused(answer, 422, 'Validation failed: checkout_id must be a string.');
    });
  }

  for (const value of [
    '',
    'x',
    checkout_id,
    checkout_id.slice(1),
    ` ${checkout_id}`,
    'é'.repeat(300),
  ]) {
    test(`a checkout_id "${value.slice(0, 40)}" that names no checkout is a 404`, async () => {
      assertRefused(await post({ checkout_id: value, amount: 1 }), 404, noSuchCheckout);
    });
  }

  test('a checkout_id that PostgreSQL cannot store is never a 500', async () => {
    for (const raw of ['"\\u0000"', '"\\ud800"']) {
      assertRefusedLike(await post(`{"checkout_id":${raw},"amount":1}`), 422, /cannot be stored/);
    }
  });

  test('every bad field gets one error object', async () => {
    assertRefused(
      await post({}),
      422,
      'Validation failed: checkout_id is required.',
      'Validation failed: amount is required.',
    );
    assertRefused(
      await post({ checkout_id: 5, amount: '5' }),
      422,
      'Validation failed: checkout_id must be a string.',
      'Validation failed: amount must be an integer.',
    );
  });

  test('unknown members are ignored, and an ID may be spelled in upper case', async () => {
    const id = await createSuccessfulCheckout(service, account);
    const answer = await post({
      status: 'complete',
      checkout_id: id.toUpperCase(),
      amount: 5,
      currency: 'USD',
    });
    assert.equal(answer.status, 200);
    const { attributes } = answer.body.data;
    assert.deepEqual(
      [attributes.checkout_id, attributes.currency, attributes.status],
      [id, 'ZAR', 'requested'],
    );
  });

  test('malformed bodies are a 400 here too', async () => {
    for (const [text, detail] of [
      ['', /is empty/],
      ['[]', /must be a JSON object/],
      ['{"amount":1,"amount":1}', /"amount" twice/],
      ['{"__proto__":{}}', /"__proto__"/],
    ] as const) {
      assertRefusedLike(await post(text), 400, detail);
    }
  });
});

test("a merchant cannot refund another merchant's checkout, nor tell it from a missing one", async () => {
  const other = await createAccount(service);
  const id = await createSuccessfulCheckout(service, account);
  const [theirs, missing] = [await refund(id, 1, other), await refund(randomUUID(), 1, other)];
  assertRefused(theirs, 404, noSuchCheckout);
  assert.deepEqual(theirs.body, missing.body);
  assert.equal(await sumOf(id), 0);
});

test('two hundred concurrent requests never refund more than the checkout', async () => {
  const second = await startService({ clock, databaseUrl: service.databaseUrl });
  try {
    for (let round = 0; round < runs(10); round++) {
      const caller = await createAccount(service);
      const checkout_id = await createSuccessfulCheckout(service, caller, { amount: 100_000 });
      const answers = await inParallel(200, (index) =>
        send(index % 2 ? second : service, caller, 'POST', '/api/refunds', {
          body: { checkout_id, amount: 999 + (index % 3) },
        }),
      );
      const accepted = answers.filter(({ status }) => status === 200);
      const sum = accepted.reduce((total, { body }) => total + body.data.attributes.amount, 0);
      assert.equal(await sumOf(checkout_id), sum);
      assert.ok(sum <= 100_000 && sum > 100_000 - 999, `${sum}`);
      for (const { status, body } of answers as Answer[]) {
        if (status !== 200) assert.match(body.errors[0].detail, /^Refund amount exceeds the refu/);
      }
      assert.deepEqual(countStatuses(answers), {
        200: accepted.length,
        422: 200 - accepted.length,
      });
    }
    const now = timestamp(clock.now());
    assert.deepEqual(await findViolations(service.deps.database, now, ['M1', 'M2', 'L1']), []);
  } finally {
    await second.close();
  }
});
