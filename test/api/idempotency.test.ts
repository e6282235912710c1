import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { moveRules } from '#merchants/merchant.sql.ts';
import {
  assertRefused,
  countStatuses,
  frozenClock,
  inParallel,
  invalidToken,
  noSuchCheckout,
} from '../support/expectations.ts';
import {
  type Account,
  type Answer,
  checkoutBody,
  completeTestCheckout,
  createAccount,
  createSuccessfulCheckout,
  rules,
  runs,
  type Service,
  send,
  sign,
  startService,
} from '../support/service.ts';

const clock = frozenClock();
let service: Service;
let second: Service;
let account: Account;
before(async () => {
  service = await startService({ clock });
  second = await startService({ clock, databaseUrl: service.databaseUrl });
  account = await createAccount(service);
});
after(async () => {
  await second.close();
  await service.close();
});

const usedOtherwise =
  'Validation failed: the Idempotency-Key was already used with another request.';
const post = (
  path: '/api/checkouts' | '/api/refunds',
  key: string,
  body: object | string,
  caller: Account = account,
  on: Service = service,
) => send(on, caller, 'POST', path, { body, headers: { 'idempotency-key': key } });

function assertReplayed(answer: Answer, first: Answer): void {
  assert.deepEqual(answer.body, first.body);
  assert.equal(answer.status, first.status);
  assert.equal(answer.headers['idempotent-replayed'], 'true');
  assert.equal(first.headers['idempotent-replayed'], undefined);
}

async function countRows(table: 'checkouts' | 'refund_requests', caller: Account): Promise<number> {
  const { rows } = await service.deps.database.pool.query(
    `select count(*)::int as count from ${table} where merchant_id = $1`,
    [caller.merchant.id],
  );
  return rows[0].count;
}

test('a retry with the same key and body gets the first checkout and creates no other', async () => {
  const caller = await createAccount(service);
  const first = await post('/api/checkouts', 'order', checkoutBody(), caller);
  assert.equal(first.status, 200);
  for (const on of [service, second, service]) {
    assertReplayed(await post('/api/checkouts', 'order', checkoutBody(), caller, on), first);
  }
  assert.equal(await countRows('checkouts', caller), 1);
});

test('a retry with the same key and body gets the first refund, as it was answered then', async () => {
  const caller = await createAccount(service);
  const checkout_id = await createSuccessfulCheckout(service, caller);
  // This is the whole amount, so a second refund would be refused.
  const body = { checkout_id, amount: 150_000 };
  const first = await post('/api/refunds', 'refund', body, caller);
  assert.equal(first.status, 200);
  assertReplayed(await post('/api/refunds', 'refund', body, caller), first);
  await service.deps.database.db
    .updateTable('refund_requests')
    .set({ status: 'complete', approved_at: '2026-11-15T08:00:00Z' })
    .where('id', '=', first.body.data.id)
    .execute();
  assertReplayed(await post('/api/refunds', 'refund', body, caller, second), first);
  assert.equal(await countRows('refund_requests', caller), 1);
});

test('bodies that differ only in white space count as the same', async () => {
  const first = await post('/api/checkouts', 'spaced', checkoutBody());
  const answer = await send(service, account, 'POST', '/api/checkouts', {
    body: JSON.stringify(checkoutBody(), null, 2),
    headers: {
      'idempotency-key': 'spaced',
      'x-signature': sign(account.signing_key, JSON.stringify(checkoutBody())),
    },
  });
  assertReplayed(answer, first);
});

