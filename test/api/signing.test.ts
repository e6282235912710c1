import assert from 'node:assert/strict';
import { createHash, createHmac, randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { sealingContext } from '#merchants/integrations/callers.ts';
import { insertSigningKey, moveExpiry } from '#merchants/integrations/credential.sql.ts';
import { moveSigningRequired } from '#merchants/integrations/integration.sql.ts';
import { refusedCutoff } from '#merchants/integrations/keep-refused-request.ts';
import {
  deleteRefusedBefore,
  listRefusedRequests,
} from '#merchants/integrations/refused-request.sql.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { isLockAwaited } from '../support/database-server.ts';
import {
  assertRefused,
  assertRefusedLike,
  frozenClock,
  inParallel,
  mustSign,
} from '../support/expectations.ts';
import {
  type Account,
  type Answer,
  checkoutBody,
  completeTestCheckout,
  createAccount,
  createCheckout,
  createSuccessfulCheckout,
  runs,
  type Service,
  send,
  sign,
  startService,
} from '../support/service.ts';

const clock = frozenClock();
let service: Service;
let account: Account;
before(async () => {
  service = await startService({ clock });
  account = await createAccount(service);
});
after(() => service.close());

/** Sends exactly this text, with exactly this signature header. */
const post = (
  body: string,
  signature: string | null,
  caller: Account = account,
  path = '/api/checkouts',
  on: Service = service,
) =>
  send(on, caller, 'POST', path, {
    body,
    signed: false,
    ...(signature !== null && { headers: { 'x-signature': signature } }),
  });

const valid = JSON.stringify(checkoutBody());
const withMember = (raw: string) => valid.replace('"currency"', () => `${raw},"currency"`);
const mismatch = 'The X-Signature header does not match the body.';

test('a refused request is kept for the signature doctor: bounded, for three days, without secrets', async () => {
  const own = await createAccount(service);
  const other = await createAccount(service);
  const kept = () => listRefusedRequests(service.deps.database.db, own.id);
  // Neither a request with an unknown secret nor one whose body is a callback is kept.
  await post(valid, 'wrong', { ...own, client_secret: `${own.client_secret}x` });
  await post('{"status":"successful"}', 'wrong', own);
  assert.deepEqual(await kept(), []);

  const secretive = `${valid.slice(0, -1)} }`.replace('R', own.client_secret);
  const long = `{"checkout":"${'a'.repeat(20_000)}"}`;
  const sent = [long, secretive, ...Array.from({ length: 11 }, () => valid)];
  for (const body of sent.toReversed()) await post(body, `x-${own.signing_key}`, own);
  const rows = await kept();
  assert.equal(rows.length, 10);
  // Rows from the same millisecond come in any order.
  const find = (body: string) => rows.find(({ body_bytes }) => body_bytes === body.length);
  assert.equal(find(long)?.body.length, 16_384);
  assert.ok(find(secretive));
  const third = find(valid);
  const expected = sign(own.signing_key, valid);
  assert.deepEqual(
    [third?.request, third?.body, third?.expected],
    ['POST /api/checkouts', valid, expected],
  );
  for (const secret of [own.client_secret, own.signing_key]) {
    assert.ok(!JSON.stringify(rows).includes(secret));
  }
  assert.deepEqual(await listRefusedRequests(service.deps.database.db, other.id), []);

  const { db } = service.deps.database;
  assert.equal(await deleteRefusedBefore(db, refusedCutoff(clock), 100), 0);
  const later = { ...clock, now: () => clock.now().add({ hours: 72 }) };
  assert.ok((await deleteRefusedBefore(db, refusedCutoff(later), 100)) >= 10);
  assert.deepEqual(await kept(), []);
});

test('a signature is 88 characters of standard Base64 that end in =', () => {
  assert.match(sign(account.signing_key, valid), /^[A-Za-z0-9+/]{86}==$/);
});

describe('a compact body verifies over its own bytes, however it was written', () => {
  for (const [name, raw] of [
    ['escaped slashes', '"x":"https:\\/\\/shop.example\\/"'],
    ['escaped characters', '"x":"caf\\u00e9 \\u00E9 \\ud83d\\ude00"'],
    ['characters as they are', '"x":"café 😀 \u2028"'],
    ['an escaped name', '"\\u0078":1'],
    ['1.0', '"x":1.0'],
    ['exponents', '"x":1E+2,"y":1e2,"z":-0.0'],
    ['64-bit integers', '"x":9223372036854775807,"y":-9223372036854775808'],
    ['more digits than a double has', '"x":0.1000000000000000055511151231257827'],
    ['integer-like names out of order', '"2":"b","10":"c","1":"a"'],
    ['names that objects inherit', '"toString":1,"constructor":2'],
    ['empty containers', '"x":{},"y":[]'],
    ['white space and brackets within strings', '"x":" { \\" \\\\ : , } \\n"'],
    ['an escaped quote at the end', '"x":"\\\\\\""'],
  ] as const) {
    test(name, async () => {
      const body = withMember(raw);
      const answer = await post(body, sign(account.signing_key, body));
      assert.equal(answer.status, 200, JSON.stringify(answer.body));
      // A proxy has added insignificant white space to the same body.
      const spaced = ` {\n\t"checkout" :\r\n ${body.slice('{"checkout":'.length, -1)} } \n`;
      assert.equal((await post(spaced, sign(account.signing_key, body))).status, 200);
    });
  }

  test('and pretty-printed on the way', async () => {
    const pretty = JSON.stringify(checkoutBody(), null, 2);
    assert.equal((await post(pretty, sign(account.signing_key, valid))).status, 200);
  });

  test('on refunds too', async () => {
    const checkout_id = await createSuccessfulCheckout(service, account);
    const body = `{"amount":1.0,"checkout_id":"${checkout_id}","x":"\\/"}`;
    const answer = await post(body, sign(account.signing_key, body), account, '/api/refunds');
    assert.equal(answer.status, 200);
  });
});

describe('a wrong signature', () => {
  const hmac = (key: string | Buffer, text: string, algorithm = 'sha512') =>
    createHmac(algorithm, key).update(text);
  const pretty = JSON.stringify(checkoutBody(), null, 2);
  const cases: [string, (caller: Account) => string, RegExp | null, string?][] = [
    ['is made up', () => Buffer.alloc(64, 1).toString('base64'), null],
    ['is not a signature', () => 'zzz', /The value has 3 characters/],
    ['is empty', () => '', /The value has 0 characters/],
    ['is hex', ({ signing_key }) => hmac(signing_key, valid).digest('hex'), /The value is hex/],
    [
      'is URL-safe Base64',
      ({ signing_key }) =>
        hmac(signing_key, valid)
          .digest('base64')
          .replaceAll('+', '-')
          .replaceAll('/', '_')
          .replace(/[A-Z]/, '-'),
      /URL-safe Base64/,
    ],
    [
      'has no padding',
      ({ signing_key }) => sign(signing_key, valid).slice(0, -2),
      /has no padding/,
    ],
    [
      'was made with the client secret',
      ({ client_secret }) => sign(client_secret, valid),
      /The signature was made with the client secret/,
    ],
    [
      'covers pretty-printed text, compact sent',
      ({ signing_key }) => sign(signing_key, pretty),
      /The signed text is pretty-printed/,
    ],
    [
      'covers pretty-printed text, pretty sent',
      ({ signing_key }) => sign(signing_key, pretty),
      /The signed text is pretty-printed/,
      pretty,
    ],
    [
      'covers a trailing newline',
      ({ signing_key }) => sign(signing_key, `${valid}\n`),
      /The signed text ends in a line break/,
    ],
    [
      'covers a trailing newline that was sent',
      ({ signing_key }) => sign(signing_key, `${valid}\n`),
      /The signed text ends in a line break/,
      `${valid}\n`,
    ],
    [
      'is a SHA-256 digest',
      ({ signing_key }) => hmac(signing_key, valid, 'sha256').digest('base64'),
      /SHA-256 digest: use HMAC-SHA512/,
    ],
    [
      'was made without a key',
      () => createHash('sha512').update(valid).digest('base64'),
      /plain digest, without a key/,
    ],
    ['covers another body', ({ signing_key }) => sign(signing_key, withMember('"x":1')), null],
    [
      'was made with the key without its prefix',
      ({ signing_key }) => sign(signing_key.replace('sig_sandbox_', ''), valid),
      /without its prefix/,
    ],
  ];
  for (const [name, signatureFor, hint, body = valid] of cases) {
    test(`${name}: 400 that shows the expected signature${hint ? ' and names the mistake' : ''}, even while signing is optional`, async () => {
      const caller = await createAccount(service);
      const answer = await post(body, signatureFor(caller), caller);
      const expected = `${mismatch} Expected ${sign(caller.signing_key, valid)}.`;
      if (hint === null) assertRefused(answer, 400, expected);
      else assertRefusedLike(answer, 400, hint);
      assert.ok(answer.body.errors[0].detail.startsWith(expected), answer.body.errors[0].detail);
      // The refused request created no checkout and did not make signing mandatory.
      assert.equal((await post(valid, null, caller)).status, 200);
      const list = await send(service, caller, 'GET', '/api/checkouts');
      assert.equal(list.body.data.length, 1);
    });
  }

  test('the expected signature that a refusal shows is accepted', async () => {
    const caller = await createAccount(service);
    const { body } = await post(pretty, 'x', caller);
    const [, shown = ''] = /Expected (\S{88})\./.exec(body.errors[0].detail) ?? [];
    assert.equal((await post(pretty, shown, caller)).status, 200);
  });

  test("another integration's key does not sign for this one", async () => {
    const other = await createAccount(service);
    assert.equal((await post(valid, sign(other.signing_key, valid))).status, 400);
  });

  test('is refused before the fields are validated', async () => {
    assertRefusedLike(await post('{"checkout":{}}', 'x'), 400, /does not match/);
  });
});

describe('the expected signature is never shown for a body that could be a callback', () => {
  const callback = {
    status: 'successful',
    amount: 150_000,
    currency: 'ZAR',
    client_reference_id: 'order-1001',
    number_of_payments: 1,
  };
  const many = '"status", "amount", "currency" and 2 more';
  for (const [path, body, others] of [
    ['/api/checkouts', callback, many],
    ['/api/refunds', callback, '"status", "currency", "client_reference_id" and 1 more'],
    ['/api/refunds', { x: 1, amount: 1 }, '"x"'],
    ['/api/refunds', { checkout_id: 'x', status: '', currency: '' }, '"status", "currency"'],
    ['/api/checkouts', { checkout: {}, ...callback }, many],
    ['/api/checkouts', { amount: 1 }, '"amount"'],
    ['/api/checkouts', { checkout_id: 'x', amount: 1 }, '"checkout_id", "amount"'],
    ['/api/refunds', { checkout: {} }, '"checkout"'],
    ['/api/refunds', { amount: 1, status: 'successful' }, '"status"'],
    ['/api/payment-links', { ...callback }, '"status", "number_of_payments"'],
    ['/api/checkouts', { ['x'.repeat(99)]: 1 }, `"${'x'.repeat(60)}…"`],
    ['/api/checkouts', {}, null],
    ['/api/refunds', {}, null],
  ] as const) {
    test(`${path} ${JSON.stringify(body).slice(0, 70)}`, async () => {
      const text = JSON.stringify(body);
      const answer = await post(text, Buffer.alloc(64).toString('base64'), account, path);
      const why = ` The expected signature is shown only for a body without other members than this endpoint takes; this one has ${others}.`;
      assertRefused(answer, 400, others === null ? mismatch : mismatch + why);
    });
  }

  test('but the mistake is still named', async () => {
    const text = JSON.stringify(callback);
    const hex = createHmac('sha512', account.signing_key).update(text).digest('hex');
    const answer = await post(text, hex, account, '/api/refunds');
    assertRefusedLike(
      answer,
      400,
      /^The X-Signature header does not match the body\. .* The value is hex/,
    );
    assert.ok(!answer.body.errors[0].detail.includes(sign(account.signing_key, text)));
  });

  test('it is shown for the shapes that the endpoints take', async () => {
    const caller = await createAccount(service);
    for (const [path, text] of [
      ['/api/checkouts', '{"checkout":{}}'],
      ['/api/checkouts', '{"checkout":null}'],
      ['/api/refunds', '{"checkout_id":"x","amount":1}'],
      ['/api/refunds', '{"amount":1,"checkout_id":"x"}'],
      ['/api/refunds', '{"amount":1}'],
    ] as const) {
      const { body } = await post(text, Buffer.alloc(64).toString('base64'), caller, path);
      assert.equal(
        body.errors[0].detail,
        `${mismatch} Expected ${sign(caller.signing_key, text)}.`,
      );
    }
  });
});

describe('the expected signature is shown 30 times an hour', () => {
  const wrong = Buffer.alloc(64).toString('base64');
  const hidden = `${mismatch} The expected signature was shown 30 times within an hour and is not shown again for now.`;
  const alertsOf = async (integration_id: string) =>
    await service.deps.database.db
      .selectFrom('alerts')
      .select(['kind', 'merchant_id'])
      .where('integration_id', '=', integration_id)
      .execute();

  test('not on the 31st, which alerts the operator once', async () => {
    const caller = await createAccount(service);
    const shown = `${mismatch} Expected ${sign(caller.signing_key, valid)}.`;
    for (let count = 1; count <= 29; count++) {
      assertRefused(await post(valid, wrong, caller), 400, shown);
    }
    assert.deepEqual(await alertsOf(caller.id), []);
    assertRefused(await post(valid, wrong, caller), 400, shown);
    for (let count = 31; count <= 35; count++) {
      assertRefused(await post(valid, wrong, caller), 400, hidden);
    }
    assert.deepEqual(await alertsOf(caller.id), [
      { kind: 'signature_mismatches', merchant_id: null },
    ]);

    // Correct requests still pass, and so do those of other integrations.
    assert.equal((await post(valid, sign(caller.signing_key, valid), caller)).status, 200);
    assert.match((await post(valid, wrong)).body.errors[0].detail, /Expected/);

    clock.advance({ minutes: 59, seconds: 59 });
    assertRefused(await post(valid, wrong, caller), 400, hidden);
    clock.advance({ seconds: 1 });
    assertRefused(await post(valid, wrong, caller), 400, shown);
  });

  test('exactly, under concurrency and across two processes on one database', async () => {
    const services = await inParallel(2, () =>
      startService({ clock, databaseUrl: service.databaseUrl, rateLimitStore: 'postgres' }),
    );
    try {
      const caller = await createAccount(service);
      const answers = await inParallel(80, (index) =>
        post(valid, wrong, caller, '/api/checkouts', services[index % 2]),
      );
      const shown = answers.filter(({ body }) => /Expected/.test(body.errors[0].detail));
      assert.equal(shown.length, 30);
      assert.equal((await alertsOf(caller.id)).length, 1);
    } finally {
      await Promise.all(services.map((one) => one.close()));
    }
  });
});

describe('signing is sticky', () => {
  const unsigned = (
    caller: Account,
    on: Service = service,
    path = '/api/checkouts',
    body = valid,
  ) => post(body, null, caller, path, on);
  const signed = (caller: Account, on: Service = service, body = valid) =>
    post(body, sign(caller.signing_key, body), caller, '/api/checkouts', on);

  test('unsigned requests are accepted until the first signed one, refused from then on', async () => {
    const caller = await createAccount(service);
    assert.equal((await unsigned(caller)).status, 200);
    assert.equal((await signed(caller)).status, 200);
    assertRefused(await unsigned(caller), 400, mustSign);
    assertRefused(await unsigned(caller, service, '/api/refunds', '{}'), 400, mustSign);
    clock.advance({ days: 400 });
    assertRefused(await unsigned(caller), 400, mustSign);
    assert.equal((await send(service, caller, 'GET', '/api/checkouts')).status, 200);
  });

  test('a signed POST whose key was taken does not make signing mandatory, because it did not succeed', async () => {
    const caller = await createAccount(service);
    const keyed = { 'idempotency-key': 'k1' };
    const first = await send(service, caller, 'POST', '/api/checkouts', {
      body: checkoutBody(),
      signed: false,
      headers: keyed,
    });
    assert.equal(first.status, 200);
    const other = checkoutBody({ client_reference_id: 'another' });
    const second = await send(service, caller, 'POST', '/api/checkouts', {
      body: other,
      headers: keyed,
    });
    assert.equal(second.status, 422);
    assert.equal((await unsigned(caller)).status, 200);
  });

  test('a signed retry makes signing mandatory, although it gets the first answer', async () => {
    const caller = await createAccount(service);
    const keyed = { 'idempotency-key': 'k1' };
    const request = { body: checkoutBody(), headers: keyed };
    const first = await send(service, caller, 'POST', '/api/checkouts', {
      ...request,
      signed: false,
    });
    assert.equal(first.status, 200);
    const retry = await send(service, caller, 'POST', '/api/checkouts', request);
    assert.equal(retry.headers['idempotent-replayed'], 'true');
    assert.deepEqual(retry.body, first.body);
    assertRefused(await unsigned(caller), 400, mustSign);
  });

  test('a signed refund makes signing mandatory as well', async () => {
    const caller = await createAccount(service);
    assert.equal((await unsigned(caller)).status, 200);
    const { body } = await unsigned(caller);
    const checkout = { merchant_id: caller.merchant.id, id: body.data.id };
    await completeTestCheckout(service, caller.merchant, checkout.id);
    const refund = JSON.stringify({ checkout_id: checkout.id, amount: 1 });
    assert.equal((await unsigned(caller, service, '/api/refunds', refund)).status, 200);
    const signature = sign(caller.signing_key, refund);
    assert.equal((await post(refund, signature, caller, '/api/refunds')).status, 200);
    assertRefused(await unsigned(caller, service, '/api/refunds', refund), 400, mustSign);
    assertRefused(await unsigned(caller), 400, mustSign);
  });

  test('a signed request that is refused does not make signing mandatory', async () => {
    const caller = await createAccount(service);
    const invalid = JSON.stringify(checkoutBody({ amount: 1 }));
    assert.equal((await signed(caller, service, invalid)).status, 422);
    const unknown = JSON.stringify({ checkout_id: randomUUID(), amount: 1 });
    const answer = await post(unknown, sign(caller.signing_key, unknown), caller, '/api/refunds');
    assert.equal(answer.status, 404);
    const received = JSON.stringify({
      checkout_id: (await unsigned(caller)).body.data.id,
      amount: 1,
    });
    const early = await post(received, sign(caller.signing_key, received), caller, '/api/refunds');
    assert.equal(early.status, 422);
    assert.equal((await unsigned(caller)).status, 200);
  });

  test('one integration does not make signing mandatory for another of the same merchant', async () => {
    const { createIntegration } = await import('#merchants/integrations/create-integration.ts');
    const caller = await createAccount(service);
    const second = await createIntegration(service.deps, 'test', {
      merchant_id: caller.merchant.id,
      refund_mode: 'manual',
    });
    assert.equal((await signed(caller)).status, 200);
    assert.equal((await unsigned({ ...second, merchant: caller.merchant })).status, 200);
  });

  test('an operator can make signing mandatory', async () => {
    const caller = await createAccount(service);
    await moveSigningRequired(service.deps.database.db, [caller.id], timestamp(clock.now()));
    assertRefused(await unsigned(caller), 400, mustSign);
  });

  test('at once, even on another process with a cached integration', async () => {
    const second = await startService({ clock, databaseUrl: service.databaseUrl });
    try {
      const caller = await createAccount(service);
      const { body } = await unsigned(caller, second);
      // The clock stands still, so the second process's cached integration never expires.
      assert.equal((await signed(caller, service)).status, 200);
      assertRefused(await unsigned(caller, second), 400, mustSign);
      assertRefused(await unsigned(caller, service), 400, mustSign);
      const checkout = { merchant_id: caller.merchant.id, id: body.data.id };
      await completeTestCheckout(service, caller.merchant, checkout.id);
      const refund = JSON.stringify({ checkout_id: checkout.id, amount: 1 });
      assertRefused(await unsigned(caller, second, '/api/refunds', refund), 400, mustSign);
    } finally {
      await second.close();
    }
  });

  for (const path of ['/api/checkouts', '/api/refunds'] as const) {
    test(`an unsigned request in flight when signing became mandatory is refused: ${path}`, async () => {
      const caller = await createAccount(service);
      const { body } = await unsigned(caller);
      const { id } = body.data;
      await completeTestCheckout(service, caller.merchant, id);
      const refund = JSON.stringify({ checkout_id: id, amount: 1 });

      // This is the transaction of a signed request that locked the integration first.
      const { pool } = service.deps.database;
      const rival = await pool.connect();
      try {
        await rival.query('begin');
        await rival.query('select 1 from integrations where id = $1 for no key update', [
          caller.id,
        ]);
        let answer: Answer | null = null;
        const waiting = unsigned(
          caller,
          service,
          path,
          path === '/api/refunds' ? refund : valid,
        ).then((one) => {
          answer = one;
        });
        for (let isWaiting = false; !isWaiting; ) {
          assert.equal(answer, null, 'it waits for the lock on the integration');
          isWaiting = await isLockAwaited(pool);
        }
        await rival.query('update integrations set signing_required_at = $2 where id = $1', [
          caller.id,
          timestamp(clock.now()),
        ]);
        await rival.query('commit');
        await waiting;
        assertRefused(answer as unknown as Answer, 400, mustSign);
      } finally {
        rival.release();
      }
    });
  }

  test('under concurrency: once a signed request is acknowledged, no unsigned one is accepted', async () => {
    const second = await startService({ clock, databaseUrl: service.databaseUrl });
    try {
      for (let round = 0; round < runs(40); round++) {
        const caller = await createAccount(service);
        // Both processes have cached that signing is optional.
        for (const one of [service, second]) await send(one, caller, 'GET', '/api/config');
        let isAcknowledged = false;
        const sentAfter: Answer[] = [];
        let accepted = 0;
        const first = signed(caller, round % 2 ? service : second).then((answer) => {
          assert.equal(answer.status, 200);
          isAcknowledged = true;
        });
        await inParallel(12, async (worker) => {
          const on = worker % 2 ? service : second;
          for (let index = 0; index < 6; index++) {
            const wasAcknowledged: boolean = isAcknowledged;
            const answer = await unsigned(caller, on);
            if (answer.status === 200) accepted += 1;
            else assertRefused(answer, 400, mustSign);
            if (wasAcknowledged) sentAfter.push(answer);
          }
        });
        await first;
        sentAfter.push(await unsigned(caller, service), await unsigned(caller, second));
        assert.deepEqual(
          sentAfter.filter(({ status }) => status !== 400),
          [],
        );
        const { rows } = await service.deps.database.pool.query(
          'select count(*) filter (where not signed)::int as unsigned from checkouts where merchant_id = $1',
          [caller.merchant.id],
        );
        assert.equal(rows[0].unsigned, accepted);
      }
    } finally {
      await second.close();
    }
  });
});

test('in production signing is mandatory from the start', async () => {
  const production = await startService({
    env: { TRANCHE_ENV: 'production', BASE_URL: 'https://pay.example' },
  });
  try {
    const caller = await createAccount(production);
    const unsigned = (path: string, body: object) =>
      send(production, caller, 'POST', path, { body, signed: false });
    assertRefused(await unsigned('/api/checkouts', checkoutBody()), 400, mustSign);
    assertRefused(await unsigned('/api/refunds', { checkout_id: 'x', amount: 1 }), 400, mustSign);
    await createCheckout(production, caller);
    // In production a callback may not go to loopback.
    const notify_url = 'https://127.0.0.1/';
    const answer = await send(production, caller, 'POST', '/api/checkouts', {
      body: checkoutBody({ notify_url }),
    });
    assertRefused(
      answer,
      422,
      'Validation failed: checkout.notify_url must have a public address.',
    );
  } finally {
    await production.close();
  }
});

test('during a rotation both signing keys verify, the newer one signs what is shown, and its first use is recorded', async () => {
  const caller = await createAccount(service);
  const { db } = service.deps.database;
  const newKey = `sig_sandbox_${'n'.repeat(43)}`;
  const id = randomUUID();
  const ends = clock.now().add({ hours: 24 });
  await moveExpiry(db, 'signing_keys', caller.id, timestamp(ends));
  clock.advance({ milliseconds: 1 });
  await insertSigningKey(db, {
    id,
    integration_id: caller.id,
    sealed_key: service.deps.sealing.seal(
      newKey,
      sealingContext({ id, integration_id: caller.id }),
    ),
    created_at: timestamp(clock.now()),
    expires_at: null,
    first_used_at: null,
  });
  const usedAt = async () =>
    (await db.selectFrom('signing_keys').select('first_used_at').where('id', '=', id).execute())[0]
      ?.first_used_at;
  assert.equal((await post(valid, sign(caller.signing_key, valid), caller)).status, 200);
  assert.equal(await usedAt(), null);
  const { body } = await post(valid, Buffer.alloc(64).toString('base64'), caller);
  assert.equal(body.errors[0].detail, `${mismatch} Expected ${sign(newKey, valid)}.`);
  const invalid = JSON.stringify(checkoutBody({ amount: 1 }));
  assert.equal((await post(invalid, sign(newKey, invalid), caller)).status, 422);
  assert.equal(await usedAt(), null);
  assert.equal((await post(valid, sign(newKey, valid), caller)).status, 200);
  assert.equal(await usedAt(), timestamp(clock.now()));
  assert.equal((await post(valid, sign(caller.signing_key, valid), caller)).status, 200);
  clock.set(ends.toString());
  assert.equal((await post(valid, sign(caller.signing_key, valid), caller)).status, 400);
  assert.equal((await post(valid, sign(newKey, valid), caller)).status, 200);
});
