import assert from 'node:assert/strict';
import { glob, readFile } from 'node:fs/promises';
import { after, before, describe, test } from 'node:test';
import { sql } from 'kysely';
import { refundModes } from '#merchants/integrations/integration.ts';
import { openDatabase } from '#platform/database/database.ts';
import { asRows, isTime, together } from '#platform/database/read-together.ts';
import { leasedTables } from '#platform/database/repair-clock.sql.ts';
import {
  attemptOutcomes,
  callbackStatuses,
  callbackTriggers,
} from '#purchases/callbacks/callback.ts';
import { checkoutStatuses } from '#purchases/checkouts/checkout.ts';
import { conversationStatuses } from '#purchases/conversations/conversation.ts';
import { disputeStatuses } from '#purchases/disputes/dispute.ts';
import {
  collectionKinds,
  collectionStatuses,
  instalmentStatuses,
} from '#purchases/instalments/instalment.ts';
import {
  messageKinds,
  attemptOutcomes as messageOutcomes,
  messageStatuses,
} from '#purchases/messages/message.ts';
import { attemptPurposes, attemptStatuses } from '#purchases/payments/payment-attempt.ts';
import { payoutStatuses } from '#purchases/payouts/payout.ts';
import { refundPartKinds, refundPartStatuses, refundStatuses } from '#purchases/refunds/refund.ts';
import { movements } from '#record/ledger/posting.ts';
import { entryKinds, fundings, refundFees } from '#record/ledger/settlement.ts';
import { createTestDatabase, log } from '../support/service.ts';

type Column = { type: string; nullable: boolean };

let drop: () => Promise<void>;
let database: ReturnType<typeof openDatabase>;
before(async () => {
  const created = await createTestDatabase();
  drop = created.drop;
  database = openDatabase(created.url, { log, maxConnections: 2 });
});
after(async () => {
  await database.close();
  await drop();
});

/** The JavaScript type of the values of a PostgreSQL type. */
const kinds: Record<string, string> = {
  uuid: 'string',
  text: 'string',
  integer: 'number',
  bigint: 'number',
  boolean: 'boolean',
  bytea: 'Buffer',
  json: 'JSONColumnType',
  jsonb: 'JSONColumnType',
  'integer[]': 'number[]',
  'text[]': 'string[]',
  'uuid[]': 'string[]',
  date: 'string',
  'timestamp(3) with time zone': 'Timestamp',
};

async function migratedTables(): Promise<Record<string, Record<string, Column>>> {
  const { rows } = await database.pool.query(`
    select c.relname as table, a.attname as column, a.attnotnull as not_null,
      format_type(a.atttypid, a.atttypmod) as type
    from pg_class c join pg_attribute a on a.attrelid = c.oid
    where c.relnamespace = 'public'::regnamespace and c.relkind = 'r'
      and a.attnum > 0 and not a.attisdropped
    order by c.relname, a.attnum`);
  const tables: Record<string, Record<string, Column>> = {};
  for (const row of rows) {
    tables[row.table] ??= {};
    const type = kinds[row.type];
    assert.ok(type, `${row.table}.${row.column}: no kind for ${row.type}`);
    (tables[row.table] as Record<string, Column>)[row.column] = { type, nullable: !row.not_null };
  }
  return tables;
}

/** Reads a column type of the source: `Fixed<string | null>` is a string or null. */
function readType(text: string): Column {
  const json = /^(?:JSONColumnType|JsonValue)<([^,]*)/.exec(text)?.[1];
  if (json !== undefined) {
    return { type: 'JSONColumnType', nullable: json.includes('| null') };
  }
  const inner = /^(?:Fixed|Generated|ColumnType)<(.*)>$/.exec(text)?.[1] ?? text;
  const [selected = ''] = text.startsWith('ColumnType<') ? inner.split(', ') : [inner];
  const parts = selected.split(' | ').map((part) => part.trim());
  const nullable = parts.includes('null');
  const [first = ''] = parts.filter((part) => part !== 'null');
  let type = first;
  if (
    first.startsWith("'") ||
    /^[A-Z]\w*(Status|Mode|Name|Reason|Kind)$/.test(first) ||
    ['Account', 'Environment', 'Language'].includes(first) ||
    first.startsWith('Exclude<')
  )
    type = 'string';
  else if (/^\d+$/.test(first)) type = 'number';
  else if (first === 'EventKind[]') type = 'string[]';
  return { type, nullable };
}

