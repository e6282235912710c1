import assert from 'node:assert/strict';
import { checkLedger } from '#checks/books/audit-books.ts';
import { findNewDisputes } from '#purchases/disputes/check-disputes.ts';
import type { WantedTerms } from '#purchases/payouts/set-terms.ts';
import type { RefundPart, RefundRequest } from '#purchases/refunds/refund.ts';
import { approveRefund } from '#purchases/refunds/review-refund.ts';
import { assertSound, type Paying, type Shopper } from './payments.ts';
import { type Account, send } from './service.ts';

// Helpers for the tests of captures, collections and refunds.

export const cards = {
  laterInsufficientFunds: '4000000000777005',
  laterLost: '4000000000777104',
  laterNeedsShopper: '4000002760003184',
  refundPending: '4000000000007726',
  refundFails: '4000000000005126',
};

/** Terms under which whole orders are paid out, minus 5 % and VAT. */
export const wholeTerms: WantedTerms = {
  from_on: null,
  funding: 'whole',
  basis_points: 500,
  fixed: 0,
  vat_basis_points: 1_500,
  refund_fee: 'kept',
  reserve_basis_points: 0,
  reserve_days: 0,
};

/** The payments of a checkout as `2 scheduled 2026-12-15`, with what refunds took from them. */
export async function planOf(shopper: Shopper): Promise<string[]> {
  const rows = await shopper.rows('instalments');
  return rows
    .sort((one, other) => one.number - other.number)
    .map(({ number, status, reduced }) => `${number} ${status}${reduced ? ` -${reduced}` : ''}`);
}

/** The amounts that the gateway took, holds and refunded for a checkout, in cents. */
export async function atGateway(shopper: Shopper): Promise<{
  taken: number[];
  held: number[];
  returned: number;
}> {
  const { payment_intents, refunds } = await shopper.books();
  const amounts = (status: string) => payment_intents.filter((one) => one.status === status);
  return {
    taken: amounts('succeeded').map((one) => one.amount_received),
    held: amounts('requires_capture').map((one) => one.amount),
    returned: refunds
      .filter(({ status }) => status === 'succeeded')
      .reduce((sum, { amount }) => sum + amount, 0),
  };
}

/** The accounts of a checkout that are not empty. */
export async function accountsOf(shopper: Shopper): Promise<Record<string, number>> {
  const balances: Record<string, number> = {};
  for (const { debit, credit, amount } of await shopper.rows('postings')) {
    balances[debit] = (balances[debit] ?? 0) + amount;
    balances[credit] = (balances[credit] ?? 0) - amount;
  }
  const counter = ['sale', 'issuer', 'refundable'];
  return Object.fromEntries(
    Object.entries(balances).filter(([name, sum]) => sum !== 0 && !counter.includes(name)),
  );
}

export async function askRefund(
  paying: Paying,
  shopper: Shopper,
  amount: number,
  account: Account = paying.account,
): Promise<string> {
  const body = { checkout_id: shopper.id, amount };
  const answer = await send(paying.service, account, 'POST', '/api/refunds', { body });
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  assert.equal(answer.body.data.attributes.status, 'requested');
  return answer.body.data.id;
}

/** Makes a refund that the merchant requests and an operator approves. */
export async function refundNow(
  paying: Paying,
  shopper: Shopper,
  amount: number,
): Promise<RefundRequest> {
  const id = await askRefund(paying, shopper, amount);
  return await approveRefund(paying.service.deps, 'nomsa', id);
}

/**
 * Makes a cardholder dispute a collected payment, and lets the service find out. Returns our id for
 * the dispute.
 */
export async function openDispute(
  { gateway, service: { deps } }: Paying,
  shopper: Shopper,
  number = 1,
  reason?: string,
): Promise<string> {
  const payments = await shopper.rows('instalments');
  const payment_intent = payments.find((one) => one.number === number)?.payment_ref;
  const made = await gateway.call('POST', '/_test/disputes', {
    ...{ payment_intent, ...(reason !== undefined && { reason }) },
  });
  await findNewDisputes(deps);
  const { rows } = await deps.database.pool.query(
    'select id from disputes where dispute_ref = $1',
    [made.body.id],
  );
  return rows[0].id;
}

export async function statusOf(paying: Paying, id: string): Promise<string> {
  const answer = await send(paying.service, paying.account, 'GET', `/api/refunds/${id}`);
  return answer.body.data.attributes.status;
}

/** The payments that a refund was taken from: `3 cancel 100 done`. */
export async function partsOf(shopper: Shopper, refund_id: string): Promise<string[]> {
  const parts: RefundPart[] = await shopper.rows('refund_parts');
  return parts
    .filter((part) => part.refund_id === refund_id)
    .sort((one, other) => one.round - other.round || one.number - other.number)
    .map(({ instalment, kind, amount, status }) => `${instalment} ${kind} ${amount} ${status}`);
}

/** Asserts that all invariants hold, and that the books agree with the gateway's to the cent. */
export async function assertBalanced(paying: Paying, ...shoppers: Shopper[]): Promise<void> {
  await assertSound(paying);
  for (const shopper of shoppers) {
    const { taken, returned } = await atGateway(shopper);
    const { collected = 0, refunded = 0 } = await accountsOf(shopper);
    const sum = taken.reduce((total, amount) => total + amount, 0);
    assert.deepEqual({ sum, returned }, { sum: collected + refunded, returned: refunded });
  }
}

/**
 * Call this at the end of a test file. It asserts that `tranche ledger check` finds nothing wrong
 * either: the command reads the rows in ranges, unlike the invariants that each test asserts. Then
 * it closes the service.
 */
export async function closeBooks(paying: Paying): Promise<void> {
  try {
    const { differences } = await checkLedger(paying.service.deps);
    assert.deepEqual(differences, []);
  } finally {
    await paying.close();
  }
}

export async function alertsOf(paying: Paying, shopper: Shopper): Promise<string[]> {
  const { rows } = await paying.service.deps.database.pool.query(
    `select kind from alerts where subject_id = $1
       or subject_id in (select id from refund_requests where checkout_id = $1) order by at, id`,
    [shopper.id],
  );
  return rows.map(({ kind }) => kind);
}
