import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { Compile } from 'typebox/compile';
import {
  createIntegration,
  type IssuedCredentials,
} from '#merchants/integrations/create-integration.ts';
import { readGuides } from '#operating/docs/guides.ts';
import type { Json, JsonObject, OpenApiDocument } from '#platform/http/openapi.ts';
import { signExample } from '#platform/http/openapi.ts';
import { endpointLimits } from '#platform/http/rate-limits.ts';
import { droppedFields, fieldMapping } from '#purchases/legacy/translate-checkout.ts';
import { frozenClock } from '../support/expectations.ts';
import { createPlugin, credentialsOf, legacyBody, sendLegacy, toForm } from '../support/legacy.ts';
import {
  type Account,
  type Answer,
  checkoutBody,
  createAccount,
  createCheckout,
  createSuccessfulCheckout,
  liftLimits,
  type Service,
  send,
  startService,
} from '../support/service.ts';

const root = path.join(import.meta.dirname, '../..');
const baseUrl = 'http://localhost:3000';
const documentPaths = {
  merchants: '/docs/api/v2',
  intermediaries: '/api-docs-intermediary',
  legacy: '/docs/api/v1',
};
type DocumentName = keyof typeof documentPaths;
const documentNames = Object.keys(documentPaths) as DocumentName[];
/** The audiences that v2 is described for. */
const audiences = ['merchants', 'intermediaries'] as const;
const pages = ['/docs', '/docs/intermediary'];

const clock = frozenClock();
let service: Service;
let documents: Record<DocumentName, OpenApiDocument>;

before(async () => {
  service = await startService({ clock });
  const read = async (url: string) => (await service.app.inject(url)).json();
  documents = {
    merchants: await read(documentPaths.merchants),
    intermediaries: await read(documentPaths.intermediaries),
    legacy: await read(documentPaths.legacy),
  };
});
after(() => service.close());

/** Reads Fastify's own tree of routes, so that our code does not decide what is compared. */
function listRegistered(): string[] {
  const parents: string[] = [];
  return service.app
    .printRoutes({ commonPrefix: false })
    .split('\n')
    .flatMap((line) => {
      const [, indent = '', part = '', methods] =
        /^(.*?)[├└]── (\S+)(?: \((.+)\))?$/u.exec(line) ?? [];
      const depth = indent.length / 4;
      const url = (parents[depth - 1] ?? '') + part.replace(/:(\w+)/g, '{$1}');
      parents[depth] = url;
      return (methods?.split(', ') ?? []).map((method) => `${method} ${url}`);
    })
    .filter((endpoint) => !endpoint.startsWith('HEAD '))
    .filter(
      (endpoint) =>
        !/ \/($|pay\/|link\/|docs|api-docs-|llms|favicon|healthz|readyz)/.test(endpoint),
    );
}

