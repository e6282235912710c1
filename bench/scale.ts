import type pg from 'pg';
import { sell, serveAfter } from './sale.ts';
import { type Cost, openShop, type Shop } from './shop.ts';

/** The rows and bytes that a sale leaves in a table. */
export type TableSize = { table: string; rows: number; heap: number; indexes: number };

type Steps = Record<string, Cost>;

export type ScaleResult = {
  checkouts: number;
  /** Processor time of each step of a sale, beside few checkouts and beside many. */
  few: Steps;
  many: Steps;
  /** The tables by their bytes for each checkout, the largest first. */
  sizes: TableSize[];
};

const shoppers = 8;

/** The time that the merchants' sales are spread over, in units of 2^16 milliseconds: two years. */
const spread = 960_000;

/**
 * Sells beside few checkouts, then beside many, in one database. The many are copies of the first
 * merchant with everything that belongs to its sales: payments, collections, postings, callbacks,
 * messages, refunds and settlement. Each copy is a merchant that sold earlier than the one before.
 */
export async function benchScale(
  options: { checkouts: number; sales: number },
  progress: (text: string) => void,
): Promise<ScaleResult> {
  const shop = await openShop(shoppers);
  try {
    progress('scale: 60 sales to warm up');
    await sellAll(shop, 60, () => {});
    const few = await sellAll(shop, options.sales, (step) => progress(`scale: few, ${step}`));
    await copyMerchant(shop, options.checkouts, progress);
    const sizes = await readSizes(shop.own);
    await sellAll(shop, 60, () => {});
    const many = await sellAll(shop, options.sales, (step) => progress(`scale: many, ${step}`));
    return { checkouts: options.checkouts, few, many, sizes };
  } finally {
    await shop.close();
  }
}

async function sellAll(
  shop: Shop,
  count: number,
  progress: (step: string) => void,
): Promise<Steps> {
  const { sales, steps } = await sell(shop, count, progress);
  return { ...steps, ...(await serveAfter(shop, sales, progress)) };
}

type Table = { name: string; columns: { name: string; type: string }[] };

async function copyMerchant(
  { own, account }: Shop,
  checkouts: number,
  progress: (text: string) => void,
): Promise<void> {
  const { rows } = await own.query<{ count: number }>('select count(*)::int from checkouts');
  const copies = Math.ceil(checkouts / (rows[0]?.count ?? 1));
  const step = Math.floor(spread / copies);
  const tables = await readTables(own);
  // Without foreign keys and triggers, and with the indexes made at the end, a copy is ten times as
  // fast.
  await own.query(`set session_replication_role = replica`);
  await own.query(`set maintenance_work_mem = '1GB'`);
  await own.query(`create function pg_temp.earlier(id uuid, n bigint) returns uuid immutable
    return overlay(id::text placing lpad(to_hex(
      ('x' || left(id::text, 8))::bit(32)::bigint - n * ${step}), 8, '0') from 1 for 8)::uuid`);
  const indexes = await dropIndexes(own, tables);
  for (const [place, table] of tables.entries()) {
    progress(`scale: ${table.name}, table ${place + 1} of ${tables.length}`);
    await own.query(copyOf(table, copies, step), [account.merchant.id]);
  }
  for (const [place, index] of indexes.entries()) {
    progress(`scale: index ${place + 1} of ${indexes.length}`);
    await own.query(index);
  }
  progress('scale: statistics');
  await own.query('set session_replication_role = origin');
  await own.query('vacuum analyze');
}

/** The tables of a merchant's rows. Actions of operators form a chain, which a copy would break. */
async function readTables(own: pg.ClientBase): Promise<Table[]> {
  const { rows } = await own.query<Table>(
    `select table_name as name, json_agg(json_build_object('name', column_name, 'type', udt_name))
       as columns
     from information_schema.columns c
     where table_schema = 'public' and is_generated = 'NEVER'
       and table_name not in ('operator_actions', 'alerts', 'managed_merchants')
       and (table_name = 'merchants' or exists (select from information_schema.columns o
         where o.table_schema = 'public' and o.table_name = c.table_name
           and o.column_name = 'merchant_id'))
     group by table_name`,
  );
  return rows;
}

/** Copies a table's rows of one merchant to so many earlier ones. */
function copyOf({ name, columns }: Table, copies: number, step: number): string {
  const values = columns.map(({ name: column, type }) => {
    if (type === 'uuid') return `pg_temp.earlier(t.${column}, n)`;
    if (column === 'client_reference_id') return `'order-' || n || '-' || t.number`;
    if (column === 'customer' && name === 'checkouts') {
      return `jsonb_set(t.customer, '{email}', to_jsonb('shopper' || n || '-' || t.number || '@example.com'))`;
    }
    // Due work stays where it is, in the future.
    if (type === 'timestamptz' && column !== 'due_at') {
      return `t.${column} - n * interval '${(step * 65.536).toFixed(3)} seconds'`;
    }
    return `t.${column}`;
  });
  const names = columns.map(({ name: column }) => column).join(', ');
  return `insert into ${name} (${names})
    select ${values.join(', ')} from generate_series(1, ${copies}) n, ${name} t
    where t.${name === 'merchants' ? 'id' : 'merchant_id'} = $1`;
}

/** Drops the indexes that no constraint needs, and returns the statements that make them again. */
async function dropIndexes(own: pg.ClientBase, tables: Table[]): Promise<string[]> {
  const { rows } = await own.query<{ name: string; made: string }>(
    `select i.relname as name, pg_get_indexdef(i.oid) as made
     from pg_index x join pg_class i on i.oid = x.indexrelid join pg_class t on t.oid = x.indrelid
     where t.relname = any ($1) and not exists (select from pg_constraint where conindid = i.oid)`,
    [tables.map(({ name }) => name)],
  );
  for (const { name } of rows) await own.query(`drop index ${name}`);
  return rows.map(({ made }) => made);
}

async function readSizes(own: pg.ClientBase): Promise<TableSize[]> {
  const { rows } = await own.query<TableSize>(
    `select c.relname as table, c.reltuples::float8 / s.count as rows,
       (pg_table_size(c.oid)::float8 / s.count) as heap,
       (pg_indexes_size(c.oid)::float8 / s.count) as indexes
     from pg_class c, (select count(*) from checkouts) s
     where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace
       and pg_total_relation_size(c.oid) > 10 * s.count
     order by pg_total_relation_size(c.oid) desc`,
  );
  return rows;
}
