import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createIntegration } from '#merchants/integrations/create-integration.ts';
import { manageMerchants } from '#merchants/integrations/manage-merchants.ts';
import { revokeIntegration } from '#merchants/integrations/revoke-integration.ts';
import { readCheckoutHistory } from '#operating/operations/checkout-history.ts';
import { timelineOf } from '#operating/operations/checkout-timeline.ts';
import { acceptDispute } from '#purchases/disputes/answer-dispute.ts';
import { requestRefund } from '#purchases/refunds/request-refund.ts';
import { approveRefund, declineRefund } from '#purchases/refunds/review-refund.ts';
import { eraseShopper } from '#purchases/shoppers/erase-shopper.ts';
import type { Tranche } from '../support/cli.ts';
import { createLegacyCheckout, enablePlugin, logIn } from '../support/legacy.ts';
import { askRefund, openDispute } from '../support/money.ts';
import {
  assertSound,
  commandsOf,
  type Paying,
  type Shopper,
  startPaying,
} from '../support/payments.ts';
import { isSigned, isSignedStandardly, type Received } from '../support/receiver.ts';
import { type Account, createAccount, send } from '../support/service.ts';
import { recordStatements } from '../support/statements.ts';

// Callbacks about refunds, disputes and payouts, for integrations that asked for them (decision
// 0033). Each test has a merchant of its own and continues at the time at which the last one ended.

let paying: Paying;
let nomsa: Tranche;
let sipho: Tranche;
before(async () => {
  // This is a Monday.
  paying = await startPaying({ start: '2026-01-05T08:00:00Z' });
  nomsa = commandsOf(paying);
  sipho = commandsOf(paying, { TRANCHE_OPERATOR: 'sipho' });
});
after(async () => {
  try {
    await paying.work();
    await assertSound(paying);
  } finally {
    await paying.close();
  }
});

const events = (account: { id: string }, ...options: string[]) =>
  nomsa.json('integrations', 'events', account.id, ...options);

/** An integration that asked for events, and an order whose first payment is collected. */
async function scene(enable: string, ...options: string[]) {
  const account = await createAccount(paying.service);
  await events(account, '--enable', enable, ...options);
  const shopper = await bought(account);
  await paying.pass({ days: 2 });
  return { account, shopper };
}

/** Counts the orders, so that each has its own callback URL. */
let orders = 0;
async function bought(account: Account, changes: object = {}, term = 3): Promise<Shopper> {
  orders += 1;
  const notify_url = `${paying.receiver.url}/order-${orders}`;
  const shopper = await paying.shopper({ amount: 90_000, notify_url, ...changes }, account);
  await shopper.pay(term);
  return shopper;
}
const lastOrder = () => `/order-${orders}`;

async function refundOf(account: Account, shopper: Shopper): Promise<void> {
  const id = await askRefund(paying, shopper, 1_000, account);
  await approveRefund(paying.service.deps, 'nomsa', id);
}

const bodyOf = ({ raw }: Received) => JSON.parse(raw.toString());
/** The events that a path received, without the results of payments. */
const told = (path: string) =>
  paying.receiver.at(path).filter((one) => bodyOf(one).event !== undefined);
const statuses = (path: string) =>
  told(path).map((one) => {
    const { event, sequence, data } = bodyOf(one);
    return `${event} ${sequence} ${data.attributes.status}`;
  });

test('an integration that asked for no events gets none, and costs no statement', async () => {
  const account = await createAccount(paying.service);
  const shopper = await bought(account);
  await paying.pass({ days: 2 });
  const recorder = recordStatements(paying.service.deps.database.pool);
  const statements = await recorder.during(async () => {
    const id = await askRefund(paying, shopper, 10_000, account);
    await approveRefund(paying.service.deps, 'nomsa', id);
    await openDispute(paying, shopper);
  });
  assert.ok(statements.includes('write refund_requests postings'));
  assert.deepEqual(
    statements.filter((one) => one.includes('callbacks')),
    [],
  );
  assert.deepEqual(statuses(lastOrder()), []);
  assert.equal(paying.receiver.at(lastOrder()).length, 1);
});

