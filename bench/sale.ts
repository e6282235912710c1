import type pg from 'pg';
import {
  approveRefund,
  askRefund,
  type Cost,
  collectNow,
  createSale,
  enterCard,
  openShop,
  paySale,
  readState,
  type Sale,
  type Shop,
  untilSettled,
  visit,
} from './shop.ts';

type Steps = {
  create: Cost;
  page: Cost;
  state: Cost;
  /** The payment, with its outcome, its callback and its mail. */
  pay: Cost;
  plan: Cost;
};

type AfterSale = {
  /** The capture of a hold or the charge of a stored card, with its mail. */
  collection: Cost;
  /** The merchant's request for a refund. */
  request: Cost;
  /** A refund from an operator's approval to its completion, with its mail. */
  refund: Cost;
};

export type SaleResult = {
  sale: Steps;
  after: AfterSale;
  /** Transactions per second of a service that has nothing to do. */
  idle: number;
};

/** How many shoppers buy at once. */
export const shoppers = 8;

/**
 * Processor time of the service and its database for each step of a sale. The gateway, the shop and
 * the mail server are separate programs, and their time does not count. Creates are sent one by
 * one, so that no two share a commit.
 */
export async function benchSale(
  options: { warmUp: number; sales: number; idleSeconds: number },
  progress: (text: string) => void,
): Promise<SaleResult> {
  const shop = await openShop(shoppers);
  try {
    progress(`sale: ${options.warmUp} to warm up`);
    await sellAll(shop, Math.min(options.warmUp, 60), () => {});
    for (let sold = 60; sold < options.warmUp; sold += 300) {
      progress(`sale: ${sold} of ${options.warmUp} to warm up`);
      await sell(shop, Math.min(300, options.warmUp - sold), () => {});
    }
    // Autovacuum does this within a minute. Until then the server checks foreign keys with plans
    // for empty tables, which read all checkouts of the merchant.
    await shop.own.query('analyze');
    const steps = await sellAll(shop, options.sales, (step) => progress(`sale: ${step}`));
    progress('sale: idle');
    return { ...steps, idle: await countIdle(shop.own, options.idleSeconds) };
  } finally {
    await shop.close();
  }
}

type Progress = (step: string) => void;

/** Measures the cost of some work per sale. */
export async function measure(shop: Shop, count: number, work: () => Promise<void>): Promise<Cost> {
  const before = shop.readCost();
  await work();
  const after = shop.readCost();
  return {
    service: (after.service - before.service) / count,
    database: (after.database - before.database) / count,
    workers: (after.workers - before.workers) / count,
  };
}

/** Makes some sales, and then collects and refunds them. */
async function sellAll(shop: Shop, count: number, progress: Progress) {
  const { sales, steps } = await sell(shop, count, progress);
  return { sale: steps, after: await serveAfter(shop, sales, progress) };
}

/** Makes some sales step by step, and measures each step. */
export async function sell(
  shop: Shop,
  count: number,
  progress: Progress,
): Promise<{ sales: Sale[]; steps: Steps }> {
  const step = (name: string, work: () => Promise<void>) => {
    progress(name);
    return measure(shop, count, work);
  };
  const sales: Sale[] = [];
  const create = await step('create', async () => {
    for (let made = 0; made < count; made += 1) sales.push(await createSale(shop));
  });
  await atOnce(sales, (sale) => enterCard(shop, sale));
  const page = await step('page', () => atOnce(sales, (sale) => visit(shop, sale)));
  const state = await step('state', () => atOnce(sales, (sale) => readState(shop, sale)));
  const pay = await step('pay, callback and mail', async () => {
    await atOnce(sales, (sale) => paySale(shop, sale));
    await untilSettled(shop);
  });
  const plan = await step('plan page', () => atOnce(sales, (sale) => visit(shop, sale)));
  return { sales, steps: { create, page, state, pay, plan } };
}

/** Collects two payments of each sale, and refunds part of it. */
export async function serveAfter(
  shop: Shop,
  sales: Sale[],
  progress: Progress,
): Promise<AfterSale> {
  progress('collections');
  const collection = await measure(shop, 2 * sales.length, async () => {
    for (const number of [1, 2]) await collectNow(shop, sales, number);
  });
  progress('refunds');
  const refunds: Awaited<ReturnType<typeof askRefund>>[] = [];
  const request = await measure(shop, sales.length, () =>
    atOnce(sales, async (sale) => {
      refunds.push(await askRefund(shop, sale));
    }),
  );
  const refund = await measure(shop, sales.length, async () => {
    await atOnce(refunds, (refund) => approveRefund(shop, refund));
    await untilSettled(shop);
  });
  return { collection, request, refund };
}

/** Does the work for all of them, as many at once as there are shoppers. */
async function atOnce<One>(all: One[], work: (one: One) => Promise<void>): Promise<void> {
  const left = [...all];
  const workOn = async () => {
    for (let one = left.pop(); one !== undefined; one = left.pop()) await work(one);
  };
  await Promise.all(Array.from({ length: shoppers }, workOn));
}

/** Counts a service's transactions while nothing is due, by the server's own statistics. */
async function countIdle(own: pg.ClientBase, seconds: number): Promise<number> {
  // Autovacuum's transactions would count too. A run of it that has begun ends during the pause.
  await own.query('alter system set autovacuum = off');
  await own.query('select pg_reload_conf()');
  // A statement outside a transaction counts as one.
  const count = async () => {
    const { rows } = await own.query<{ count: number }>(
      `select pg_stat_clear_snapshot(), xact_commit as count from pg_stat_database
       where datname = current_database()`,
    );
    return rows[0]?.count ?? 0;
  };
  // The server's processes report their counts within ten seconds, so those of the sales must come
  // first.
  await new Promise((resolve) => setTimeout(resolve, 11_000));
  const before = await count();
  await new Promise((resolve) => setTimeout(resolve, seconds * 1_000));
  return ((await count()) - before) / seconds;
}
