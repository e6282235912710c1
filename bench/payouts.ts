import assert from 'node:assert/strict';
import { findViolations } from '#checks/invariants/invariants.ts';
import type { Deps } from '#main.ts';
import { findMerchant } from '#merchants/merchant.sql.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { makeMerchantPayouts } from '#purchases/payouts/make-payouts.ts';
import { median } from './create.ts';
import { createAccount, startDatabase } from './service.ts';

export type PayoutResult = {
  /**
   * Seconds for the payout of a merchant with few sales and of one with many, as medians of the
   * rounds.
   */
  few: number;
  many: number;
};

/**
 * Measures how long it takes to turn a day's sales into lines of a payout: many sales of one
 * merchant and a tenth of them, alternately.
 */
export async function benchPayouts(
  options: { sales: number; rounds: number },
  progress: (text: string) => void,
): Promise<PayoutResult> {
  const { deps, stop } = await startDatabase();
  try {
    const seconds = { few: [] as number[], many: [] as number[] };
    for (let round = 0; round < options.rounds; round += 1) {
      for (const size of ['few', 'many'] as const) {
        const sales = size === 'many' ? options.sales : options.sales / 10;
        const id = await fill(deps, sales);
        progress(`payouts: round ${round + 1} of ${options.rounds}, closing ${sales} sales`);
        seconds[size].push(await close(deps, id, sales));
      }
    }
    const names = ['P2', 'P3', 'P4'];
    const now = timestamp(deps.clock.now());
    assert.deepEqual(await findViolations(deps.database, now, names), []);
    return { few: median(seconds.few), many: median(seconds.many) };
  } finally {
    await stop();
  }
}

async function close(deps: Deps, merchant_id: string, sales: number): Promise<number> {
  const merchant = await findMerchant(deps.database.db, deps.clock, merchant_id);
  assert.ok(merchant);
  const start = performance.now();
  await makeMerchantPayouts(deps, merchant);
  const seconds = (performance.now() - start) / 1000;
  const { rows } = await deps.database.pool.query(
    'select lines, amount from payouts where merchant_id = $1',
    [merchant_id],
  );
  assert.deepEqual(rows, [{ lines: sales, amount: sales * 94_020 }]);
  return seconds;
}

/** Creates a merchant whose sales of the last days are owed, and whose payout is due. */
async function fill(deps: Deps, sales: number): Promise<string> {
  const { merchant, id: integration_id } = await createAccount(deps);
  const client = await deps.database.pool.connect();
  const owner = `'${merchant.id}'::uuid`;
  try {
    for (const text of [
      // Foreign keys are not checked, because the references are right by construction, and the
      // rows need not survive a power cut.
      'set session_replication_role = replica',
      'set synchronous_commit = off',
      `insert into settlement_terms values (${owner}, '2026-01-01', 'whole', 500, 200, 1500, 'kept', 0,
         0, '2026-01-01')`,
      `create temporary table sold on commit drop as
       select n, gen_random_uuid() as id from generate_series(1, ${sales}) n`,
    ]) {
      if (text.includes('on commit drop')) await client.query('begin');
      await client.query(text);
    }
    await client.query(
      `insert into checkouts (merchant_id, id, number, integration_id, status, amount, currency,
         client_reference_id, notify_url, success_url, cancel_url, customer, line_items, terms,
         number_of_payments, signed, created_at, expires_at, completed_at)
       select ${owner}, id, n, '${integration_id}', 'successful', 100000, 'ZAR', 'order-' || n,
         'https://shop.example/callback', 'https://shop.example/paid', 'https://shop.example/cart',
         '{"email": "thandi@example.com"}', '[]', '{1}', 1, true, now() - interval '12 days',
         now() - interval '12 days', now() - interval '12 days'
       from sold`,
    );
    await client.query(
      `insert into settlement_entries (merchant_id, id, kind, checkout_id, gross, fee, vat, net,
         currency, at)
       select ${owner}, gen_random_uuid(), 'sale', id, 100000, 5200, 780, 94020, 'ZAR',
         now() - interval '10 days' + n * interval '1 millisecond'
       from sold`,
    );
    await client.query(
      `insert into payout_days (merchant_id, due_at) values (${owner}, now() - interval '1 minute')`,
    );
    await client.query('commit');
    await client.query('analyze settlement_entries');
    return merchant.id;
  } finally {
    // Closing the connection discards its settings.
    client.release(true);
  }
}
