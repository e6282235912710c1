import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { createMerchant } from '#merchants/create-merchant.ts';
import { createIntegration } from '#merchants/integrations/create-integration.ts';
import { moveRules } from '#merchants/merchant.sql.ts';
import { checkoutOfToken } from '#purchases/checkouts/payment-token.ts';
import {
  assertRefused,
  assertRefusedLike,
  countStatuses,
  errorBody,
  inParallel,
  uuidPattern,
} from '../support/expectations.ts';
import {
  type Account,
  type Answer,
  checkoutBody,
  createAccount,
  liftLimits,
  movableClock,
  type Service,
  send,
  startService,
} from '../support/service.ts';

const clock = movableClock();
let service: Service;
let account: Account;
/** An account that does not sign, so that a test can send a body in any spelling. */
let unsigned: Account;
before(async () => {
  service = await startService({ clock });
  account = await createAccount(service);
  unsigned = await createAccount(service);
});
after(() => service.close());

const post = (body: object | string, headers: Record<string, string> = {}): Promise<Answer> =>
  send(service, account, 'POST', '/api/checkouts', { body, headers });

async function postBytes(payload: Buffer, headers: Record<string, string> = {}): Promise<Answer> {
  const response = await service.app.inject({
    method: 'POST',
    url: '/api/checkouts',
    headers: {
      authorization: `Bearer ${unsigned.client_secret}`,
      'content-type': 'application/json',
      ...headers,
    },
    payload,
  });
  return { status: response.statusCode, body: response.json(), headers: response.headers };
}
const postText = (text: string, headers: Record<string, string> = {}) =>
  postBytes(Buffer.from(text), headers);

const findRow = (id: string) =>
  service.deps.database.db
    .selectFrom('checkouts')
    .selectAll()
    .where('id', '=', id)
    .executeTakeFirstOrThrow();

const customer = (changes: object = {}) => ({
  customer: { email: 'thandi@example.com', ...changes },
});
const item = (changes: object = {}) => ({ name: 'Boots', amount: 100, quantity: 1, ...changes });
const items = (...all: object[]) => ({ line_items: all });

/** The body with one value of `checkout` given as raw JSON. */
function spelled(path: string[], raw: string): string {
  const body = checkoutBody(items(item())) as Record<string, unknown>;
  const owner = path.slice(0, -1).reduce((at, name) => at[name] as Record<string, unknown>, body);
  owner[path.at(-1) as string] = '<here>';
  return JSON.stringify(body).replace('"<here>"', () => raw);
}

test('a valid request creates a checkout and answers only its ID and payment URL', async () => {
  const answer = await post(checkoutBody());
  assert.equal(answer.status, 200);
  assert.deepEqual(Object.keys(answer.body), ['data']);
  assert.deepEqual(Object.keys(answer.body.data), ['id', 'payment_url']);
  assert.match(answer.body.data.id, uuidPattern);
  const row = await findRow(answer.body.data.id);
  assert.equal(row.status, 'received');
  assert.equal(row.merchant_id, account.merchant.id);
  assert.equal(row.integration_id, account.id);
});

test('a payment URL has an unguessable token of its own that is not the checkout ID', async () => {
  const answers = [await post(checkoutBody()), await post(checkoutBody())];
  const tokens = answers.map(({ body }) => {
    const [, token = ''] =
      /^http:\/\/localhost:3000\/pay\/([\w-]{43,})$/.exec(body.data.payment_url) ?? [];
    assert.ok(token, body.data.payment_url);
    assert.ok(!token.includes(body.data.id) && !token.includes(body.data.id.replaceAll('-', '')));
    const opened = checkoutOfToken(service.deps.sealing, token);
    assert.deepEqual(opened, { merchant_id: account.merchant.id, id: body.data.id });
    // A token with one character changed opens nothing.
    const forged = `${token.slice(0, -2)}${token.at(-2) === 'A' ? 'B' : 'A'}${token.at(-1)}`;
    assert.equal(checkoutOfToken(service.deps.sealing, forged), null);
    return token;
  });
  assert.notEqual(tokens[0]?.slice(0, 20), tokens[1]?.slice(0, 20));
});

test('the payment URL begins with the configured base address', async () => {
  const other = await startService({ env: { BASE_URL: 'https://pay.example:8443/' } });
  try {
    const caller = await createAccount(other);
    const { body } = await send(other, caller, 'POST', '/api/checkouts', { body: checkoutBody() });
    assert.match(body.data.payment_url, /^https:\/\/pay\.example:8443\/pay\/[\w-]+$/);
  } finally {
    await other.close();
  }
});

test('known members are stored verbatim; unknown ones are ignored', async () => {
  const sent = {
    client_reference_id: ' Órder/1 "é" 😀 ',
    ...customer({
      first_name: 'Thandi',
      last_name: "O'Neil",
      phone_number: '+27(82)123-4567',
      billing_address: '1 Long Street\nCape Town',
      loyalty: 'gold',
    }),
    ...items(item({ name: 'Café', sku: 'x' }), item({ amount: 0, quantity: 3 })),
    metadata: { deep: [{ er: null }] },
  };
  const { status, body } = await post({ ...checkoutBody(sent), status: 'successful', extra: 1 });
  assert.equal(status, 200);
  const row = await findRow(body.data.id);
  assert.equal(row.client_reference_id, sent.client_reference_id);
  const { loyalty: _, ...known } = sent.customer as Record<string, unknown>;
  assert.deepEqual(row.customer, known);
  assert.deepEqual(row.line_items, [item({ name: 'Café' }), item({ amount: 0, quantity: 3 })]);
  assert.equal(row.status, 'received');
});

