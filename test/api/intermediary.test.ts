import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import type { IssuedCredentials } from '#merchants/integrations/create-integration.ts';
import {
  deleteManagedMerchants,
  insertManagedMerchants,
} from '#merchants/integrations/integration.sql.ts';
import { timestamp } from '#platform/shared/clock.ts';
import {
  assertRefused,
  createIntermediary,
  errorBody,
  frozenClock,
  noCheckout,
  noRefund,
  noSuchCheckout,
  notManaged,
} from '../support/expectations.ts';
import {
  type Account,
  type Answer,
  checkoutBody,
  completeTestCheckout,
  createAccount,
  createSuccessfulCheckout,
  rules,
  type Service,
  send,
  startService,
} from '../support/service.ts';

type Shop = Account & { checkout: string; refund: string };

const clock = frozenClock();
let service: Service;
let first: Shop;
let second: Shop;
let foreign: Shop;
/** The intermediary manages the first two merchants. */
let platform: IssuedCredentials;
before(async () => {
  service = await startService({ clock });
  [first, second, foreign] = [await createShop(), await createShop(), await createShop()];
  platform = await createIntermediary(service, [first.merchant.id, second.merchant.id]);
});
after(() => service.close());

async function createShop(): Promise<Shop> {
  const account = await createAccount(service);
  const checkout = await createSuccessfulCheckout(service, account);
  const { body } = await send(service, account, 'POST', '/api/refunds', {
    body: { checkout_id: checkout, amount: 1 },
  });
  return { ...account, checkout, refund: body.data.id };
}

const get = (path: string, caller: IssuedCredentials = platform) =>
  send(service, caller, 'GET', path);
const post = (path: string, body: object, caller: IssuedCredentials = platform) =>
  send(service, caller, 'POST', path, { body });
const create = (changes: object, caller: IssuedCredentials = platform) =>
  post('/api/checkouts', checkoutBody(changes), caller);

describe('configuration', () => {
  test('of a managed merchant equals what that merchant reads', async () => {
    const answer = await get(`/api/merchants/${first.merchant.id}/config`);
    assert.equal(answer.status, 200);
    assert.deepEqual(answer.body, {
      data: { id: first.merchant.id, type: 'merchants', attributes: { name: 'Bean There', rules } },
    });
    assert.deepEqual(answer.body, (await get('/api/config', first)).body);
  });

  test('of its own does not exist: the refusal names the path per merchant', async () => {
    assertRefused(
      await get('/api/config'),
      404,
      'An intermediary reads the configuration of one merchant at /api/merchants/{merchant_id}/config.',
    );
  });

  test('of an unmanaged or unknown merchant is a 404', async () => {
    for (const id of [foreign.merchant.id, randomUUID(), platform.id, 'x', '%00', "'--", '%20']) {
      assertRefused(await get(`/api/merchants/${id}/config`), 404, notManaged);
    }
  });
});