async function typedTables(): Promise<Record<string, Record<string, Column>>> {
  const root = new URL('../../src/', import.meta.url);
  const tables: Record<string, Record<string, Column>> = {};
  for await (const file of glob(['**/tables.ts', '**/*.tables.ts'], { cwd: root })) {
    const source = await readFile(new URL(file, root), 'utf8');
    for (const [, indent, table = '', columns = ''] of source.matchAll(
      /^( {2,4})(\w+): \{\n([\s\S]*?)^\1\};/gm,
    )) {
      assert.equal(tables[table], undefined, `${table} has one owner`);
      const read: Record<string, Column> = {};
      for (const [, column = '', type = ''] of columns.matchAll(
        new RegExp(`^${indent}  (\\w+):\\s*([^;]+);`, 'gm'),
      )) {
        read[column] = readType(type.replace(/\s+/g, ' '));
      }
      tables[table] = read;
    }
  }
  return tables;
}

test('the types of the tables have the columns that the migrations make, and the same nullability', async () => {
  const typed = await typedTables();
  assert.ok(Object.keys(typed).length > 10, 'the source was parsed');
  assert.deepEqual(typed, await migratedTables());
});

/** The tables whose whole rows the hosted page reads as JSON (`together`). */
const readAsJson = [
  ...['checkouts', 'collections', 'disputes', 'gateway_blocks', 'instalments', 'merchants'],
  ...['payment_attempts', 'refund_parts', 'refund_requests', 'stored_cards'],
];

test('rows that travel as JSON get the same times and bytes as others', async () => {
  const tables = await migratedTables();
  for (const table of readAsJson) {
    for (const [column, { type }] of Object.entries(tables[table] ?? assert.fail(table))) {
      if (type === 'JSONColumnType') continue;
      const name = `${table}.${column}`;
      // The file of a logo is read on its own, never as JSON.
      if (name === 'merchants.logo_png') continue;
      assert.equal(isTime(column), type === 'Timestamp', name);
      assert.equal(column.startsWith('sealed_'), type === 'Buffer', name);
    }
  }
  const row = sql`select '2026-11-15T08:00:00.5Z'::timestamptz as some_at,
    '2026-11-15T08:00:00Z'::timestamptz as other_at, null::timestamptz as due_at,
    '\\x00ff'::bytea as sealed_thing, '2026-11-15T08:00:00+00:00'::text as reference,
    9007199254740991::bigint as amount, '{1,2}'::int[] as terms, '2026-11-15'::date as due_on`;
  const { rows: direct } = await row.execute(database.db);
  const query = database.db.selectFrom(sql`(${row})`.as('rows')).selectAll();
  const { rows: read } = await together({ list: query as never }).execute(database.db);
  assert.deepEqual(asRows(read[0]?.list ?? []), direct);
});

test('repair-clock knows every table with leases', async () => {
  const { rows } = await database.pool.query<{ table_name: string }>(
    `select table_name::text from information_schema.columns
     where table_schema = current_schema() and column_name = 'leased_until'`,
  );
  assert.deepEqual(rows.map(({ table_name }) => table_name).sort(), leasedTables.toSorted());
});

async function checkedValues(table: string, column: string): Promise<string[]> {
  const { rows } = await database.pool.query(
    `select pg_get_constraintdef(oid) as definition from pg_constraint
     where conrelid = $1::regclass and contype = 'c' and cardinality(conkey) = 1
       and conkey[1] = (select attnum from pg_attribute
                        where attrelid = $1::regclass and attname = $2)`,
    [table, column],
  );
  assert.equal(rows.length, 1, `${table}.${column} has one CHECK`);
  return valuesIn(rows[0].definition);
}

