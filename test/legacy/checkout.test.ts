import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { findViolations } from '#checks/invariants/invariants.ts';
import { requireSigning } from '#merchants/integrations/require-signing.ts';
import { timestamp } from '#platform/shared/clock.ts';
import {
  assertRefused,
  frozenClock,
  inParallel,
  invalidToken,
  mustSign,
  uuidPattern,
} from '../support/expectations.ts';
import {
  createLegacyCheckout,
  createPlugin,
  credentialsOf,
  legacyBody,
  logIn,
  type Plugin,
  sendLegacy,
  toForm,
} from '../support/legacy.ts';
import {
  type Account,
  type Answer,
  checkoutBody,
  completeTestCheckout,
  type Service,
  send,
  startService,
} from '../support/service.ts';

const clock = frozenClock();
let service: Service;
let account: Account;
let plugin: Plugin;
let token: string;
before(async () => {
  service = await startService({ clock });
  ({ account, plugin } = await createPlugin(service));
  token = await logIn(service, plugin);
});
after(() => service.close());

const post = (body: object | string | Buffer, headers: Record<string, string> = {}) =>
  sendLegacy(service, '/payment/checkout', body, { token, headers });

// biome-ignore lint/suspicious/noExplicitAny: assertions read the row.
async function rowOf(id: string): Promise<any> {
  const { rows } = await service.deps.database.pool.query('select * from checkouts where id = $1', [
    id,
  ]);
  return rows[0];
}

const form = { 'content-type': 'application/x-www-form-urlencoded' };

describe('a v1 checkout', () => {
  const expected = {
    amount: 150_000,
    currency: 'ZAR',
    client_reference_id: 'order-1001',
    notify_url: 'https://shop.example/v1/callback',
    success_url: 'https://shop.example/order/1001',
    cancel_url: 'https://shop.example/order/1001',
    customer: {
      email: 'thandi@example.com',
      first_name: 'Thandi',
      last_name: 'Dlamini',
      phone_number: '+27821234567',
      billing_address: '1 Long Street, Cape Town',
    },
    line_items: [
      { name: 'Boots', amount: 140_000, quantity: 1 },
      { name: 'Socks', amount: 5_000, quantity: 2 },
    ],
    terms: [1, 3, 6, 12],
    status: 'received',
    signed: false,
  };
  const items = [
    { description: 'Boots', price: 140_000, qty: 1 },
    { description: 'Socks', price: 5_000, qty: 2 },
  ];
  const decimal = { purchaseAmount: '150000', purchase: { items: toText(items) } };
  for (const [how, body] of [
    ['JSON with items as text', legacyBody()],
    ['JSON with items as an array', legacyBody({ purchase: { items } })],
    ['JSON with numbers as text', legacyBody(decimal)],
    ['a form with items as text', toForm(legacyBody())],
    ['a form with items as fields', toForm(legacyBody({ purchase: { items } }))],
    ['a form whose charset is named', toForm(legacyBody())],
  ] as const) {
    test(`is an ordinary checkout, sent as ${how}`, async () => {
      const charset = { 'content-type': `${form['content-type']}; charset=UTF-8` };
      const answer = await post(body, how.includes('charset') ? charset : {});
      assert.equal(answer.status, 200, JSON.stringify(answer.body));
      assert.deepEqual(Object.keys(answer.body), ['id', 'payment_url', 'transaction_verify']);
      const { id, payment_url, transaction_verify } = answer.body;
      assert.match(id, uuidPattern);
      assert.match(payment_url, /^http:\/\/localhost:3000\/pay\/[\w-]{64}$/);
      assert.match(transaction_verify, /^[\w-]{43}$/);
      const row = await rowOf(id);
      const stored = Object.fromEntries(Object.keys(expected).map((name) => [name, row[name]]));
      assert.deepEqual(stored, expected);
      assert.equal(row.integration_id, account.id);
      assert.equal(row.merchant_id, account.merchant.id);
      const page = await service.app.inject(new URL(payment_url).pathname);
      assert.equal(page.statusCode, 200);
    });
  }

  test('requires only what v2 requires', async () => {
    const { id } = await createLegacyCheckout(service, token, {
      merchant: { merchantReference: undefined, mode: undefined },
      customer: { name: undefined, lastName: '', telephoneNumber: '', billingAddress: null },
      purchase: { items: '', purchaseDate: undefined },
    });
    const row = await rowOf(id);
    assert.deepEqual(row.customer, { email: 'thandi@example.com' });
    assert.deepEqual(row.line_items, []);
  });

  test('has its own transaction_verify, which is not in the database', async () => {
    const created = await inParallel(5, () => createLegacyCheckout(service, token));
    const values = created.map(({ transaction_verify }) => transaction_verify);
    assert.equal(new Set(values).size, 5);
    for (const { id, transaction_verify } of created) {
      const row = JSON.stringify(await rowOf(id));
      const { sealed_verify } = await rowOf(id);
      assert.ok(!row.includes(transaction_verify));
      assert.ok(!sealed_verify.includes(transaction_verify));
    }
  });

  test('sent twice creates two checkouts, even with an Idempotency-Key, which v1 ignores', async () => {
    const headers = { 'idempotency-key': 'once' };
    const [first, second] = [await post(legacyBody(), headers), await post(legacyBody(), headers)];
    assert.deepEqual([first.status, second.status], [200, 200]);
    assert.notEqual(first.body.id, second.body.id);
    assert.equal(second.headers['idempotent-replayed'], undefined);
  });

  test('ignores dropped fields of any type, and unknown fields', async () => {
    for (const junk of ['x', 5, null, { a: [1] }, 'y'.repeat(10_000)]) {
      const answer = await post(
        legacyBody({
          merchant: { merchantReference: junk, mode: junk },
          purchase: { purchaseDate: junk },
          extra: junk,
        }),
      );
      assert.equal(answer.status, 200);
    }
  });

  test('keeps text of any script, sent as JSON and as a form', async () => {
    const order_id = 'Zoë & Co = 100% + 😀';
    for (const body of [
      legacyBody({ purchase: { order_id } }),
      toForm(legacyBody({ purchase: { order_id } })),
    ]) {
      const { body: created } = await post(body);
      assert.equal((await rowOf(created.id)).client_reference_id, order_id);
    }
  });
});

