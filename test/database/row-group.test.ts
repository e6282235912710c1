import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import { openDatabase } from '#platform/database/database.ts';
import { rowGroup } from '#platform/database/row-group.ts';
import { insertCallbackAttempts } from '#purchases/callbacks/delivery/attempt.sql.ts';
import { insertCheckouts } from '#purchases/checkouts/checkout.sql.ts';
import { anyCharacter } from '../support/any-character.ts';
import { serverUrl } from '../support/database-server.ts';
import { log } from '../support/service.ts';

let database: ReturnType<typeof openDatabase>;
before(() => {
  database = openDatabase(serverUrl, { log, maxConnections: 1 });
});
after(() => database.close());

const group = rowGroup({
  place: 'int',
  uuid: 'uuid',
  text: 'text',
  int: 'int',
  bigint: 'bigint',
  bool: 'bool',
  at: 'timestamptz',
  bytes: 'bytea',
  json: 'json',
  jsonb: 'jsonb',
});

const nothing = {
  place: 1,
  uuid: null,
  text: null,
  int: null,
  bigint: null,
  bool: null,
  at: null,
  bytes: null,
  json: null,
  jsonb: null,
};

/** Texts that a database can store: no U+0000, no half of a surrogate pair. */
const texts = fc
  .string({ unit: anyCharacter })
  .map((text) => text.replaceAll('\0', '').toWellFormed());

const times = fc
  .date({
    min: new Date('1900-01-01T00:00:00Z'),
    max: new Date('2999-12-31T23:59:59Z'),
    noInvalidDate: true,
  })
  .map((date) => date.toISOString());

const objects = fc
  .dictionary(texts, fc.oneof(texts, fc.integer(), fc.boolean()), { noNullPrototype: true })
  .filter((object) => !Object.hasOwn(object, '__proto__'));

const rows = fc.array(
  fc.record({
    uuid: fc.option(fc.uuid()),
    text: fc.option(texts),
    int: fc.option(fc.integer()),
    bigint: fc.option(fc.maxSafeInteger()),
    bool: fc.option(fc.boolean()),
    at: fc.option(times),
    bytes: fc.option(fc.uint8Array().map((bytes) => Buffer.from(bytes))),
    json: fc.option(objects),
    jsonb: fc.option(objects),
  }),
  { maxLength: 20 },
);

test('the members of a json value keep their order', async () => {
  const { rows: kept } = await database.pool.query(
    `select i.json::text from ${group.from}`,
    group.values([{ ...nothing, json: { zebra: 1, ape: 2 } }]),
  );
  assert.deepEqual(kept, [{ json: '{"zebra":1,"ape":2}' }]);
});

test('a group of rows arrives as it was sent', async () => {
  await fc.assert(
    fc.asyncProperty(rows, async (sent) => {
      const numbered = sent.map((row, place) => ({ ...row, place }));
      const { rows: arrived } = await database.pool.query({
        name: 'row-group',
        text: `select i.* from ${group.from} order by place`,
        values: group.values(numbered),
      });
      assert.deepEqual(arrived, numbered);
    }),
    { numRuns: 200 },
  );
});

for (const [column, value] of [
  ['uuid', 'not-a-uuid'],
  ['uuid', '01a1de94-1f36-7cb4-9938-af45059c967'],
  ['uuid', '01a1de94-1f36-7cb4-9938-af45059c967g'],
  ['uuid', '01a1de94-1f36-7cb4-9938-af45059c967é'],
  ['int', 2 ** 31],
  ['int', 0.5],
  ['bigint', 2 ** 53],
  ['bigint', Number.NaN],
  ['at', 'yesterday'],
] as const) {
  test(`${value} is refused as ${column} before it is sent`, () => {
    assert.throws(() => group.values([{ ...nothing, [column]: value }]), RangeError);
  });
}

test('a row that cannot be written is refused before its COMMIT is sent', async () => {
  const client = await database.pool.connect();
  const row = { merchant_id: 'not-a-uuid', terms: [] } as never;
  try {
    assert.throws(() => insertCheckouts(client, [row]), RangeError);
    assert.throws(() => insertCallbackAttempts(client, [row]), RangeError);
  } finally {
    client.release();
  }
});