describe('a checkout', () => {
  test('is for the merchant that the signed body names', async () => {
    for (const shop of [first, second]) {
      const { status, body } = await create({ merchant_id: shop.merchant.id });
      assert.equal(status, 200);
      assert.deepEqual(Object.keys(body.data), ['id', 'payment_url']);
      const own = await get(`/api/checkouts/${body.data.id}`, shop);
      assert.equal(own.status, 200);
      assert.deepEqual((await get(`/api/checkouts/${body.data.id}`)).body, own.body);
    }
  });

  test('must name a merchant', async () => {
    assertRefused(await create({}), 422, 'Validation failed: checkout.merchant_id is required.');
    for (const merchant_id of [5, null, [first.merchant.id], {}, true]) {
      assertRefused(
        await create({ merchant_id }),
        422,
        'Validation failed: checkout.merchant_id must be a string.',
      );
    }
    // Only the member inside `checkout` counts.
    const outside = { ...checkoutBody(), merchant_id: first.merchant.id };
    assertRefused(
      await post('/api/checkouts', outside),
      422,
      'Validation failed: checkout.merchant_id is required.',
    );
  });

  test('of an unmanaged or unknown merchant is a 404', async () => {
    for (const merchant_id of [foreign.merchant.id, randomUUID(), '', 'x', '\0', '\ud800']) {
      assertRefused(await create({ merchant_id }), 404, notManaged);
    }
    // The refusal reveals nothing about that merchant's bands.
    assertRefused(await create({ merchant_id: foreign.merchant.id, amount: 1 }), 404, notManaged);
  });

  test('follows the rules of that merchant, and every bad field is reported', async () => {
    assertRefused(
      await create({ merchant_id: first.merchant.id, amount: 1, customer: {} }),
      422,
      'Validation failed: checkout.customer.email is required.',
      'Validation failed: Amount has to be between 10000 and 2000000 cents.',
    );
    assertRefused(
      await create({ customer: {} }),
      422,
      'Validation failed: checkout.merchant_id is required.',
      'Validation failed: checkout.customer.email is required.',
    );
    for (const checkout of [null, 'x', 5]) {
      assertRefused(
        await post('/api/checkouts', { checkout }),
        422,
        'Validation failed: checkout must be an object.',
      );
    }
  });

  test('follows the refund mode of the intermediary that created it', async () => {
    const auto = await createIntermediary(service, [first.merchant.id], { refund_mode: 'auto' });
    const { body } = await create({ merchant_id: first.merchant.id }, auto);
    await completeTestCheckout(service, first.merchant, body.data.id);
    for (const caller of [auto, first, platform]) {
      assertRefused(
        await post('/api/refunds', { checkout_id: body.data.id, amount: 1 }, caller),
        422,
        "Order can't be refunded on the day of purchase.",
      );
    }
  });
});

describe('lists', () => {
  for (const name of ['checkouts', 'refunds'] as const) {
    test(`${name} of the merchant in the filter, which the links keep`, async () => {
      for (const shop of [first, second]) {
        const query = `filter[merchant_id]=${shop.merchant.id}&page[items]=2`;
        const answer = await get(`/api/${name}?${query}`);
        assert.equal(answer.status, 200);
        const own = await get(`/api/${name}?page[items]=2`, shop);
        assert.deepEqual(answer.body.data, own.body.data);
        for (const [rel, link] of Object.entries(own.body.links)) {
          const expected = (link as string | null)?.replace(
            '?',
            `?filter%5Bmerchant_id%5D=${shop.merchant.id}&`,
          );
          assert.equal(answer.body.links[rel], expected ?? null);
        }
      }
    });

    test(`${name} without the filter are a 422`, async () => {
      for (const query of ['', '?filter[merchant_id]=', '?merchant_id=x', '?page[number]=1']) {
        assertRefused(
          await get(`/api/${name}${query}`),
          422,
          'Validation failed: filter[merchant_id] is required.',
        );
      }
    });

    test(`${name} of an unmanaged or unknown merchant are a 404`, async () => {
      for (const id of [foreign.merchant.id, randomUUID(), 'x', '%00', '%20']) {
        assertRefused(await get(`/api/${name}?filter[merchant_id]=${id}`), 404, notManaged);
      }
    });

    test(`${name} with a malformed page are a 400`, async () => {
      const query = `filter[merchant_id]=${first.merchant.id}&page[number]=0`;
      assert.equal((await get(`/api/${name}?${query}`)).status, 400);
    });
  }
});