test('null is the same as absent for every optional member', async () => {
  const absent = checkoutBody({ customer: { email: 'a@b.example' } });
  const nulls = {
    checkout: {
      ...absent.checkout,
      customer: {
        email: 'a@b.example',
        first_name: null,
        last_name: null,
        phone_number: null,
        billing_address: null,
      },
      line_items: null,
      merchant_id: null,
    },
  };
  const [first, second] = await Promise.all([post(absent), post(nulls)]);
  const pick = ({ customer, line_items }: Record<string, unknown>) => ({ customer, line_items });
  assert.deepEqual(
    pick(await findRow(second.body.data.id)),
    pick(await findRow(first.body.data.id)),
  );
});

describe('checkout.merchant_id of a plain integration', () => {
  test('may be its own merchant, in any case', async () => {
    const { id } = account.merchant;
    for (const merchant_id of [id, id.toUpperCase()]) {
      assert.equal((await post(checkoutBody({ merchant_id }))).status, 200);
    }
  });

  for (const merchant_id of [randomUUID(), 'x', '', 5, {}, []]) {
    test(`is refused when it names another: ${JSON.stringify(merchant_id)}`, async () => {
      assertRefused(
        await post(checkoutBody({ merchant_id })),
        422,
        'Validation failed: checkout.merchant_id must be the merchant of this integration, or be left out.',
      );
    });
  }
});

test('a reference need not be unique', async () => {
  const ids = await inParallel(3, async () => (await post(checkoutBody())).body.data.id);
  assert.equal(new Set(ids).size, 3);
});

test('the payment page is open for 30 minutes from creation', async () => {
  const { body } = await post(checkoutBody());
  const row = await findRow(body.data.id);
  assert.equal(Date.parse(row.expires_at) - Date.parse(row.created_at), 30 * 60_000);
});

describe('amounts', () => {
  const outside = 'Validation failed: Amount has to be between 10000 and 2000000 cents.';
  for (const [amount, detail] of [
    [9_999, outside],
    [10_000, null],
    [99_999, null],
    [100_000, null],
    [2_000_000, null],
    [2_000_001, outside],
    [0, outside],
    [-150_000, outside],
    [Number.MAX_SAFE_INTEGER, outside],
  ] as const) {
    test(`${amount} cents ${detail ? 'is refused with the bands' : 'is inside a band'}`, async () => {
      const answer = await post(checkoutBody({ amount }));
      if (detail) assertRefused(answer, 422, detail);
      else assert.equal(answer.status, 200);
    });
  }

  for (const raw of ['-9007199254740993', '-1e300', '-0', '9007199254740993', '1e300']) {
    test(`${raw} cents is refused with the bands`, async () => {
      assertRefused(await post(spelled(['checkout', 'amount'], raw)), 422, outside);
    });
  }

  test('the refusal lists bands with a gap one by one, and adjoining bands as one range', async () => {
    const merchant = await createMerchant(service.deps, 'test', {
      name: 'Gaps',
      territory: 'ZA',
      rules: [
        { from_amount: 10_000, to_amount: 49_999, terms: [1] },
        { from_amount: 50_000, to_amount: 99_999, terms: [1, 2] },
        { from_amount: 200_000, to_amount: 300_000, terms: [3] },
      ],
    });
    const caller = await createIntegration(service.deps, 'test', {
      merchant_id: merchant.id,
      refund_mode: 'manual',
    });
    await liftLimits(service.deps, caller.id);
    const create = (amount: number) =>
      send(service, caller, 'POST', '/api/checkouts', { body: checkoutBody({ amount }) });
    for (const amount of [9_999, 100_000, 199_999, 300_001]) {
      assertRefused(
        await create(amount),
        422,
        'Validation failed: Amount has to be between 10000 and 99999 or between 200000 and 300000 cents.',
      );
    }
    for (const [amount, terms] of [
      [49_999, [1]],
      [50_000, [1, 2]],
      [200_000, [3]],
      [300_000, [3]],
    ] as const) {
      const { body } = await create(amount);
      assert.deepEqual((await findRow(body.data.id)).terms, terms);
    }
  });

  test('only terms whose payments the gateway accepts are offered', async () => {
    const caller = await createAccount(service);
    // This band allows payments below the gateway's minimum. Operators could write it before that
    // minimum was known.
    await moveRules(service.deps.database.db, caller.merchant.id, [
      { from_amount: 500, to_amount: 50_000, terms: [2, 3, 6] },
    ]);
    clock.advance({ seconds: 1 });
    for (const [amount, terms] of [
      [2_000, [2]],
      [2_999, [2]],
      [3_000, [2, 3]],
      [5_999, [2, 3]],
      [6_000, [2, 3, 6]],
    ] as const) {
      const { body } = await send(service, caller, 'POST', '/api/checkouts', {
        body: checkoutBody({ amount }),
      });
      assert.deepEqual((await findRow(body.data.id)).terms, terms, `${amount}`);
      clock.advance({ seconds: 1 });
    }
    assertRefused(
      await send(service, caller, 'POST', '/api/checkouts', {
        body: checkoutBody({ amount: 1_999 }),
      }),
      422,
      'Validation failed: Amount has to be between 2000 and 50000 cents.',
    );
    const { body } = await send(service, caller, 'GET', '/api/config');
    assert.deepEqual(body.data.attributes.rules, [
      { from_amount: 2_000, to_amount: 50_000, terms: [2, 3, 6] },
    ]);
  });

  test("a later change of the rules does not touch a checkout's terms", async () => {
    const caller = await createAccount(service);
    const create = () => send(service, caller, 'POST', '/api/checkouts', { body: checkoutBody() });
    const { body } = await create();
    await moveRules(service.deps.database.db, caller.merchant.id, [
      { from_amount: 24_000, to_amount: 48_000, terms: [24] },
    ]);
    clock.advance({ seconds: 1 });
    assert.deepEqual((await findRow(body.data.id)).terms, [1, 3, 6, 12]);
    assertRefused(
      await create(),
      422,
      'Validation failed: Amount has to be between 24000 and 48000 cents.',
    );
  });
});

