import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { checkLedger } from '#checks/books/audit-books.ts';
import { atTestGateway } from '#gateway/adapters/read-settings.ts';
import type { Gateway } from '#gateway/gateway.ts';
import { createStripeGateway } from '#gateway/stripe/stripe.ts';
import { startTestGatewayProcess } from '#hosting/sandbox/test-gateway-process.ts';
import type { Deps } from '#main.ts';
import { type Merchant, statementOf } from '#merchants/merchant.ts';
import { collectDueInstalments } from '#purchases/instalments/collect-instalments.ts';
import { median } from './create.ts';
import { ownMilliseconds, serverMilliseconds } from './processor-time.ts';
import {
  type Account,
  createAccount,
  createCardToken,
  startDatabase,
  type TestGateway,
  withGateway,
} from './service.ts';

/**
 * How many calls to the gateway are in flight at once, both by the service and by the bare adapter.
 */
const inFlight = 64;

export type CollectResult = {
  /**
   * Payments per second, as medians of the rounds. The ratio is the median of the rounds' ratios.
   */
  bare: number;
  service: number;
  ratio: number;
  /** Processor time of the service and its database for a payment, in milliseconds. */
  cost: number;
  /** Resident memory of this process, after the first round and after the last, in MB. */
  memory: { first: number; last: number };
};

type Card = { customer_ref: string; card_ref: string };

/**
 * A day with many due payments. Each round collects the payments of one merchant from stored cards
 * until none is due. Before each round the bare adapter charges the same cards at the same gateway,
 * which runs in a separate process.
 */