test('every change of a refund is sent once, in order, signed, as the API presents it', async () => {
  const { account, shopper } = await scene('refunds');
  const id = await askRefund(paying, shopper, 10_000, account);
  const asked = await send(paying.service, account, 'GET', `/api/refunds/${id}`);
  await paying.work();
  const [first] = told(lastOrder());
  assert.ok(first);
  assert.ok(isSigned(first, account.signing_key));
  assert.ok(isSignedStandardly(first, account.signing_key));
  const { id: event_id, created_at, ...body } = bodyOf(first);
  assert.equal(event_id, first.headers['x-callback-id']);
  assert.equal(created_at, asked.body.data.attributes.created_at);
  assert.deepEqual(body, {
    event: 'refund.updated',
    sequence: 1,
    merchant_id: account.merchant.id,
    data: asked.body.data,
  });
  await approveRefund(paying.service.deps, 'nomsa', id);
  await paying.work();
  assert.deepEqual(statuses(lastOrder()).toSorted(), [
    'refund.updated 1 requested',
    'refund.updated 2 pending',
    'refund.updated 3 complete',
  ]);
  const ended = await send(paying.service, account, 'GET', `/api/refunds/${id}`);
  const last = told(lastOrder())
    .map(bodyOf)
    .find(({ sequence }) => sequence === 3);
  assert.deepEqual(last.data, ended.body.data);
  // The contract's own callback is unchanged.
  const [result] = paying.receiver.at(lastOrder());
  assert.deepEqual(Object.keys(bodyOf(result as Received)), [
    ...['status', 'amount', 'currency', 'client_reference_id', 'number_of_payments'],
  ]);
  const { deps } = paying.service;
  const history = await readCheckoutHistory(deps, 'all merchants', shopper.id);
  assert.ok(history);
  const lines = timelineOf(history).map(({ description }) => description);
  assert.ok(lines.includes('event 3, refund.updated, delivered'), lines.join('\n'));
});

test('a receiver that fails gets an event again, the operator is alerted and resends it', async () => {
  const { account, shopper } = await scene('refunds');
  const path = lastOrder();
  paying.receiver.answer = ({ path: at }) => (at === path ? { status: 500 } : {});
  const id = await askRefund(paying, shopper, 10_000, account);
  await paying.pass({ hours: 4 });
  assert.equal(told(path).length, 19);
  assert.equal(new Set(told(path).map(({ raw }) => raw.toString())).size, 1);
  const { data } = await nomsa.json('callbacks', 'list', '--status', 'exhausted');
  const lost = data.find(({ event }: { event: string | null }) => event === 'refund.updated');
  const { pool } = paying.service.deps.database;
  const { rows } = await pool.query('select kind from alerts where subject_id = $1', [lost.id]);
  assert.deepEqual(rows, [{ kind: 'callback_exhausted' }]);
  paying.receiver.answer = () => ({});
  assert.equal((await nomsa.json('callbacks', 'retry', lost.id)).status, 'delivered');
  const shown = await nomsa.json('callbacks', 'show', lost.id);
  assert.deepEqual([shown.event, JSON.parse(shown.payload).data.id], ['refund.updated', id]);
});

test('a dispute is sent when it opens and when it ends, and a repeated answer sends nothing', async () => {
  const { shopper } = await scene('disputes', '--url', `${paying.receiver.url}/events-of-disputes`);
  const id = await openDispute(paying, shopper);
  await paying.work();
  await paying.pass({ days: 1 });
  await acceptDispute(paying.service.deps, 'nomsa', id);
  await paying.work();
  assert.deepEqual(statuses('/events-of-disputes'), [
    'dispute.updated 1 needs_response',
    'dispute.updated 2 lost',
  ]);
  const [opened, lost] = told('/events-of-disputes').map(bodyOf);
  const { respond_by, created_at, ...attributes } = opened.data.attributes;
  assert.deepEqual(attributes, {
    amount: 30_000,
    currency: 'ZAR',
    status: 'needs_response',
    reason: attributes.reason,
    checkout_id: shopper.id,
  });
  assert.ok(respond_by > created_at);
  assert.ok(lost.data.attributes.closed_at > created_at);
});

