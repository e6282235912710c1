import assert from 'node:assert/strict';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, describe, test } from 'node:test';
import Stripe from 'stripe';
import { merchantAt, newPayment, secretKey, startGateway } from '../support/gateway.ts';
import { departures } from '../support/stripe-declarations.ts';

// The gateway's statements about money: fees, refunds, disputes, and the events that announce them.

const local = await startGateway();
after(() => local.close());
const { call, tokenFor } = local;

const conforms = (value: unknown, type: string) => assert.deepEqual(departures(value, type), []);
const at = (time: { id: string; now: string }) => ({
  'Tranche-Merchant': time.id,
  'Tranche-Merchant-Time': time.now,
});

async function pay(card: string, headers: object = {}, more: Record<string, string> = {}) {
  const { status, body } = await call(
    'POST',
    '/v1/payment_intents',
    {
      amount: '50000',
      currency: 'zar',
      confirm: 'true',
      confirmation_token: await tokenFor(card),
      return_url: 'https://pay.example.com/return',
      ...more,
    },
    headers,
  );
  assert.equal(status, 200);
  return body;
}

const transactionsOf = async (source: string, headers: object = {}) => {
  const { body } = await call('GET', '/v1/balance_transactions', { source }, headers);
  conforms(body, 'ApiList<BalanceTransaction>');
  return body.data;
};
const figures = (rows: { type: string; amount: number; fee: number; net: number }[]) =>
  rows.map(({ type, amount, fee, net }) => [type, amount, fee, net]);

async function disputeOf(intent: { id: string }, headers: object = {}) {
  const { body } = await call('GET', '/v1/disputes', { payment_intent: intent.id }, headers);
  conforms(body, 'ApiList<Dispute>');
  assert.equal(body.data.length, 1);
  return body.data[0];
}

describe('balance transactions', () => {
  test('a captured payment comes in with its fee, a hold does not', async () => {
    const held = await pay('4242424242424242', {}, { capture_method: 'manual' });
    assert.deepEqual(await transactionsOf(held.latest_charge), []);
    await call('POST', `/v1/payment_intents/${held.id}/capture`, { amount_to_capture: '40000' });
    // The fee is 2.9 % of R 400,00 plus R 2,00.
    const [row] = await transactionsOf(held.latest_charge);
    assert.deepEqual(figures([row]), [['charge', 40_000, 1_360, 38_640]]);
    const { body: charge } = await call('GET', `/v1/charges/${held.latest_charge}`);
    assert.equal(charge.balance_transaction, row.id);
    const { body } = await call('GET', `/v1/balance_transactions/${row.id}`);
    assert.deepEqual(body, row);
  });

  test('a payment is pending for two days and then available', async () => {
    const time = merchantAt();
    const paid = await pay('4242424242424242', at(time));
    const status = async (later: Temporal.DurationLike) =>
      (await transactionsOf(paid.latest_charge, at(time.later(later))))[0].status;
    assert.equal(await status({ hours: 47 }), 'pending');
    assert.equal(await status({ hours: 48 }), 'available');
  });

  test('the balance moves without a payment: a fee of the account, a correction, a payout', async () => {
    for (const [type, category] of [
      ['stripe_fee', 'fee'],
      ['adjustment', 'other_adjustment'],
      ['payout', 'payout'],
    ] as const) {
      const form = { type, amount: '-1200' };
      const { body: made } = await call('POST', '/_test/balance_transactions', form);
      const query = { type, 'expand[]': 'data.source' };
      const { body } = await call('GET', '/v1/balance_transactions', query);
      conforms(body, 'ApiList<BalanceTransaction>');
      const [row] = body.data;
      assert.deepEqual(row, made);
      assert.deepEqual(figures([row]), [[type, -1_200, 0, -1_200]]);
      assert.deepEqual([row.reporting_category, row.source], [category, null]);
    }
  });

  test('a refund goes out without returning the fee, and comes back when it fails', async () => {
    const time = merchantAt();
    const paid = await pay('4000000000005126', at(time));
    const { body: refund } = await call(
      'POST',
      '/v1/refunds',
      { payment_intent: paid.id, amount: '20000' },
      at(time),
    );
    const before = await transactionsOf(refund.id, at(time));
    assert.deepEqual(figures(before), [['refund', -20_000, 0, -20_000]]);
    assert.equal(refund.balance_transaction, before[0].id);
    for (let round = 0; round < 2; round += 1) {
      const then = await transactionsOf(refund.id, at(time.later({ days: 3 })));
      assert.deepEqual(figures(then), [
        ['refund_failure', 20_000, 0, 20_000],
        ['refund', -20_000, 0, -20_000],
      ]);
    }
    const { body } = await call('GET', `/v1/refunds/${refund.id}`, {}, at(time.later({ days: 3 })));
    conforms(body, 'Refund');
    assert.equal(body.status, 'failed');
  });
});

