import pg from 'pg';
import { sell } from './sale.ts';
import {
  approveRefund,
  askRefund,
  collectNow,
  createSale,
  type Shop,
  untilSettled,
} from './shop.ts';

// A history of many merchants, copied from one merchant whose sales were really made.

/**
 * The sales of all merchants are spread over this many days. No sale is deleted for its age within
 * a year.
 */
const days = 365;

/**
 * Opens a connection that fills a database. Its statements have all the time they need, and its
 * rows need not survive a power cut. References are right by construction, so foreign keys are not
 * checked.
 */
export async function openFill(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(`set session_replication_role = replica`);
  await client.query(`set synchronous_commit = off`);
  await client.query(`set maintenance_work_mem = '1GB'`);
  return client;
}

/** The settings of a server while it is filled. A fill that is interrupted begins anew. */
export const fillSettings = {
  fsync: 'off',
  full_page_writes: 'off',
  max_wal_size: '8GB',
  shared_buffers: '1GB',
  autovacuum: 'off',
};

/**
 * Sells this many checkouts in three payments, and creates some more that stay unpaid. Half of the
 * plans are finished, the others have one payment left, and one in ten is refunded in part.
 */
export async function makeHistory(
  shop: Shop,
  { count, unpaid }: { count: number; unpaid: number },
  progress: (text: string) => void,
): Promise<void> {
  progress(`${unpaid} unpaid`);
  for (let made = 0; made < unpaid; made += 1) await createSale(shop);
  const { sales } = await sell(shop, count, progress);
  for (const number of [1, 2, 3]) {
    progress(`collection ${number}`);
    await collectNow(shop, number < 3 ? sales : sales.slice(count / 2), number);
  }
  progress('refunds');
  for (const sale of sales.filter((_, place) => place % 10 === 0)) {
    await approveRefund(shop, await askRefund(shop, sale));
  }
  await shop.own.query(`update messages set due_at = now() where status = 'pending'
    and not exists (select from instalments i where i.merchant_id = messages.merchant_id
      and i.checkout_id = messages.checkout_id and i.due_at is not null)`);
  await untilSettled(shop);
}

type Connections = [pg.Client, ...pg.Client[]];

type Table = { name: string; columns: { name: string; type: string }[] };

/**
 * Copies the shop's merchant with everything that belongs to its sales, until there are this many
 * checkouts. Each copy is a merchant that sold earlier than the one before. Each connection fills a
 * table of its own.
 */
export async function copyMerchant(
  connections: Connections,
  merchant_id: string,
  checkouts: number,
  progress: (text: string) => void,
): Promise<void> {
  const [own] = connections;
  const { rows } = await own.query<{ count: number }>('select count(*)::int from checkouts');
  const copies = Math.ceil(checkouts / (rows[0]?.count ?? 1));
  const tables = await readTables(own);
  // Rows move by whole days, so that local dates stay right. Copies of the same day get different
  // ids.
  const daily = Math.ceil(copies / days);
  for (const connection of connections) await createFunctions(connection, daily);
  const names = tables.map(({ name }) => name);
  await withoutIndexes(connections, names, progress, () =>
    inTurns(connections, tables, async (connection, table, place) => {
      progress(`scale: ${table.name}, table ${place} of ${tables.length}`);
      await connection.query(copyOf(table, copies), [merchant_id]);
    }),
  );
  // The charts leave the copies out, because adding them up would take longer than the bench.
  await own.query('update rollups set after = uuidv7()');
  await inTurns(connections, names, async (connection, name, place) => {
    progress(`scale: vacuum of ${name}, table ${place} of ${names.length}`);
    await connection.query(`vacuum ${name}`);
  });
  await own.query('analyze');
}

