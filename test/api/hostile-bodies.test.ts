import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import net from 'node:net';
import { after, before, describe, test } from 'node:test';
import fc from 'fast-check';
import { commonHeaders } from '#platform/http/common-headers.ts';
import { anyCharacter } from '../support/any-character.ts';
import {
  createIntermediary,
  errorBody,
  nothingHere,
  uuidPattern,
} from '../support/expectations.ts';
import {
  type Account,
  checkoutBody,
  createAccount,
  createSuccessfulCheckout,
  runs,
  type Service,
  send,
  sign,
  startService,
} from '../support/service.ts';

let service: Service;
let account: Account;
/** An account that never signs. */
let unsigned: Account;
let platform: Account;
let paid: string;
let port: number;
before(async () => {
  service = await startService();
  account = await createAccount(service);
  unsigned = await createAccount(service);
  const managed = await createIntermediary(service, [account.merchant.id]);
  platform = { ...managed, merchant: account.merchant };
  paid = await createSuccessfulCheckout(service, account);
  await service.app.listen({ host: '127.0.0.1', port: 0 });
  port = (service.app.server.address() as net.AddressInfo).port;
});
after(() => service.close());

const codes: Record<string, string> = {
  '400': 'bad_request',
  '401': 'unauthorized',
  '404': 'not_found',
  '422': 'unprocessable_entity',
};

type Response = { statusCode: number; headers: Record<string, unknown>; body: string };

/** Asserts a success or a refusal of the contract, in the contract's envelope. */
function assertWellFormed(response: Response): void {
  const { statusCode, headers, body } = response;
  assert.equal(headers['content-type'], 'application/json; charset=utf-8');
  assert.match(String(headers['x-request-id']), uuidPattern);
  const value = JSON.parse(body);
  if (statusCode === 200) {
    assert.ok(value.data);
    return;
  }
  const code = codes[statusCode];
  assert.ok(code, `${statusCode} ${body}`);
  assert.deepEqual(Object.keys(value), ['errors']);
  assert.ok(value.errors.length >= 1 && value.errors.length <= 50, `${value.errors.length} errors`);
  for (const error of value.errors) {
    assert.deepEqual(Object.keys(error), ['status', 'code', 'title', 'detail']);
    assert.equal(error.status, String(statusCode));
    assert.equal(error.code, code);
    assert.equal(typeof error.title, 'string');
    assert.ok(error.detail.length > 0 && error.detail.isWellFormed());
    if (statusCode === 422 && /^Validation/.test(error.detail)) {
      assert.match(error.detail, /^Validation failed: /);
    }
  }
}

async function post(
  caller: Account,
  url: string,
  payload: string | Buffer,
  headers: Record<string, string> = {},
): Promise<Response> {
  return await service.app.inject({
    method: 'POST',
    url,
    headers: {
      authorization: `Bearer ${caller.client_secret}`,
      'content-type': 'application/json',
      ...headers,
    },
    payload,
  });
}

const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
after(() => agent.destroy());

async function getOverHttp(caller: Account, path: string): Promise<Response> {
  const request = http.get({
    agent,
    host: '127.0.0.1',
    port,
    path,
    headers: { authorization: `Bearer ${caller.client_secret}` },
  });
  const [response] = (await once(request, 'response')) as [http.IncomingMessage];
  const body = Buffer.concat(await response.toArray()).toString();
  return { statusCode: response.statusCode ?? 0, headers: response.headers, body };
}

const fullBody = () =>
  checkoutBody({
    merchant_id: account.merchant.id,
    customer: {
      email: 'thandi@example.com',
      first_name: 'Thandi',
      last_name: 'Nkosi',
      phone_number: '+27821234567',
      billing_address: '1 Long Street',
    },
    line_items: [
      { name: 'Boots', amount: 100_000, quantity: 1 },
      { name: 'Socks', amount: 25_000, quantity: 2 },
    ],
  }) as Record<string, unknown>;
const refundBody = () => ({ checkout_id: paid, amount: 1 }) as Record<string, unknown>;