describe('integers are strict', () => {
  const tooLarge = 'must be at most 9007199254740991';
  const noInteger = 'must be an integer';
  const spellings: [string, string | null][] = [
    ['"100000"', noInteger],
    ['true', noInteger],
    ['[100000]', noInteger],
    ['100000.5', noInteger],
    ['null', noInteger],
    ['{}', noInteger],
    ['""', noInteger],
    ['1e400', noInteger],
    ['1e300', tooLarge],
    ['9007199254740993', tooLarge],
    ['100000.0', null],
    ['1e5', null],
  ];
  for (const [path, name] of [
    [['checkout', 'amount'], 'checkout.amount'],
    [['checkout', 'line_items', '0', 'amount'], 'checkout.line_items[0].amount'],
    [['checkout', 'line_items', '0', 'quantity'], 'checkout.line_items[0].quantity'],
  ] as [string[], string][]) {
    for (const [raw, problem] of spellings) {
      // If `checkout.amount` is too large, the refusal names the bands of the merchant instead.
      if (problem === tooLarge && name === 'checkout.amount') continue;
      test(`${name}: ${raw} is ${problem ? 'refused' : 'accepted'}`, async () => {
        const answer = await post(spelled(path, raw));
        if (problem) assertRefused(answer, 422, `Validation failed: ${name} ${problem}.`);
        else assert.equal(answer.status, 200);
      });
    }
  }
});

