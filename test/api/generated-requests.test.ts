import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import { Compile } from 'typebox/compile';
import type { Json, JsonObject, OpenApiDocument } from '#platform/http/openapi.ts';
import { anyCharacter } from '../support/any-character.ts';
import { createIntermediary } from '../support/expectations.ts';
import { createPlugin, logIn } from '../support/legacy.ts';
import {
  type Account,
  createAccount,
  createCheckout,
  createSuccessfulCheckout,
  liftLimits,
  type Service,
  sign,
  startService,
} from '../support/service.ts';

// Requests generated from our own descriptions, most of them as described. Every answer must be one
// that the description lists, in the described form, and never a fault of ours.

const count = process.env.TRANCHE_TEST_LONG ? 20_000 : 200;

const documentPaths = {
  merchant: '/docs/api/v2',
  intermediary: '/api-docs-intermediary',
  plugin: '/docs/api/v1',
};
type Audience = keyof typeof documentPaths;

type Operation = {
  audience: Audience;
  method: 'GET' | 'POST';
  path: string;
  parameters: { name: string; in: string; required: boolean; schema: JsonObject }[];
  body: JsonObject | null;
  responses: { [status: string]: (value: unknown) => boolean };
};

let service: Service;
let callers: Record<Exclude<Audience, 'plugin'>, Account>;
let ids: string[];
let token: string;
let operations: Operation[];

before(async () => {
  service = await startService({});
  const merchant = await createAccount(service);
  const intermediary = await createIntermediary(service, [merchant.merchant.id]);
  await liftLimits(service.deps, intermediary.id);
  callers = { merchant, intermediary: { ...intermediary, merchant: merchant.merchant } };
  const { account, plugin } = await createPlugin(service);
  await liftLimits(service.deps, account.id);
  token = await logIn(service, plugin);
  ids = [
    merchant.merchant.id,
    await createCheckout(service, merchant),
    await createSuccessfulCheckout(service, merchant),
  ];
  operations = [];
  for (const [audience, path] of Object.entries(documentPaths)) {
    const document = (await service.app.inject(path)).json() as OpenApiDocument;
    operations.push(...readOperations(audience as Audience, document));
  }
});
after(() => service.close());

function resolve(document: OpenApiDocument, node: Json): Json {
  if (Array.isArray(node)) return node.map((one) => resolve(document, one));
  if (typeof node !== 'object' || node === null) return node;
  if (typeof node.$ref === 'string') {
    const [, , kind = '', name = ''] = node.$ref.split('/');
    return resolve(document, document.components[kind]?.[name] ?? null);
  }
  return Object.fromEntries(
    Object.entries(node).map(([name, one]) => [name, resolve(document, one)]),
  );
}

function readOperations(audience: Audience, document: OpenApiDocument): Operation[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, described]) => {
      // biome-ignore lint/suspicious/noExplicitAny: the document's form is tested elsewhere.
      const operation = resolve(document, described) as any;
      const contents = Object.values(operation.requestBody?.content ?? {}) as JsonObject[];
      return {
        audience,
        path,
        method: method.toUpperCase() as Operation['method'],
        parameters: operation.parameters ?? [],
        body: (contents[0]?.schema as JsonObject | undefined) ?? null,
        responses: Object.fromEntries(
          // biome-ignore lint/suspicious/noExplicitAny: as above.
          Object.entries(operation.responses).map(([status, response]: [string, any]) => {
            const schema = response.content?.['application/json']?.schema;
            const validator = schema && Compile(schema);
            return [status, (value: unknown) => !validator || validator.Check(value)];
          }),
        ),
      };
    }),
  );
}

const anyText = fc.oneof(
  fc.string({ maxLength: 20 }),
  fc.string({ unit: anyCharacter, maxLength: 20 }),
  fc.constantFrom('', ' ', '\u0000', '\ud800', 'null', '-1', '1e9', '%', '..', 'a'.repeat(300)),
);
const anything = fc.oneof(fc.jsonValue({ maxDepth: 2 }), anyText, fc.constant(null));