const anyText = fc.string({ unit: anyCharacter, maxLength: 40 });
const oddText = fc.oneof(
  anyText,
  fc.constantFrom(
    '',
    '\0',
    '\ud800',
    '__proto__',
    'constructor',
    'ZAR',
    'https://[::1]:99999/',
    'a@b.co',
  ),
);
const anyNumber = fc.oneof(
  fc.integer(),
  fc.double(),
  fc.constantFrom(0, -0, 1, -1, 1e300, 2 ** 53, 2 ** 63, 10_000, 2_000_000, 0.1),
);
const anyValue: fc.Arbitrary<unknown> = fc.oneof(
  anyNumber,
  oddText,
  fc.constantFrom(null, true, false, [], {}),
  fc.jsonValue({ maxDepth: 4 }),
);

/** All places in a value, as paths. */
function placesOf(value: unknown, path: string[] = []): string[][] {
  if (typeof value !== 'object' || value === null) return [path];
  return [path, ...Object.entries(value).flatMap(([name, one]) => placesOf(one, [...path, name]))];
}

function put(target: Record<string, unknown>, path: string[], value: unknown, remove: boolean) {
  const last = path.at(-1);
  const owner = path.slice(0, -1).reduce<unknown>((at, name) => (at as never)?.[name], target);
  if (last === undefined || typeof owner !== 'object' || owner === null) return;
  if (remove) delete (owner as Record<string, unknown>)[last];
  else (owner as Record<string, unknown>)[last] = value;
}

const endpoint = fc.constantFrom<
  ['/api/checkouts' | '/api/refunds', () => Record<string, unknown>]
>(['/api/checkouts', fullBody], ['/api/refunds', refundBody]);
const who = fc.constantFrom('account', 'platform', 'unsigned');
const callerOf = (name: string) => ({ account, platform, unsigned })[name] as Account;

async function postSigned(name: string, url: string, body: string): Promise<Response> {
  const caller = callerOf(name);
  const signature = sign(caller.signing_key, body);
  return await post(caller, url, body, name === 'unsigned' ? {} : { 'x-signature': signature });
}