async function payable(account: Account): Promise<void> {
  const { id } = account.merchant;
  const fee = ['--basis-points', '500', '--fixed', '200', '--vat-basis-points', '1500'];
  await nomsa.json('merchants', 'fee', id, ...fee);
  const number = ['--account-number', '0629871234'];
  const bank = ['--holder', 'Karoo', '--bank', 'Standard Bank', '--branch-code', '051001'];
  await nomsa.json('merchants', 'bank', id, ...bank, ...number);
  await sipho.json('merchants', 'bank', id, '--confirm', '1', ...number);
}

test('a payout is sent to each integration that acts for the merchant, at its own address or its newest order’s', async () => {
  const account = await createAccount(paying.service);
  await payable(account);
  await events(account, '--enable', 'refunds,disputes,payouts');
  const { deps } = paying.service;
  const platform = await createIntegration(deps, 'nomsa', {
    managed_merchant_ids: [(await createAccount(paying.service)).merchant.id],
    refund_mode: 'manual',
  });
  await events(platform, '--enable', 'payouts', '--url', `${paying.receiver.url}/platform`);
  const managed = { id: platform.id, add: [account.merchant.id], remove: [] };
  await manageMerchants(deps, 'nomsa', managed);
  await bought(account);
  await paying.pass({ days: 3 });
  const { data } = await nomsa.json('payouts', 'list', '--merchant', account.merchant.id);
  const [payout] = data;
  await nomsa.json('payouts', 'approve', payout.id);
  await sipho.json('payouts', 'approve', payout.id);
  await nomsa.json('payouts', 'export');
  await nomsa.json('payouts', 'paid', payout.id, '--bank-reference', 'FT1');
  await paying.work();
  const expected = ['draft', 'approved', 'exported', 'paid'].map(
    (status, index) => `payout.updated ${index + 1} ${status}`,
  );
  assert.deepEqual(statuses(lastOrder()).toSorted(), expected.toSorted());
  assert.deepEqual(statuses('/platform').toSorted(), expected.toSorted());
  const [own, shared] = [told(lastOrder())[0], told('/platform')[0]] as [Received, Received];
  assert.ok(isSigned(own, account.signing_key));
  assert.ok(isSigned(shared, platform.signing_key));
  const { body } = await send(paying.service, account, 'GET', `/api/payouts/${payout.id}`);
  const { lines: _, ...attributes } = body.data.attributes;
  const paid = told(lastOrder())
    .map(bodyOf)
    .find(({ sequence }) => sequence === 4);
  assert.deepEqual(paid.data, { ...body.data, attributes });
  const { data: sent } = await nomsa.json('callbacks', 'list', '--merchant', account.merchant.id);
  assert.ok(
    sent.some(
      (one: { event: string; client_reference_id: string }) =>
        one.event === 'payout.updated' && one.client_reference_id === payout.reference,
    ),
  );
});

test('no event is sent if its kind is disabled, for a revoked integration, or for a v1 order without an address for events', async () => {
  const { account, shopper } = await scene('refunds,disputes');
  const disabled = await events(account, '--disable', 'refunds');
  assert.deepEqual([disabled.events, disabled.events_url], [['disputes'], null]);
  await refundOf(account, shopper);
  await paying.work();
  assert.deepEqual(statuses(lastOrder()), []);

  await events(account, '--enable', 'refunds');
  const { deps } = paying.service;
  const plugin = await enablePlugin(paying.service, account.id, account.merchant.id);
  const token = await logIn(paying.service, plugin);
  const merchant = { notify_url: `${paying.receiver.url}/v1` };
  const v1 = await createLegacyCheckout(paying.service, token, { merchant });
  const old = paying.open(v1.id, account);
  await old.pay(1);
  await paying.pass({ days: 2 });
  await refundOf(account, old);
  await paying.work();
  assert.equal(paying.receiver.at('/v1').length, 1, 'the form, and nothing else');
  await events(account, '--url', `${paying.receiver.url}/modern`);
  await refundOf(account, old);
  await paying.work();
  assert.equal(statuses('/modern').length, 3);
  assert.equal(paying.receiver.at('/v1').length, 1);

  await revokeIntegration(deps, 'nomsa', account.id);
  const wanted = { request_id: 'again', checkout_id: shopper.id, amount: 1_000, reason: null };
  await requestRefund(deps, 'nomsa', wanted);
  await paying.work();
  assert.equal(statuses('/modern').length, 3);
});