/** The values that a CHECK compares with, as texts or as one array. */
const valuesIn = (definition: string): string[] =>
  [...definition.matchAll(/'(?:(\w+)|\{(.*?)\})'/g)].flatMap(([, one, array]) =>
    array === undefined ? [one as string] : array.replaceAll('"', '').split(','),
  );

describe('a status in the code is a status in the database', () => {
  for (const [table, column, values] of [
    ['checkouts', 'status', checkoutStatuses],
    ['refund_requests', 'status', refundStatuses],
    ['payment_attempts', 'status', attemptStatuses],
    ['payment_attempts', 'purpose', attemptPurposes],
    ['instalments', 'status', instalmentStatuses],
    ['collections', 'status', collectionStatuses],
    ['collections', 'kind', collectionKinds],
    ['refund_parts', 'status', refundPartStatuses],
    ['refund_parts', 'kind', refundPartKinds],
    ['callbacks', 'status', callbackStatuses],
    ['callback_attempts', 'trigger', callbackTriggers],
    ['callback_attempts', 'outcome', attemptOutcomes],
    ['messages', 'kind', messageKinds],
    ['messages', 'status', messageStatuses],
    ['conversations', 'status', conversationStatuses],
    ['message_attempts', 'outcome', messageOutcomes],
    ['checkout_moves', 'from_status', ['received']],
    ['checkout_moves', 'to_status', checkoutStatuses.filter((status) => status !== 'received')],
    ['integrations', 'refund_mode', refundModes],
    ['installation', 'environment', ['sandbox', 'production']],
    ['list_totals', 'list', ['checkouts', 'payment_links', 'refund_requests', 'payouts']],
    ['settlement_entries', 'kind', entryKinds],
    ['settlement_terms', 'funding', fundings],
    ['settlement_terms', 'refund_fee', refundFees],
    ['payouts', 'status', payoutStatuses],
    ['disputes', 'status', disputeStatuses],
  ] as const) {
    test(`${table}.${column}`, async () => {
      assert.deepEqual(await checkedValues(table, column), [...values]);
    });
  }
});

test('the books accept each kind of posting only with its own two accounts', async () => {
  const { rows } = await database.pool.query(
    `select pg_get_constraintdef(oid) as definition from pg_constraint
     where conrelid = 'postings'::regclass and conname = 'postings_check'`,
  );
  const [, ...values] = rows[0].definition.split(' = ANY ');
  const posted = Object.entries(movements).map(
    ([kind, { debit, credit }]) => `${kind} ${debit} ${credit}`,
  );
  assert.deepEqual(valuesIn(values.join()), posted);
});

test('every key of a table with a merchant_id contains the merchant_id', async () => {
  const { rows } = await database.pool.query(`
    select c.conrelid::regclass::text as table, pg_get_constraintdef(c.oid) as definition
    from pg_constraint c
    where c.contype in ('p', 'u')
      and c.conrelid in (select attrelid from pg_attribute where attname = 'merchant_id' and attnotnull)`);
  assert.ok(rows.length >= 5);
  for (const { table, definition } of rows) {
    assert.match(definition, /\bmerchant_id\b/, `${table}: ${definition}`);
  }
});

/** A statement that copies each row of a table under another id, with a change. */
function again(table: string, change: string): string {
  const other = "'00000000-0000-7000-8000-000000000002'";
  return `create temp table copy on commit drop as select * from ${table};
    update copy set id = ${other}, ${change}; insert into ${table} select * from copy`;
}

/** Triggers check foreign keys. `onRows` switches triggers off, and this switches them on again. */
const checked = 'set local session_replication_role = origin;';