/** Values as a schema describes them, and occasionally others. */
function valuesOf(schema: JsonObject, depth = 0): fc.Arbitrary<unknown> {
  const described = describedBy(schema, depth);
  return fc.oneof({ weight: 12, arbitrary: described }, { weight: 1, arbitrary: anything });
}

function describedBy(schema: JsonObject, depth: number): fc.Arbitrary<unknown> {
  if ('const' in schema) return fc.constant(schema.const);
  if (Array.isArray(schema.enum)) return fc.constantFrom(...schema.enum);
  if (Array.isArray(schema.anyOf)) {
    return fc.oneof(...schema.anyOf.map((one) => valuesOf(one as JsonObject, depth)));
  }
  const examples = Array.isArray(schema.examples) ? schema.examples : [];
  if (examples.length > 0 && depth > 0) {
    return fc.oneof(fc.constantFrom(...examples), plainValues(schema, depth));
  }
  return plainValues(schema, depth);
}

function plainValues(schema: JsonObject, depth: number): fc.Arbitrary<unknown> {
  const limit = (name: string, otherwise: number) => Number(schema[name] ?? otherwise);
  switch (Array.isArray(schema.type) ? schema.type[0] : schema.type) {
    case 'integer':
    case 'number': {
      const min = limit('minimum', -1000);
      const max = Math.min(limit('maximum', 2_000_000), Number.MAX_SAFE_INTEGER);
      return fc.oneof(fc.integer({ min, max }), fc.constantFrom(150_000, min, max, 0, -1, 0.5));
    }
    case 'boolean':
      return fc.boolean();
    case 'null':
      return fc.constant(null);
    case 'array':
      return fc.array(valuesOf((schema.items ?? {}) as JsonObject, depth + 1), { maxLength: 4 });
    case 'object': {
      const properties = (schema.properties ?? {}) as Record<string, JsonObject>;
      const required = (schema.required ?? []) as string[];
      const members = Object.fromEntries(
        Object.entries(properties).map(([name, one]) => [name, valuesOf(one, depth + 1)]),
      );
      return fc.oneof(
        fc.record(members, { requiredKeys: Object.keys(properties) }),
        fc.record(members, { requiredKeys: required }),
      );
    }
    default:
      return textOf(schema);
  }
}

function textOf(schema: JsonObject): fc.Arbitrary<string> {
  if (schema.format === 'uuid') return fc.oneof(fc.uuid(), known());
  if (schema.format === 'email') return fc.oneof(fc.emailAddress(), fc.constant('a@b.example'));
  if (schema.format === 'uri') {
    return fc.oneof(fc.webUrl(), fc.constantFrom('https://shop.example/a', 'http://10.0.0.1/'));
  }
  if (typeof schema.pattern === 'string') return fc.stringMatching(new RegExp(schema.pattern));
  const maxLength = Math.min(Number(schema.maxLength ?? 40), 300);
  const minLength = Math.min(Number(schema.minLength ?? 0), maxLength);
  return fc.oneof(fc.string({ minLength, maxLength }), fc.constantFrom('ZAR', 'order-1001'));
}

/** Bodies as the schema describes them, or its example with a few members replaced. */
function bodiesOf(schema: JsonObject): fc.Arbitrary<unknown> {
  const [example] = (schema.examples ?? []) as JsonObject[];
  if (!example) return valuesOf(schema);
  const changed = fc
    .tuple(valuesOf(schema), fc.array(fc.nat(), { maxLength: 2 }))
    .map(([other, places]) => changeSome(withKnownIds(example), other, places));
  return fc.oneof(valuesOf(schema), { weight: 3, arbitrary: changed });
}

function withKnownIds(node: Json): Json {
  if (typeof node !== 'object' || node === null || Array.isArray(node)) return node;
  return Object.fromEntries(
    Object.entries(node).map(([name, value]) => {
      if (name === 'merchant_id') return [name, ids[0] as string];
      if (name === 'checkout_id') return [name, ids[2] as string];
      return [name, withKnownIds(value)];
    }),
  );
}