describe('fields', () => {
  const long = (count: number, character = 'x') => character.repeat(count);
  const cannotBeStored = 'has a character that cannot be stored (U+0000 or half a surrogate pair)';
  const noEmail = 'must be an e-mail address';
  const noPhone = 'must match ^[+0-9][0-9.()/-]{7,25}$';
  const noUrl = 'must be an absolute http or https URL';
  const wrongCurrency = 'must match merchant territory currency (ZAR)';
  const most = (count: number) => `must have at most ${count} characters`;
  const domain = (length: number) => `${long(63)}.${long(63)}.${long(length - 128)}`;

  const cases: [string, object, string | null, string?][] = [
    ['currency', { currency: 'USD' }, wrongCurrency],
    ['currency', { currency: 'zar' }, wrongCurrency],
    ['currency', { currency: '' }, wrongCurrency],
    ['currency', { currency: 'ZAR ' }, wrongCurrency],
    ['currency', { currency: 'ZAR\0' }, cannotBeStored],
    ['currency', { currency: ['ZAR'] }, 'must be a string'],
    ['currency', { currency: undefined }, 'is required'],

    ['client_reference_id', { client_reference_id: '' }, 'must have at least 1 character'],
    ['client_reference_id', { client_reference_id: '1' }, null],
    ['client_reference_id', { client_reference_id: ' ' }, null],
    ['client_reference_id', { client_reference_id: long(255) }, null],
    ['client_reference_id', { client_reference_id: long(256) }, most(255)],
    ['client_reference_id', { client_reference_id: long(255, '😀') }, null, '255 astral'],
    ['client_reference_id', { client_reference_id: long(256, '😀') }, most(255), '256 astral'],
    ['client_reference_id', { client_reference_id: `e${long(255, '\u0301')}` }, most(255), 'marks'],
    ['client_reference_id', { client_reference_id: 1001 }, 'must be a string'],
    ['client_reference_id', { client_reference_id: null }, 'must be a string'],
    ['client_reference_id', { client_reference_id: undefined }, 'is required'],
    ['client_reference_id', { client_reference_id: 'a\0' }, cannotBeStored],
    ['client_reference_id', { client_reference_id: '\ud800' }, cannotBeStored],
    ['client_reference_id', { client_reference_id: '\udc00\ud800' }, cannotBeStored],

    ['customer', { customer: undefined }, 'is required'],
    ['customer', { customer: null }, 'must be an object'],
    ['customer', { customer: [] }, 'must be an object'],
    ['customer', { customer: 'thandi@example.com' }, 'must be an object'],

    ['customer.email', { customer: {} }, 'is required'],
    ...[
      'a@b.co',
      'thandi+shop@sub.example.co.za',
      `${long(64)}@example.com`,
      `${long(64)}@${domain(189)}`,
      'zoë@bücher.example',
      "o'neil@example.com",
    ].map((email): [string, object, null] => ['customer.email', customer({ email }), null]),
    ...[
      '',
      'x',
      '@example.com',
      'a@',
      'a@b',
      'a@b.',
      'a@.b',
      'a@b..c',
      'a@-b.co',
      'a@b-.co',
      'a b@example.com',
      'a@exa mple.com',
      'a@@example.com',
      'a@b@example.com',
      'a@example.com\n',
      '\na@example.com',
      'a\0@example.com',
      'a@example.com, b@example.com',
      '<a@example.com>',
      `${long(65)}@example.com`,
      `${long(64)}@${domain(190)}`,
      `a@${long(64)}.com`,
    ].map((email): [string, object, string] => ['customer.email', customer({ email }), noEmail]),
    ['customer.email', customer({ email: 5 }), 'must be a string'],
    ['customer.email', customer({ email: null }), 'must be a string'],
    ['customer.email', customer({ email: ['a@b.co'] }), 'must be a string'],

    ...['first_name', 'last_name'].flatMap((name): [string, object, string | null, string?][] => [
      [`customer.${name}`, customer({ [name]: '' }), null],
      [`customer.${name}`, customer({ [name]: long(255) }), null],
      [`customer.${name}`, customer({ [name]: long(256) }), most(255)],
      [`customer.${name}`, customer({ [name]: long(255, '😀') }), null, '255 astral'],
      [`customer.${name}`, customer({ [name]: long(256, '😀') }), most(255), '256 astral'],
      [`customer.${name}`, customer({ [name]: null }), null],
      [`customer.${name}`, customer({ [name]: 5 }), 'must be a string'],
      [`customer.${name}`, customer({ [name]: '\0' }), cannotBeStored],
      [`customer.${name}`, customer({ [name]: 'a\udfff' }), cannotBeStored],
    ]),

    ...['+2782123', '00000000', '+27(82)123-45.67/8', `0${long(25, '1')}`, '0-------'].map(
      (phone_number): [string, object, null] => [
        'customer.phone_number',
        customer({ phone_number }),
        null,
      ],
    ),
    ...[
      '',
      '0123456',
      `0${long(26, '1')}`,
      '-12345678',
      '++2782123',
      '+27 82 123 4567',
      'o12345678',
      '+2782123x',
      '+27821234\n',
      '١٢٣٤٥٦٧٨',
    ].map((phone_number): [string, object, string] => [
      'customer.phone_number',
      customer({ phone_number }),
      noPhone,
    ]),
    ['customer.phone_number', customer({ phone_number: 27821234567 }), 'must be a string'],
    ['customer.phone_number', customer({ phone_number: null }), null],

    ['customer.billing_address', customer({ billing_address: '' }), null],
    ['customer.billing_address', customer({ billing_address: long(2000) }), null],
    ['customer.billing_address', customer({ billing_address: long(2001) }), most(2000)],
    ['customer.billing_address', customer({ billing_address: long(2000, '😀') }), null, 'astral'],
    ['customer.billing_address', customer({ billing_address: 'a\nb\tc' }), null],
    ['customer.billing_address', customer({ billing_address: '\0' }), cannotBeStored],
    ['customer.billing_address', customer({ billing_address: {} }), 'must be a string'],

    ['line_items', items(), null],
    ['line_items', items(...Array(500).fill(item())), null, '500'],
    ['line_items', items(...Array(501).fill(item())), 'must have at most 500 items', '501'],
    ['line_items', { line_items: null }, null],
    ['line_items', { line_items: item() }, 'must be an array'],
    ['line_items', { line_items: '[]' }, 'must be an array'],
    ['line_items[0]', items([]), 'must be an object'],
    ['line_items[1]', items(item(), null as never), 'must be an object'],
    ['line_items[0].name', items(item({ name: undefined })), 'is required'],
    ['line_items[0].name', items(item({ name: '' })), 'must have at least 1 character'],
    ['line_items[0].name', items(item({ name: long(1000) })), null],
    ['line_items[0].name', items(item({ name: long(1001) })), most(1000)],
    ['line_items[0].name', items(item({ name: long(1000, '😀') })), null, '1000 astral'],
    ['line_items[0].name', items(item({ name: 5 })), 'must be a string'],
    ['line_items[1].name', items(item(), item({ name: '\0' })), cannotBeStored],
    ['line_items[0].amount', items(item({ amount: undefined })), 'is required'],
    ['line_items[0].amount', items(item({ amount: 0 })), null],
    ['line_items[0].amount', items(item({ amount: -5000 })), null],
    ['line_items[0].amount', items(item({ amount: Number.MAX_SAFE_INTEGER })), null],
    ['line_items[0].quantity', items(item({ quantity: undefined })), 'is required'],
    ['line_items[0].quantity', items(item({ quantity: 1 })), null],
    ['line_items[0].quantity', items(item({ quantity: 0 })), 'must be at least 1'],
    ['line_items[0].quantity', items(item({ quantity: -1 })), 'must be at least 1'],

    ...['success_url', 'cancel_url', 'notify_url'].flatMap(
      (name): [string, object, string | null, string?][] => [
        [name, { [name]: undefined }, 'is required'],
        [name, { [name]: null }, 'must be a string'],
        [name, { [name]: 5 }, 'must be a string'],
        ...[
          '',
          'shop.example/paid',
          '/paid',
          '//shop.example/paid',
          'javascript:alert(1)',
          'JavaScript://shop.example/%0aalert(1)',
          'data:text/html,x',
          'ftp://shop.example/',
          'file:///etc/passwd',
          'mailto:a@b.co',
          'https:shop.example',
          'https:/shop.example',
          'https:///shop.example',
          'https://',
          'https://?',
          'https:\\\\shop.example',
          'https://shop.example\\@evil.example',
          ' https://shop.example',
          'https://shop.example ',
          'https://shop.example/a b',
          'https://shop.example/\n',
          'https://shop.example/\0',
          'https://exa mple/',
          'https://shop.example:99999/',
          'https://[::1/',
        ].map((url): [string, object, string] => [name, { [name]: url }, noUrl]),
        [name, { [name]: 'https://shop.example/\ud800' }, cannotBeStored],
        [name, { [name]: `https://shop.example/${long(2027)}` }, null, '2048 characters'],
        [name, { [name]: `https://shop.example/${long(2028)}` }, most(2048), '2049 characters'],
        [name, { [name]: 'HTTPS://Shop.Example:8443/ü?a=b&c[]=d#e' }, null],
      ],
    ),
    ['success_url', { success_url: 'http://localhost:8080/paid' }, null],
    ['success_url', { success_url: 'http://192.168.0.1/paid' }, null],
    ['cancel_url', { cancel_url: 'http://shop.example' }, null],
  ];
  for (const [field, changes, problem, name] of cases) {
    const shown = name ?? JSON.stringify(changes).slice(0, 90);
    test(`checkout.${field}: ${shown} ${problem === null ? 'is accepted' : problem}`, async () => {
      const answer = await post(checkoutBody(changes));
      if (problem === null) assert.deepEqual(answer.body.errors, undefined);
      else assertRefused(answer, 422, `Validation failed: checkout.${field} ${problem}.`);
    });
  }

  test('every bad field gets one error object', async () => {
    const answer = await post({
      checkout: {
        amount: '150000',
        currency: 5,
        client_reference_id: '',
        notify_url: 'nowhere',
        success_url: 'javascript:alert(1)',
        customer: {
          email: 'x',
          first_name: '\0',
          last_name: long(256),
          phone_number: '1',
          billing_address: long(2001),
        },
        line_items: [{ name: '', amount: 0.5, quantity: 0 }, item(), {}],
      },
    });
    assert.equal(answer.status, 422);
    const expected = errorBody(
      422,
      ...[
        'amount must be an integer',
        'currency must be a string',
        'client_reference_id must have at least 1 character',
        `notify_url ${noUrl}`,
        `success_url ${noUrl}`,
        'cancel_url is required',
        `customer.email ${noEmail}`,
        `customer.first_name ${cannotBeStored}`,
        `customer.last_name ${most(255)}`,
        `customer.phone_number ${noPhone}`,
        `customer.billing_address ${most(2000)}`,
        'line_items[0].name must have at least 1 character',
        'line_items[0].amount must be an integer',
        'line_items[0].quantity must be at least 1',
        'line_items[2].name is required',
        'line_items[2].amount is required',
        'line_items[2].quantity is required',
      ].map((text) => `Validation failed: checkout.${text}.`),
    ) as { errors: { detail: string }[] };
    const byDetail = (a: { detail: string }, b: { detail: string }) =>
      a.detail < b.detail ? -1 : 1;
    assert.deepEqual(answer.body.errors.sort(byDetail), expected.errors.sort(byDetail));
  });

  test('one answer reports both the rules and the bad fields', async () => {
    const answer = await post(
      checkoutBody({ amount: 5, currency: 'USD', ...customer({ email: 'x' }) }),
    );
    assertRefused(
      answer,
      422,
      `Validation failed: checkout.customer.email ${noEmail}.`,
      'Validation failed: Amount has to be between 10000 and 2000000 cents.',
      `Validation failed: checkout.currency ${wrongCurrency}.`,
    );
  });

  for (const [body, detail] of [
    [{}, 'checkout is required'],
    [{ Checkout: {} }, 'checkout is required'],
    [{ checkout: null }, 'checkout must be an object'],
    [{ checkout: [] }, 'checkout must be an object'],
    [{ checkout: 'x' }, 'checkout must be an object'],
    [{ checkout: 5 }, 'checkout must be an object'],
  ] as const) {
    test(`a body without its wrapper is refused: ${JSON.stringify(body)}`, async () => {
      assertRefused(await post(body), 422, `Validation failed: ${detail}.`);
    });
  }
});

