import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { reconcile } from '#checks/reconciliation/reconcile.ts';
import { atTestGateway } from '#gateway/adapters/read-settings.ts';
import { type Gateway, recordKinds } from '#gateway/gateway.ts';
import { createStripeGateway } from '#gateway/stripe/stripe.ts';
import { startTestGatewayProcess } from '#hosting/sandbox/test-gateway-process.ts';
import type { Deps } from '#main.ts';
import { statementOf } from '#merchants/merchant.ts';
import { type Kept, type Kind, Store } from '../test-gateway/store.ts';
import {
  type Account,
  createAccount,
  createCardToken,
  startDatabase,
  type TestGateway,
  withGateway,
} from './service.ts';

export type ReconcileResult = {
  /** Records per second, and the median of the rounds' ratios. */
  bare: number;
  service: number;
  ratio: number;
  /**
   * The resident memory of this process after a tenth of the first reading and at its end, in MB.
   */
  memory: { early: number; late: number };
};

const amount = 75_000;
/** The kinds of records that a captured payment leaves at the gateway. */
const kinds = ['payment_intent', 'charge', 'balance_transaction'] as const;

/**
 * Reconciles many records of the gateway, which runs in a separate process. Before each round the
 * bare adapter reads the same pages. The first round posts the fees; further rounds find them
 * already posted.
 */
