import type pg from 'pg';
import { request } from 'undici';
import { claimAudit } from '#checks/books/audit.sql.ts';
import { auditSlice } from '#checks/books/audit-books.ts';
import { findDifferences, findMerchantDifferences } from '#checks/invariants/invariants.ts';
import { type Awaited, listDueKinds } from '#platform/database/due-work.sql.ts';
import { secondsAfter, timestamp } from '#platform/shared/clock.ts';
import { dueCallbacks } from '#purchases/callbacks/delivery/due-callbacks.sql.ts';
import { dueInstalments } from '#purchases/instalments/instalment.sql.ts';
import { dueMessages } from '#purchases/messages/message.sql.ts';
import { dueAttempts } from '#purchases/payments/payment-attempt.sql.ts';
import { signIn } from './console.ts';
import { median } from './create.ts';
import { copyMerchant, fillSettings, makeHistory, openFill } from './history.ts';
import { ownMilliseconds } from './processor-time.ts';
import { measure, sell, serveAfter } from './sale.ts';
import { startDatabase } from './service.ts';
import { openShop, type Sale, type Shop, sumOf } from './shop.ts';

/** The rows and bytes that a sale leaves in a table. */
export type TableSize = { table: string; rows: number; heap: number; indexes: number };

/** Processor time of the service and its database for each step, in milliseconds. */
type Steps = Record<string, number>;

export type ScaleResult = {
  checkouts: number;
  /** Each step beside few checkouts and beside many: medians of the rounds. */
  steps: { step: string; few: number; many: number }[];
  /** A step of the continuous check beside many checkouts, of which it reads 500. */
  audit: number;
  /** The tables by their bytes for each checkout, the largest first. */
  sizes: TableSize[];
};

type Progress = (text: string) => void;

const shoppers = 8;
/** How many sales are made, to be copied. */
const soldFirst = 500;

/**
 * Does the same work in turns in an empty database and in one with many checkouts and everything
 * that belongs to them: payments, collections, postings, callbacks, messages, refunds and
 * settlement. For each checkout that is sold, `unpaid` others stay unpaid. If the data folder is
 * already filled, its rows are used.
 */
export async function benchScale(
  options: { checkouts: number; unpaid: number; sales: number; rounds: number; data: string },
  progress: Progress,
): Promise<ScaleResult> {
  const sizes = await prepareMany(options, progress);
  const shops = [
    await openShop(shoppers),
    await openShop(shoppers, startDatabase(2, options.data)),
  ];
  try {
    const people = [];
    for (const shop of shops) {
      progress('scale: 60 sales to warm up');
      await holdAudit(shop);
      people.push(await signInTo(shop));
      await sell(shop, 60, () => {});
    }
    // The database with many checkouts was analysed when it was filled.
    await shops[0]?.own.query('analyze');
    const rounds: Steps[][] = [];
    for (let round = 1; round <= options.rounds; round += 1) {
      const [few = '', many = ''] = people;
      const both = [];
      for (const [index, cookie] of [few, many].entries()) {
        const side = `scale: round ${round}, ${index === 0 ? 'few' : 'many'}`;
        both.push(
          await measureAll(shops[index] as Shop, cookie, options.sales, (step) =>
            progress(`${side}, ${step}`),
          ),
        );
      }
      rounds.push(both);
    }
    const steps = Object.keys(rounds[0]?.[0] ?? {}).map((step) => {
      const of = (side: number) => median(rounds.map((both) => both[side]?.[step] ?? 0));
      return { step, few: of(0), many: of(1) };
    });
    progress('scale: the continuous check');
    const audit = await measureAudit(shops[1] as Shop);
    return { checkouts: options.checkouts, steps, audit, sizes };
  } finally {
    for (const shop of shops) await shop.close();
  }
}

/** Fills the folder's database, unless it is filled, and measures its tables. */
async function prepareMany(
  { checkouts, unpaid, data }: { checkouts: number; unpaid: number; data: string },
  progress: Progress,
): Promise<TableSize[]> {
  const first = await startDatabase(2, data);
  const { rows } = await first.deps.database.pool.query<{ total: number }>(
    'select coalesce(sum(total), 0)::float8 as total from list_totals',
  );
  await first.stop();
  const isFilled = (rows[0]?.total ?? 0) >= checkouts;
  let merchant_id = '';
  if (!isFilled) {
    const shop = await openShop(shoppers, startDatabase(2, data));
    const counts = { count: soldFirst, unpaid: unpaid * soldFirst };
    await makeHistory(shop, counts, (step) => progress(`scale: before, ${step}`));
    merchant_id = shop.accounts[0]?.merchant.id ?? '';
    await shop.close();
  }
  // No service may look for due work while the indexes are dropped.
  const { server, stop } = await startDatabase(2, data, isFilled ? {} : fillSettings);
  const [own, other] = [await openFill(server.url), await openFill(server.url)];
  try {
    if (!isFilled) await copyMerchant([own, other], merchant_id, checkouts, progress);
    await releaseAudit(own);
    return await readSizes(own);
  } finally {
    for (const connection of [own, other]) await connection.end();
    await stop();
  }
}