describe('notify_url', () => {
  let remote: Service;
  let caller: Account;
  before(async () => {
    remote = await startService({ env: { BASE_URL: 'https://sandbox.example' } });
    caller = await createAccount(remote);
  });
  after(() => remote.close());

  const noHttps = 'must be an https URL';
  const noPublicAddress = 'must have a public address';
  const noPublicName = 'must have a public host name';
  const dockerName =
    'must have a public host name: host.docker.internal is known only inside Docker. For a receiver beside the sandbox use localhost';
  const userInfo = 'must not carry a user name or password';
  /**
   * The URL, the problem that a public service reports, and the problem that a service on loopback
   * reports if it differs.
   */
  const cases: [string, string | null, null?][] = [
    ['https://shop.example/callback', null],
    ['https://shop.example:8443/callback?a=b', null],
    ['https://shop.example./callback', null],
    ['https://SHOP.example', null],
    ['https://bücher.example/', null],
    ['https://8.8.8.8/', null],
    ['https://[2606:4700:4700::1111]/', null],
    ['http://shop.example/callback', noHttps],
    ['http://8.8.8.8/', noHttps],
    ['https://user@shop.example/', userInfo],
    ['https://user:password@shop.example/', userInfo],
    ['https://:password@shop.example/', userInfo],
    ['https://10.0.0.1/', noPublicAddress],
    ['https://10.255.255.255/', noPublicAddress],
    ['https://172.16.0.1/', noPublicAddress],
    ['https://172.31.255.255/', noPublicAddress],
    ['https://192.168.1.1/', noPublicAddress],
    ['https://169.254.169.254/latest/meta-data', noPublicAddress],
    ['https://100.64.0.1/', noPublicAddress],
    ['https://100.127.255.254/', noPublicAddress],
    ['https://0.0.0.0/', noPublicAddress],
    ['https://0/', noPublicAddress],
    ['https://224.0.0.1/', noPublicAddress],
    ['https://255.255.255.255/', noPublicAddress],
    ['https://192.0.2.1/', noPublicAddress],
    ['https://198.18.0.1/', noPublicAddress],
    ['https://203.0.113.5/', noPublicAddress],
    ['https://240.0.0.1/', noPublicAddress],
    ['https://0xa.1/', noPublicAddress],
    ['https://012.0.0.1/', noPublicAddress],
    ['https://167772161/', noPublicAddress],
    ['https://1０.0.0.1/', noPublicAddress],
    ['https://[::]/', noPublicAddress],
    ['https://[fe80::1]/', noPublicAddress],
    ['https://[fc00::1]/', noPublicAddress],
    ['https://[fd12:3456::1]/', noPublicAddress],
    ['https://[ff02::1]/', noPublicAddress],
    ['https://[2001:db8::1]/', noPublicAddress],
    ['https://[::ffff:10.0.0.1]/', noPublicAddress],
    ['https://[::ffff:a00:1]/', noPublicAddress],
    ['https://[::10.0.0.1]/', noPublicAddress],
    ['https://[64:ff9b::10.0.0.1]/', noPublicAddress],
    ['https://[2002:a00:1::]/', noPublicAddress],
    ['https://[4000::1]/', noPublicAddress],
    ['https://intranet/', noPublicName],
    ['http://host.docker.internal:3002/callback', dockerName],
    ['https://host.docker.internal/callback', dockerName],
    ['https://intranet./', noPublicName],
    ['https://intranet../', noPublicName],
    ['https://printer.local/', noPublicName],
    ['https://printer.local./', noPublicName],
    ['https://PRINTER.LOCAL/', noPublicName],
    ['https://metadata.google.internal/', noPublicName],
    ['https://a.internal../', noPublicName],
    // These name a developer's own machine, which only a service on the same machine may call.
    ['https://127.0.0.1/', noPublicAddress, null],
    ['https://127.255.0.9/', noPublicAddress, null],
    ['https://127.0.0.1./', noPublicAddress, null],
    ['https://0x7f.1/', noPublicAddress, null],
    ['https://2130706433/', noPublicAddress, null],
    ['https://[::1]/', noPublicAddress, null],
    ['https://[::ffff:127.0.0.1]/', noPublicAddress, null],
    ['https://localhost/', noPublicName, null],
    ['https://localhost./', noPublicName, null],
    ['https://LOCALHOST:8443/', noPublicName, null],
    ['https://%6cocalhost/', noPublicName, null],
    ['https://shop.localhost/', noPublicName, null],
    ['http://127.0.0.1:4000/callback', noHttps, null],
    ['http://localhost:4000/callback', noHttps, null],
    ['http://[::1]:4000/callback', noHttps, null],
  ];
  for (const [notify_url, problem, atHome] of cases) {
    const here = atHome === undefined ? problem : atHome;
    test(`${notify_url} ${problem ?? 'is accepted'}${here === problem ? '' : ' off loopback'}`, async () => {
      const body = checkoutBody({ notify_url });
      for (const [answer, expected] of [
        [await send(remote, caller, 'POST', '/api/checkouts', { body }), problem],
        [await post(body), here],
      ] as const) {
        if (expected === null) assert.deepEqual(answer.body.errors, undefined);
        else assertRefused(answer, 422, `Validation failed: checkout.notify_url ${expected}.`);
      }
    });
  }

  test('CALLBACK_ALLOW opens the ranges that it lists, and CALLBACK_HOSTS keeps out all hosts but its own', async () => {
    const allowing = await startService({
      env: {
        BASE_URL: 'https://sandbox.example',
        CALLBACK_ALLOW: '10.1.0.0/16, fd00::/8',
        CALLBACK_HOSTS: 'Shop.example, *.plugins.example',
      },
    });
    try {
      const caller = await createAccount(allowing);
      for (const [notify_url, status] of [
        ['http://10.1.2.3:4000/', 200],
        ['https://10.1.2.3/', 200],
        ['http://[fd00::5]/', 200],
        ['http://[::ffff:10.1.2.3]/', 200],
        ['https://10.2.0.1/', 422],
        ['http://10.2.0.1/', 422],
        ['http://127.0.0.1/', 422],
        ['http://localhost/', 422],
        ['https://shop.example:8443/callback', 200],
        ['https://SHOP.example./', 200],
        ['https://za.plugins.example/', 200],
        ['https://plugins.example/', 422],
        ['https://evilplugins.example/', 422],
        ['https://shop.example.evil.example/', 422],
        ['https://93.184.216.34/', 422],
      ] as const) {
        const body = checkoutBody({ notify_url });
        const answer = await send(allowing, caller, 'POST', '/api/checkouts', { body });
        assert.equal(answer.status, status, notify_url);
      }
    } finally {
      await allowing.close();
    }
  });
});