describe('another merchant’s resources cannot be read or refunded, nor told from missing ones', () => {
  const callers = {
    first: () => first,
    second: () => second,
    foreign: () => foreign,
    platform: () => platform,
  };
  const shops = { first: () => first, second: () => second, foreign: () => foreign };
  const isTheirs = (caller: string, shop: string) =>
    caller === shop || (caller === 'platform' && shop !== 'foreign');

  for (const caller of Object.keys(callers) as (keyof typeof callers)[]) {
    for (const shop of Object.keys(shops) as (keyof typeof shops)[]) {
      const may = isTheirs(caller, shop);
      test(`${caller} and the resources of ${shop}: ${may ? 'allowed' : 'refused'}`, async () => {
        const who = callers[caller]();
        const whose = shops[shop]();
        const refund = (checkout_id: string) =>
          post('/api/refunds', { checkout_id, amount: 1 }, who);
        const pairs: [Answer, Answer, string][] = [
          [
            await get(`/api/checkouts/${whose.checkout}`, who),
            await get(`/api/checkouts/${randomUUID()}`, who),
            noCheckout,
          ],
          [
            await get(`/api/refunds/${whose.refund}`, who),
            await get(`/api/refunds/${randomUUID()}`, who),
            noRefund,
          ],
          [await refund(whose.checkout), await refund(randomUUID()), noSuchCheckout],
        ];
        for (const [theirs, missing, detail] of pairs) {
          assertRefused(missing, 404, detail);
          if (may) assert.equal(theirs.status, 200, JSON.stringify(theirs.body));
          else assert.deepEqual(theirs.body, errorBody(404, detail));
        }
        // A plain merchant cannot name another merchant in its lists.
        const query = `filter[merchant_id]=${whose.merchant.id}&page[items]=100`;
        for (const [path, id] of [
          [`/api/checkouts?${query}`, whose.checkout],
          [`/api/refunds?${query}`, whose.refund],
        ] as const) {
          const { body } = await get(path, who);
          const seen = (body.data ?? []).some((row: { id: string }) => row.id === id);
          assert.equal(seen, may);
        }
      });
    }
  }
});

test('adding or removing a managed merchant takes effect within a second', async () => {
  const { db } = service.deps.database;
  const caller = await createIntermediary(service, [first.merchant.id]);
  const statuses = async () => [
    (await get(`/api/merchants/${second.merchant.id}/config`, caller)).status,
    (await get(`/api/checkouts/${second.checkout}`, caller)).status,
    (await get(`/api/refunds/${second.refund}`, caller)).status,
    (await get(`/api/checkouts?filter[merchant_id]=${second.merchant.id}`, caller)).status,
    (await create({ merchant_id: second.merchant.id }, caller)).status,
    (await post('/api/refunds', { checkout_id: second.checkout, amount: 1 }, caller)).status,
  ];
  assert.deepEqual(await statuses(), [404, 404, 404, 404, 404, 404]);
  await insertManagedMerchants(db, caller.id, [second.merchant.id], timestamp(clock.now()));
  clock.advance({ seconds: 1 });
  assert.deepEqual(await statuses(), [200, 200, 200, 200, 200, 200]);
  await deleteManagedMerchants(db, caller.id, [second.merchant.id]);
  clock.advance({ seconds: 1 });
  assert.deepEqual(await statuses(), [404, 404, 404, 404, 404, 404]);
});

test('a checkout of a former intermediary still belongs to its merchant', async () => {
  const caller = await createIntermediary(service, [first.merchant.id]);
  const { body } = await create({ merchant_id: first.merchant.id }, caller);
  await deleteManagedMerchants(service.deps.database.db, caller.id, [first.merchant.id]);
  clock.advance({ seconds: 1 });
  assert.equal((await get(`/api/checkouts/${body.data.id}`, caller)).status, 404);
  assert.equal((await get(`/api/checkouts/${body.data.id}`, first)).status, 200);
});

test('signing becomes sticky for the intermediary and not for its merchants', async () => {
  const shop = await createAccount(service);
  const caller = await createIntermediary(service, [shop.merchant.id]);
  assert.equal((await create({ merchant_id: shop.merchant.id }, caller)).status, 200);
  const unsigned = (who: IssuedCredentials, changes: object) =>
    send(service, who, 'POST', '/api/checkouts', { body: checkoutBody(changes), signed: false });
  assert.equal((await unsigned(caller, { merchant_id: shop.merchant.id })).status, 400);
  assert.equal((await unsigned(shop, {})).status, 200);
});
