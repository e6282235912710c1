import assert from 'node:assert/strict';
import type { Dispute } from '#purchases/disputes/dispute.ts';
import type { Payout } from '#purchases/payouts/payout.ts';
import type { Paying, Shopper } from './payments.ts';

// Asserts that the disputes of a settled merchant agree with the gateway, and the payouts with the
// bank.

/** A bank account in South Africa. */
export const bankAccount = {
  holder: 'Karoo',
  bank: 'FNB',
  branch_code: '250655',
  account_number: '62100049876',
};

/** The amounts that the bank was told to pay, by payout. */
export type Ordered = Map<string, number>;

/** Reads an export, and asserts that the bank is told only once to pay each payout. */
export function readOrders(ordered: Ordered, file: string): void {
  for (const row of file.trim().split('\r\n').slice(1)) {
    const [, , , amount = '', , id = ''] = row.split(',');
    assert.ok(!ordered.has(id), 'the bank is told once to pay a payout');
    ordered.set(id, Number(amount.replace('.', '')));
  }
}

/**
 * Compares our disputes about a checkout with the gateway's, and the amount that they took with the
 * books. Returns that amount and their statuses.
 */
export async function assertDisputes(
  { gateway }: Pick<Paying, 'gateway'>,
  shopper: Shopper,
): Promise<{ taken: number; statuses: string[] }> {
  const own: Dispute[] = await shopper.rows('disputes');
  const postings = await shopper.rows('postings');
  const refs = new Set((await shopper.rows('instalments')).flatMap((one) => one.payment_ref ?? []));
  const statuses: string[] = [];
  let taken = 0;
  for (const payment_intent of refs) {
    const { body } = await gateway.call('GET', '/v1/disputes', { payment_intent });
    for (const { id, status, balance_transactions } of body.data) {
      const row = own.find(({ dispute_ref }) => dispute_ref === id);
      assert.ok(row, 'every dispute of the gateway is known');
      assert.equal(row.status, status.replace('warning_', ''));
      if (row.status === 'won') assert.equal(row.withdrawn, 0, 'a won dispute brings money back');
      statuses.push(row.status);
      for (const { amount } of balance_transactions) taken -= amount;
    }
  }
  assert.equal(own.length, statuses.length, 'no dispute is invented');
  const posted = (kind: string) =>
    postings
      .filter((one) => one.kind === kind)
      .reduce((total: number, one) => total + one.amount, 0);
  assert.equal(posted('withdrawn') - posted('reinstated'), taken, 'what disputes took');
  const isDuring = (time: string) =>
    own.some(({ created_at, closed_at }) => time > created_at && time < (closed_at ?? '9'));
  for (const { keyed_at, key_number } of await shopper.rows('refund_parts')) {
    assert.ok(key_number !== 1 || !isDuring(keyed_at), 'a refund began during a dispute');
  }
  for (const { kind, card_ref, created_at } of await shopper.rows('collections')) {
    // A charge without its card was recorded after a restore. Its time is that of the recording.
    const isRecorded = kind === 'charge' && card_ref === null;
    const isOwn = kind !== 'shopper' && !isRecorded;
    assert.ok(!isOwn || !isDuring(created_at), 'a charge began during a dispute');
  }
  return { taken, statuses };
}

/**
 * Asserts that the bank was told once to pay each payout, on a business day, and paid what was
 * taken from the books. Returns the payouts.
 */
export async function assertPaidOnce(
  { service }: Pick<Paying, 'service'>,
  merchant_id: string,
  ordered: Ordered,
): Promise<Payout[]> {
  const { pool } = service.deps.database;
  const { rows: payouts } = await pool.query<Payout & { is_closed: boolean }>(
    `select p.*, extract(isodow from business_on) > 5 or exists (
       select from holidays h where h.on_date = p.business_on) as is_closed
     from payouts p where merchant_id = $1`,
    [merchant_id],
  );
  for (const { id, amount, export_id, is_closed } of payouts) {
    assert.equal(is_closed, false, 'a payout is made on a business day');
    assert.equal(ordered.get(id), export_id === null ? undefined : amount);
  }
  assert.equal(ordered.size, payouts.filter(({ export_id }) => export_id !== null).length);
  const { rows } = await pool.query<{ paid: number }>(
    `select coalesce(-sum(net), 0)::bigint as paid from settlement_entries
     where merchant_id = $1 and kind in ('paid_out', 'payout_returned')`,
    [merchant_id],
  );
  const paid = payouts.filter(({ status }) => status === 'paid');
  assert.equal(
    rows[0]?.paid,
    paid.reduce((total, { id }) => total + (ordered.get(id) ?? 0), 0),
  );
  return payouts;
}