describe('malformed requests', () => {
  const valid = JSON.stringify(checkoutBody());
  const within = (raw: string) => valid.replace('"currency"', () => `${raw},"currency"`);
  /** `checkout` is at depth 2, so a member of it that is n brackets deep is at n + 2. */
  const nested = (depth: number) =>
    within(`"deep":${'['.repeat(depth - 2)}${']'.repeat(depth - 2)}`);

  for (const [name, text, detail] of [
    ['nothing', '', /^The body is empty\.$/],
    ['white space', ' \n', /not valid JSON/],
    ['a cut-off body', valid.slice(0, -1), /not valid JSON/],
    ['a trailing comma', '{"checkout":{},}', /not valid JSON/],
    ['a comment', '{"checkout":{}}//', /not valid JSON/],
    ['single quotes', "{'checkout':{}}", /not valid JSON/],
    ['a bare control character', '{"checkout":"\n"}', /not valid JSON/],
    ['NaN', within('"x":NaN'), /not valid JSON/],
    ['a leading zero', within('"x":01'), /not valid JSON/],
    ['two values', `${valid}${valid}`, /not valid JSON/],
    ['form fields', 'checkout[amount]=5', /not valid JSON/],
    ['a byte order mark', `\ufeff${valid}`, /byte order mark/],
    ['an array', '[]', /^The body must be a JSON object\.$/],
    ['a string', '"checkout"', /^The body must be a JSON object\.$/],
    ['a number', '5', /^The body must be a JSON object\.$/],
    ['null', 'null', /^The body must be a JSON object\.$/],
    ['a repeated member', within('"amount":150000'), /^The body has the member "amount" twice\.$/],
    ['a repeated unknown member', within('"x":1,"x":1'), /the member "x" twice/],
    [
      'a repeated member in another spelling',
      within('"\\u0061mount":1'),
      /the member "amount" twice/,
    ],
    ['a repeated wrapper', '{"checkout":{},"checkout":{}}', /the member "checkout" twice/],
    ['__proto__', within('"__proto__":{"amount":1}'), /"__proto__"/],
    ['__proto__, escaped', within('"\\u005f_proto__":1'), /"__proto__"/],
    ['__proto__ at the top', '{"__proto__":{"checkout":{}}}', /"__proto__"/],
    ['constructor.prototype', within('"constructor":{"prototype":{}}'), /"constructor"/],
    ['nesting of 33 levels', nested(33), /nested deeper than 32 levels/],
    ['a tower of brackets', '['.repeat(200_000), /nested deeper than 32 levels/],
  ] as [string, string, RegExp][]) {
    test(`${name}: 400`, async () => {
      assertRefusedLike(await postText(text), 400, detail);
    });
  }

  for (const [name, text] of [
    ['nesting of 32 levels', nested(32)],
    ['constructor without prototype', within('"constructor":{"name":"x"}')],
    ['prototype without constructor', within('"prototype":{}')],
    ['names that objects inherit', within('"toString":1,"hasOwnProperty":null,"valueOf":[]')],
    [
      'unknown members of any number',
      within('"x":1e999,"y":-0,"z":123456789012345678901234567890'),
    ],
    ['unknown members that cannot be stored', within('"x":"\\u0000\\ud800","\\u0000":1')],
    ['white space around tokens', JSON.stringify(checkoutBody(), null, '\t')],
    ['white space around the body', `\r\n ${valid} \n`],
  ] as const) {
    test(`${name}: accepted`, async () => {
      assert.deepEqual((await postText(text)).status, 200);
    });
  }

  for (const [name, bytes] of [
    ['a lone continuation byte', [0x80]],
    ['an overlong slash', [0xc0, 0xaf]],
    ['half a surrogate pair', [0xed, 0xa0, 0x80]],
    ['beyond U+10FFFF', [0xf4, 0x90, 0x80, 0x80]],
    ['a cut-off sequence', [0xe2, 0x82]],
    ['Latin-1', [0xe9]],
  ] as const) {
    test(`invalid UTF-8 is malformed, even in a member that is ignored: ${name}`, async () => {
      const text = within('"x":"<here>"');
      const [head = '', tail = ''] = text.split('<here>');
      const answer = await postBytes(
        Buffer.concat([Buffer.from(head), Buffer.from(bytes), Buffer.from(tail)]),
      );
      assertRefused(answer, 400, 'The body is not valid UTF-8.');
    });
  }

  const sized = (bytes: number) => {
    const empty = within('"x":""');
    return empty.replace('"x":""', () => `"x":"${'x'.repeat(bytes - Buffer.byteLength(empty))}"`);
  };
  test('a body of 256 KiB is read', async () => {
    assert.equal((await postText(sized(256 * 1024))).status, 200);
  });
  for (const bytes of [256 * 1024 + 1, 2 * 1024 * 1024]) {
    test(`a body of ${bytes} bytes is refused`, async () => {
      const answer = await postText(sized(bytes));
      assertRefused(answer, 400, 'The body is larger than 256 KiB.');
    });
  }

  for (const type of [
    'application/json',
    'application/json; charset=utf-8',
    'application/json;charset=UTF-8',
    'Application/JSON',
    'application/json ; profile="x"',
  ]) {
    test(`Content-Type ${type} is accepted`, async () => {
      assert.equal((await postText(valid, { 'content-type': type })).status, 200);
    });
  }
  for (const type of [
    'text/plain',
    'text/json',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/vnd.api+json',
    'application/jsonx',
    'text/plain, application/json',
    'json',
    'application/',
    '/',
    ';',
    '',
  ]) {
    test(`Content-Type "${type}" is refused`, async () => {
      assertRefused(
        await postText(valid, { 'content-type': type }),
        400,
        'The Content-Type header must be application/json.',
      );
    });
  }
  for (const [charset, named] of [
    ['iso-8859-1', 'iso-8859-1'],
    ['"UTF-16"', 'UTF-16'],
    ['x'.repeat(99), `${'x'.repeat(40)}…`],
  ] as const) {
    test(`the charset ${charset.slice(0, 20)} is refused by its name`, async () => {
      assertRefused(
        await postText(valid, { 'content-type': `application/json; charset=${charset}` }),
        400,
        `The Content-Type header names the charset ${named}: send the body in UTF-8.`,
      );
    });
  }
  for (const encoding of ['gzip', 'br', 'deflate', 'gzip, br', undefined]) {
    test(`a compressed body is refused as such: ${encoding ?? 'gzip without a header'}`, async () => {
      const answer = await postBytes(
        gzipSync(valid),
        encoding === undefined ? {} : { 'content-encoding': encoding },
      );
      assertRefused(
        answer,
        400,
        `The body is compressed (${encoding ?? 'gzip'}): send it uncompressed, without a Content-Encoding header.`,
      );
    });
  }
  test('Content-Encoding: identity is accepted', async () => {
    assert.equal((await postText(valid, { 'content-encoding': 'identity' })).status, 200);
  });

  test('a missing Content-Type is refused, with or without a body', async () => {
    for (const payload of [valid, undefined]) {
      const response = await service.app.inject({
        method: 'POST',
        url: '/api/checkouts',
        headers: { authorization: `Bearer ${unsigned.client_secret}` },
        ...(payload && { payload: Buffer.from(payload) }),
      });
      assert.equal(response.statusCode, 400);
      assert.deepEqual(
        response.json(),
        errorBody(400, 'The Content-Type header must be application/json.'),
      );
    }
  });
});