describe('a key that was used', () => {
  test('with another body is a 422, even if the other body is not valid', async () => {
    const caller = await createAccount(service);
    await post('/api/checkouts', 'k', checkoutBody(), caller);
    for (const body of [
      checkoutBody({ amount: 150_001 }),
      checkoutBody({ unknown: 1 }),
      checkoutBody({ amount: 1 }),
      {},
    ]) {
      assertRefused(await post('/api/checkouts', 'k', body, caller), 422, usedOtherwise);
    }
    assert.equal(await countRows('checkouts', caller), 1);
    const again = await post('/api/checkouts', 'k', checkoutBody(), caller);
    assert.equal(again.status, 200);
  });

  test('at the other endpoint is a 422', async () => {
    const caller = await createAccount(service);
    const checkout_id = await createSuccessfulCheckout(service, caller);
    const refund = { checkout_id, amount: 1 };
    await post('/api/checkouts', 'a', checkoutBody(), caller);
    assertRefused(await post('/api/refunds', 'a', refund, caller), 422, usedOtherwise);
    assert.equal(await countRows('refund_requests', caller), 0);
    await post('/api/refunds', 'b', refund, caller);
    assertRefused(await post('/api/checkouts', 'b', checkoutBody(), caller), 422, usedOtherwise);
    // At another endpoint the same bytes are another request.
    const text = JSON.stringify({ ...checkoutBody(), ...refund });
    assert.equal((await post('/api/checkouts', 'c', text, caller)).status, 200);
    assertRefused(await post('/api/refunds', 'c', text, caller), 422, usedOtherwise);
  });

  test('by another integration is free', async () => {
    const other = await createAccount(service);
    const first = await post('/api/checkouts', 'shared', checkoutBody());
    const theirs = await post('/api/checkouts', 'shared', checkoutBody(), other);
    assert.equal(theirs.status, 200);
    assert.notEqual(theirs.body.data.id, first.body.data.id);
    assert.equal(theirs.headers['idempotent-replayed'], undefined);
  });

  test('differs from one in another case or with another ending', async () => {
    const ids = new Set<string>();
    for (const key of ['Key', 'key', 'key ', 'KEY', 'key1']) {
      ids.add((await post('/api/checkouts', `x${key}x`, checkoutBody())).body.data.id);
    }
    assert.equal(ids.size, 5);
  });
});

test('a refusal that depends only on the body is replayed, on every process', async () => {
  const caller = await createAccount(service);
  const { customer, ...rest } = checkoutBody().checkout;
  const first = await post('/api/checkouts', 'k', { checkout: rest }, caller);
  assert.equal(first.status, 422);
  assertReplayed(await post('/api/checkouts', 'k', { checkout: rest }, caller), first);
  assertReplayed(await post('/api/checkouts', 'k', { checkout: rest }, caller, second), first);
  assertRefused(await post('/api/checkouts', 'k', checkoutBody(), caller), 422, usedOtherwise);

  const refused = await post('/api/refunds', 'l', { amount: 0 }, caller);
  assert.equal(refused.status, 422);
  assertReplayed(await post('/api/refunds', 'l', { amount: 0 }, caller), refused);
});

describe('a refusal that time or state can lift leaves the key free', () => {
  test('an amount outside the bands', async () => {
    const caller = await createAccount(service);
    const low = checkoutBody({ amount: 5_000 });
    const refused = await post('/api/checkouts', 'k', low, caller);
    assert.equal(refused.status, 422);
    const wider = [{ from_amount: 1_000, to_amount: 9_999, terms: [1] }, ...rules];
    await moveRules(service.deps.database.db, caller.merchant.id, wider);
    clock.advance({ seconds: 1 });
    const accepted = await post('/api/checkouts', 'k', low, caller);
    assert.equal(accepted.status, 200);
    assertReplayed(await post('/api/checkouts', 'k', low, caller), accepted);
  });

  test('a bad field beside an amount outside the bands', async () => {
    const caller = await createAccount(service);
    const body = checkoutBody({ amount: 5_000, success_url: 'nowhere' });
    assert.equal((await post('/api/checkouts', 'k', body, caller)).status, 422);
    assert.equal((await post('/api/checkouts', 'k', checkoutBody(), caller)).status, 200);
  });

  test('a refund on the day of purchase', async () => {
    const caller = await createAccount(service, { refund_mode: 'auto' });
    // The order is bought in the afternoon, so that 10:00 on the next day is within the key's 24
    // hours.
    const now = clock.now().toZonedDateTimeISO('Africa/Johannesburg');
    const afternoon = now.add({ days: 1 }).withPlainTime('14:00');
    clock.advance({ milliseconds: afternoon.epochMilliseconds - now.epochMilliseconds });
    const checkout_id = await createSuccessfulCheckout(service, caller);
    const body = { checkout_id, amount: 1 };
    const first = await post('/api/refunds', 'k', body, caller);
    assertRefused(first, 422, "Order can't be refunded on the day of purchase.");
    clock.advance({ hours: 20, minutes: 1 });
    const later = await post('/api/refunds', 'k', body, caller);
    assert.equal(later.status, 200);
    assertReplayed(await post('/api/refunds', 'k', body, caller), later);
    assert.equal(await countRows('refund_requests', caller), 1);
  });

  test('a refund of a checkout that is not paid yet', async () => {
    const caller = await createAccount(service);
    const { body } = await post('/api/checkouts', 'c', checkoutBody(), caller);
    const refund = { checkout_id: body.data.id, amount: 1 };
    assert.equal((await post('/api/refunds', 'k', refund, caller)).status, 422);
    await completeTestCheckout(service, caller.merchant, body.data.id);
    assert.equal((await post('/api/refunds', 'k', refund, caller)).status, 200);
  });
});

