import pg from 'pg';
import { findViolations } from '#checks/invariants/invariants.ts';
import type { GatewayUnderTest } from '../support/gateway.ts';
import type { Receiver } from '../support/receiver.ts';
import { launch } from '../support/sandbox-process.ts';
import type { Call, Load } from './load.ts';
import { eventually } from './servers.ts';

// Checks what must be true after all events. Each problem is a sentence.

/** How long the service may need for work that the events delayed. */
const settleSeconds = 180;

export async function findDamage(
  env: NodeJS.ProcessEnv & { DATABASE_URL: string },
  load: Pick<Load, 'calls' | 'paid'>,
  { gateway, receiver }: { gateway: Pick<GatewayUnderTest, 'books'>; receiver: Receiver },
): Promise<string[]> {
  const databaseUrl = env.DATABASE_URL;
  const client = new pg.Client({ connectionString: databaseUrl });
  client.on('error', () => {});
  await client.connect();
  try {
    const damage: string[] = [];
    const count = async (sql: string): Promise<number> =>
      (await client.query<{ count: number }>(`select count(*)::int as count from ${sql}`)).rows[0]
        ?.count ?? 0;
    const settled = {
      'payment attempts': `payment_attempts where due_at is not null`,
      callbacks: `callbacks where status = 'pending'`,
      // A complete refund is looked at once more some days later.
      refunds: `refund_requests where due_at is not null and status <> 'complete'`,
    };
    for (const [what, sql] of Object.entries(settled)) {
      await eventually(what, async () => (await count(sql)) === 0, settleSeconds).catch(
        async () => {
          damage.push(`${await count(sql)} ${what} are not settled after ${settleSeconds} seconds`);
        },
      );
    }
    damage.push(...(await findLost(client, load.calls)));
    for (const { name, row } of await findViolations({ pool: client }, new Date().toISOString())) {
      damage.push(`${name}: ${JSON.stringify(row)}`);
    }
    const { rows } = await client.query<{ id: string; reference: string; refunded: number }>(
      `select c.id, c.client_reference_id as reference,
         (select coalesce(sum(amount), 0)::int from refund_requests r
          where r.merchant_id = c.merchant_id and r.checkout_id = c.id and r.status = 'complete') as refunded
       from checkouts c where status = 'successful'`,
    );
    const successful = new Set(rows.map(({ id }) => id));
    for (const id of load.paid) {
      if (!successful.has(id)) damage.push(`checkout ${id} was paid and is not successful`);
    }
    // Read once and grouped: a run of fifty events pays about ten thousand checkouts.
    const books = await gateway.books({});
    const payments = Map.groupBy(books.payment_intents, ({ metadata }) => metadata.checkout_id);
    const refundsOf = Map.groupBy(books.refunds, ({ payment_intent }) => payment_intent);
    const called = new Set(receiver.received.map(({ path }) => path));
    for (const { id, reference, refunded } of rows) {
      const own = payments.get(id) ?? [];
      const live = own.filter(({ status }) => ['requires_capture', 'succeeded'].includes(status));
      if (live.length !== 1) damage.push(`checkout ${id} has ${live.length} payments`);
      const returned = own
        .flatMap((payment) => refundsOf.get(payment.id) ?? [])
        .reduce((sum, { amount }) => sum + amount, 0);
      // A refund of a later payment cancels it and returns nothing.
      if (returned > refunded) damage.push(`checkout ${id} got ${returned} back, not ${refunded}`);
      if (!called.has(`/${reference}`)) damage.push(`${id} had no callback`);
    }
    damage.push(...(await findDifferences(env)));
    return damage;
  } finally {
    await client.end();
  }
}

/** The results of the service's own comparisons: of the books, and of the gateway's records. */
async function findDifferences(env: NodeJS.ProcessEnv): Promise<string[]> {
  const damage: string[] = [];
  for (const args of [
    ['ledger', 'check'],
    ['gateway', 'reconcile'],
  ]) {
    const program = launch([...args, '--json'], env);
    const { code } = await program.exited;
    const text = code === 0 ? '' : `${program.stdout()} ${program.stderr()}`;
    if (code !== 0) damage.push(`tranche ${args.join(' ')}: ${text.slice(0, 2_000)}`);
  }
  return damage;
}

async function findLost(client: pg.Client, calls: Call[]): Promise<string[]> {
  const damage: string[] = [];
  const { rows } = await client.query<{ id: string; reference: string }>(
    'select id, client_reference_id as reference from checkouts',
  );
  const existing = Map.groupBy(rows, ({ reference }) => reference);
  for (const { reference, id, statuses } of calls.filter(({ kind }) => kind === 'create')) {
    const found = existing.get(reference) ?? [];
    if (id !== null && !found.some((row) => row.id === id)) {
      damage.push(`checkout ${id} was acknowledged and is lost`);
    }
    if (found.length > 1) damage.push(`${reference} (${statuses}) exists ${found.length} times`);
    const isRefused = id === null && !statuses.includes(0) && statuses.at(-1) !== undefined;
    if (isRefused && found.length > 0)
      damage.push(`${reference} (${statuses}) was refused, exists`);
  }
  const refunds = await client.query<{ id: string; checkout_id: string }>(
    'select id, checkout_id from refund_requests',
  );
  const byCheckout = Map.groupBy(refunds.rows, ({ checkout_id }) => checkout_id);
  const asked = Map.groupBy(
    calls.filter(({ kind }) => kind === 'refund'),
    ({ reference }) => reference,
  );
  for (const [checkout_id, all] of asked) {
    const found = byCheckout.get(checkout_id) ?? [];
    const lost = all.filter(({ id }) => id !== null && !found.some((row) => row.id === id));
    for (const { id } of lost) damage.push(`refund ${id} was acknowledged and is lost`);
    // Each request has a key, so its retries make no second refund.
    if (found.length > all.length) {
      damage.push(`checkout ${checkout_id}: ${found.length} refunds of ${all.length} requests`);
    }
  }
  return damage;
}