async function createFunctions(connection: pg.Client, daily: number): Promise<void> {
  await connection.query(`create function pg_temp.days(n bigint) returns integer immutable
    return ((n - 1) / ${daily} + 1)::integer`);
  // The first 48 bits of an id are its time in milliseconds; those of a random id may wrap.
  await connection.query(`create function pg_temp.earlier(id uuid, n bigint) returns uuid immutable
    return (lpad(to_hex((('x' || left(translate(id::text, '-', ''), 12))::bit(48)::bigint
      - pg_temp.days(n) * 86400000::bigint - n % ${daily} * 1000) & x'ffffffffffff'::bigint), 12, '0')
      || right(translate(id::text, '-', ''), 20))::uuid`);
}

/** Gives each connection the next thing as soon as it is done with one. */
async function inTurns<Thing>(
  connections: Connections,
  things: Thing[],
  work: (connection: pg.Client, thing: Thing, place: number) => Promise<void>,
): Promise<void> {
  const waiting = [...things];
  await Promise.all(
    connections.map(async (connection) => {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
        await work(connection, next, things.length - waiting.length);
      }
    }),
  );
}

/**
 * The tables of a merchant's rows, the largest first. Actions of operators form a chain, which a
 * copy would break.
 */
async function readTables(own: pg.Client): Promise<Table[]> {
  const { rows } = await own.query<Table>(
    `select table_name as name, json_agg(json_build_object('name', column_name, 'type', udt_name))
       as columns
     from information_schema.columns c
     where table_schema = 'public' and table_name not in ('operator_actions', 'alerts', 'managed_merchants')
       and (table_name = 'merchants' or exists (select from information_schema.columns o
         where o.table_schema = 'public' and o.table_name = c.table_name
           and o.column_name = 'merchant_id'))
     group by table_name
     order by max(pg_total_relation_size(table_name::regclass)) desc`,
  );
  return rows;
}

/** Copies a table's rows of one merchant to this many earlier merchants. */
function copyOf({ name, columns }: Table, copies: number): string {
  const values = columns.map(({ name: column, type }) => {
    if (type === 'uuid') return `pg_temp.earlier(t.${column}, n)`;
    if (column === 'client_reference_id') return `'order-' || n || '-' || t.number`;
    if (column === 'customer' && name === 'checkouts') {
      return `jsonb_set(t.customer, '{email}', to_jsonb('shopper' || n || '-' || t.number || '@example.com'))`;
    }
    // Due work stays where it is, in the future.
    if (type === 'timestamptz' && column !== 'due_at') {
      return `t.${column} - pg_temp.days(n) * interval '1 day'`;
    }
    if (column === 'due_on' && name === 'instalments') {
      const months = `(t.number - 1) * interval '1 month'`;
      return `((t.due_on - ${months})::date - pg_temp.days(n) + ${months})::date`;
    }
    return `t.${column}`;
  });
  const names = columns.map(({ name: column }) => column).join(', ');
  return `insert into ${name} (${names})
    select ${values.join(', ')} from generate_series(1, ${copies}) n, ${name} t
    where t.${name === 'merchants' ? 'id' : 'merchant_id'} = $1`;
}

/**
 * Fills tables without the indexes that no constraint needs, and creates them afterwards, which is
 * several times as fast.
 */
export async function withoutIndexes(
  connections: Connections,
  tables: string[],
  progress: (text: string) => void,
  work: () => Promise<void>,
): Promise<void> {
  const [own] = connections;
  const { rows } = await own.query<{ name: string; made: string }>(
    `select i.relname as name, pg_get_indexdef(i.oid) as made
     from pg_index x join pg_class i on i.oid = x.indexrelid join pg_class t on t.oid = x.indrelid
     where t.relname = any ($1) and not exists (select from pg_constraint where conindid = i.oid)`,
    [tables],
  );
  for (const { name } of rows) await own.query(`drop index ${name}`);
  await work();
  await inTurns(connections, rows, async (connection, { made, name }, place) => {
    progress(`${name}, index ${place} of ${rows.length}`);
    await connection.query(made);
  });
}