describe('the key stays free after', () => {
  test('a 400', async () => {
    const caller = await createAccount(service);
    const body = JSON.stringify(checkoutBody());
    const malformed = await post('/api/checkouts', 'k', body.slice(1), caller);
    assert.equal(malformed.status, 400);
    const headers = { 'idempotency-key': 'k', 'x-signature': 'wrong' };
    const wrong = await send(service, caller, 'POST', '/api/checkouts', { body, headers });
    assert.equal(wrong.status, 400);
    const answer = await post('/api/checkouts', 'k', body, caller);
    assert.equal(answer.status, 200);
    assert.equal(answer.headers['idempotent-replayed'], undefined);
    // Without a signature the answer is a 400, which does not reveal the first answer.
    const unsigned = await send(service, caller, 'POST', '/api/checkouts', {
      body,
      signed: false,
      headers: { 'idempotency-key': 'k' },
    });
    assert.equal(unsigned.status, 400);
  });

  test('a 401', async () => {
    const caller = await createAccount(service);
    const stranger = { ...caller, client_secret: `${caller.client_secret.slice(0, -4)}AAAA` };
    assertRefused(await post('/api/checkouts', 'k', checkoutBody(), stranger), 401, invalidToken);
    const answer = await post('/api/checkouts', 'k', checkoutBody(), caller);
    assert.equal(answer.headers['idempotent-replayed'], undefined);
    assert.equal(answer.status, 200);
  });

  test('a 404', async () => {
    const caller = await createAccount(service);
    const unknown = { checkout_id: randomUUID(), amount: 1 };
    assertRefused(await post('/api/refunds', 'k', unknown, caller), 404, noSuchCheckout);
    const checkout_id = await createSuccessfulCheckout(service, caller);
    const answer = await post('/api/refunds', 'k', { checkout_id, amount: 1 }, caller);
    assert.equal(answer.status, 200);
  });
});

test('an answer is kept for 24 hours, then the key is free again', async () => {
  const caller = await createAccount(service);
  const first = await post('/api/checkouts', 'day', checkoutBody(), caller);
  clock.advance({ hours: 23, minutes: 59, seconds: 59, milliseconds: 999 });
  assertReplayed(await post('/api/checkouts', 'day', checkoutBody(), caller), first);
  clock.advance({ milliseconds: 1 });
  const other = await post('/api/checkouts', 'day', checkoutBody({ amount: 200_000 }), caller);
  assert.equal(other.status, 200);
  assert.equal(other.headers['idempotent-replayed'], undefined);
  assert.notEqual(other.body.data.id, first.body.data.id);
  assertRefused(await post('/api/checkouts', 'day', checkoutBody(), caller), 422, usedOtherwise);
});