test('the database refuses statements that break a rule of amounts, statuses or lists', async () => {
  for (const [statement, constraint] of [
    ['update checkouts set amount = 0', /checkouts_amount_check/],
    ["update checkouts set status = 'failed'", /checkouts_status_check/],
    ["update checkouts set status = 'successful'", /checkouts_check/],
    ['update checkouts set number_of_payments = 99', /checkouts_check/],
    ['update refund_requests set amount = -1', /refund_requests_amount_check/],
    ["update refund_requests set status = 'declined'", /refund_requests_status_check/],
    ['update list_totals set total = -1', /list_totals_total_check/],
    // A checkout has no foreign keys of its own to its merchant and its integration.
    [`${checked} update list_totals set merchant_id = gen_random_uuid()`, /_merchant_id_fkey/],
    [`${checked} delete from merchants`, /_merchant_id_fkey/],
    [`${checked} delete from integrations`, /_integration_id_fkey/],
    ['update merchants set clock_ahead_ms = -1', /merchants_clock_ahead_ms_check/],
    ["update payment_attempts set status = 'failed'", /payment_attempts(_status)?_check/],
    ["update payment_attempts set status = 'declined'", /payment_attempts_check/],
    ['update payment_attempts set due_at = null', /payment_attempts_check/],
    ["update payment_attempts set status = 'authorised', due_at = null", /payment_attempts_check/],
    [again('payment_attempts', 'number = 2'), /payment_attempts_in_flight/],
    [
      again('payment_attempts', 'number = 1'),
      /payment_attempts_checkout_id_merchant_id_purpose_number_key/,
    ],
    [
      `update payment_attempts set status = 'authorised', payment_ref = 'p', due_at = null,
         settled_at = created_at;
       ${again('payment_attempts', 'number = 2')}`,
      /payment_attempts_outcome/,
    ],
    [
      `update payment_attempts set purpose = 'plan_payment', status = 'charged', customer_ref = 'c',
         payment_ref = 'p', due_at = null, settled_at = created_at;
       ${again('payment_attempts', 'number = 2')}`,
      /payment_attempts_paid_by/,
    ],
    ['update instalments set amount = 0', /instalments_amount_check/],
    ["update instalments set status = 'failed'", /instalments_(status_)?check/],
    ['update instalments set reduced = 6', /instalments_(reduced_)?check/],
    ["update instalments set status = 'collected', due_at = null", /instalments_check/],
    ["update instalments set status = 'cancelled', due_at = null", /instalments_check/],
    ['update instalments set due_at = null', /instalments_check/],
    [again('collections', 'number = 2'), /collections_open/],
    [
      `update collections set status = 'collected', settled_at = created_at, payment_ref = 'p';
       ${again('collections', 'number = 2')}`,
      /collections_collected/,
    ],
    [
      `update collections set status = 'collected', settled_at = created_at, payment_ref = 'p';
       ${again('collections', 'instalment = 2')}`,
      /collections_paid_by/,
    ],
    ["update collections set status = 'declined'", /collections_check/],
    ["update refund_parts set status = 'done'", /refund_parts_check/],
    [again('refund_parts', 'round = 1'), /refund_parts_merchant_id_refund_id_round_number_key/],
    ["update refund_requests set status = 'pending'", /refund_requests_check/],
    ['update refund_requests set kept = 1', /refund_requests_check/],
    ['update postings set amount = -1', /postings_amount_check/],
    ["update postings set debit = 'sale'", /postings_check/],
    [
      `insert into callbacks (merchant_id, id, checkout_id, integration_id, notify_url, host,
         payload, status, created_at, due_at, listed_id)
       select merchant_id, gen_random_uuid(), checkout_id, integration_id, notify_url, host,
         payload, status, created_at, due_at, listed_id from callbacks`,
      /callbacks_merchant_id_listed_id_key/,
    ],
    ['update callbacks set due_at = null', /callbacks_check/],
    ["update callbacks set event = 'refund.updated'", /callbacks_check/],
    ['update callbacks set checkout_id = null', /callbacks_check/],
    ['update callbacks set listed_id = gen_random_uuid()', /callbacks_check/],
    ["update integrations set events = '{sales}'", /integrations_events_check/],
    ["update callbacks set status = 'delivered'", /callbacks_check/],
    ["update callback_attempts set outcome = 'failed'", /callback_attempts_check/],
    [`update callback_attempts set finished_at = started_at`, /callback_attempts_check/],
    [
      'update callback_attempts set response_body = convert_to(repeat($$x$$, 65537), $$UTF8$$)',
      /callback_attempts_response_body_check/,
    ],
    [
      "insert into checkout_moves select *, 'received', 'successful', '2026-11-15' from (select merchant_id, checkout_id from instalments) i; insert into checkout_moves select merchant_id, checkout_id, 'received', 'cancelled', at from checkout_moves",
      /checkout_moves_pkey/,
    ],
  ] as const) {
    await assert.rejects(onRows(statement), constraint);
  }
});

