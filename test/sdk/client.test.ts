import assert from 'node:assert/strict';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { inspect } from 'node:util';
import { createIntegration } from '#merchants/integrations/create-integration.ts';
import { insertLimit } from '#merchants/integrations/integration.sql.ts';
import { transaction } from '#platform/database/transaction.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { makeDuePayouts } from '#purchases/payouts/make-payouts.ts';
import { setTerms } from '#purchases/payouts/set-terms.ts';
import { type NewEntry, postEntries } from '#record/ledger/post-entries.ts';
import {
  BadRequestError,
  ConnectionError,
  type MerchantClient,
  NotFoundError,
  RateLimitedError,
  ServerError,
  Tranche,
  TrancheError,
  type TrancheOptions,
  UnauthorizedError,
  UnprocessableError,
} from '../../sdk/src/index.ts';
import { frozenClock } from '../support/expectations.ts';
import { wholeTerms } from '../support/money.ts';
import {
  type Account,
  checkoutBody,
  completeTestCheckout,
  createAccount,
  createCheckout,
  liftLimits,
  type Service,
  sign,
  startService,
} from '../support/service.ts';
import { until } from '../support/until.ts';

// The SDK against the real service on a real port. A proxy between them causes the faults.

const clock = frozenClock();
let service: Service;
let address: string;
let proxy: Proxy;

before(async () => {
  service = await startService({ clock });
  address = await service.app.listen({ host: '127.0.0.1', port: 0 });
  proxy = await startProxy();
});
after(async () => {
  proxy.close();
  service.app.server.closeAllConnections();
  await service.close();
});

type Passed = { method: string; url: string; headers: http.IncomingHttpHeaders; raw: Buffer };
type Trouble = 'drop_before' | 'drop_after' | 'hang' | number | null;
type Proxy = {
  url: string;
  passed: Passed[];
  /** Faults for the next requests, in order; later requests pass. */
  troubles: Trouble[];
  close(): void;
};

async function startProxy(): Promise<Proxy> {
  const server = http.createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const raw = Buffer.concat(chunks);
    const { method = '', url = '', headers } = request;
    proxy.passed.push({ method, url, headers, raw });
    const trouble = proxy.troubles.shift() ?? null;
    if (trouble === 'hang') return;
    if (trouble === 'drop_before') return void request.socket.destroy();
    if (typeof trouble === 'number') {
      response.writeHead(trouble, trouble === 307 ? { location: '/elsewhere' } : {});
      return void response.end('<h1>Oh dear</h1>');
    }
    const sent = http.request(`${address}${url}`, { method, headers }, (answer) => {
      // The time for which a refusal asks passes at once on the service's clock.
      clock.advance({ seconds: Number(answer.headers['retry-after'] ?? 0) });
      if (trouble === 'drop_after') return void request.socket.destroy();
      response.writeHead(answer.statusCode ?? 0, answer.headers);
      answer.pipe(response);
    });
    sent.end(raw);
  });
  // A pause of this process must not end a connection that is about to be used again.
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    passed: [],
    troubles: [],
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

function clientOf(
  account: Pick<Account, 'client_secret' | 'signing_key'>,
  options: Partial<TrancheOptions> = {},
): Tranche {
  return new Tranche({
    baseUrl: address,
    clientSecret: account.client_secret,
    signingKey: account.signing_key,
    ...options,
  });
}

/** A client through the proxy, with an empty record of requests. */
function troubled(account: Account, troubles: Trouble[], options: Partial<TrancheOptions> = {}) {
  proxy.passed.length = 0;
  proxy.troubles = [...troubles];
  return clientOf(account, { baseUrl: proxy.url, ...options });
}

const { checkout: fields } = checkoutBody();

async function countCheckouts({ merchant }: Account): Promise<number> {
  const { rows } = await service.deps.database.pool.query(
    'select count(*)::int as count from checkouts where merchant_id = $1',
    [merchant.id],
  );
  return rows[0].count;
}