describe('no request gives a 500, and every refusal is well-formed', () => {
  test('any JSON', async () => {
    const json = fc.oneof(
      fc.json({ maxDepth: 6 }),
      fc
        .dictionary(fc.constantFrom('checkout', 'checkout_id', 'amount', 'x'), anyValue)
        .map((one) => JSON.stringify(one)),
    );
    await fc.assert(
      fc.asyncProperty(who, endpoint, json, async (name, [url], body) => {
        assertWellFormed(await postSigned(name, url, body));
      }),
      { numRuns: runs(1_500) },
    );
  });

  test('a valid body with some of its values replaced, removed or added', async () => {
    const change = fc.record({
      place: fc.nat(),
      value: anyValue,
      kind: fc.constantFrom('replace', 'replace', 'remove', 'add'),
      name: oddText,
    });
    await fc.assert(
      fc.asyncProperty(
        who,
        endpoint,
        fc.array(change, { minLength: 1, maxLength: 4 }),
        async (name, [url, valid], changes) => {
          const value = valid();
          for (const { place, kind, value: other, name: member } of changes) {
            const places = placesOf(value).slice(1);
            const path = places[place % places.length] ?? [];
            if (kind === 'add') put(value, [...path.slice(0, -1), member], other, false);
            else put(value, path, other, kind === 'remove');
          }
          const body = JSON.stringify(value);
          const response = await postSigned(name, url, body);
          assertWellFormed(response);
          if (response.statusCode !== 200 || url !== '/api/checkouts') return;
          // An accepted body is stored as it was sent. A member that is null is not stored.
          const { id } = JSON.parse(response.body).data;
          const row = await service.deps.database.db
            .selectFrom('checkouts')
            .select(['amount', 'client_reference_id', 'customer', 'line_items'])
            .where('id', '=', id)
            .executeTakeFirstOrThrow();
          const { checkout } = JSON.parse(body);
          assert.equal(row.amount, checkout.amount);
          assert.equal(row.client_reference_id, checkout.client_reference_id);
          const sent = checkout.customer.billing_address ?? undefined;
          assert.equal(row.customer.billing_address, sent);
          assert.equal(row.line_items.length, checkout.line_items?.length ?? 0);
        },
      ),
      { numRuns: runs(2_000) },
    );
  });

  test('a valid text with some of its bytes changed, lost, doubled or moved', async () => {
    const edit = fc.record({
      at: fc.nat(),
      kind: fc.constantFrom('set', 'insert', 'delete', 'double'),
      byte: fc.oneof(fc.nat(255), fc.constantFrom(...Buffer.from('{}[]",:\\u0 \n-.e'))),
      length: fc.integer({ min: 1, max: 60 }),
    });
    await fc.assert(
      fc.asyncProperty(
        endpoint,
        fc.array(edit, { minLength: 1, maxLength: 3 }),
        async ([url, valid], edits) => {
          let bytes = Buffer.from(JSON.stringify(valid()));
          for (const { at, kind, byte, length } of edits) {
            const place = at % (bytes.length + 1);
            const [head, tail] = [bytes.subarray(0, place), bytes.subarray(place)];
            if (kind === 'set') bytes = Buffer.concat([head, Buffer.of(byte), tail.subarray(1)]);
            else if (kind === 'insert') bytes = Buffer.concat([head, Buffer.of(byte), tail]);
            else if (kind === 'delete') bytes = Buffer.concat([head, tail.subarray(length)]);
            else bytes = Buffer.concat([head, tail.subarray(0, length), tail]);
          }
          assertWellFormed(await post(unsigned, url, bytes));
        },
      ),
      { numRuns: runs(1_500) },
    );
  });

  test('any bytes', async () => {
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 300 }),
      fc
        .uint8Array({ maxLength: 40 })
        .map((some) =>
          Buffer.concat([Buffer.from('{"checkout":{"x":"'), some, Buffer.from('"}}')]),
        ),
      fc
        .array(fc.constantFrom(...'{}[]",:\\u0041 1e-.+tfn'), { maxLength: 200 })
        .map((some) => Buffer.from(some.join(''))),
    );
    await fc.assert(
      fc.asyncProperty(endpoint, bytes, async ([url], some) => {
        assertWellFormed(await post(unsigned, url, Buffer.from(some)));
      }),
      { numRuns: runs(700) },
    );
  });

  test('any header values', async () => {
    // Characters that an HTTP parser lets through.
    const value = fc.oneof(
      fc
        .array(
          fc.constantFrom(
            ...Array.from({ length: 256 }, (_, code) => String.fromCharCode(code)).filter(
              (one) => one === '\t' || (one >= ' ' && one !== '\x7f'),
            ),
          ),
          { maxLength: 120 },
        )
        .map((characters) => characters.join('')),
      fc.base64String({ minLength: 80, maxLength: 140 }),
      fc.constantFrom('application/json', 'Bearer ', 'a, b', '__proto__', '0'),
    );
    const name = fc.constantFrom(
      'authorization',
      'x-signature',
      'idempotency-key',
      'content-type',
      'accept',
      'x-forwarded-for',
      'x-request-id',
      'accept-version',
      'content-encoding',
      'user-agent',
      'traceparent',
    );
    let address = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.dictionary(name, value, { minKeys: 1, maxKeys: 3, noNullPrototype: true }),
        fc.boolean(),
        async (headers, isPost) => {
          address += 1;
          const response = await service.app.inject({
            method: isPost ? 'POST' : 'GET',
            url: '/api/checkouts',
            remoteAddress: `10.${address >> 16}.${(address >> 8) & 255}.${address & 255}`,
            headers: {
              authorization: `Bearer ${unsigned.client_secret}`,
              'content-type': 'application/json',
              ...headers,
            },
            ...(isPost && { payload: JSON.stringify(fullBody()) }),
          });
          assertWellFormed(response);
        },
      ),
      { numRuns: runs(800) },
    );
  });

  test('any paths and queries', async () => {
    const segment = fc.oneof(
      fc.string({ maxLength: 20 }),
      fc.webSegment(),
      fc.uuid(),
      fc.constantFrom(
        '%',
        '%zz',
        '%00',
        '..',
        '%2e%2e',
        '%2f',
        '\\',
        ';',
        "'",
        'a'.repeat(600),
        '*',
        ':id',
      ),
    );
    const path = fc.oneof(
      segment.map((one) => `/api/checkouts/${one}`),
      segment.map((one) => `/api/refunds/${one}`),
      segment.map((one) => `/api/merchants/${one}/config`),
      fc.array(segment, { maxLength: 3 }).map((all) => `/api/${all.join('/')}`),
      fc.constantFrom('/api/checkouts', '/api/refunds', '/api/config'),
    );
    const name = fc.constantFrom(
      'page[number]',
      'page[items]',
      'filter[merchant_id]',
      'page',
      '__proto__',
      'constructor',
    );
    const query = fc
      .array(fc.tuple(name, segment), { maxLength: 3 })
      .map((pairs) => pairs.map(([key, value]) => `${key}=${value}`).join('&'));
    await fc.assert(
      fc.asyncProperty(who, path, query, async (caller, one, parameters) => {
        // This uses a real connection, so that no client library corrects the request line.
        const url = `${one}?${parameters}`.replace(/[^\x21-\x7e]/gu, (character) =>
          character.isWellFormed() ? encodeURIComponent(character) : '%ff',
        );
        assertWellFormed(await getOverHttp(callerOf(caller), url));
      }),
      { numRuns: runs(1_000) },
    );
  });
});