describe('disputes', () => {
  for (const [card, reason] of [
    ['4000000000000259', 'fraudulent'],
    ['4000000000002685', 'product_not_received'],
  ] as const) {
    test(`${card} is disputed as ${reason} once captured: amount and fee are withdrawn`, async () => {
      const held = await pay(card, {}, { capture_method: 'manual' });
      const none = await call('GET', '/v1/disputes', { payment_intent: held.id });
      assert.deepEqual(none.body.data, []);
      await call('POST', `/v1/payment_intents/${held.id}/capture`);
      const dispute = await disputeOf(held);
      assert.deepEqual(
        [dispute.reason, dispute.status, dispute.amount, dispute.is_charge_refundable],
        [reason, 'needs_response', 50_000, false],
      );
      assert.deepEqual(figures(dispute.balance_transactions), [
        ['adjustment', -50_000, 25_000, -75_000],
      ]);
      const { body: charge } = await call('GET', `/v1/charges/${held.latest_charge}`);
      assert.equal(charge.disputed, true);
      const refund = await call('POST', '/v1/refunds', { payment_intent: held.id });
      assert.equal(refund.body.error.code, 'charge_disputed');
    });
  }

  test('4000000000001976 is an inquiry: no money moves, and a refund is possible', async () => {
    const paid = await pay('4000000000001976');
    const dispute = await disputeOf(paid);
    assert.equal(dispute.status, 'warning_needs_response');
    assert.deepEqual(dispute.balance_transactions, []);
    const refund = await call('POST', '/v1/refunds', { payment_intent: paid.id, amount: '100' });
    assert.equal(refund.body.status, 'succeeded');
    const escalated = await call('POST', `/_test/disputes/${dispute.id}/resolve`, {
      outcome: 'escalated',
    });
    assert.equal(escalated.body.status, 'needs_response');
    assert.equal(escalated.body.balance_transactions.length, 1);
  });

  test('evidence is staged, shown, and submitted once', async () => {
    const { id } = await disputeOf(await pay('4000000000000259'));
    const send = (form: Record<string, string>) => call('POST', `/v1/disputes/${id}`, form);
    const staged = await send({
      'evidence[customer_name]': 'A Shopper',
      submit: 'false',
      'metadata[checkout_id]': 'one',
    });
    conforms(staged.body, 'Dispute');
    assert.equal(staged.body.status, 'needs_response');
    assert.deepEqual(
      [
        staged.body.evidence_details.has_evidence,
        staged.body.evidence_details.submission_count,
        staged.body.evidence.customer_name,
      ],
      [true, 0, 'A Shopper'],
    );
    const submitted = await send({ 'evidence[product_description]': 'Beans', submit: 'true' });
    assert.equal(submitted.body.status, 'under_review');
    assert.equal(submitted.body.evidence.customer_name, 'A Shopper');
    assert.equal(submitted.body.evidence_details.submission_count, 1);
    const again = await send({ 'evidence[product_description]': 'More beans' });
    assert.equal(again.status, 400);
    const unknown = await send({ 'evidence[colour]': 'blue' });
    assert.equal(unknown.body.error.code, 'parameter_unknown');
  });

  test('a file is uploaded once under its key, named by evidence, and removed again', async () => {
    const { id } = await disputeOf(await pay('4000000000000259'));
    const pdf = Buffer.from('%PDF-1.7\r\n--x\r\n\r\n\xff%%EOF', 'latin1');
    const upload = async (content: Buffer, purpose = 'dispute_evidence') => {
      const body = new FormData();
      body.set('purpose', purpose);
      body.set('file', new Blob([new Uint8Array(content)]), 'slip.pdf');
      const headers = { Authorization: `Bearer ${secretKey}` };
      const response = await fetch(`${local.url}/v1/files`, { method: 'POST', headers, body });
      return { status: response.status, body: (await response.json()) as Stripe.File };
    };
    const { body: file } = await upload(pdf);
    conforms(file, 'File');
    assert.deepEqual([file.size, file.type, file.filename], [pdf.length, 'pdf', 'slip.pdf']);
    assert.equal((await upload(Buffer.from('<html>'))).status, 400);
    assert.equal((await upload(pdf, 'business_logo')).status, 400);
    assert.equal((await upload(Buffer.concat([pdf, Buffer.alloc(5_000_000)]))).status, 400);
    const send = (name: string, value: string) =>
      call('POST', `/v1/disputes/${id}`, { [`evidence[${name}]`]: value, submit: 'false' });
    const named = await send('shipping_documentation', file.id);
    conforms(named.body, 'Dispute');
    assert.equal(named.body.evidence.shipping_documentation, file.id);
    assert.equal((await send('receipt', 'file_unknown')).body.error.code, 'resource_missing');
    const emptied = await send('shipping_documentation', '');
    assert.equal(emptied.body.evidence.shipping_documentation, null);
    const { gateway } = local;
    const merchant = merchantAt('2026-01-05T08:00:00Z');
    const given = { key: 'file-1', merchant, name: 'a.pdf', media_type: 'application/pdf' };
    const first = await gateway.uploadEvidence({ ...given, content: pdf });
    assert.deepEqual(await gateway.uploadEvidence({ ...given, content: pdf }), first);
  });

  test('a dispute that is won brings the amount back, but not the fee', async () => {
    const { id } = await disputeOf(await pay('4000000000000259'));
    const { body } = await call('POST', `/v1/disputes/${id}`, {
      'evidence[uncategorized_text]': 'winning_evidence',
    });
    conforms(body, 'Dispute');
    assert.equal(body.status, 'won');
    assert.deepEqual(figures(body.balance_transactions), [
      ['adjustment', -50_000, 25_000, -75_000],
      ['adjustment', 50_000, 0, 50_000],
    ]);
  });

  test('a dispute is lost by losing evidence, by accepting it, or by the bank', async () => {
    const decide: ((id: string) => ReturnType<typeof call>)[] = [
      (id) =>
        call('POST', `/v1/disputes/${id}`, { 'evidence[uncategorized_text]': 'losing_evidence' }),
      (id) => call('POST', `/v1/disputes/${id}/close`),
      (id) => call('POST', `/_test/disputes/${id}/resolve`, { outcome: 'lost' }),
    ];
    for (const lose of decide) {
      const { id } = await disputeOf(await pay('4000000000000259'));
      const { body } = await lose(id);
      assert.deepEqual([body.status, body.balance_transactions.length], ['lost', 1]);
      const again = await call('POST', `/_test/disputes/${id}/resolve`, { outcome: 'won' });
      assert.equal(again.status, 400);
    }
  });

  test('the deadline is on the merchant’s clock: without evidence the dispute is lost then', async () => {
    const time = merchantAt();
    const paid = await pay('4000000000000259', at(time));
    const { evidence_details } = await disputeOf(paid, at(time.later({ days: 10 })));
    assert.equal(evidence_details.due_by - paid.created, 10 * 24 * 3600);
    assert.equal(evidence_details.past_due, false);
    const late = await disputeOf(paid, at(time.later({ days: 10, seconds: 1 })));
    assert.deepEqual([late.status, late.evidence_details.past_due], ['lost', true]);
    const sent = await call('POST', `/v1/disputes/${late.id}`, { 'evidence[customer_name]': 'A' });
    assert.equal(sent.status, 400);
  });

  test('a control request disputes any captured payment, in part and once', async () => {
    const payment = await newPayment(local, '4242424242424242');
    const held = await local.gateway.authorise(payment);
    const { payment_ref } = held as { payment_ref: string };
    const early = await call('POST', '/_test/disputes', { payment_intent: payment_ref });
    assert.equal(early.status, 400);
    await call('POST', `/v1/payment_intents/${payment_ref}/capture`);
    const form = { payment_intent: payment_ref, amount: '20000', reason: 'product_not_received' };
    const opened = await call('POST', '/_test/disputes', form);
    conforms(opened.body, 'Dispute');
    assert.deepEqual([opened.body.amount, opened.body.reason], [20_000, 'product_not_received']);
    assert.equal((await call('POST', '/_test/disputes', form)).status, 400);
  });
});

