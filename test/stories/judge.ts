import assert from 'node:assert/strict';
import type { Violation } from '#checks/invariants/invariants.ts';
import type { RefundRequest } from '#purchases/refunds/refund.ts';
import { assertAgreed } from '../support/agreement.ts';
import type { Shopper } from '../support/payments.ts';
import { isSigned } from '../support/receiver.ts';
import { send } from '../support/service.ts';
import { assertDisputes, assertPaidOnce } from '../support/settlement.ts';
import type { MerchantServer } from './merchant-server.ts';
import type { Scene } from './play.ts';
import type { StoryShopper } from './shopper.ts';

/** Asserts everything that must be true at the end of a story, when no due work is left. */
export async function judge(
  scene: Scene,
  person: StoryShopper,
  shop: MerchantServer,
  violations: Violation[],
): Promise<void> {
  assert.deepEqual(violations, []);
  const { paying, story } = scene;
  const shopper = person.of();
  await assertAgreed(paying, shopper, () => {});
  const status = await person.statusOf();
  const others = [...person.told].filter((told) => told !== status);
  assert.deepEqual(others, [], 'a page showed another outcome');
  if (status === 'successful') await assertHeard(shopper);
  else assert.deepEqual(await shopper.live(), [], 'the gateway holds nothing');
  await assertTold(scene, shop);
  await assertPosted(scene);
  if (story.theme === 'plain') return;
  await assertDisputes(paying, shopper);
  await assertPaidOnce(paying, scene.account.merchant.id, scene.ordered);
}

/** Asserts that the merchant's receiver was told of every change, byte for byte and signed. */
async function assertPosted({ paying, account }: Scene): Promise<void> {
  const { pool } = paying.service.deps.database;
  const { rows } = await pool.query<{ status: string; payload: Buffer }>(
    'select status, payload from callbacks where merchant_id = $1',
    [account.merchant.id],
  );
  const posted = paying.receiver.at(`/${account.merchant.id}`);
  for (const one of posted) assert.ok(isSigned(one, account.signing_key), 'a callback is signed');
  const texts = new Set(posted.map(({ raw }) => raw.toString()));
  assert.deepEqual([...texts].sort(), rows.map(({ payload }) => payload.toString()).sort());
  for (const { status } of rows) assert.equal(status, 'delivered');
}

/** Asserts that the shopper was told of every change once. */
async function assertHeard(shopper: Shopper): Promise<void> {
  const messages = await shopper.rows('messages');
  const sent = messages.filter(({ status }) => status === 'sent');
  const told = (kind: string) => sent.filter((message) => message.kind === kind);
  const collections = await shopper.rows('collections');
  assert.deepEqual(
    [...told('charged'), ...told('plan_finished')]
      .filter(({ facts }) => facts.amount !== undefined)
      .flatMap(({ facts }) => facts.instalments ?? [facts.instalment])
      .sort(),
    // The capture of a hold is not announced, because the shopper has the receipt.
    collections
      .filter(({ status, kind }) => status === 'collected' && kind !== 'capture')
      .map(({ instalment }) => instalment)
      .sort(),
    'a message for every charge',
  );
  assert.equal(told('receipt').length, 1);

  const payments = await shopper.rows('instalments');
  const refunds = await shopper.rows('refund_requests');
  // A refund may have cancelled a payment for a while.
  const isUnpaid = (number: number) =>
    refunds.length === 0 &&
    payments.some((one) => one.number === number && /scheduled|overdue/.test(one.status));
  const declines = collections.filter(
    ({ status, kind }) => status === 'declined' && kind === 'charge',
  );
  for (const { instalment, number } of declines) {
    const numbers = declines
      .filter((one) => one.instalment === instalment)
      .map((one) => one.number);
    // Only the first decline is checked here. Those between it and the last are not announced.
    if (number !== Math.min(...numbers)) continue;
    const about = `payment ${instalment}, attempt ${number}`;
    const message = messages.find((one) => one.kind === 'declined' && one.about === about);
    // The message about a decline is skipped if the payment is paid or cancelled before it is sent.
    assert.match(message?.status ?? 'none', isUnpaid(instalment) ? /^sent$/ : /^(sent|skipped)$/);
  }
  assert.deepEqual(
    // A refund that was retried has a message for each round that completed.
    [...new Set(told('refunded').map(({ about }) => about.split(',')[0]))].sort(),
    refunds
      .filter(({ completed_at }) => completed_at !== null)
      .map(({ id }) => `refund ${id}`)
      .sort(),
    'a message for every refund',
  );
  const attempts = await shopper.planAttempts();
  assert.deepEqual(
    told('card_replaced')
      .map(({ about }) => about)
      .sort(),
    attempts
      .filter(({ status, consent }) => consent !== null && /^(charged|verified)$/.test(status))
      .map(({ number }) => `attempt ${number}`)
      .sort(),
    'a message for every card',
  );
  const isPlain = payments.length > 1 && payments.every(({ status }) => status === 'collected');
  // A refund may end a plan without a charge.
  if (isPlain && refunds.length === 0) assert.equal(told('plan_finished').length, 1);
  assert.ok(told('plan_finished').length <= 1);
}

/**
 * Asserts that everything that the API acknowledged to the merchant exists once, and nothing else
 * does.
 */
async function assertTold({ paying, account }: Scene, { asked }: MerchantServer): Promise<void> {
  const { service } = paying;
  const { pool } = service.deps.database;
  const checkouts = await pool.query('select id from checkouts where merchant_id = $1', [
    account.merchant.id,
  ]);
  const [created, ...refunds] = asked;
  assert.deepEqual(checkouts.rows, [{ id: created?.id }], 'one checkout was created');
  const { rows } = await pool.query<RefundRequest>(
    'select * from refund_requests where merchant_id = $1',
    [account.merchant.id],
  );
  const acknowledged: string[] = refunds.flatMap(({ id }) => id ?? []);
  // An operator who cancels the rest of a disputed plan requests a refund, too.
  const own = rows.filter(({ requested_by_name }) => requested_by_name === null);
  assert.deepEqual(own.map(({ id }) => id).sort(), acknowledged.sort());
  for (const { id, body } of refunds) {
    if (id === undefined) continue;
    const refund = rows.find((row) => row.id === id);
    const answer = await send(service, account, 'GET', `/api/refunds/${id}`);
    const { amount, status, checkout_id } = answer.body.data.attributes;
    assert.deepEqual({ checkout_id, amount }, body);
    assert.equal(status, String(refund?.status));
    assert.ok(['complete', 'failed'].includes(status), `a refund is left ${status}`);
  }
}