/** Sends bytes over a connection of its own and reads until the server closes it. */
async function converse(...chunks: (string | Buffer)[]): Promise<string> {
  const socket = net.connect(port, '127.0.0.1');
  const received: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => received.push(chunk));
  // A server that has refused may close the connection while we still write.
  socket.on('error', () => {});
  await once(socket, 'connect');
  for (const chunk of chunks) socket.write(chunk);
  await once(socket, 'close');
  return Buffer.concat(received).toString();
}

type Message = { status: number; headers: Record<string, string>; body: string };

/** The answers in the received bytes, interim ones included. */
function readMessages(text: string): Message[] {
  const messages: Message[] = [];
  let rest = text;
  while (rest !== '') {
    const end = rest.indexOf('\r\n\r\n');
    assert.notEqual(end, -1, rest);
    const [statusLine = '', ...lines] = rest.slice(0, end).split('\r\n');
    const headers = Object.fromEntries(
      lines.map((line) => [
        line.slice(0, line.indexOf(':')).toLowerCase(),
        line.slice(line.indexOf(':') + 1).trim(),
      ]),
    );
    const bytes = Buffer.from(rest.slice(end + 4));
    const length = Number(headers['content-length'] ?? 0);
    const body = bytes.subarray(0, length).toString();
    messages.push({ status: Number(statusLine.split(' ')[1]), headers, body });
    rest = bytes.subarray(Buffer.byteLength(body)).toString();
  }
  return messages;
}

async function exchange(...chunks: (string | Buffer)[]): Promise<Message[]> {
  return readMessages(await converse(...chunks));
}

function assertMessage(message: Message | undefined, status: number): void {
  assert.ok(message);
  assert.equal(message.status, status, message.body);
  assertWellFormed({ ...message, statusCode: message.status });
}