test('events are listed, and posted with Stripe’s signature until the receiver takes them', async () => {
  /** The events by their ids, because an event may come twice. */
  const received = new Map<string, string>();
  let refusals = 1;
  const stripe = new Stripe(secretKey);
  const done = Promise.withResolvers<void>();
  const server = http.createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => {
      const event = stripe.webhooks.constructEvent(
        Buffer.concat(chunks),
        request.headers['stripe-signature'] ?? '',
        'whsec_of_the_suite',
      );
      const isRefused = refusals > 0;
      refusals -= 1;
      response.writeHead(isRefused ? 500 : 200).end();
      if (!isRefused) received.set(event.id, event.type);
      if (received.size === 4) done.resolve();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const own = await startGateway({
    webhook: { url: `http://127.0.0.1:${port}/events`, secret: 'whsec_of_the_suite' },
  });
  try {
    const paid = await own.call('POST', '/v1/payment_intents', {
      amount: '50000',
      currency: 'zar',
      confirm: 'true',
      confirmation_token: await own.tokenFor('4000000000000259'),
      return_url: 'https://pay.example.com/return',
    });
    const { body: disputes } = await own.call('GET', '/v1/disputes', {
      payment_intent: paid.body.id,
    });
    const { id } = disputes.data[0];
    await own.call('POST', `/_test/disputes/${id}/resolve`, { outcome: 'won' });
    await done.promise;
    const types = [
      'charge.dispute.closed',
      'charge.dispute.created',
      'charge.dispute.funds_reinstated',
      'charge.dispute.funds_withdrawn',
    ];
    assert.deepEqual([...received.values()].sort(), types);
    const { body } = await own.call('GET', '/v1/events');
    assert.deepEqual(body.data.map(({ type }: { type: string }) => type).sort(), types);
    assert.equal(body.data[0].data.object.id, id);
  } finally {
    await own.close();
    server.closeAllConnections();
    server.close();
  }
});