test('an intermediary gets the refunds and disputes of its orders while it manages their merchant', async () => {
  const account = await createAccount(paying.service);
  const managed_merchant_ids = [
    account.merchant.id,
    (await createAccount(paying.service)).merchant.id,
  ];
  const { deps } = paying.service;
  const issued = { managed_merchant_ids, refund_mode: 'manual' } as const;
  const platform = await createIntegration(deps, 'nomsa', issued);
  await events(platform, '--enable', 'refunds,disputes', '--url', `${paying.receiver.url}/manager`);
  const { merchant } = account;
  const shopper = await bought({ ...platform, merchant }, { merchant_id: merchant.id });
  await paying.pass({ days: 2 });
  await refundOf(account, shopper);
  await paying.work();
  assert.equal(statuses('/manager').length, 3);
  await manageMerchants(deps, 'nomsa', { id: platform.id, add: [], remove: [merchant.id] });
  await refundOf(account, shopper);
  await openDispute(paying, shopper);
  await paying.work();
  assert.equal(statuses('/manager').length, 3);
});

test('an address that callbacks may not reach is refused, and a wrong kind is named', async () => {
  const account = await createAccount(paying.service);
  const enable = ['integrations', 'events', account.id, '--enable', 'refunds'];
  for (const [url, why] of [
    ['http://shop.example/events', /must be an https URL/],
    ['https://10.0.0.1/events', /must have a public address/],
    ['https://user:word@shop.example/', /must not carry a user name/],
    ['shop', /must be an https URL/],
  ] as const) {
    await nomsa.refused(1, why, ...enable, '--url', url);
  }
  await nomsa.refused(2, /sales/, 'integrations', 'events', account.id, '--enable', 'sales');
  await nomsa.refused(1, /enable|address/, 'integrations', 'events', account.id);
  const shown = await nomsa.json('integrations', 'show', account.id);
  assert.deepEqual([shown.events, shown.events_url], [[], null]);
  const set = await events(account, '--enable', 'refunds', '--url', 'https://shop.example/events');
  assert.deepEqual(set.events, ['refunds']);
  assert.equal((await events(account, '--url', 'none')).events_url, null);
});

test('erasing a shopper empties what an event and its receiver’s answer said about them', async () => {
  const account = await createAccount(paying.service);
  await events(account, '--enable', 'refunds');
  const email = 'zanele.events@example.com';
  const shopper = await bought(account, { customer: { email, first_name: 'Zanele' } }, 1);
  await paying.pass({ days: 2 });
  paying.receiver.answer = () => ({ body: `thanks, ${email}` });
  const id = await askRefund(paying, shopper, 1_000, account);
  await declineRefund(paying.service.deps, 'nomsa', id, 'Zanele changed her mind.');
  await paying.work();
  paying.receiver.answer = () => ({});
  const found = await nomsa.json('shoppers', 'export', email);
  assert.match(JSON.stringify(found.checkouts[0].events), /Zanele changed her mind/);
  const { erased } = await eraseShopper(paying.service.deps, 'nomsa', email);
  assert.deepEqual(erased, [shopper.id]);
  const rows = JSON.stringify([
    (await shopper.rows('callbacks')).map(({ payload }) => payload.toString()),
    (
      await paying.service.deps.database.pool.query(
        `select convert_from(response_body, 'UTF8') from callback_attempts a
         join callbacks k on k.id = a.callback_id where k.checkout_id = $1`,
        [shopper.id],
      )
    ).rows,
  ]);
  assert.doesNotMatch(rows, /Zanele|zanele/);
});