describe('the header', () => {
  for (const [name, key, status] of [
    ['one character', 'x', 200],
    ['255 characters', 'x'.repeat(255), 200],
    ['any printable character', 'a b\tc!"#$%&\'()*,/:;<=>?@[]{}~é', 200],
    ['nothing', '', 400],
    ['256 characters', 'x'.repeat(256), 400],
    ['thousands', 'x'.repeat(5_000), 400],
  ] as const) {
    test(`${name}: ${status}`, async () => {
      const caller = await createAccount(service);
      const checkout_id = await createSuccessfulCheckout(service, caller);
      const refund = { checkout_id, amount: 1 };
      const first = await post('/api/checkouts', key, checkoutBody(), caller);
      if (status === 200) {
        assert.equal(first.status, 200);
        assertReplayed(await post('/api/checkouts', key, checkoutBody(), caller), first);
        assertRefused(await post('/api/refunds', key, refund, caller), 422, usedOtherwise);
      } else {
        const detail = 'The Idempotency-Key header must be one value of 1 to 255 characters.';
        assertRefused(first, 400, detail);
        assertRefused(await post('/api/refunds', key, refund, caller), 400, detail);
      }
    });
  }

  test('is optional: without it the same body creates two checkouts', async () => {
    const caller = await createAccount(service);
    for (let count = 0; count < 2; count++) {
      const answer = await send(service, caller, 'POST', '/api/checkouts', {
        body: checkoutBody(),
      });
      assert.equal(answer.headers['idempotent-replayed'], undefined);
    }
    assert.equal(await countRows('checkouts', caller), 2);
  });

  test('has no meaning on a GET', async () => {
    const headers = { 'idempotency-key': '' };
    const answer = await send(service, account, 'GET', '/api/checkouts', { headers });
    assert.equal(answer.status, 200);
  });
});

describe('twenty at once with one key', () => {
  const rounds = runs(40);

  for (const where of ['one process', 'two processes'] as const) {
    const on = (index: number) => (where === 'two processes' && index % 2 ? second : service);

    function assertOneFirst(answers: Answer[], status: number): void {
      const fresh = answers.filter(({ headers }) => headers['idempotent-replayed'] === undefined);
      assert.equal(fresh.length, 1);
      assert.deepEqual(countStatuses(answers), { [status]: 20 });
      for (const answer of answers) assert.deepEqual(answer.body, fresh[0]?.body);
    }

    test(`make one checkout and get the same answer: ${where}`, async () => {
      for (let round = 0; round < rounds; round++) {
        const caller = await createAccount(service);
        const answers = await inParallel(20, (index) =>
          post('/api/checkouts', 'k', checkoutBody(), caller, on(index)),
        );
        assertOneFirst(answers, 200);
        assert.equal(await countRows('checkouts', caller), 1);
      }
    });

    test(`make one refund and get the same answer: ${where}`, async () => {
      for (let round = 0; round < rounds; round++) {
        const caller = await createAccount(service);
        const checkout_id = await createSuccessfulCheckout(service, caller);
        const answers = await inParallel(20, (index) =>
          post('/api/refunds', 'k', { checkout_id, amount: 100_000 }, caller, on(index)),
        );
        assertOneFirst(answers, 200);
        assert.equal(await countRows('refund_requests', caller), 1);
      }
    });

    test(`get the same refusal: ${where}`, async () => {
      for (let round = 0; round < rounds; round++) {
        const caller = await createAccount(service);
        const answers = await inParallel(20, (index) =>
          post('/api/checkouts', 'k', checkoutBody({ success_url: '' }), caller, on(index)),
        );
        assertOneFirst(answers, 422);
      }
    });

    test(`with two bodies: one body wins, and the other is refused: ${where}`, async () => {
      for (let round = 0; round < rounds; round++) {
        const caller = await createAccount(service);
        const answers = await inParallel(20, (index) =>
          post(
            '/api/checkouts',
            'k',
            checkoutBody({ amount: index % 4 < 2 ? 100_000 : 200_000 }),
            caller,
            on(index),
          ),
        );
        assert.deepEqual(countStatuses(answers), { 200: 10, 422: 10 });
        for (const answer of answers) {
          if (answer.status === 422) assertRefused(answer, 422, usedOtherwise);
        }
        assert.equal(await countRows('checkouts', caller), 1);
      }
    });
  }
});