function endpointsOf(document: OpenApiDocument): string[] {
  return Object.entries(document.paths).flatMap(([url, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${url}`),
  );
}

function operationOf(document: OpenApiDocument, endpoint: string): JsonObject {
  const [method = '', url = ''] = endpoint.split(' ');
  const operation = document.paths[url]?.[method.toLowerCase()];
  assert(operation, `${endpoint} is described`);
  return operation;
}

/** Resolves references, so that a part of the document can be compiled by itself. */
function dereference(document: OpenApiDocument, node: Json): Json {
  if (Array.isArray(node)) return node.map((one) => dereference(document, one));
  if (typeof node !== 'object' || node === null) return node;
  if (typeof node.$ref === 'string') {
    const [, , kind = '', name = ''] = node.$ref.split('/');
    return dereference(document, document.components[kind]?.[name] as Json);
  }
  return Object.fromEntries(
    Object.entries(node).map(([name, value]) => [name, dereference(document, value)]),
  );
}

/** Forbids undocumented members: an answer may carry only what is described. */
function closed(node: Json): Json {
  if (Array.isArray(node)) return node.map(closed);
  if (typeof node !== 'object' || node === null) return node;
  const copy = Object.fromEntries(Object.entries(node).map(([name, one]) => [name, closed(one)]));
  return copy.type === 'object' && copy.properties
    ? { ...copy, additionalProperties: false }
    : copy;
}

function assertValid(schema: Json, value: unknown, about: string): void {
  const validator = Compile(schema as never);
  const errors = validator.Check(value) ? [] : validator.Errors(value);
  assert.deepEqual(errors, [], `${about}: ${JSON.stringify(value)}`);
}

type Described = {
  headers?: { [name: string]: JsonObject };
  content?: { 'application/json': { schema: Json; example?: Json; examples?: JsonObject } };
};

function assertDescribed(audience: DocumentName, endpoint: string, answer: Answer): void {
  const document = documents[audience];
  const about = `${endpoint} ${answer.status} for ${audience}`;
  const { responses } = operationOf(document, endpoint) as { responses: JsonObject };
  const response = responses[String(answer.status)];
  assert(response, `${about} is described`);
  const { content, headers = {} } = dereference(document, response) as Described;
  assertValid(closed(content?.['application/json'].schema as Json), answer.body, about);
  assert.match(String(answer.headers['x-request-id']), /^[0-9a-f-]{36}$/);
  for (const name of [
    'X-Request-Id',
    'RateLimit-Limit',
    'RateLimit-Remaining',
    'RateLimit-Reset',
    'Retry-After',
    'Idempotent-Replayed',
  ]) {
    if (answer.headers[name.toLowerCase()] === undefined) continue;
    assert(headers[name], `${about} has the header ${name}`);
  }
}

function exampleDetails(audience: DocumentName, endpoint: string, status: number): string[] {
  const document = documents[audience];
  const { responses } = operationOf(document, endpoint) as { responses: JsonObject };
  const { content } = dereference(document, responses[status] as Json) as Described;
  return Object.values(content?.['application/json'].examples ?? {}).flatMap((example) =>
    (example as { value: { errors: { detail: string }[] } }).value.errors.map((one) => one.detail),
  );
}

async function createIntermediary(accounts: Account[]): Promise<IssuedCredentials> {
  const credentials = await createIntegration(service.deps, 'test', {
    managed_merchant_ids: accounts.map(({ merchant }) => merchant.id),
    refund_mode: 'manual',
  });
  await liftLimits(service.deps, credentials.id);
  return credentials;
}

describe('the descriptions', () => {
  test('are valid under the linter, without a warning', async () => {
    const folder = await mkdtemp(path.join(tmpdir(), 'openapi-'));
    try {
      const files = [];
      for (const name of documentNames) {
        const file = path.join(folder, `${name}.json`);
        await writeFile(file, JSON.stringify(documents[name], null, 2));
        files.push(file);
      }
      const redocly = path.join(root, 'node_modules/@redocly/cli/bin/cli.js');
      const config = path.join(root, 'redocly.yaml');
      const { stdout, stderr } = await promisify(execFile)(
        process.execPath,
        [redocly, 'lint', '--config', config, ...files],
        {
          cwd: folder,
          env: {
            ...process.env,
            REDOCLY_TELEMETRY: 'off',
            REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true',
            NO_COLOR: '1',
          },
          timeout: 600_000,
        },
      );
      assert.doesNotMatch(stdout + stderr, /\bwarning/i);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });

  test('describe every route of the API, and no other', () => {
    const described = new Set(documentNames.flatMap((name) => endpointsOf(documents[name])));
    assert.deepEqual([...described].sort(), listRegistered().sort());
    // This endpoint shares the limit of POST /api/checkouts.
    described.delete('POST /payment/checkout');
    assert.deepEqual([...described].sort(), Object.keys(endpointLimits).sort());
  });

  test('are separate for merchants and intermediaries', () => {
    const { merchants, intermediaries } = documents;
    assert(merchants.paths['/api/config']);
    assert(!merchants.paths['/api/merchants/{merchant_id}/config']);
    assert(!JSON.stringify(merchants.paths).includes('merchant_id'));
    assert(!intermediaries.paths['/api/config']);
    assert(intermediaries.paths['/api/merchants/{merchant_id}/config']);

    const body = dereference(
      intermediaries,
      operationOf(intermediaries, 'POST /api/checkouts').requestBody as Json,
    ) as Described;
    const schema = body.content?.['application/json'].schema as {
      properties: { checkout: { required: string[] } };
    };
    assert(schema.properties.checkout.required.includes('merchant_id'));
    for (const endpoint of ['GET /api/checkouts', 'GET /api/refunds']) {
      const parameters = operationOf(intermediaries, endpoint).parameters as JsonObject[];
      const filter = parameters.find(({ name }) => name === 'filter[merchant_id]');
      assert.equal(filter?.required, true);
    }
  });

  test('name the base address, the limits and the answers that all endpoints share', () => {
    for (const name of documentNames) {
      const document = documents[name];
      assert.deepEqual(document.servers, [{ url: baseUrl }]);
      for (const endpoint of endpointsOf(document)) {
        const { responses } = operationOf(document, endpoint) as { responses: JsonObject };
        for (const status of ['200', '401', '429', '500', '503']) {
          assert(responses[status], `${name}: ${endpoint} ${status}`);
        }
        const described = dereference(document, responses['503'] as Json) as Described;
        assert(described.headers?.['Retry-After'], `${name}: ${endpoint}`);
        if (name === 'legacy') continue;
        assert(document.info.description.includes(`| \`${endpoint}\` | `), endpoint);
      }
    }
  });

  test('have examples that are valid under their own schemas', () => {
    let examples = 0;
    const check = (node: Json, about: string) => {
      if (typeof node !== 'object' || node === null) return;
      if (!Array.isArray(node) && node.schema) {
        const values = [
          ...('example' in node ? [node.example] : []),
          ...Object.values((node.examples ?? {}) as JsonObject).map(
            (one) => (one as { value: Json }).value,
          ),
        ];
        for (const value of values) {
          assertValid(node.schema, value, about);
          examples += 1;
        }
      }
      for (const [name, value] of Object.entries(node)) check(value as Json, `${about}/${name}`);
    };
    for (const name of documentNames) {
      const document = documents[name];
      check(dereference(document, { paths: document.paths, webhooks: document.webhooks }), name);
    }
    assert(examples > 60, `${examples} examples`);
  });

  test('show signatures that verify', () => {
    for (const audience of audiences) {
      const { description } = documents[audience].info;
      const blocks = [...description.matchAll(/^```\n(.*)\n```$/gm)].map(([, text = '']) => text);
      const key = blocks.find((text) => text.startsWith('sig_')) ?? '';
      const [body = '', signature] = blocks.slice(blocks.indexOf(key) + 1);
      assert.equal(signature, createHmac('sha512', key).update(body).digest('base64'));
      assert.equal(signature?.length, 88);

      const posts = [
        operationOf(documents[audience], 'POST /api/checkouts'),
        operationOf(documents[audience], 'POST /api/refunds'),
        documents[audience].webhooks.paymentResult?.post ?? {},
      ];
      for (const post of posts) {
        const { content } = post.requestBody as Described;
        const text = JSON.stringify(content?.['application/json'].example);
        const header = (post.parameters as JsonObject[]).find(({ name }) => name === 'X-Signature');
        assert.equal(header?.example, createHmac('sha512', key).update(text).digest('base64'));
        assert.equal(header?.example, signExample(JSON.parse(text)).signature);
      }
    }
  });
});