export async function benchCollect(
  options: { payments: number; rounds: number; data?: string },
  progress: (text: string) => void,
): Promise<CollectResult> {
  const folder = mkdtempSync(join(tmpdir(), 'tranche-bench-gateway-'));
  const { deps: base, server, stop } = await startDatabase(2, options.data);
  const gateway = await startTestGatewayProcess(
    { ...base, log: pino({ level: 'warn' }) },
    {
      dataDir: folder,
      port: 0,
      pageOrigin: 'http://localhost',
      webhookUrl: null,
      protocol: 'stripe',
    },
  );
  try {
    const adapter = createStripeGateway({
      ...{ protocol: 'stripe', environment: 'sandbox' },
      ...{ secretKey: gateway.secret_key, publicKey: gateway.publishable_key },
      ...atTestGateway('stripe', gateway.url),
    });
    const counted = { charges: 0 };
    const watched = countCharges(adapter, counted, (charges) =>
      progress(`collect: ${charges} of ${options.payments} payments collected`),
    );
    const deps = withGateway(base, watched);
    const bare: number[] = [];
    const service: number[] = [];
    const memory: number[] = [];
    const costs: number[] = [];
    const readCost = () => ownMilliseconds() + serverMilliseconds(server.pid, []);
    const each = Math.round(options.payments / options.rounds);
    for (let round = 0; round <= options.rounds; round += 1) {
      const account = await createAccount(deps);
      const { merchant } = account;
      const cards = await storeCards(deps, adapter, gateway, merchant);
      // The first round warms up caches and the compiler.
      const count = round === 0 ? Math.min(each, 500) : each;
      await insertDue(deps, account, cards, count, options.data === undefined);
      const some = Math.min(count, 2_000);
      const alone = await rate(some, () => chargeAll(deps, adapter, merchant, cards, some));
      const before = readCost();
      const together = await rate(count, () => collectAll(deps, count));
      const after = readCost();
      if (round === 0) {
        counted.charges = 0;
        continue;
      }
      bare.push(alone);
      service.push(together);
      costs.push((after - before) / count);
      memory.push(process.memoryUsage.rss() / 1024 / 1024);
    }
    if (options.data === undefined) await checkBooks(deps, progress);
    return {
      bare: median(bare),
      service: median(service),
      ratio: median(service.map((one, index) => one / (bare[index] ?? 0))),
      cost: median(costs),
      memory: { first: memory[0] ?? 0, last: memory.at(-1) ?? 0 },
    };
  } finally {
    await gateway.stop();
    await stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Wraps a gateway so that every thousandth charge is reported. */
function countCharges(
  gateway: Gateway,
  counted: { charges: number },
  report: (charges: number) => void,
): Gateway {
  return {
    ...gateway,
    async charge(payment) {
      const charge = await gateway.charge(payment);
      counted.charges += 1;
      if (counted.charges % 1_000 === 0) report(counted.charges);
      return charge;
    },
  };
}

async function rate(count: number, run: () => Promise<void>): Promise<number> {
  const start = performance.now();
  await run();
  return (1_000 * count) / (performance.now() - start);
}

async function checkBooks(deps: Deps, progress: (text: string) => void): Promise<void> {
  progress('collect: checking the books');
  const { differences } = await checkLedger(deps);
  if (differences.length > 0) throw new Error(JSON.stringify(differences[0]));
}

async function collectAll(deps: Deps, count: number): Promise<void> {
  let done = 0;
  for (let some = -1; some !== 0; done += some) some = await collectDueInstalments(deps);
  if (done !== count) throw new Error(`${done} of ${count} payments were collected`);
}

/** The upper bound: charges without the service. */
async function chargeAll(
  deps: Deps,
  gateway: Gateway,
  merchant: Merchant,
  cards: Card[],
  count: number,
): Promise<void> {
  let left = count;
  await Promise.all(
    Array.from({ length: inFlight }, async () => {
      for (left -= 1; left >= 0; left -= 1) {
        const id = deps.random.uuid();
        const charge = await gateway.charge({
          key: `${id}:i2:a1`,
          merchant: merchant.forGateway(),
          checkout_id: id,
          instalment: 2,
          attempt_id: deps.random.uuid(),
          ...(cards[left % cards.length] as Card),
          amount: 75_000,
          currency: 'ZAR',
          statement: statementOf(merchant, [2], 2),
        });
        if (charge.outcome !== 'charged') throw new Error(`a card was ${charge.outcome}`);
      }
    }),
  );
}

/** Stores a few cards that many checkouts share. */
async function storeCards(
  deps: Deps,
  gateway: Gateway,
  testGateway: TestGateway,
  merchant: Merchant,
): Promise<Card[]> {
  return await Promise.all(
    Array.from({ length: 20 }, async () => {
      const card_token = await createCardToken(testGateway);
      const checkout_id = deps.random.uuid();
      const at = { merchant: merchant.forGateway(), checkout_id };
      const { customer_ref } = await gateway.createCustomer({
        ...at,
        key: `${checkout_id}:customer`,
        shopper: { email: 'thandi@example.com' },
      });
      const held = await gateway.begin({
        ...at,
        key: `${checkout_id}:p1`,
        instalments: [1],
        capture: 'later',
        attempt_id: deps.random.uuid(),
        customer_ref,
        amount: 75_000,
        currency: 'ZAR',
        statement: statementOf(merchant, [1], 2),
        card: { card_token },
        store_card: true,
        return_url: 'https://pay.example/return',
      });
      if (held.outcome !== 'authorised' || held.card.card_ref === null) {
        throw new Error(`a card was not stored: ${held.outcome}`);
      }
      return { customer_ref, card_ref: held.card.card_ref };
    }),
  );
}

/**
 * Checkouts in two payments, bought a month ago. The first payment was collected, and the second
 * has been due since the last 08:00. A charge that is late by a day would be looked up first
 * (decision 0049).
 */
async function insertDue(
  { database: { pool } }: Deps,
  { merchant, id: integration_id }: Account,
  cards: Card[],
  count: number,
  analyses: boolean,
): Promise<void> {
  const zone = merchant.territory.time_zone;
  const owner = `'${merchant.id}'::uuid`;
  const statements = [
    `create temporary table bought as
     select n, uuidv7(at - now()) as id, at, (at at time zone '${zone}')::date as day
     from generate_series(1, ${count}) n
     cross join (select date_trunc('milliseconds',
       now() - interval '8 hours' - interval '1 month') as at) a`,
    `insert into checkouts (merchant_id, id, number, integration_id, status, amount, currency,
       client_reference_id, notify_url, success_url, cancel_url, customer, line_items, terms,
       number_of_payments, signed, created_at, expires_at, completed_at)
     select ${owner}, id, n, '${integration_id}', 'successful', 150000, 'ZAR', 'order-' || n,
       'https://shop.example/callback', 'https://shop.example/paid', 'https://shop.example/cart',
       '{"email": "thandi@example.com"}', '[]', '{1,2}', 2, true, at, at + interval '30 minutes',
       at
     from bought`,
    `insert into list_totals select ${owner}, 'checkouts', count(*), max(at) from bought`,
    `insert into payment_attempts (merchant_id, id, checkout_id, purpose, number, instalments,
       number_of_payments, amount, currency, uses_stored_card, created_at, written_id, status,
       payment_ref, settled_at)
     select ${owner}, gen_random_uuid(), id, 'first_payment', 1, '{1}', 2, 75000, 'ZAR', false, at,
       id, 'authorised', 'pi_' || n, at
     from bought`,
    `insert into instalments (merchant_id, checkout_id, number, amount, currency, due_on, status,
       payment_ref, collected_at)
     select ${owner}, id, 1, 75000, 'ZAR', day, 'collected', 'pi_' || n, at + interval '2 days'
     from bought`,
    `insert into instalments (merchant_id, checkout_id, number, amount, currency, due_on, status,
       due_at)
     select ${owner}, id, 2, 75000, 'ZAR', due_on, 'scheduled',
       (due_on + time '08:00') at time zone '${zone}'
     from bought cross join lateral (select (day + interval '1 month')::date as due_on) d`,
    `insert into collections (merchant_id, id, checkout_id, instalment, number, kind, status,
       amount, currency, payment_ref, created_at, asked_at, settled_at)
     select ${owner}, gen_random_uuid(), id, 1, 1, 'capture', 'collected', 75000, 'ZAR',
       'pi_' || n, at + interval '2 days', at + interval '2 days',
       at + interval '2 days'
     from bought`,
    `insert into postings (merchant_id, id, checkout_id, kind, debit, credit, amount, currency, at)
     select ${owner}, gen_random_uuid(), id, kind, debit, credit, amount, 'ZAR', at
     from bought cross join (values ('sold', 'outstanding', 'sale', 150000),
       ('authorised', 'held', 'issuer', 75000), ('used', 'issuer', 'held', 75000),
       ('captured', 'collected', 'outstanding', 75000)) p (kind, debit, credit, amount)`,
    `insert into stored_cards (merchant_id, checkout_id, customer_ref, card_ref, consent,
       created_at)
     select ${owner}, b.id, c ->> 'customer_ref', c ->> 'card_ref', '{}', b.at
     from bought b
     join jsonb_array_elements('${JSON.stringify(cards)}'::jsonb) with ordinality l (c, place)
       on place = b.n % ${cards.length} + 1`,
    'drop table bought',
  ];
  const client = await pool.connect();
  try {
    for (const statement of statements) await client.query(statement);
    if (analyses) {
      await client.query('vacuum analyze instalments, collections, checkouts, postings');
    }
  } finally {
    client.release();
  }
}