async function measureAll(
  shop: Shop,
  cookie: string,
  count: number,
  progress: Progress,
): Promise<Steps> {
  const { sales, steps } = await sell(shop, count, progress);
  const after = await serveAfter(shop, sales, progress);
  const costs: Steps = {};
  for (const [step, cost] of Object.entries({ ...steps, ...after })) costs[step] = sumOf(cost);
  const read = async (step: string, work: (sale: Sale) => Promise<void>) => {
    progress(step);
    const cost = await measure(shop, sales.length, async () => {
      for (const sale of sales) await work(sale);
    });
    costs[step] = sumOf(cost);
  };
  await read("a merchant's list", (sale) => list(shop, sale));
  await read('search by reference', (sale) => search(shop, cookie, sale.order, sale));
  await read('search by id', (sale) => search(shop, cookie, sale.id, sale));
  const check = async (step: string, times: number, work: () => Promise<void>) => {
    progress(step);
    costs[step] = await measureHere(shop, times, work);
  };
  await check('look for due work', 200, () => lookForDue(shop));
  await check("check of a merchant's books", 20, () => checkBooks(shop, sales));
  return costs;
}

/** Runs the work, and returns the cost of one run, in this process and in the database. */
async function measureHere(shop: Shop, times: number, work: () => Promise<unknown>) {
  const readBoth = () => ownMilliseconds() + shop.readServerCost();
  const before = readBoth();
  for (let done = 0; done < times; done += 1) await work();
  return (readBoth() - before) / times;
}

const heldSeconds = 7_200;

/**
 * Claims the continuous check, so that the service does not run it, because it is measured
 * separately. With many checkouts the check always runs, and with few it pauses. So the longer a
 * step takes on a busy machine, the more of the check it would include.
 */
async function holdAudit({ deps: { database, clock } }: Shop): Promise<void> {
  for (;;) {
    const now = clock.now();
    const until = timestamp(secondsAfter(now, heldSeconds));
    if ((await claimAudit(database.db, timestamp(now), until)) !== null) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

const releaseAudit = (own: pg.ClientBase) => own.query('update audit set leased_until = null');

/** Measures steps of the continuous check, after some that plan its statements. */
async function measureAudit(shop: Shop): Promise<number> {
  await releaseAudit(shop.own);
  const audit = () => auditSlice(shop.deps);
  await measureHere(shop, 3, audit);
  return await measureHere(shop, 20, audit);
}

/** Signs a person in to the service's console, whose cookie has its port in its name. */
async function signInTo(shop: Shop): Promise<string> {
  const console = { ...shop.deps.console, url: shop.consoleUrl };
  return (await signIn({ ...shop.deps, console })).cookie;
}

async function list({ url, agent }: Shop, { account }: Sale): Promise<void> {
  const headers = { authorization: `Bearer ${account.client_secret}` };
  const answer = await request(`${url}/api/checkouts`, { dispatcher: agent, headers });
  const text = await answer.body.text();
  if (answer.statusCode !== 200) throw new Error(`a list was refused: ${text}`);
}

async function search(shop: Shop, cookie: string, text: string, sale: Sale): Promise<void> {
  const url = `${shop.consoleUrl}/api/search?q=${encodeURIComponent(text)}`;
  // Every search comes from another address, so that the limit per address is not reached.
  const headers = { cookie, 'x-forwarded-for': sale.address };
  const answer = await request(url, { dispatcher: shop.agent, headers });
  const found = await answer.body.text();
  if (!found.includes(sale.id)) throw new Error(`${text} was not found: ${found}`);
}

const awaited = new Map<string, Awaited>(
  Object.entries({ dueAttempts, callbacks: dueCallbacks(), dueInstalments, dueMessages }),
);

/** The statement with which a worker looks for due rows, in the tables that grow with sales. */
async function lookForDue({ deps }: Shop): Promise<void> {
  await listDueKinds(deps.database.db, awaited, timestamp(deps.clock.now()));
}

/** The check of one merchant, and of its last checkouts. */
async function checkBooks({ deps, accounts }: Shop, sales: Sale[]): Promise<void> {
  const merchant_id = accounts[0]?.merchant.id ?? '';
  const ids = sales.map(({ id }) => id).sort();
  const found = [
    ...(await findDifferences(deps.database, ids[0] ?? '', ids.at(-1) ?? '')),
    ...(await findMerchantDifferences(deps.database, merchant_id, merchant_id)),
  ];
  if (found.length > 0) throw new Error(JSON.stringify(found[0]));
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