function changeSome(example: Json, other: unknown, places: number[]): unknown {
  if (typeof example !== 'object' || example === null || Array.isArray(example)) return other;
  const changed: Record<string, unknown> = { ...example };
  const names = Object.keys(example);
  for (const place of places) {
    const name = names[place % names.length] as string;
    const value = (other as Record<string, unknown> | null)?.[name];
    changed[name] = changeSome(example[name] as Json, value, places);
  }
  return changed;
}

/** The value is chosen when it is sampled, because the IDs are known only once the service runs. */
const known = () => fc.nat().map((index) => ids[index % ids.length] as string);

/** A generated object may have a member `toString`, so `String` would throw. */
const written = (value: unknown) =>
  typeof value === 'object' ? JSON.stringify(value) : String(value);

function requestsOf(operation: Operation) {
  const texts = (place: string) =>
    fc.record(
      Object.fromEntries(
        operation.parameters
          .filter((one) => one.in === place)
          .map(({ name, schema }) => [name, valuesOf(schema, 1).map(written)]),
      ),
      { requiredKeys: [] },
    );
  return fc.record({
    operation: fc.constant(operation),
    path: texts('path'),
    query: texts('query'),
    headers: texts('header'),
    body: operation.body ? bodiesOf(operation.body) : fc.constant(undefined),
    // Signing becomes mandatory with the first signed request, so most are signed.
    isSigned: fc.nat(19).map((one) => one > 0),
    remoteAddress: fc.ipV4(),
    isHead: fc.nat(9).map((one) => one === 0),
  });
}

const statuses = new Map<string, number>();

test(`${count} generated requests get only answers that are described, and no fault of ours`, async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.nat().chain((index) => requestsOf(operations[index % operations.length] as Operation)),
      async (request) => {
        const { operation } = request;
        const isHead = request.isHead && operation.method === 'GET';
        const text = request.body === undefined ? undefined : JSON.stringify(request.body);
        const path = operation.path.replace(/\{(\w+)\}/g, (_, name) =>
          encodeURIComponent((request.path[name] ?? ids[1] ?? '').toWellFormed()),
        );
        const query = new URLSearchParams(request.query as Record<string, string>);
        const answer = await service.app.inject({
          method: isHead ? 'HEAD' : operation.method,
          url: `${path}${query.size > 0 ? `?${query}` : ''}`,
          remoteAddress: request.remoteAddress,
          headers: headersOf(request, text),
          ...(text !== undefined && { payload: text }),
        });
        const about = `${operation.audience}: ${operation.method} ${path}?${query} ${text} → ${answer.statusCode} ${answer.body}`;
        assert.ok(answer.statusCode < 500, about);
        statuses.set(
          `${operation.method} ${operation.path} ${answer.statusCode}`,
          (statuses.get(`${operation.method} ${operation.path} ${answer.statusCode}`) ?? 0) + 1,
        );
        // The parameter `..` leads to another path, which no operation describes.
        if (new URL(path, 'http://host').pathname !== path) return;
        if (isHead) return assert.equal(answer.body, '', about);
        const isValid = operation.responses[String(answer.statusCode)];
        if (!isValid && answer.statusCode === 404) return;
        assert.ok(isValid, `not described: ${about}`);
        assert.ok(isValid(answer.json()), `not as described: ${about}`);
      },
    ),
    { numRuns: count },
  );
  const successes = [...statuses].filter(([name]) => name.endsWith(' 200'));
  assert.ok(successes.length >= 6, `too few kinds of success: ${JSON.stringify(successes)}`);
});

function headersOf(
  { operation, headers, isSigned }: { operation: Operation; headers: object; isSigned: boolean },
  text: string | undefined,
): Record<string, string> {
  const own = Object.fromEntries(
    Object.entries(headers as Record<string, string>)
      // Only characters that a header can carry are kept.
      .map(([name, value]) => [name.toLowerCase(), value.replace(/[^\t\x20-\x7e\x80-\xff]/g, '')]),
  );
  if (text !== undefined) own['content-type'] = 'application/json';
  if (operation.audience === 'plugin') return { ...own, authorization: `Bearer ${token}` };
  const caller = callers[operation.audience];
  own.authorization = `Bearer ${caller.client_secret}`;
  if (text !== undefined && isSigned) own['x-signature'] = sign(caller.signing_key, text);
  return own;
}
