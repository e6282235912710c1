import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { moveRules } from '../../src/merchants/merchant.sql.ts';
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
  // The whole amount, so that a second refund would be refused.
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

test('white space does not make a body another one', async () => {
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
  test('with another body is a 422, also when the other body is not valid', async () => {
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
    // The same bytes are another request there.
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

describe('a 422 is replayed', () => {
  test('of validation, also when the request would succeed by now', async () => {
    const caller = await createAccount(service);
    const body = checkoutBody({ amount: 5_000, currency: 'USD' });
    const first = await post('/api/checkouts', 'k', body, caller);
    assert.equal(first.status, 422);
    assertReplayed(await post('/api/checkouts', 'k', body, caller), first);
    assertReplayed(await post('/api/checkouts', 'k', body, caller, second), first);

    const low = checkoutBody({ amount: 5_000 });
    const refused = await post('/api/checkouts', 'l', low, caller);
    const wider = [{ from_amount: 1_000, to_amount: 9_999, terms: [1] }, ...rules];
    await moveRules(service.deps.database.db, caller.merchant.id, wider);
    clock.advance({ seconds: 1 });
    assertReplayed(await post('/api/checkouts', 'l', low, caller), refused);
    assert.equal(await countRows('checkouts', caller), 0);
    assert.equal((await post('/api/checkouts', 'm', low, caller)).status, 200);
  });

  test('of a refund, also when the request would succeed by now', async () => {
    const caller = await createAccount(service, { refund_mode: 'auto' });
    const checkout_id = await createSuccessfulCheckout(service, caller);
    const body = { checkout_id, amount: 1 };
    const first = await post('/api/refunds', 'k', body, caller);
    assertRefused(first, 422, "Order can't be refunded on the day of purchase.");
    clock.advance({ hours: 23, minutes: 30 });
    assertReplayed(await post('/api/refunds', 'k', body, caller), first);
    clock.advance({ hours: 5 });
    const later = await post('/api/refunds', 'k', body, caller);
    assert.equal(later.status, 200, 'the key is older than 24 hours');
    assert.equal(await countRows('refund_requests', caller), 1);
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
    // Now unsigned: a 400, which does not reveal the first answer.
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
          post('/api/checkouts', 'k', checkoutBody({ amount: 1 }), caller, on(index)),
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