describe('internal faults', () => {
  const fault = 'Something went wrong on our side and nothing was changed. Try again with backoff.';

  test('a 500 commits nothing, fails no other request of its batch, and leaves the key free', async () => {
    const { pool } = service.deps.database;
    await pool.query(
      `alter table checkouts add constraint fault check (client_reference_id <> 'cursed')`,
    );
    const caller = await createAccount(service);
    const create = (client_reference_id: string, key?: string) =>
      send(service, caller, 'POST', '/api/checkouts', {
        body: checkoutBody({ client_reference_id }),
        ...(key && { headers: { 'idempotency-key': key } }),
      });
    try {
      const answers = await inParallel(20, (index) =>
        index === 7 ? create('cursed', 'key') : create(`order-${index}`),
      );
      assert.deepEqual(countStatuses(answers), { 200: 19, 500: 1 });
      assertRefused(answers[7] as Answer, 500, fault);
    } finally {
      await pool.query('alter table checkouts drop constraint fault');
    }
    const { rows } = await pool.query(
      'select number from checkouts where merchant_id = $1 order by number',
      [caller.merchant.id],
    );
    assert.deepEqual(
      rows.map(({ number }) => number),
      Array.from({ length: 19 }, (_, i) => i + 1),
    );
    const retried = await create('cursed', 'key');
    assert.equal(retried.status, 200);
    assert.equal(retried.headers['idempotent-replayed'], undefined);
  });

  test('connections that die around COMMIT lose no acknowledged checkout and duplicate none', async () => {
    const caller = await createAccount(service);
    const { pool } = service.deps.database;
    const answered: string[] = [];
    let running = true;
    const load = inParallel(8, async (worker) => {
      for (let index = 0; index < 25; index++) {
        const answer = await send(service, caller, 'POST', '/api/checkouts', {
          body: checkoutBody({ client_reference_id: `${worker}-${index}` }),
        });
        assert.equal(answer.status, 200, JSON.stringify(answer.body));
        answered.push(answer.body.data.id);
      }
    }).finally(() => {
      running = false;
    });
    for (let round = 0; running && round < 8; round++) {
      // This ends all connections of the service to this database.
      await pool
        .query(
          `select pg_terminate_backend(pid) from pg_stat_activity
           where datname = current_database() and application_name = 'tranche'
             and pid <> pg_backend_pid()`,
        )
        .catch(() => {});
      for (let turn = 0; turn < 200; turn++) await new Promise(setImmediate);
    }
    await load;
    const { rows } = await pool.query(
      `select id, number, client_reference_id from checkouts
       where merchant_id = $1 order by number`,
      [caller.merchant.id],
    );
    assert.deepEqual(new Set(rows.map(({ id }) => id)), new Set(answered));
    assert.equal(new Set(rows.map((row) => row.client_reference_id)).size, 200);
    assert.deepEqual(
      rows.map(({ number }) => number),
      Array.from({ length: 200 }, (_, i) => i + 1),
    );
  });
});