describe('the API answers as described', () => {
  test('to a merchant', async () => {
    const account = await createAccount(service);
    const other = await createAccount(service);
    const asked = async (
      endpoint: string,
      expected: number,
      options: {
        path?: string;
        body?: object | string;
        headers?: Record<string, string>;
        from?: Pick<Account, 'client_secret' | 'signing_key'>;
      } = {},
    ) => {
      const [method, url = ''] = endpoint.split(' ');
      const { path: own = url, from = account, ...rest } = options;
      const answer = await send(service, from, method as 'GET' | 'POST', own, rest);
      assert.equal(answer.status, expected, `${endpoint}: ${JSON.stringify(answer.body)}`);
      assertDescribed('merchants', endpoint, answer);
      return answer;
    };
    // The examples of refusals must contain the messages that the API really sends.
    const refused = async (
      endpoint: string,
      expected: number,
      options: Parameters<typeof asked>[2],
    ) => {
      const { body } = await asked(endpoint, expected, options);
      const examples = exampleDetails('merchants', endpoint, expected);
      for (const { detail } of body.errors) assert(examples.includes(detail), detail);
    };

    const create = 'POST /api/checkouts';
    const keyed = { 'idempotency-key': 'a' };
    await asked(create, 200, { body: checkoutBody(), headers: keyed });
    const replayed = await asked(create, 200, { body: checkoutBody(), headers: keyed });
    assert.equal(replayed.headers['idempotent-replayed'], 'true');
    await refused(create, 422, { body: checkoutBody({ amount: 20_000 }), headers: keyed });
    const tooSmall = { body: checkoutBody({ amount: 5 }), headers: { 'idempotency-key': 'b' } };
    await refused(create, 422, tooSmall);
    await refused(create, 422, { body: checkoutBody({ currency: 'USD' }) });
    const noAddress = {
      body: checkoutBody({ customer: { email: 'x' } }),
      headers: { 'idempotency-key': 'c' },
    };
    await refused(create, 422, noAddress);
    const refusedAgain = await asked(create, 422, noAddress);
    assert.equal(refusedAgain.headers['idempotent-replayed'], 'true');
    await refused(create, 422, {
      body: checkoutBody({ customer: { email: 'a@b.example', phone_number: '12 34' } }),
    });
    await asked(create, 400, { body: checkoutBody(), headers: { 'x-signature': 'ab'.repeat(64) } });
    await refused(create, 400, { body: checkoutBody(), headers: { 'content-type': 'text/plain' } });
    const unsigned = await send(service, account, 'POST', '/api/checkouts', {
      body: checkoutBody(),
      signed: false,
    });
    assertDescribed('merchants', create, unsigned);
    assert(exampleDetails('merchants', create, 400).includes(unsigned.body.errors[0].detail));

    const paid = await createSuccessfulCheckout(service, account);
    const open = await createCheckout(service, account);
    const foreign = await createSuccessfulCheckout(service, other);
    const refund = 'POST /api/refunds';
    const { body } = await asked(refund, 200, { body: { checkout_id: paid, amount: 50_000 } });
    await refused(refund, 422, { body: { checkout_id: paid, amount: 150_000 } });
    await refused(refund, 422, { body: { checkout_id: open, amount: 1 } });
    await refused(refund, 422, { body: { checkout_id: paid, amount: '1' } });
    await refused(refund, 404, { body: { checkout_id: foreign, amount: 1 } });
    await asked(refund, 400, { body: '{' });

    await asked('GET /api/checkouts/{id}', 200, { path: `/api/checkouts/${open}` });
    await asked('GET /api/checkouts/{id}', 200, { path: `/api/checkouts/${paid}` });
    await refused('GET /api/checkouts/{id}', 404, { path: `/api/checkouts/${foreign}` });
    await asked('GET /api/refunds/{id}', 200, { path: `/api/refunds/${body.data.id}` });
    await refused('GET /api/refunds/{id}', 404, { path: `/api/refunds/${paid}` });
    await refused('GET /api/payouts/{id}', 404, { path: `/api/payouts/${paid}` });
    for (const list of ['GET /api/checkouts', 'GET /api/refunds', 'GET /api/payouts']) {
      await asked(list, 200, { path: `${list.slice(4)}?page[items]=1` });
      await asked(list, 200, { path: `${list.slice(4)}?page[number]=99` });
      await refused(list, 400, { path: `${list.slice(4)}?page[number]=0` });
    }
    await asked('GET /api/config', 200);

    const stranger = { client_secret: 'nobody', signing_key: 'nothing' };
    for (const endpoint of endpointsOf(documents.merchants)) {
      await asked(endpoint, 401, { body: {}, from: stranger });
    }
    clock.advance({ days: 101 });
    await refused(refund, 422, { body: { checkout_id: paid, amount: 1 } });
    const auto = await createAccount(service, { refund_mode: 'auto' });
    const today = await createSuccessfulCheckout(service, auto);
    await refused(refund, 422, { body: { checkout_id: today, amount: 1 }, from: auto });
  });

  test('to an intermediary', async () => {
    const managed = await createAccount(service);
    const other = await createAccount(service);
    const credentials = await createIntermediary([managed]);
    const mine = managed.merchant.id;
    const theirs = other.merchant.id;
    const cases: [endpoint: string, path: string, status: number, body?: object][] = [
      ['POST /api/checkouts', '/api/checkouts', 200, checkoutBody({ merchant_id: mine })],
      ['POST /api/checkouts', '/api/checkouts', 404, checkoutBody({ merchant_id: theirs })],
      ['POST /api/checkouts', '/api/checkouts', 422, checkoutBody()],
      ['GET /api/checkouts', `/api/checkouts?filter[merchant_id]=${mine}`, 200],
      ['GET /api/checkouts', `/api/checkouts?filter[merchant_id]=${theirs}`, 404],
      ['GET /api/checkouts', '/api/checkouts', 422],
      ['GET /api/refunds', `/api/refunds?filter[merchant_id]=${mine}`, 200],
      ['GET /api/refunds', `/api/refunds?filter[merchant_id]=${theirs}`, 404],
      ['GET /api/refunds', '/api/refunds', 422],
      ['GET /api/payouts', `/api/payouts?filter[merchant_id]=${mine}`, 200],
      ['GET /api/payouts', `/api/payouts?filter[merchant_id]=${theirs}`, 404],
      ['GET /api/payouts', '/api/payouts', 422],
      ['GET /api/merchants/{merchant_id}/config', `/api/merchants/${mine}/config`, 200],
      ['GET /api/merchants/{merchant_id}/config', `/api/merchants/${theirs}/config`, 404],
    ];
    for (const [endpoint, url, status, body] of cases) {
      const method = endpoint.startsWith('POST') ? 'POST' : 'GET';
      const answer = await send(service, credentials, method, url, body ? { body } : {});
      assert.equal(answer.status, status, `${url}: ${JSON.stringify(answer.body)}`);
      assertDescribed('intermediaries', endpoint, answer);
      if (status === 200) continue;
      const examples = exampleDetails('intermediaries', endpoint, status);
      assert(examples.includes(answer.body.errors[0].detail), answer.body.errors[0].detail);
    }
  });

  test('to a v1 plugin, whose every operation is deprecated', async () => {
    const { plugin } = await createPlugin(service, { limits: 'spec' });
    const asked = async (
      url: string,
      expected: number,
      body: object | string,
      options: Parameters<typeof sendLegacy>[3] = {},
    ) => {
      const answer = await sendLegacy(service, url, body, options);
      assert.equal(answer.status, expected, JSON.stringify(answer.body));
      assertDescribed('legacy', `POST ${url}`, answer);
      const operation = operationOf(documents.legacy, `POST ${url}`);
      assert.equal(operation.deprecated, true);
      const { headers } = dereference(
        documents.legacy,
        (operation.responses as JsonObject)[expected] as Json,
      ) as Described;
      for (const name of ['Deprecation', 'Sunset', 'Link']) {
        assert.equal(answer.headers[name.toLowerCase()], headers?.[name]?.example);
      }
      if (expected < 400 || expected === 429) return answer;
      const examples = exampleDetails('legacy', `POST ${url}`, expected);
      for (const { detail } of answer.body.errors) assert(examples.includes(detail), detail);
      return answer;
    };
    const credentials = credentialsOf(plugin);
    const { client_id, ...rest } = credentials;
    const other = { 'content-type': 'text/plain' };
    const { body } = await asked('/login', 200, credentials);
    await asked('/login', 401, { ...credentials, client_secret: 'x' });
    await asked('/login', 401, { ...credentials, merchant_id: 'x' });
    await asked('/login', 422, rest);
    await asked('/login', 400, '{}', { headers: other });
    for (let count = 0; count < 59; count += 1) await asked('/login', 200, credentials);
    await asked('/login', 429, credentials);

    const { token } = body;
    const pay = async (expected: number, request: object | string, headers = {}) => {
      await asked('/payment/checkout', expected, request, { token, headers });
      clock.advance({ seconds: 1 });
    };
    const twice = toForm({ currency: 'ZAR' });
    twice.append('currency', 'ZAR');
    await pay(200, legacyBody());
    await pay(200, toForm(legacyBody()));
    await pay(422, legacyBody({ purchaseAmount: 5 }));
    await pay(422, legacyBody({ customer: { emailAddress: undefined } }));
    await pay(400, '{}', other);
    await pay(400, twice);
    await asked('/payment/checkout', 200, legacyBody(), { token });
    await asked('/payment/checkout', 429, legacyBody(), { token });
    await asked('/payment/checkout', 401, legacyBody());
  });

  test('v1 has the fields that the table maps, and no others', () => {
    const { requestBody } = operationOf(documents.legacy, 'POST /payment/checkout');
    const { content } = dereference(documents.legacy, requestBody as Json) as Described;
    assert(content);
    const { properties } = content['application/json'].schema as JsonObject;
    const named = Object.entries(properties as JsonObject).flatMap(([name, one]) => {
      const { properties: own } = one as JsonObject;
      return own ? Object.keys(own).map((field) => `${name}.${field}`) : [name];
    });
    const mapped = [...fieldMapping.map(({ v1 }) => v1), ...droppedFields];
    assert.deepEqual(named.toSorted(), mapped.toSorted());
  });

  test('when a limit is exceeded', async () => {
    const account = await createAccount(service, { limits: 'spec' });
    for (const endpoint of endpointsOf(documents.merchants)) {
      const [method, url = ''] = endpoint.split(' ');
      const { max_requests } = endpointLimits[endpoint as keyof typeof endpointLimits];
      const ask = () =>
        send(service, account, method as 'GET' | 'POST', url.replace('{id}', 'x'), { body: {} });
      for (let count = 0; count < max_requests; count += 1) await ask();
      const answer = await ask();
      assert.equal(answer.status, 429, endpoint);
      assertDescribed('merchants', endpoint, answer);
      const { responses } = operationOf(documents.merchants, endpoint) as { responses: JsonObject };
      const { content } = responses[429] as Described;
      assert.deepEqual(answer.body, content?.['application/json'].example);
    }
  });
});