/** Runs a statement on one row of each table, and undoes all of it. */
async function onRows(statement: string): Promise<void> {
  const client = await database.pool.connect();
  const id = "'00000000-0000-7000-8000-000000000001'";
  const at = "'2026-11-15T08:00:00Z'";
  try {
    await client.query('begin');
    await client.query(`
      insert into merchants values (${id}, 'M', 'ZA', '[]', ${at});
      insert into integrations values (${id}, ${id}, false, 'manual', null, null, ${at});
      insert into list_totals values (${id}, 'checkouts', 1, ${at});
      insert into checkouts (merchant_id, id, number, integration_id, status, amount, currency,
        client_reference_id, notify_url, success_url, cancel_url, customer, line_items, terms,
        signed, created_at, expires_at)
        values (${id}, ${id}, 1, ${id}, 'received', 5, 'ZAR', 'r', 'n', 's', 'c', '{}', '[]', '{1}',
        false, ${at}, ${at});
      insert into refund_requests (merchant_id, id, number, checkout_id, integration_id, status,
        amount, currency, signed, created_at)
        values (${id}, ${id}, 1, ${id}, ${id}, 'requested', 1, 'ZAR', false, ${at});
      insert into payment_attempts (merchant_id, id, checkout_id, purpose, number, instalments,
        number_of_payments, amount, currency, uses_stored_card, created_at, written_id, status,
        due_at)
        values (${id}, ${id}, ${id}, 'first_payment', 1, '{1}', 1, 5, 'ZAR', false, ${at}, ${id},
        'starting', ${at});
      insert into instalments (merchant_id, checkout_id, number, amount, currency, due_on, status,
        due_at)
        values (${id}, ${id}, 1, 5, 'ZAR', ${at}, 'authorised', ${at});
      insert into collections (merchant_id, id, checkout_id, instalment, number, kind, status,
        amount, currency, created_at, asked_at)
        values (${id}, ${id}, ${id}, 1, 1, 'charge', 'open', 5, 'ZAR', ${at}, ${at});
      insert into refund_parts (merchant_id, id, checkout_id, refund_id, round, number, instalment,
        kind, status, amount, from_status, keyed_at)
        values (${id}, ${id}, ${id}, ${id}, 1, 1, 1, 'card', 'open', 1, 'collected', ${at});
      insert into postings values (${id}, ${id}, ${id}, 'sold', 'outstanding', 'sale', 5, 'ZAR',
        null, null, ${at});
      insert into callbacks (merchant_id, id, checkout_id, integration_id, notify_url, host, payload,
        status, created_at, due_at, listed_id)
        values (${id}, ${id}, ${id}, ${id}, 'n', '', '', 'pending', ${at}, ${at}, ${id});
      insert into callback_attempts (merchant_id, id, callback_id, number, run, trigger, started_at,
        outcome, request_headers)
        values (${id}, ${id}, ${id}, 1, 1, 'first', ${at}, 'unknown', '{}')`);
    // This switches off triggers, because those that guard history would refuse first. The
    // constraints still hold.
    await client.query('set local session_replication_role = replica');
    await client.query(statement);
  } finally {
    await client.query('rollback');
    client.release();
  }
}