describe('over a real connection', () => {
  const head = (line: string, ...headers: string[]) =>
    `${[line, 'Host: x', `Authorization: Bearer ${unsigned.client_secret}`, ...headers].join('\r\n')}\r\n\r\n`;
  const json = 'Content-Type: application/json';
  const close = 'Connection: close';
  const body = JSON.stringify(checkoutBody());

  test('a method that a path does not have is a 404', async () => {
    for (const method of ['PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE', 'PROPFIND']) {
      for (const path of ['/api/checkouts', '/api/config', '/api/refunds/x']) {
        const [answer] = await exchange(head(`${method} ${path} HTTP/1.1`, close));
        assertMessage(answer, 404);
        assert.deepEqual(JSON.parse(answer?.body ?? ''), errorBody(404, nothingHere));
      }
    }
  });

  test('HEAD has the headers of GET and no body', async () => {
    for (const path of ['/api/config', '/api/checkouts', '/healthz', '/docs', '/']) {
      const [get, headOnly] = await Promise.all(
        ['GET', 'HEAD'].map((method) => converse(head(`${method} ${path} HTTP/1.1`, close))),
      );
      const headersOf = (text = '') =>
        text
          .slice(0, text.indexOf('\r\n\r\n'))
          .toLowerCase()
          .replace(/(x-request-id|date|ratelimit-remaining|ratelimit-reset): [^\r]*/g, '$1')
          .split('\r\n')
          .sort();
      assert.deepEqual(headersOf(headOnly), headersOf(get), path);
      assert.ok(headOnly?.endsWith('\r\n\r\n'), path);
    }
  });

  for (const [name, bytes] of [
    ['no HTTP at all', 'GARBAGE\r\n\r\n'],
    ['a TLS greeting', Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03])],
    ['an unknown version', 'GET /api/config HTTP/9.9\r\nHost: x\r\n\r\n'],
    ['an unknown method', 'FETCH /api/config HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['a header without a colon', 'GET /api/config HTTP/1.1\r\nHost: x\r\nnonsense\r\n\r\n'],
    ['a NUL in a header', 'GET /api/config HTTP/1.1\r\nHost: x\r\nX-Y: a\0b\r\n\r\n'],
    ['a space in the path', 'GET /api/ config HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['a negative length', 'POST /api/checkouts HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n'],
    [
      'two lengths',
      'POST /api/checkouts HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}',
    ],
    [
      'a length and chunks',
      'POST /api/checkouts HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    ],
  ] as [string, string | Buffer][]) {
    test(`malformed HTTP is a 400 in the envelope: ${name}`, async () => {
      const [answer] = await exchange(bytes);
      assertMessage(answer, 400);
      assert.deepEqual(
        JSON.parse(answer?.body ?? ''),
        errorBody(400, 'The request is not valid HTTP.'),
      );
      assert.equal(answer?.headers.connection, 'close');
      for (const [header, value] of Object.entries(commonHeaders('http://localhost'))) {
        assert.equal(answer?.headers[header], value, header);
      }
    });
  }

  test('headers that are too long are refused as too long', async () => {
    for (const bytes of [
      `GET /api/config HTTP/1.1\r\nHost: x\r\nX-Y: ${'y'.repeat(32 * 1024)}\r\n\r\n`,
      `GET /api/config?x=${'y'.repeat(32 * 1024)} HTTP/1.1\r\nHost: x\r\n\r\n`,
    ]) {
      const [answer] = await exchange(bytes);
      assertMessage(answer, 400);
      const detail = 'The request line and headers are larger than 16 KiB together.';
      assert.deepEqual(JSON.parse(answer?.body ?? ''), errorBody(400, detail));
    }
  });

  test('a chunked body is read', async () => {
    const pieces = [body.slice(0, 20), body.slice(20, 21), body.slice(21)];
    const chunked = pieces.map((piece) => `${piece.length.toString(16)}\r\n${piece}\r\n`);
    const [answer] = await exchange(
      head('POST /api/checkouts HTTP/1.1', json, close, 'Transfer-Encoding: chunked'),
      ...chunked,
      '0\r\n\r\n',
    );
    assertMessage(answer, 200);
  });

  test('a chunked body has the same size limit', async () => {
    const piece = `8000\r\n${'x'.repeat(0x8000)}\r\n`;
    const [answer] = await exchange(
      head('POST /api/checkouts HTTP/1.1', json, close, 'Transfer-Encoding: chunked'),
      ...Array<string>(9).fill(piece),
      '0\r\n\r\n',
    );
    assertMessage(answer, 400);
    assert.match(answer?.body ?? '', /larger than 256 KiB/);
  });

  test('a malformed chunk is a 400', async () => {
    const [answer] = await exchange(
      head('POST /api/checkouts HTTP/1.1', json, 'Transfer-Encoding: chunked'),
      'zz\r\n',
    );
    assert.equal(answer?.status, 400);
    assert.deepEqual(Object.keys(JSON.parse(answer?.body ?? '')), ['errors']);
  });

  test('a client that sends far too much still gets its answer', async () => {
    for (let round = 0; round < runs(10); round += 1) {
      const answer = await fetch(`http://127.0.0.1:${port}/api/checkouts`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${account.client_secret}`,
          'content-type': 'application/json',
        },
        body: Buffer.alloc(20_000_000, 'x'),
      });
      assert.equal(answer.status, 400);
      assert.match(await answer.text(), /larger than 256 KiB/);
    }
  });

  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
    for (const [type, text] of [
      ['application/json', '{bad'],
      ['application/json', ''],
      ['application/json', '{"__proto__":{}}'],
      ['application/json', `"${'x'.repeat(2_000_000)}"`],
      ['application/xml', '<a/>'],
      ['no media type', 'x'],
    ] as const) {
      test(`${method} of ${text.length} bytes of ${type} to an unknown path is a 404`, async () => {
        const answer = await fetch(`http://127.0.0.1:${port}/api/nowhere`, {
          method,
          headers: { 'content-type': type },
          body: text,
        });
        assert.equal(answer.status, 404);
        assert.deepEqual(await answer.json(), errorBody(404, nothingHere));
      });
    }
  }

  test('a request without Host or with an unknown Expect is answered', async () => {
    const bare = `GET /api/config HTTP/1.1\r\nConnection: close\r\n\r\n`;
    const [withoutHost] = await exchange(bare);
    assertMessage(withoutHost, 401);
    const [expecting] = await exchange(head('GET /api/nowhere HTTP/1.1', close, 'Expect: wonders'));
    assertMessage(expecting, 404);
  });

  test('Expect: 100-continue is answered before the request', async () => {
    const [interim, answer] = await exchange(
      head(
        'POST /api/checkouts HTTP/1.1',
        json,
        close,
        'Expect: 100-continue',
        `Content-Length: ${body.length}`,
      ),
      body,
    );
    assert.equal(interim?.status, 100);
    assertMessage(answer, 200);
  });

  test('pipelined requests on one connection are answered in order', async () => {
    const one = head('POST /api/checkouts HTTP/1.1', json, `Content-Length: ${body.length}`) + body;
    const bad = `${head('POST /api/checkouts HTTP/1.1', json, 'Content-Length: 1')}{`;
    const answers = await exchange(one + bad + one + head('GET /api/nothing HTTP/1.1', close));
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 400, 200, 404],
    );
    for (const answer of answers) assertMessage(answer, answer.status);
  });

  test('a Content-Length that is too small cuts the body, and the rest is a 400', async () => {
    const answers = await exchange(
      head('POST /api/checkouts HTTP/1.1', json, 'Content-Length: 10') + body,
    );
    // The first answer may or may not be sent before the rest is refused.
    assert.ok(answers.length >= 1);
    for (const answer of answers) assertMessage(answer, 400);
  });

  test('a client that disconnects in the middle of its body does not affect others', async () => {
    const sockets = await Promise.all(
      Array.from({ length: 20 }, async () => {
        const socket = net.connect(port, '127.0.0.1');
        await once(socket, 'connect');
        socket.write(
          `${head('POST /api/checkouts HTTP/1.1', json, 'Content-Length: 500')}{"checkout"`,
        );
        return socket;
      }),
    );
    for (const socket of sockets) socket.destroy();
    const answer = await send(service, unsigned, 'GET', '/api/config');
    assert.equal(answer.status, 200);
  });

  test('an absolute URL in the request line is served by this service', async () => {
    const [answer] = await exchange(head('GET http://evil.example/api/nothing HTTP/1.1', close));
    assertMessage(answer, 404);
  });
});