describe('the reference for people', () => {
  test('shows every operation and the callback', async () => {
    for (const [index, audience] of audiences.entries()) {
      const { body } = await service.app.inject(pages[index] ?? '');
      for (const endpoint of endpointsOf(documents[audience])) {
        const { operationId } = operationOf(documents[audience], endpoint);
        assert(body.includes(`<article id="${operationId}">`), String(operationId));
      }
      assert(body.includes('<article id="paymentResult">'));
      for (const name of [audience, 'legacy'] as const) {
        assert(body.includes(`href="${documentPaths[name]}"`));
      }
      for (const page of pages) assert(body.includes(`<a href="${page}"`));
      const targets = [...body.matchAll(/href="#([\w-]+)"/g)].map(([, id]) => id);
      for (const id of targets) assert(body.includes(`id="${id}"`), `#${id} exists`);
    }
  });

  test('loads nothing from another origin', async () => {
    for (const page of pages) {
      const { body, headers } = await service.app.inject(page);
      const loaded = [...body.matchAll(/<(?:link|script|img)\b[^>]*?(?:href|src)="([^"]*)"/g)];
      const addresses = loaded.map(([, address = '']) => address);
      assert(addresses.length >= 4);
      for (const address of addresses) {
        assert.match(address, /^\/docs\//);
        assert.equal((await service.app.inject(address)).statusCode, 200, address);
      }
      assert.doesNotMatch(body, /<style|<script(?![^>]*\bsrc=)|\bstyle="|\son\w+="|<iframe/);
      const policy = String(headers['content-security-policy']);
      assert.match(policy, /default-src 'none'/);
      assert.doesNotMatch(policy, /unsafe|https?:|\*/);
    }
    for (const asset of ['/docs/docs.css', '/docs/docs.js']) {
      const { body } = await service.app.inject(asset);
      assert.doesNotMatch(body, /https?:\/\/|@import|url\(/);
    }
  });
});

test('an unknown address below /docs is a page', async () => {
  const { statusCode, headers, body } = await service.app.inject('/docs/guides/nothing');
  assert.equal(statusCode, 404);
  assert.match(String(headers['content-type']), /^text\/html/);
  assert.match(body, /<h1>Page not found<\/h1>/);
});

test('llms.txt lists every guide, as Markdown', async () => {
  const { body } = await service.app.inject('/llms.txt');
  const links = [...body.matchAll(/\]\(([^)]+)\)/g)].map(([, url = '']) => new URL(url).pathname);
  assert.equal(links.length, readGuides().length + 4);
  for (const url of links) assert.equal((await service.app.inject(url)).statusCode, 200, url);
});

test('descriptions need no credentials, may be cached, and are sent again only after a change', async () => {
  for (const url of [...Object.values(documentPaths), ...pages, '/docs/docs.css']) {
    const first = await service.app.inject(url);
    assert.equal(first.statusCode, 200);
    assert.match(String(first.headers['cache-control']), /^public, max-age=\d+$/);
    const etag = String(first.headers.etag);
    const again = await service.app.inject({ url, headers: { 'if-none-match': etag } });
    assert.equal(again.statusCode, 304);
    assert.equal(again.body, '');
    const packed = await service.app.inject({ url, headers: { 'accept-encoding': 'gzip' } });
    assert.equal(packed.headers['content-encoding'], 'gzip');
    assert(packed.rawPayload.length < first.rawPayload.length / 2);
  }
});