async function failure(work: Promise<unknown>): Promise<TrancheError> {
  const error = await work.then(
    () => assert.fail('it did not fail'),
    (reason) => reason,
  );
  assert.ok(error instanceof TrancheError, inspect(error));
  return error;
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

describe('a merchant', () => {
  test('creates, reads and lists checkouts and refunds, and reads its configuration', async () => {
    const account = await createAccount(service);
    const tranche = clientOf(account);

    const config = await tranche.config();
    assert.equal(config.id, account.merchant.id);
    assert.deepEqual(config.attributes.rules[0]?.terms, [1, 3]);

    const created = await tranche.checkouts.create(fields);
    assert.match(created.payment_url, /\/pay\//);
    const checkout = await tranche.checkouts.get(created.id);
    assert.equal(checkout.attributes.status, 'received');
    assert.equal(checkout.attributes.client_reference_id, 'order-1001');

    await completeTestCheckout(service, account.merchant, created.id);
    const one = await tranche.refunds.create({ checkout_id: created.id, amount: 50_000 });
    const two = await tranche.refunds.create({ checkout_id: created.id, amount: 50_000 });
    assert.notEqual(one.id, two.id, 'two refunds of the same amount are two refunds');
    assert.deepEqual(await tranche.refunds.get(one.id), one);
    assert.deepEqual(await all(tranche.refunds.list()), [two, one]);
    const [listed] = await all(tranche.checkouts.list());
    assert.equal(listed?.attributes.status, 'successful');
  });

  test('sends exactly the bytes that are signed', async () => {
    const tranche = troubled(await createAccount(service), [500, null]);
    const name = 'Zoë’s “Karoo” boots \u{1F97E} / \\ 10<9 \u2028';
    await tranche.checkouts.create({
      ...fields,
      customer: { email: 'zoe@example.com', first_name: undefined, last_name: 'van der Merwe' },
      line_items: [{ name, amount: 150_000, quantity: 1 }],
    });
    const [first, second] = proxy.passed;
    assert.ok(first && second);
    assert.equal(JSON.parse(first.raw.toString()).checkout.line_items[0].name, name);
    assert.deepEqual(first.raw, second.raw);
    assert.equal(first.headers['x-signature'], second.headers['x-signature']);
    assert.equal(first.headers['idempotency-key'], second.headers['idempotency-key']);
  });

  test('may choose the idempotency key, and a second client with it creates nothing new', async () => {
    const account = await createAccount(service);
    const options = { idempotencyKey: 'order-1001/1' };
    const one = await clientOf(account).checkouts.create(fields, options);
    const two = await clientOf(account).checkouts.create(fields, options);
    assert.equal(one.id, two.id);
    assert.equal(await countCheckouts(account), 1);
  });
});

test('an intermediary can do the same for each merchant that it manages, and for no other', async () => {
  const managed = await createAccount(service);
  const second = await createAccount(service);
  const other = await createAccount(service);
  const credentials = await createIntegration(service.deps, 'test', {
    managed_merchant_ids: [managed.merchant.id, second.merchant.id],
    refund_mode: 'manual',
  });
  await liftLimits(service.deps, credentials.id);
  const platform = clientOf(credentials);
  const merchant = platform.forMerchant(managed.merchant.id);

  assert.equal((await merchant.config()).id, managed.merchant.id);
  const { id } = await merchant.checkouts.create(fields);
  await completeTestCheckout(service, managed.merchant, id);
  const refund = await merchant.refunds.create({ checkout_id: id, amount: 100 });
  assert.deepEqual(await all(merchant.refunds.list()), [refund]);
  assert.deepEqual(
    (await all(merchant.checkouts.list())).map((each) => each.id),
    [id],
  );
  assert.equal((await platform.checkouts.get(id)).id, id);

  const misdirected = { ...fields, merchant_id: other.merchant.id };
  await merchant.checkouts.create(misdirected);
  assert.deepEqual([await countCheckouts(managed), await countCheckouts(other)], [2, 0]);

  const link = await merchant.paymentLinks.create({
    amount: 45_000,
    currency: 'ZAR',
    client_reference_id: 'link',
  });
  const owned = [
    (client: MerchantClient) => client.checkouts.get(id),
    (client: MerchantClient) => client.refunds.get(refund.id),
    (client: MerchantClient) => client.refunds.create({ checkout_id: id, amount: 100 }),
    (client: MerchantClient) => client.paymentLinks.get(link.id),
  ];
  for (const ask of owned) await ask(merchant);
  // The id of another managed merchant's row is not enough.
  const sibling = platform.forMerchant(second.merchant.id);
  for (const ask of owned) assert.ok((await failure(ask(sibling))) instanceof NotFoundError);
  assert.equal((await all(merchant.refunds.list())).length, 2);

  const stranger = platform.forMerchant(other.merchant.id);
  const refused = [
    () => stranger.config(),
    () => stranger.checkouts.create(fields),
    () => all(stranger.checkouts.list()),
    () => all(stranger.refunds.list()),
  ];
  for (const ask of refused) assert.ok((await failure(ask())) instanceof NotFoundError);
  assert.throws(() => platform.forMerchant(''), /merchantId/);
});

describe('payouts', () => {
  let payee: Account;
  before(async () => {
    payee = await createAccount(service);
    const { deps } = service;
    const { id: merchant_id } = payee.merchant;
    await setTerms(deps, 'nomsa', merchant_id, wholeTerms);
    for (const week of [0, 1]) {
      const at = timestamp(deps.clock.now().add({ hours: 24 * (7 * week + 1) }));
      const amounts = { gross: 100_000, fee: 5_000, vat: 750, net: 94_250 };
      const sales: NewEntry[] = [];
      for (let order = 0; order < 3; order += 1) {
        const checkout_id = await createCheckout(service, payee);
        sales.push({ kind: 'sale', checkout_id, ...amounts });
      }
      const of = { merchant_id, currency: 'ZAR', at };
      await transaction(deps, ({ db }) => postEntries(deps, db, of, sales));
      const now = () => deps.clock.now().add({ hours: 24 * 7 * (week + 1) });
      await makeDuePayouts({ ...deps, clock: { ...deps.clock, now } });
    }
  });

  test('are listed newest first, page after page', async () => {
    const tranche = troubled(payee, []);
    const found = await all(tranche.payouts.list({ itemsPerPage: 1 }));
    assert.equal(proxy.passed.length, 2);
    const dates = found.map(({ attributes }) => attributes.business_date);
    assert.equal(dates.length, 2);
    assert.deepEqual(dates, dates.toSorted().reverse());
    for (const { type, attributes } of found) {
      assert.equal(type, 'payouts');
      const { amount, currency, status, number_of_lines } = attributes;
      assert.deepEqual([amount, currency, status, number_of_lines], [282_750, 'ZAR', 'draft', 3]);
    }
    assert.deepEqual(await all(tranche.payouts.list()), found);
    assert.deepEqual(await all(clientOf(await createAccount(service)).payouts.list()), []);
  });

  test('are shown with their lines, all of them or a page', async () => {
    const tranche = clientOf(payee);
    const [newest] = await all(tranche.payouts.list());
    assert.ok(newest);
    const { attributes, ...rest } = await tranche.payouts.get(newest.id);
    const { lines, ...others } = attributes;
    assert.deepEqual({ ...rest, attributes: others }, newest);
    assert.equal(
      lines.reduce((sum, { net }) => sum + net, 0),
      attributes.amount,
    );
    assert.ok(lines.every(({ gross, fee, vat, net }) => gross === fee + vat + net));
    const linesOf = async (page: number) =>
      (await tranche.payouts.get(newest.id, { page, itemsPerPage: 2 })).attributes.lines;
    assert.deepEqual([...(await linesOf(1)), ...(await linesOf(2))], lines);
    assert.deepEqual(await linesOf(3), []);
  });

  test('are read through an intermediary, and never those of another merchant', async () => {
    const [newest] = await all(clientOf(payee).payouts.list());
    assert.ok(newest);
    const credentials = await createIntegration(service.deps, 'test', {
      managed_merchant_ids: [payee.merchant.id],
      refund_mode: 'manual',
    });
    await liftLimits(service.deps, credentials.id);
    const merchant = clientOf(credentials).forMerchant(payee.merchant.id);
    assert.equal((await all(merchant.payouts.list())).length, 2);
    assert.equal((await merchant.payouts.get(newest.id)).id, newest.id);
    const stranger = clientOf(await createAccount(service));
    const elsewhere = clientOf(credentials).forMerchant((await createAccount(service)).merchant.id);
    for (const other of [stranger, elsewhere]) {
      assert.ok((await failure(other.payouts.get(newest.id))) instanceof NotFoundError);
    }
    assert.ok((await failure(all(elsewhere.payouts.list()))) instanceof NotFoundError);
  });

  test('are read again after a failure of the network', async () => {
    const tranche = troubled(payee, ['drop_before', 502, null, 'drop_after', 500]);
    const [newest] = await all(tranche.payouts.list());
    assert.ok(newest);
    assert.equal((await tranche.payouts.get(newest.id)).id, newest.id);
    assert.equal(proxy.passed.length, 6);
  });
});

describe('a list', () => {
  test('is read to its end at the pace of the rate limit, each item once', async () => {
    const account = await createAccount(service);
    const ids: string[] = [];
    for (let count = 0; count < 5; count += 1) ids.unshift(await createCheckout(service, account));
    const slow = await createLimited(account.merchant.id);
    const tranche = troubled({ ...account, ...slow }, []);
    const found: string[] = [];
    for await (const { id } of tranche.checkouts.list({ itemsPerPage: 2 })) {
      // A new checkout pushes the others to later pages.
      if (found.length === 0) await createCheckout(service, account);
      found.push(id);
    }
    assert.deepEqual(found, ids);
    const pages = proxy.passed.map(({ url }) => new URL(url, address).searchParams);
    assert.ok(pages.length > 3, 'the limit was met on the way');
    assert.ok(pages.every((query) => query.get('page[items]') === '2'));
  });

  test('has only the orders with the given reference', async () => {
    const tranche = clientOf(await createAccount(service));
    const [, { id }] = [
      await tranche.checkouts.create(fields),
      await tranche.checkouts.create({ ...fields, client_reference_id: 'the one' }),
    ];
    const found = await all(tranche.checkouts.list({ clientReferenceId: 'the one' }));
    assert.deepEqual(
      found.map((one) => one.id),
      [id],
    );
    assert.deepEqual(await all(tranche.refunds.list({ clientReferenceId: 'the one' })), []);
  });

  test('requests no page before the loop needs it, and stops waiting on abort', async () => {
    const account = await createAccount(service, { limits: 'spec' });
    await createCheckout(service, account);
    const tranche = troubled(account, []);
    for await (const _ of tranche.checkouts.list({ itemsPerPage: 1 })) break;
    assert.equal(proxy.passed.length, 1);

    const controller = new AbortController();
    const listing = all(tranche.checkouts.list({ signal: controller.signal }));
    const refused = assert.rejects(listing, /enough/);
    await until('the refusal', () => proxy.passed.length === 2);
    controller.abort(new Error('enough'));
    await refused;
    assert.equal(proxy.passed.length, 2);
  });

  test('sends the secret only to the base address, whatever a link says', async () => {
    // The service is configured with another address, so its links lead there.
    const account = await createAccount(service);
    await createCheckout(service, account);
    await createCheckout(service, account);
    assert.notEqual(service.deps.baseUrl, address);
    const tranche = clientOf(account);
    assert.equal((await all(tranche.checkouts.list({ itemsPerPage: 1 }))).length, 2);
  });
});

/** Another integration of the merchant, whose limit is one list request a second. */
async function createLimited(merchant_id: string) {
  const credentials = await createIntegration(service.deps, 'test', {
    merchant_id,
    refund_mode: 'manual',
  });
  await insertLimit(service.deps.database.db, {
    integration_id: credentials.id,
    endpoint: 'GET /api/checkouts',
    max_requests: 1,
    window_seconds: 1,
  });
  return credentials;
}

describe('what is refused is thrown', () => {
  const unknown = '0199a8f2-31b4-7c05-8e6d-5f0a9b3c7e24';
  const cases: {
    name: string;
    status: number;
    code: string;
    type: typeof TrancheError;
    detail: RegExp;
    credentials?: object;
    ask(tranche: Tranche): Promise<unknown>;
  }[] = [
    {
      name: 'a signature by another key',
      status: 400,
      code: 'bad_request',
      type: BadRequestError,
      detail: /does not match the body/,
      credentials: { signing_key: `sig_sandbox_${'a'.repeat(43)}` },
      ask: (tranche) => tranche.checkouts.create(fields),
    },
    {
      name: 'an unknown client secret',
      status: 401,
      code: 'unauthorized',
      type: UnauthorizedError,
      detail: /Bearer token/,
      credentials: { client_secret: 'cs_sandbox_of_nobody' },
      ask: (tranche) => tranche.config(),
    },
    {
      name: 'a checkout that does not exist',
      status: 404,
      code: 'not_found',
      type: NotFoundError,
      detail: /./,
      ask: (tranche) => tranche.checkouts.get(unknown),
    },
    {
      name: 'a refund that does not exist',
      status: 404,
      code: 'not_found',
      type: NotFoundError,
      detail: /./,
      ask: (tranche) => tranche.refunds.get('../config'),
    },
    {
      name: 'a payout that does not exist',
      status: 404,
      code: 'not_found',
      type: NotFoundError,
      detail: /no payout with that ID/,
      ask: (tranche) => tranche.payouts.get(unknown),
    },
    {
      name: 'a page of lines before the first',
      status: 400,
      code: 'bad_request',
      type: BadRequestError,
      detail: /page\[number\]/,
      ask: (tranche) => tranche.payouts.get(unknown, { page: 0 }),
    },
    {
      name: 'an amount that no band holds',
      status: 422,
      code: 'unprocessable_entity',
      type: UnprocessableError,
      detail: /Amount has to be between/,
      ask: (tranche) => tranche.checkouts.create({ ...fields, amount: 1 }),
    },
  ];
  for (const { name, status, code, type, detail, credentials, ask } of cases) {
    test(name, async () => {
      const account = { ...(await createAccount(service)), ...credentials };
      const error = await failure(ask(troubled(account, [])));
      assert.ok(error instanceof type);
      assert.deepEqual([error.status, error.code, error.name], [status, code, type.name]);
      assert.match(error.detail, detail);
      assert.match(error.requestId ?? '', /^[0-9a-f-]{36}$/);
      assert.ok(error.message.includes(error.requestId ?? '-'));
      assert.equal(proxy.passed.length, 1, 'it is not sent again');
    });
  }

  test('several bad fields at once, each with its own sentence', async () => {
    const tranche = clientOf(await createAccount(service));
    const wrong = { ...fields, currency: 'USD', customer: { email: 'x', phone_number: '1' } };
    const { errors, detail } = await failure(tranche.checkouts.create(wrong));
    assert.ok(errors.length >= 2);
    for (const each of errors) assert.ok(detail.includes(each.detail));
  });

  test('an id that would be another path, before anything is sent', async () => {
    const tranche = troubled(await createAccount(service), []);
    for (const id of ['', '.', '..', undefined as unknown as string]) {
      await assert.rejects(tranche.checkouts.get(id), TypeError);
      await assert.rejects(tranche.payouts.get(id), TypeError);
    }
    assert.deepEqual(proxy.passed, []);
  });

  test('an answer that does not come from the service', async () => {
    const account = await createAccount(service);
    const redirected = await failure(troubled(account, [307]).config());
    assert.deepEqual([redirected.status, redirected.code], [307, 'http_307']);
    assert.equal(proxy.passed.length, 1);
    const page = await failure(troubled(account, [200]).config());
    assert.deepEqual([page.status, page.code], [200, 'not_json']);
  });
});

describe('a mistake of the caller throws at once, and nothing is sent', () => {
  const cases: [string, RegExp, (tranche: Tranche) => Promise<unknown>][] = [
    ...['', ' ', 'a\n', 'order-1001 ', 'Zoë', 'a'.repeat(256), null, 1001].map(
      (key): (typeof cases)[number] => [
        `the key ${inspect(key).slice(0, 20)}`,
        /idempotencyKey must be/,
        (tranche) => tranche.checkouts.create(fields, { idempotencyKey: key as string }),
      ],
    ),
    ...[-1, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 31, '3', null].flatMap((value) =>
      (['timeoutMs', 'maxRetries', 'maxWaitMs'] as const).map((name): (typeof cases)[number] => [
        `${name} ${inspect(value)}`,
        new RegExp(`${name} must be a number`),
        (tranche) => tranche.config({ [name]: value }),
      ]),
    ),
    [
      'what is not JSON',
      /BigInt/,
      (tranche) => tranche.checkouts.create({ ...fields, amount: 1n as unknown as number }),
    ],
  ];
  test('as a TypeError', async () => {
    const tranche = troubled(await createAccount(service), []);
    for (const [name, message, ask] of cases) {
      await assert.rejects(ask(tranche), { name: 'TypeError', message }, name);
    }
    assert.deepEqual(proxy.passed, []);
  });
});

describe('a request that can be repeated is retried', () => {
  const troubles: Trouble[] = ['drop_before', 'drop_after', 500, 502, 'hang'];
  for (const trouble of troubles) {
    test(`after ${trouble}, and creates nothing twice`, async () => {
      const account = await createAccount(service);
      const isHang = trouble === 'hang';
      const options = isHang ? { timeoutMs: 500, maxRetries: 50 } : {};
      const tranche = troubled(account, [trouble, trouble], options);
      const { id } = await tranche.checkouts.create(fields);
      assert.equal((await tranche.checkouts.get(id)).id, id);
      assert.equal(await countCheckouts(account), 1);
      const posts = proxy.passed.filter(({ method }) => method === 'POST');
      // On a busy machine more answers may come later than the client's timeout.
      assert.ok(posts.length === 3 || (isHang && posts.length > 3), `${posts.length} requests`);
      assert.equal(new Set(posts.map(({ headers }) => headers['idempotency-key'])).size, 1);
    });
  }

  test('after a rate limit, once its window has passed', async () => {
    const account = await createAccount(service, { limits: 'spec' });
    const tranche = troubled(account, []);
    await tranche.checkouts.create(fields);
    await tranche.checkouts.create(fields);
    assert.equal(await countCheckouts(account), 2);
    assert.equal(proxy.passed.length, 3, 'one was refused and waited for its second');
  });

  test('but not if the rate limit asks for a longer wait than allowed', async () => {
    const account = await createAccount(service, { limits: 'spec' });
    const tranche = troubled(account, []);
    for (let count = 0; count < 5; count += 1) await tranche.config();
    const error = await failure(tranche.config());
    assert.ok(error instanceof RateLimitedError);
    assert.deepEqual([error.status, error.code], [429, 'rate_limited']);
    assert.match(error.detail, /Try again in 3600 seconds/);
    assert.equal(error.retryAfterSeconds, 3_600);
    assert.equal(proxy.passed.length, 6);
  });

  test('in a list no later than the client or the call allows', async () => {
    const account = await createAccount(service, { limits: 'spec' });
    let requests = 0;
    const counting: typeof fetch = (...args) => {
      requests += 1;
      return fetch(...args);
    };
    const patient = clientOf(account, { fetch: counting });
    await all(patient.checkouts.list());
    const impatient = clientOf(account, { fetch: counting, maxWaitMs: 0 });
    const explicit = { maxWaitMs: undefined };
    for (const listing of [
      impatient.checkouts.list(),
      impatient.checkouts.list(explicit),
      patient.checkouts.list({ maxWaitMs: 0 }),
    ]) {
      assert.ok((await failure(all(listing))) instanceof RateLimitedError);
    }
    assert.equal(requests, 4);
  });

  test('at most as often as allowed', async () => {
    const account = await createAccount(service);
    const always: Trouble[] = Array(10).fill(500);
    const error = await failure(troubled(account, always, { maxRetries: 2 }).config());
    assert.ok(error instanceof ServerError);
    assert.equal(proxy.passed.length, 3);

    const dropped = await failure(troubled(account, ['drop_before']).config({ maxRetries: 0 }));
    assert.ok(dropped instanceof ConnectionError);
    assert.equal(dropped.code, 'connection_failed');

    // The request may still be on its way when the client gives up.
    const late = troubled(account, ['hang'], { maxRetries: 0, timeoutMs: 100 });
    const timeout = await failure(late.checkouts.create(fields));
    assert.ok(timeout instanceof ConnectionError);
    assert.deepEqual([timeout.status, timeout.code], [null, 'timeout']);
  });

  test('until the signal aborts, also during a request', async () => {
    const account = await createAccount(service);
    const reason = new Error('the shopper has gone');
    const stopped = AbortSignal.abort(reason);
    const idle = troubled(account, []);
    await assert.rejects(idle.config({ signal: stopped }), reason);
    assert.deepEqual(proxy.passed, []);
    for (const trouble of ['hang', 500] as const) {
      const controller = new AbortController();
      const tranche = troubled(account, Array(10).fill(trouble), { maxRetries: 10 });
      const asking = tranche.config({ signal: controller.signal });
      const refused = assert.rejects(asking, reason);
      setTimeout(() => controller.abort(reason), 100);
      await refused;
    }
  });
});

describe('secrets', () => {
  test('appear in nothing that is printed or thrown', async () => {
    const account = await createAccount(service);
    const secrets = [account.client_secret, account.signing_key];
    const tranche = troubled(account, ['drop_before']);
    const shown: unknown[] = [tranche, tranche.forMerchant(account.merchant.id)];
    shown.push(await failure(tranche.config({ maxRetries: 0 })));
    shown.push(await failure(tranche.checkouts.create({ ...fields, amount: 1 })));
    const bad = { clientSecret: `${account.client_secret}\n` };
    const swapped = { clientSecret: account.signing_key };
    for (const options of [bad, swapped, { signingKey: account.client_secret }]) {
      try {
        clientOf(account, options);
        assert.fail('it was accepted');
      } catch (error) {
        assert.ok(error instanceof TypeError);
        shown.push(error);
      }
    }
    for (const each of shown) {
      const text = `${inspect(each, { depth: 10, showHidden: true })}${JSON.stringify(each)}${each}`;
      for (const secret of secrets) assert.ok(!text.includes(secret), text);
    }
  });

  test('that cannot be valid are refused at once, with a reason', async () => {
    const secret = `cs_sandbox_${'a'.repeat(43)}`;
    const key = `sig_sandbox_${'a'.repeat(43)}`;
    const right = { baseUrl: 'http://localhost:3000/', clientSecret: secret, signingKey: key };
    for (const host of [
      'http://localhost:3000/',
      'http://127.9.9.9',
      'http://[::1]:1',
      'https://a',
    ]) {
      assert.ok(new Tranche({ ...right, baseUrl: host }));
    }
    const cases: [Partial<TrancheOptions>, RegExp][] = [
      [{ baseUrl: 'localhost:3000' }, /baseUrl/],
      [{ baseUrl: 'http://user@localhost' }, /baseUrl/],
      [{ baseUrl: 'https://:password@pay.example' }, /baseUrl/],
      [{ baseUrl: 'http://pay.example' }, /baseUrl must be https/],
      [{ baseUrl: 'http://127.0.0.1.pay.example' }, /baseUrl must be https/],
      [{ baseUrl: 'http://localhost.pay.example' }, /baseUrl must be https/],
      [{ baseUrl: 'http://[::2]' }, /baseUrl must be https/],
      [{ baseUrl: 'ftp://localhost' }, /baseUrl/],
      [{ timeoutMs: Number.NaN }, /timeoutMs must be a number/],
      [{ maxRetries: -1 }, /maxRetries must be a number/],
      [{ maxWaitMs: Number.POSITIVE_INFINITY }, /maxWaitMs must be a number/],
      [{ fetch: {} as typeof fetch }, /fetch must be a function/],
      [{ clientSecret: '' }, /clientSecret is missing/],
      [{ clientSecret: key }, /clientSecret is a signing key: the two were swapped/],
      [{ signingKey: secret }, /signingKey is a client secret: the two were swapped/],
      [{ signingKey: `${key} ` }, /signingKey has white space/],
      [{ signingKey: key.replace('sandbox', 'production') }, /different environments/],
    ];
    for (const [options, message] of cases) {
      assert.throws(() => new Tranche({ ...right, ...options }), message);
    }
  });
});

test('the signature equals the service’s own', async () => {
  const account = await createAccount(service);
  await troubled(account, []).checkouts.create(fields);
  const [sent] = proxy.passed;
  assert.ok(sent);
  assert.equal(sent.headers['x-signature'], sign(account.signing_key, sent.raw.toString()));
});
