import assert from 'node:assert/strict';
import { collectsAt, type Instalment } from '#purchases/instalments/instalment.ts';
import type { Paying, Shopper } from './payments.ts';
import type { Story } from './seeds.ts';

const zone = 'Africa/Johannesburg';

/**
 * Asserts that our books for a checkout agree with the gateway's to the cent, and that no amount
 * moved twice.
 */
export async function assertAgreed(
  paying: Paying,
  shopper: Shopper,
  note: Story['note'],
): Promise<void> {
  const instalments: Instalment[] = await shopper.rows('instalments');
  const collections = await shopper.rows('collections');
  const parts = await shopper.rows('refund_parts');
  const attempts = await shopper.attempts();
  const planAttempts = await shopper.planAttempts();
  const customer = attempts[0]?.customer_ref;
  const books = await paying.gateway.books({ checkout: shopper.id, ...(customer && { customer }) });
  const postings = await shopper.rows('postings');
  const sum = (list: { amount: number }[]) => list.reduce((total, one) => total + one.amount, 0);
  const posted = (...kinds: string[]) => sum(postings.filter(({ kind }) => kinds.includes(kind)));
  const unique = (list: string[], description: string) =>
    assert.equal(new Set(list).size, list.length, description);
  const sorted = (list: unknown[][]) => list.map((one) => JSON.stringify(one)).sort();

  for (const { status } of instalments) note(`payment ${status}`);
  for (const { status } of collections) note(status);
  for (const { status } of planAttempts) note(`plan attempt ${status}`);
  for (const { status } of parts) if (status === 'put_back') note('put_back');
  if (posted('returned') > 0) note('returned');

  const succeeded = books.payment_intents.filter(({ status }) => status === 'succeeded');
  const received = succeeded.map((intent) => ({ ...intent, amount: intent.amount_received }));
  assert.equal(sum(received), posted('captured', 'collected'), 'what the gateway received');
  const collected = instalments.filter(({ status }) => status === 'collected');
  assert.deepEqual(
    sorted(received.map(({ id, amount }) => [id, amount])),
    // A shopper may pay several instalments with one payment.
    sorted(
      [...Map.groupBy(collected, ({ payment_ref }) => payment_ref)].map(([ref, list]) => [
        ref,
        sum(list.map((one) => ({ amount: one.amount - one.reduced }))),
      ]),
    ),
    'each payment was taken once, and nothing else',
  );
  const requests = Map.groupBy(books.payment_intents, ({ metadata }) => metadata.attempt_id);
  assert.deepEqual(
    [...requests.values()]
      .filter((list) => list.length > 1)
      .map((list) => list.map(({ id, status, amount }) => `${id} ${status} ${amount}`)),
    [],
    'a request was carried out twice',
  );

  const held = books.payment_intents.filter(({ status }) => status === 'requires_capture');
  const authorised = instalments.filter(({ status }) => status === 'authorised');
  assert.deepEqual(
    held.map(({ id }) => id),
    authorised.map(({ payment_ref }) => payment_ref),
    'a hold at the gateway is still to be captured',
  );

  for (const intent of books.payment_intents) {
    const { attempt_id } = intent.metadata;
    if (attempts.some(({ id }) => id === attempt_id)) continue;
    const planAttempt = planAttempts.find(({ id }) => id === attempt_id);
    if (planAttempt) {
      assert.equal(intent.amount, planAttempt.amount);
      assert.equal(
        planAttempt.status === 'charged',
        intent.status === 'succeeded',
        `${planAttempt.status}`,
      );
      continue;
    }
    const collection = collections.find(({ id }) => id === attempt_id);
    assert.ok(collection, 'every charge is on record');
    assert.equal(intent.amount, collection.amount);
    assert.equal(collection.status, intent.status === 'succeeded' ? 'collected' : 'declined');
    const payment = instalments.find(({ number }) => number === collection.instalment);
    const due = collectsAt(payment?.due_on ?? '', zone);
    assert.ok(
      intent.created * 1000 >= due.epochMilliseconds,
      'no payment is charged before its date',
    );
  }

  const given = books.refunds.filter(({ status }) => status === 'succeeded');
  assert.equal(sum(given), posted('refunded') - posted('returned'), 'what the gateway refunded');
  const backToCard = parts.filter(({ kind }) => kind === 'card');
  // All parts of our refund that were taken from the same payment are one refund at the gateway.
  const together = Map.groupBy(
    backToCard
      .filter(({ status }) => status === 'done')
      .sort((one, other) => one.number - other.number),
    ({ refund_id, round, payment_ref }) => `${refund_id} ${round} ${payment_ref}`,
  );
  assert.deepEqual(
    sorted(given.map(({ metadata, id, amount }) => [metadata.refund_id, id, amount])),
    sorted([...together.values()].map((of) => [of[0]?.id, of[0]?.refund_ref, sum(of)])),
    'each part was refunded once, and nothing else',
  );
  unique(
    books.refunds.map(({ metadata }) => metadata.refund_id),
    'a part was refunded twice',
  );
  for (const { metadata, status } of books.refunds) {
    const part = backToCard.find(({ id }) => id === metadata.refund_id);
    assert.equal(part?.status, status === 'succeeded' ? 'done' : 'failed', `a refund ${status}`);
  }
  for (const { amount_captured, amount_refunded } of books.charges) {
    assert.ok(amount_refunded <= amount_captured, 'no more was refunded than captured');
  }
}