export async function benchReconcile(
  options: { records: number; rounds: number },
  progress: (text: string) => void,
): Promise<ReconcileResult> {
  const folder = mkdtempSync(join(tmpdir(), 'tranche-bench-gateway-'));
  const { deps: base, stop } = await startDatabase(4);
  const start = () =>
    startTestGatewayProcess(
      { ...base, log: pino({ level: 'warn' }) },
      {
        dataDir: folder,
        port: 0,
        pageOrigin: 'http://localhost',
        webhookUrl: null,
        protocol: 'stripe',
      },
    );
  let gateway = await start();
  const adapt = () =>
    createStripeGateway({
      protocol: 'stripe',
      environment: 'sandbox',
      secretKey: gateway.secret_key,
      publicKey: gateway.publishable_key,
      ...atTestGateway('stripe', gateway.url),
    });
  try {
    const account = await createAccount(base);
    await makePayment(base, adapt(), gateway, account);
    await gateway.stop();
    const count = Math.ceil(options.records / kinds.length);
    progress(`reconcile: writing ${options.records} records`);
    copyPayments(join(folder, 'gateway.sqlite'), count);
    await insertPayments(base, account, count);
    gateway = await start();
    const adapter = adapt();
    const deps = withGateway(base, adapter);
    const bare: number[] = [];
    const service: number[] = [];
    const memory = { early: 0, late: 0 };
    await readPages(adapter);
    for (let round = 0; round < options.rounds; round += 1) {
      bare.push(await rate(() => readPages(adapter)));
      service.push(
        await rate(async () => {
          const { checked, differences } = await reconcile(
            deps,
            { from: null, to: null },
            (done) => {
              const megabytes = process.memoryUsage.rss() / 1024 / 1024;
              if (round > 0) return;
              if (done <= options.records / 10) memory.early = megabytes;
              memory.late = megabytes;
              if (done % 10_000 === 0) progress(`reconcile: ${done} records`);
            },
          );
          // The one payment that was copied is not in the database, so one difference is expected.
          if (differences.length > 1) throw new Error(JSON.stringify(differences[0]));
          return checked;
        }),
      );
    }
    const ratios = service.map((one, index) => one / (bare[index] ?? 0));
    return { bare: median(bare), service: median(service), ratio: median(ratios), memory };
  } finally {
    await gateway.stop();
    await stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function rate(read: () => Promise<number>): Promise<number> {
  const start = performance.now();
  const records = await read();
  return (1_000 * records) / (performance.now() - start);
}

const median = (values: number[]) =>
  values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? 0;

/** The upper bound: the same pages are read one after the other and discarded. */
async function readPages(gateway: Gateway): Promise<number> {
  let records = 0;
  for (const kind of recordKinds) {
    let after: string | null = null;
    do {
      const page = await gateway.listRecords(kind, { from: null, to: null, after });
      records += page.records.length;
      after = page.next;
    } while (after !== null);
  }
  return records;
}

async function makePayment(
  deps: Deps,
  gateway: Gateway,
  testGateway: TestGateway,
  { merchant }: Account,
): Promise<void> {
  const card_token = await createCardToken(testGateway);
  const checkout_id = deps.random.uuid();
  const at = { merchant: merchant.forGateway(), checkout_id };
  const shopper = { email: 'thandi@example.com' };
  const customer = await gateway.createCustomer({ ...at, key: checkout_id, shopper });
  const held = await gateway.begin({
    ...at,
    ...customer,
    key: `${checkout_id}:p1`,
    instalments: [1],
    capture: 'later',
    attempt_id: deps.random.uuid(),
    amount,
    currency: 'ZAR',
    statement: statementOf(merchant, [1], 1),
    card: { card_token },
    store_card: false,
    return_url: 'https://pay.example/return',
  });
  if (held.outcome !== 'authorised') throw new Error(`a card was ${held.outcome}`);
  const { payment_ref } = held;
  await gateway.capture({ ...at, key: `${checkout_id}:c`, payment_ref, amount });
}

const checkoutOf = (n: number) => `00000000-0000-7000-8000-${n.toString(16).padStart(12, '0')}`;
const attemptOf = (n: number) => `00000000-0000-7000-8001-${n.toString(16).padStart(12, '0')}`;

/** Writes copies of the one payment into the gateway's books. */
function copyPayments(file: string, count: number): void {
  const store = new Store(file);
  const first = <K extends Kind>(kind: K) => store.list(kind, { limit: 1 })[0] as Kept<K>;
  const [intent, charge, moved] = kinds.map((kind) => first(kind));
  store.transaction(() => {
    for (let n = 1; n <= count; n += 1) {
      const metadata = { checkout_id: checkoutOf(n), attempt_id: attemptOf(n), instalment: '1' };
      const ids = { intent: `pi_${n}`, charge: `ch_${n}`, moved: `txn_${n}` };
      const copy = (kind: Kind, kept: object | undefined, changes: object) => {
        const { object, ...rest } = kept as Kept<Kind>;
        store.save(kind, { ...rest, object: { ...object, ...changes } } as Kept<Kind>);
      };
      copy('payment_intent', intent, { id: ids.intent, latest_charge: ids.charge, metadata });
      const of = { payment_intent: ids.intent, balance_transaction: ids.moved };
      copy('charge', charge, { id: ids.charge, metadata, ...of });
      copy('balance_transaction', moved, { id: ids.moved, source: ids.charge });
    }
  });
  store.close();
}

/** Inserts the rows that the service would have written for the payments. */
async function insertPayments(
  { database: { pool } }: Deps,
  { merchant, id: integration_id }: Account,
  count: number,
): Promise<void> {
  const owner = `'${merchant.id}'::uuid`;
  const uuid = (group: number) =>
    `('00000000-0000-7000-${group}-' || lpad(to_hex(n), 12, '0'))::uuid`;
  const series = `generate_series(1, ${count}) n cross join (select timestamptz '2026-01-05' as at) a`;
  const statements = [
    // Foreign keys are not checked, because the references are right by construction.
    'set session_replication_role = replica',
    `insert into checkouts (merchant_id, id, number, integration_id, status, amount, currency,
       client_reference_id, notify_url, success_url, cancel_url, customer, line_items, terms,
       number_of_payments, signed, created_at, expires_at, completed_at)
     select ${owner}, ${uuid(8000)}, n, '${integration_id}', 'successful', ${amount}, 'ZAR',
       'order-' || n, 'https://shop.example/callback', 'https://shop.example/paid',
       'https://shop.example/cart', '{"email": "thandi@example.com"}', '[]', '{1}', 1, true, at,
       at + interval '30 minutes', at
     from ${series}`,
    `insert into payment_attempts (merchant_id, id, checkout_id, purpose, number, instalments,
       number_of_payments, amount, currency, uses_stored_card, created_at, written_id, status,
       payment_ref, settled_at)
     select ${owner}, ${uuid(8001)}, ${uuid(8000)}, 'first_payment', 1, '{1}', 1, ${amount}, 'ZAR',
       false, at, ${uuid(8001)}, 'authorised', 'pi_' || n, at
     from ${series}`,
    `insert into instalments (merchant_id, checkout_id, number, amount, currency, due_on, status,
       payment_ref, collected_at)
     select ${owner}, ${uuid(8000)}, 1, ${amount}, 'ZAR', '2026-01-05', 'collected', 'pi_' || n,
       at + interval '1 day'
     from ${series}`,
    `insert into collections (merchant_id, id, checkout_id, instalment, number, kind, status,
       amount, currency, payment_ref, created_at, asked_at, settled_at)
     select ${owner}, ${uuid(8002)}, ${uuid(8000)}, 1, 1, 'capture', 'collected', ${amount}, 'ZAR',
       'pi_' || n, at + interval '1 day', at + interval '1 day', at + interval '1 day'
     from ${series}`,
    'vacuum analyze checkouts, payment_attempts, instalments, collections',
  ];
  const client = await pool.connect();
  try {
    for (const statement of statements) await client.query(statement);
  } finally {
    client.release(true);
  }
}