function toText(items: { description: string; price: number; qty: number }[]): string {
  return JSON.stringify(
    items.map(({ description, price, qty }) => ({
      description,
      price: String(price),
      qty: String(qty),
    })),
  );
}

describe('every missing or malformed field is reported by its v1 name', () => {
  const long = 'x'.repeat(256);
  const url = 'must be an absolute http or https URL';
  const text = 'must be a string';
  const object = 'must be an object';
  const cases: [path: string, values: unknown[], problem: string][] = [
    ['purchaseAmount', [undefined], 'is required'],
    [
      'purchaseAmount',
      ['', 'abc', '1500.00', ' 150000', '0x10', null, true, [150000], 1.5],
      'must be an integer',
    ],
    [
      '',
      [0, '0', -1, 9_999, '2000001', Number.MAX_SAFE_INTEGER],
      'Amount has to be between 10000 and 2000000 cents',
    ],
    ['currency', [undefined], 'is required'],
    ['currency', [5, null, ['ZAR']], text],
    ['currency', ['', 'USD', 'zar'], 'must match merchant territory currency (ZAR)'],
    ['purchase.order_id', [undefined], 'is required'],
    ['purchase.order_id', [1.5, -5, true, null, {}], text],
    ['purchase.order_id', [''], 'must have at least 1 character'],
    ['purchase.order_id', [long], 'must have at most 255 characters'],
    ['merchant.notify_url', [undefined], 'is required'],
    ['merchant.notify_url', [5, null], text],
    ['merchant.notify_url', ['', 'shop.example', 'ftp://shop.example/', 'javascript:1'], url],
    ['merchant.notify_url', ['http://shop.example/callback'], 'must be an https URL'],
    ['merchant.notify_url', ['https://10.0.0.1/callback'], 'must have a public address'],
    ['merchant.notify_url', ['https://intranet/callback'], 'must have a public host name'],
    [
      'merchant.notify_url',
      ['https://a:b@shop.example/'],
      'must not carry a user name or password',
    ],
    ['merchant.return_url', [undefined], 'is required'],
    ['merchant.return_url', [5, null], text],
    ['merchant.return_url', ['', '/order', 'javascript:alert(1)'], url],
    ['customer.emailAddress', [undefined], 'is required'],
    ['customer.emailAddress', [5, null], text],
    ['customer.emailAddress', ['', 'thandi', 'a@b'], 'must be an e-mail address'],
    ['customer.name', [5, true, {}], text],
    ['customer.name', [long], 'must have at most 255 characters'],
    ['customer.lastName', [5], text],
    ['customer.lastName', [long], 'must have at most 255 characters'],
    ['customer.telephoneNumber', [27821234567], text],
    ['customer.telephoneNumber', ['082 123 4567', '1'], 'must match ^[+0-9][0-9.()/-]{7,25}$'],
    ['customer.billingAddress', [{ street: 'x' }, 5], text],
    ['customer.billingAddress', ['x'.repeat(2001)], 'must have at most 2000 characters'],
    [
      'purchase.items',
      ['boots', '[', '[{"qty":1,"qty":2}]'],
      'must be a JSON array, as text or as it is',
    ],
    ['purchase.items', [5, true, {}, '{}', '5'], 'must be an array'],
    [
      'purchase.items',
      [Array(501).fill({ description: 'x', price: 1, qty: 1 })],
      'must have at most 500 items',
    ],
    ['purchase.items[0]', [['x'], '[5]', [null], [[]]], object],
    ['purchase.items[0].description', [[{ price: 1, qty: 1 }]], 'is required'],
    ['purchase.items[0].description', [[{ description: 5, price: 1, qty: 1 }]], text],
    [
      'purchase.items[0].description',
      [[{ description: '', price: 1, qty: 1 }]],
      'must have at least 1 character',
    ],
    [
      'purchase.items[1].price',
      [
        [
          { description: 'x', price: 1, qty: 1 },
          { description: 'x', qty: 1 },
        ],
      ],
      'is required',
    ],
    [
      'purchase.items[0].price',
      [[{ description: 'x', price: '1.50', qty: 1 }], '[{"description":"x","price":1.5,"qty":1}]'],
      'must be an integer',
    ],
    ['purchase.items[0].qty', [[{ description: 'x', price: 1 }]], 'is required'],
    ['purchase.items[0].qty', [[{ description: 'x', price: 1, qty: '0' }]], 'must be at least 1'],
    ['purchase.items[0].qty', [[{ description: 'x', price: 1, qty: 'two' }]], 'must be an integer'],
    ['merchant', [5, 'x', null, []], object],
    ['customer', [5, 'x', null, []], object],
    ['purchase', [5, 'x', null, []], object],
  ];

  /** The body with one field changed or removed. */
  function changed(path: string, value: unknown): object {
    const [first = '', second] = (path || 'purchaseAmount').replace(/\[.*/, '').split('.');
    const body: Record<string, unknown> = legacyBody();
    if (second === undefined) body[first] = value;
    else body[first] = { ...(body[first] as object), [second]: value };
    return body;
  }

  for (const [path, values, problem] of cases) {
    test(`${path || 'purchaseAmount'} ${problem}`, async () => {
      const detail = `Validation failed: ${path ? `${path} ` : ''}${problem}.`;
      for (const value of values) {
        assertRefused(await post(changed(path, value)), 422, detail);
        // A form has only strings.
        if (typeof value === 'string' && value !== '') {
          assertRefused(await post(toForm(changed(path, value))), 422, detail);
        }
      }
    });
  }

  test('all of them at once, each reported once', async () => {
    const answer = await post({});
    assertRefused(
      answer,
      422,
      ...[
        'purchaseAmount',
        'currency',
        'purchase.order_id',
        'merchant.notify_url',
        'merchant.return_url',
        'customer.emailAddress',
      ].map((path) => `Validation failed: ${path} is required.`),
    );
    const none = await post({ merchant: 1, customer: 2, purchase: 3 });
    assert.deepEqual(none.body.errors.map(({ detail }: { detail: string }) => detail).toSorted(), [
      'Validation failed: currency is required.',
      'Validation failed: customer must be an object.',
      'Validation failed: merchant must be an object.',
      'Validation failed: purchase must be an object.',
      'Validation failed: purchaseAmount is required.',
    ]);
  });

  test('text that cannot be stored is a 422 as JSON and as a form, never a 500', async () => {
    const detail =
      'Validation failed: customer.name has a character that cannot be stored (U+0000 or half a surrogate pair).';
    const body = legacyBody({ customer: { name: 'a\u0000b' } });
    assertRefused(await post(body), 422, detail);
    assertRefused(await post(toForm(body)), 422, detail);
    assertRefused(await post(legacyBody({ customer: { name: '\ud800' } })), 422, detail);
    const items = '[{"description":"\\u0000","price":1,"qty":1}]';
    assertRefused(
      await post(legacyBody({ purchase: { items } })),
      422,
      detail.replace('customer.name', 'purchase.items[0].description'),
    );
  });
});

describe('a body that cannot be read is a 400', () => {
  const types = 'application/json or application/x-www-form-urlencoded';
  const cases: [
    what: string,
    body: string | Buffer,
    headers: Record<string, string>,
    detail: string,
  ][] = [
    ['not JSON', '{', {}, 'The body is not valid JSON: it ends before it is complete.'],
    ['a JSON list', '[]', {}, 'The body must be a JSON object.'],
    [
      'a member twice',
      '{"currency":"ZAR","currency":"USD"}',
      {},
      'The body has the member "currency" twice.',
    ],
    [
      'a field twice',
      'currency=ZAR&currency=USD',
      form,
      'The body has the field "currency" twice.',
    ],
    [
      'a group and a value',
      'purchase=1&purchase[order_id]=2',
      form,
      'The body has a field "purchase[order_id]", and also a value for a part of that name.',
    ],
    [
      'a prototype',
      '__proto__[polluted]=1',
      form,
      'The body has a field "__proto__[polluted]", which is not accepted.',
    ],
    [
      'percent signs',
      'currency=%',
      form,
      'The body has a % that is not followed by two hexadecimal digits.',
    ],
    ['not UTF-8, escaped', 'currency=%ff', form, 'The body is not valid UTF-8.'],
    ['not UTF-8', Buffer.from([0x61, 0x3d, 0xc3, 0x28]), form, 'The body is not valid UTF-8.'],
    ['a deep form', `a${'[b]'.repeat(40)}=1`, form, 'The body is nested deeper than 32 levels.'],
    ['a large body', `a=${'x'.repeat(256 * 1024)}`, form, 'The body is larger than 256 KiB.'],
    [
      'another type',
      '{}',
      { 'content-type': 'text/plain' },
      `The Content-Type header must be ${types}.`,
    ],
    [
      'a multipart form',
      '--x--',
      { 'content-type': 'multipart/form-data; boundary=x' },
      `The Content-Type header must be ${types}.`,
    ],
    [
      'a malformed type',
      '{}',
      { 'content-type': 'json' },
      `The Content-Type header must be ${types}.`,
    ],
  ];
  for (const [what, body, headers, detail] of cases) {
    test(what, async () => assertRefused(await post(body, headers), 400, detail));
  }

  test('an unauthenticated caller gets a 401 first', async () => {
    const answer = await sendLegacy(service, '/payment/checkout', '{', { token: 'nobody' });
    assert.equal(answer.status, 401);
  });
});

test('every v1 answer carries the deprecation headers', async () => {
  const json = credentialsOf(plugin);
  const limited = await createPlugin(service, { limits: 'spec' });
  const slow = await logIn(service, limited.plugin);
  const paySlowly = () => sendLegacy(service, '/payment/checkout', legacyBody(), { token: slow });
  const answers: Answer[] = [
    await sendLegacy(service, '/login', json),
    await sendLegacy(service, '/login', { ...json, client_secret: 'no' }),
    await sendLegacy(service, '/login', {}),
    await sendLegacy(service, '/login', '{'),
    await post(legacyBody()),
    await post({}),
    await post('{'),
    await sendLegacy(service, '/payment/checkout', legacyBody()),
    await paySlowly(),
    await paySlowly(),
  ];
  const statuses = answers.map(({ status }) => status);
  assert.deepEqual(statuses, [200, 401, 422, 400, 200, 422, 400, 401, 200, 429]);
  for (const { headers } of answers) {
    assert.equal(headers.deprecation, '@1793491200');
    assert.equal(headers.sunset, 'Mon, 01 Nov 2027 00:00:00 GMT');
    assert.equal(headers.link, '<http://localhost:3000/docs/api/v2>; rel="successor-version"');
    assert.match(String(headers['x-request-id']), uuidPattern);
  }
  const v2 = await send(service, account, 'GET', '/api/config');
  assert.deepEqual([v2.headers.deprecation, v2.headers.sunset], [undefined, undefined]);
});

describe('beside v2 on one integration', () => {
  test('a checkout is read, listed and refunded through v2', async () => {
    const { id } = await createLegacyCheckout(service, token, { purchase: { order_id: 'v1-7' } });
    const read = () => send(service, account, 'GET', `/api/checkouts/${id}`);
    const before = await read();
    assert.equal(before.status, 200);
    assert.deepEqual(Object.keys(before.body.data.attributes), [
      'amount',
      'currency',
      'status',
      'created_at',
      'client_reference_id',
      'number_of_payments',
      'expires_at',
    ]);
    assert.equal(before.body.data.attributes.client_reference_id, 'v1-7');
    const list = await send(service, account, 'GET', '/api/checkouts');
    assert.equal(list.body.data[0].id, id);

    const refund = (amount: number) =>
      send(service, account, 'POST', '/api/refunds', { body: { checkout_id: id, amount } });
    assertRefused(await refund(1), 422, 'Only successful checkouts can be refunded.');
    await completeTestCheckout(service, account.merchant, id);
    assert.equal((await read()).body.data.attributes.status, 'successful');
    const refunded = await refund(50_000);
    assert.equal(refunded.status, 200);
    assert.equal(refunded.body.data.attributes.status, 'requested');
    assertRefused(
      await refund(100_001),
      422,
      'Refund amount exceeds the refundable remainder of 100000 cents.',
    );
  });

  test('v1 works when v2 must be signed, and does not make signing mandatory', async () => {
    const both = await createPlugin(service);
    const own = await logIn(service, both.plugin);
    await createLegacyCheckout(service, own);
    const unsigned = () =>
      send(service, both.account, 'POST', '/api/checkouts', {
        body: checkoutBody(),
        signed: false,
      });
    assert.equal((await unsigned()).status, 200);
    await requireSigning(service.deps, 'test', both.account.id);
    clock.advance({ seconds: 1 });
    assertRefused(await unsigned(), 400, mustSign);
    await createLegacyCheckout(service, own);
    const signature = await sendLegacy(service, '/payment/checkout', legacyBody(), {
      token: own,
      headers: { 'x-signature': 'nonsense' },
    });
    assert.equal(signature.status, 200);
  });

  test('concurrent v1 and v2 checkouts share commits and do not mix', async () => {
    const both = await createPlugin(service);
    const own = await logIn(service, both.plugin);
    const answers = await inParallel(40, (index) =>
      index % 2 === 0
        ? sendLegacy(service, '/payment/checkout', legacyBody(), { token: own })
        : send(service, both.account, 'POST', '/api/checkouts', { body: checkoutBody() }),
    );
    for (const [index, { status, body }] of answers.entries()) {
      assert.equal(status, 200);
      const row = await rowOf(index % 2 === 0 ? body.id : body.data.id);
      assert.equal(row.sealed_verify !== null, index % 2 === 0);
      assert.equal(row.signed, index % 2 === 1);
    }
    const { rows } = await service.deps.database.pool.query(
      'select signing_required_at from integrations where id = $1',
      [both.account.id],
    );
    assert.notEqual(rows[0].signing_required_at, null);
    assert.deepEqual(
      await findViolations(service.deps.database, timestamp(clock.now()), ['L1', 'S2', 'S3']),
      [],
    );
  });
});

test('an internal error is a 500 without details, and nothing was created', async () => {
  const { database } = service.deps;
  const { account: owner, plugin: own } = await createPlugin(service);
  const ownToken = await logIn(service, own);
  await database.pool.query(
    `alter table legacy_usage add constraint broken check (integration_id <> '${owner.id}') not valid`,
  );
  try {
    const answer = await sendLegacy(service, '/payment/checkout', legacyBody(), {
      token: ownToken,
    });
    assert.equal(answer.status, 500);
    assert.equal(answer.headers.deprecation, '@1793491200');
    const failed = await sendLegacy(service, '/login', credentialsOf(own));
    assert.equal(failed.status, 500);
    const list = await send(service, owner, 'GET', '/api/checkouts');
    assert.deepEqual(list.body.data, []);
  } finally {
    await database.pool.query('alter table legacy_usage drop constraint broken');
  }
  assert.equal(
    (await sendLegacy(service, '/payment/checkout', legacyBody(), { token: ownToken })).status,
    200,
  );
});

test('an unknown token is refused before the body is read', async () => {
  const answer = await sendLegacy(service, '/payment/checkout', 'x'.repeat(300 * 1024), {
    token: 'v1t_sandbox_none',
  });
  assert.equal(answer.status, 401);
  assert.match(answer.body.errors[0].detail, new RegExp(`^${invalidToken}`));
});
