import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import net from 'node:net';
import { after, before, describe, test } from 'node:test';
import pg from 'pg';
import { pino } from 'pino';
import { changeRules } from '#merchants/change-rules.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { lookUpAttempt } from '#purchases/payments/ask-gateway.ts';
import { claimAttempt } from '#purchases/payments/payment-attempt.sql.ts';
import { recordOutcome } from '#purchases/payments/record-outcome.ts';
import { testCards } from '../../test-gateway/cards.ts';
import { gatewayOf } from '../support/gateway.ts';
import {
  assertSound,
  challengeCard,
  gatewayEnv,
  type Paying,
  startPaying,
  visa,
} from '../support/payments.ts';
import { createAccount, rules, type Service, send, startService } from '../support/service.ts';

let paying: Paying;
before(async () => {
  paying = await startPaying();
});
after(async () => {
  try {
    await paying.work();
    await assertSound(paying);
  } finally {
    await paying.close();
  }
});

const shift = (time: string, duration: Temporal.DurationLike) =>
  Temporal.Instant.from(time).add(duration).toString({ fractionalSecondDigits: 3 });

const numberOf = (name: string) => testCards.find((card) => card.name === name)?.number as string;

const pays = [
  'visa',
  'mastercard',
  'amex',
  'refund_pending',
  'refund_fails',
  'dispute_fraudulent',
  'dispute_not_received',
  'dispute_inquiry',
  'later_insufficient_funds',
  'later_lost',
];

describe('a card that succeeds pays the checkout', () => {
  for (const name of pays) {
    test(name, async () => {
      const shopper = await paying.shopper();
      const page = await shopper.pay(3, { card: numberOf(name) });
      assert.equal(page.status, 'successful');
      assert.equal(page.return_url, 'https://shop.example/paid');
      assert.deepEqual(
        [page.decline, page.challenge_url, page.number_of_payments],
        [null, null, 3],
      );
      assert.deepEqual(await shopper.live(), [50_000]);
      const answer = await send(
        paying.service,
        paying.account,
        'GET',
        `/api/checkouts/${shopper.id}`,
      );
      assert.equal(answer.body.data.attributes.status, 'successful');
      assert.equal(answer.body.data.attributes.number_of_payments, 3);
    });
  }
});

const declines = [
  ['declined', 'generic', true],
  ['insufficient_funds', 'insufficient_funds', true],
  ['lost', 'lost_card', false],
  ['stolen', 'stolen_card', false],
  ['velocity', 'velocity_exceeded', true],
  ['expired', 'expired_card', false],
  ['cvc', 'incorrect_cvc', true],
  ['processing_error', 'processing_error', true],
  ['charges_fail', 'generic', true],
  ['challenge_lookup_error', 'generic', true],
] as const;

describe('a card that is declined leaves the checkout open and says why', () => {
  for (const [name, reason, may_retry] of declines) {
    test(`${name}: ${reason}`, async () => {
      const shopper = await paying.shopper();
      const page = await shopper.pay(1, { card: numberOf(name) });
      assert.equal(page.status, 'open');
      assert.deepEqual(page.decline, { reason, may_retry });
      assert.equal(page.return_url, null);
      assert.deepEqual(await shopper.live(), []);
      // The merchant is not told of a decline.
      assert.equal(await shopper.callback(), null);
    });
  }
});

const challenges = [
  ['challenge_once', 'approve', 'successful', null],
  ['challenge_always', 'approve', 'successful', null],
  ['challenge', 'approve', 'successful', null],
  ['challenge_on_request', 'approve', 'successful', null],
  ['challenge_insufficient_funds', 'approve', 'open', 'insufficient_funds'],
  ['challenge_declined', 'approve', 'open', 'generic'],
  ['challenge_once', 'decline', 'open', 'authentication_failed'],
  ['challenge_always', 'decline', 'open', 'authentication_failed'],
  ['challenge', 'decline', 'open', 'authentication_failed'],
  ['challenge', 'close', 'challenge', null],
] as const;

describe('a challenged card ends as the bank decides', () => {
  for (const [name, decision, status, reason] of challenges) {
    test(`${name}, ${decision}: ${status}`, async () => {
      const shopper = await paying.shopper();
      const asked = await shopper.pay(3, { card: numberOf(name) });
      assert.equal(asked.status, 'challenge');
      assert.ok(asked.challenge_url?.startsWith(`${paying.gateway.url}/challenge/`));
      assert.equal(await shopper.callback(), null);
      await shopper.decide(decision);
      const page = await shopper.comeBack();
      assert.deepEqual([page.status, page.decline?.reason ?? null], [status, reason]);
      assert.deepEqual(await shopper.live(), status === 'successful' ? [50_000] : []);
      assert.equal((await shopper.callback()) !== null, status === 'successful');
    });
  }
});

describe('what is kept of a payment', () => {
  test('how the bank authenticated the shopper, and when the card expires', async () => {
    const shopper = await paying.shopper();
    await shopper.pay(3, { card: numberOf('challenge_on_request'), expires: '2031-07' });
    await shopper.decide('approve');
    await shopper.comeBack();
    const [attempt] = await shopper.attempts();
    assert.ok(attempt?.authentication);
    const { flow, result, eci, version, transaction_id } = attempt.authentication;
    assert.deepEqual([flow, result, eci, version], ['challenge', 'authenticated', '05', '2.2.0']);
    assert.ok(transaction_id);
    assert.equal(attempt.card_expires, '2031-07');
    const [card] = await shopper.rows('stored_cards');
    assert.equal(card.expires, '2031-07');
  });

  test("the card network's ids, of the first payment and of every later charge", async () => {
    const shopper = await paying.shopper();
    await shopper.pay(3, { card: '5555555555554444' });
    await paying.pass({ days: 62 });
    const [attempt] = await shopper.attempts();
    const charges = (await shopper.rows('collections')).filter(({ kind }) => kind === 'charge');
    assert.equal(charges.length, 2);
    const kept = [attempt, ...charges].map((row) => row?.scheme);
    for (const scheme of kept) {
      assert.ok(scheme?.network_transaction_id && scheme.transaction_link_id);
    }
    assert.equal(new Set(kept.map(({ network_transaction_id: id }) => id)).size, 3);
  });

  test('the codes of a decline, of the gateway and of the network', async () => {
    const shopper = await paying.shopper();
    await shopper.pay(1, { card: numberOf('insufficient_funds') });
    const [attempt] = await shopper.attempts();
    assert.deepEqual(
      [attempt?.decline_code, attempt?.network_decline_code, attempt?.authentication],
      ['insufficient_funds', '51', null],
    );
  });
});

test('every test card of the gateway is tested above', () => {
  const shown = new Set<string>([
    ...pays,
    ...declines.map(([name]) => name),
    ...challenges.map(([name]) => name),
  ]);
  assert.deepEqual([...shown].sort(), testCards.map(({ name }) => name).sort());
});

test('after a decline a shopper pays with another card, in a new attempt under a new key', async () => {
  const shopper = await paying.shopper();
  await shopper.pay(1, { card: numberOf('insufficient_funds') });
  const page = await shopper.pay(3);
  assert.deepEqual([page.status, page.decline], ['successful', null]);
  const attempts = await shopper.attempts();
  assert.deepEqual(
    attempts.map(({ number, status, amount }) => [number, status, amount]),
    [
      [1, 'declined', 150_000],
      [2, 'authorised', 50_000],
    ],
  );
  const { payment_intents } = await shopper.books();
  assert.equal(payment_intents.length, 2, 'a replayed key would have made one payment');
  const customers = new Set(attempts.map(({ customer_ref }) => customer_ref));
  assert.equal(customers.size, 1, 'the gateway has one record of the shopper');
  const replayed = await shopper.pay(3);
  assert.equal(replayed.status, 'successful');
  assert.equal((await shopper.attempts()).length, 2);
});

test('a shopper who leaves the challenge pays with another card, and the first hold is voided', async () => {
  const shopper = await paying.shopper();
  await shopper.pay(1, { card: challengeCard });
  const first = (await shopper.state()).challenge_url as string;
  assert.equal((await shopper.pay(3)).status, 'successful');
  // The bank's page is still open in the other tab, and the shopper approves there.
  await fetch(first, {
    method: 'POST',
    body: new URLSearchParams({ decision: 'approve' }),
    redirect: 'manual',
  });
  assert.equal((await shopper.live()).length, 2);
  await paying.work();
  assert.deepEqual(await shopper.live(), [50_000]);
  assert.deepEqual(
    (await shopper.attempts()).map(({ status }) => status),
    ['voided', 'authorised'],
  );
});

test('an approval for a card that the shopper abandoned is not the outcome, even while we look it up', async () => {
  const shopper = await paying.shopper();
  await shopper.pay(1, { card: challengeCard });
  await shopper.decide('approve');
  const path = '/v1/payment_intents/:id';
  await paying.gateway.fault({ fault: 'latency_after', method: 'GET', path, ms: 60_000 });
  const back = shopper.comeBack();
  await paying.gateway.struck('latency_after');
  // The second tab still shows the challenge. There the shopper chooses another card.
  assert.equal((await shopper.pay(3, { card: challengeCard })).status, 'challenge');
  await paying.clearFaults();
  assert.equal((await back).status, 'challenge');
  assert.equal(await shopper.callback(), null);
  await shopper.decide('approve');
  assert.equal((await shopper.comeBack()).status, 'successful');
  await paying.work();
  assert.deepEqual(await shopper.live(), [50_000]);
});

test('a checkout takes twenty attempts and no more, and can still be cancelled', async () => {
  const shopper = await paying.shopper();
  for (let attempts = 0; attempts < 20; attempts += 1) {
    assert.equal((await shopper.state()).status, 'open');
    await shopper.pay(1, { card: numberOf('declined') });
  }
  const { status, may_cancel } = await shopper.pay(1);
  assert.deepEqual([status, may_cancel], ['expired', true]);
  assert.equal((await shopper.attempts()).length, 20);
  assert.deepEqual(await shopper.live(), []);
  const cancelled = await shopper.cancel(1);
  assert.deepEqual([cancelled.status, cancelled.may_cancel], ['cancelled', false]);
  assert.ok(await shopper.callback());
});

test('the same card can be used again while its challenge is open', async () => {
  const shopper = await paying.shopper();
  const first = await shopper.pay(1, { card: challengeCard });
  const second = await shopper.pay(1, { card: challengeCard });
  assert.equal(second.status, 'challenge');
  assert.notEqual(second.challenge_url, first.challenge_url);
  await shopper.decide('approve');
  assert.equal((await shopper.comeBack()).status, 'successful');
  await paying.work();
  assert.deepEqual(await shopper.live(), [150_000]);
});

describe('a shopper cancels', () => {
  test('before paying: the callback has the selected term', async () => {
    const shopper = await paying.shopper({ client_reference_id: 'ref "1" é\u2028/' });
    const page = await shopper.cancel(6);
    assert.equal(page.status, 'cancelled');
    assert.equal(page.return_url, 'https://shop.example/cart');
    assert.equal(page.number_of_payments, 6);
    assert.equal(
      await shopper.callback(),
      '{"status":"cancelled","amount":150000,"currency":"ZAR","client_reference_id":"ref \\"1\\" é\u2028/","number_of_payments":6}',
    );
    assert.deepEqual(await shopper.rows('instalments'), []);
    assert.deepEqual(await shopper.attempts(), []);
  });

  test('during a challenge: nothing stays held', async () => {
    const shopper = await paying.shopper();
    const { challenge_url } = await shopper.pay(3, { card: challengeCard });
    assert.equal((await shopper.cancel(3)).status, 'cancelled');
    await paying.work();
    assert.deepEqual(await shopper.live(), []);
    const [attempt] = await shopper.attempts();
    assert.equal(attempt?.status, 'voided');
    // Approving afterwards holds nothing either.
    await fetch(challenge_url as string, {
      method: 'POST',
      body: new URLSearchParams({ decision: 'approve' }),
      redirect: 'manual',
    });
    assert.equal((await shopper.comeBack()).status, 'cancelled');
    assert.deepEqual(await shopper.live(), []);
  });

  test('after the bank approved but before we know: cancelled, and the hold is voided', async () => {
    const shopper = await paying.shopper();
    await shopper.pay(3, { card: challengeCard });
    await shopper.decide('approve');
    assert.equal((await shopper.cancel(3)).status, 'cancelled');
    assert.deepEqual(await shopper.live(), [50_000]);
    assert.equal((await shopper.comeBack()).status, 'cancelled');
    await paying.work();
    assert.deepEqual(await shopper.live(), []);
    assert.match((await shopper.callback()) ?? '', /"cancelled"/);
  });

  test('while a request is in flight: cancelled at once, and the hold is voided', async () => {
    const shopper = await paying.shopper();
    await paying.gateway.fault({
      fault: 'latency',
      path: '/v1/payment_intents',
      key_contains: shopper.id,
      ms: 60_000,
    });
    const pay = shopper.pay(3);
    await paying.gateway.struck('latency');
    assert.equal((await shopper.state()).status, 'paying');
    assert.equal((await shopper.cancel(1)).status, 'cancelled');
    await paying.clearFaults();
    assert.equal((await pay).status, 'cancelled');
    await paying.work();
    assert.deepEqual(await shopper.live(), []);
    assert.equal((await shopper.attempts())[0]?.status, 'voided');
  });

  test('after paying: it stays paid', async () => {
    const shopper = await paying.shopper();
    await shopper.pay(3);
    assert.equal((await shopper.cancel(1)).status, 'successful');
    assert.match((await shopper.callback()) ?? '', /"successful".*"number_of_payments":3/);
    assert.deepEqual(await shopper.live(), [50_000]);
  });

  test('twice, and then pays: one outcome, one callback', async () => {
    const shopper = await paying.shopper();
    await Promise.all([shopper.cancel(1), shopper.cancel(3), shopper.cancel(6)]);
    assert.equal((await shopper.pay(1)).status, 'cancelled');
    assert.equal((await shopper.rows('callbacks')).length, 1);
    assert.deepEqual(await shopper.attempts(), []);
  });

  test('past the half hour during a challenge: a payment that may still finish can be cancelled', async () => {
    const shopper = await paying.shopper();
    const { expires_at } = await shopper.pay(3, { card: challengeCard });
    paying.clock.set(shift(expires_at, { minutes: 5 }));
    assert.equal((await shopper.cancel(3)).status, 'cancelled');
    await paying.work();
    assert.deepEqual(await shopper.live(), []);
  });
});

test('two tabs and a double click that pay at once make one attempt and one outcome', async () => {
  const shopper = await paying.shopper();
  const bodies = await Promise.all([1, 3, 3, 6].map((term) => shopper.payBody(term)));
  const pages = await Promise.all(
    [...bodies, ...bodies].map((body) => shopper.send('POST', 'pay', body)),
  );
  for (const { status, body } of pages) {
    assert.equal(status, 200);
    assert.ok(['paying', 'successful'].includes(body.status), body.status);
  }
  assert.equal((await shopper.attempts()).length, 1);
  assert.equal((await shopper.live()).length, 1);
  assert.equal((await shopper.rows('callbacks')).length, 1);
});

test('paying in one tab while cancelling in the other has one outcome, which both pages show', async () => {
  for (let round = 0; round < 10; round += 1) {
    const shopper = await paying.shopper();
    const body = await shopper.payBody(3);
    await Promise.all([shopper.send('POST', 'pay', body), shopper.cancel(3)]);
    await paying.work();
    const { status } = await shopper.state();
    assert.ok(status === 'successful' || status === 'cancelled', status);
    assert.deepEqual(await shopper.live(), status === 'successful' ? [50_000] : []);
    assert.match((await shopper.callback()) ?? '', new RegExp(`"status":"${status}"`));
  }
});

/** Makes an attempt that waits for the shopper, and the means to claim it once more. */
async function challenged() {
  const shopper = await paying.shopper();
  await shopper.pay(3, { card: challengeCard });
  const [attempt] = await shopper.attempts();
  assert.ok(attempt);
  const claim = async () => {
    paying.clock.advance({ seconds: 41 });
    const now = timestamp(paying.clock.now());
    const leased_until = timestamp(paying.clock.now().add({ seconds: 40 }));
    const taken = await claimAttempt(paying.service.deps.database.db, attempt, {
      lease: randomUUID(),
      now,
      leased_until,
    });
    assert.ok(taken);
    return taken;
  };
  return { shopper, attempt, claim };
}

test('an answer counts only under the current lease of the attempt', async () => {
  const { deps } = paying.service;
  const { shopper, attempt, claim } = await challenged();
  const slow = await claim();
  const quick = await claim();
  // The slow process reports an answer from before the other claimed the attempt.
  const payment_ref = attempt.payment_ref as string;
  const decline = { reason: 'generic', may_retry: true } as const;
  await recordOutcome(deps, paying.account.merchant, slow, {
    outcome: 'declined',
    payment_ref,
    decline,
  });
  assert.deepEqual(await shopper.attempts(), [quick]);
  await shopper.decide('approve');
  const time = { id: paying.account.merchant.id, now: timestamp(paying.clock.now()) };
  const held = await lookUpAttempt(gatewayOf(deps), time, quick);
  assert(held?.outcome === 'done');
  await recordOutcome(deps, paying.account.merchant, quick, held);
  assert.equal((await shopper.attempts())[0]?.status, 'authorised');
});

test('a decline that another process records before a refused COMMIT is repeated counts once', async () => {
  const { deps } = paying.service;
  const { merchant } = paying.account;
  const { attempt, claim } = await challenged();
  const answer = {
    outcome: 'declined',
    payment_ref: attempt.payment_ref as string,
    decline: { reason: 'generic', may_retry: true },
  } as const;
  const slow = await claim();
  const { pool } = deps.database;
  const refusal = new pg.DatabaseError('deadlock detected', 0, 'error');
  Object.assign(refusal, { code: '40P01', severity: 'ERROR' });
  /** Connects for a transaction whose COMMIT is refused. */
  const connect = async () => {
    const client = await pool.connect();
    const query: (...given: unknown[]) => Promise<unknown> = client.query.bind(client);
    const refuse = async () => {
      Object.assign(client, { query });
      await query('rollback');
      throw refusal;
    };
    return Object.assign(client, {
      query: (...given: unknown[]) => (given[0] === 'commit' ? refuse() : query(...given)),
    });
  };
  const recorded: boolean[] = [];
  // The other process acts during the pause before the repetition.
  const sleep = async () => {
    const { isRecorded } = await recordOutcome(deps, merchant, await claim(), answer);
    recorded.push(isRecorded);
    broken.connect = pool.connect.bind(pool);
  };
  const broken = { connect } as Pick<typeof pool, 'connect'>;
  const faulty = {
    ...deps,
    clock: { ...deps.clock, sleep },
    database: { ...deps.database, pool: broken as typeof pool },
  };
  recorded.push((await recordOutcome(faulty, merchant, slow, answer)).isRecorded);
  assert.deepEqual(recorded, [true, false]);
});

describe('a payment begins within half an hour and ends within 15 minutes more', () => {
  test('it can begin a millisecond before the half hour is over', async () => {
    const shopper = await paying.shopper();
    const { expires_at } = await shopper.state();
    paying.clock.set(shift(expires_at, { milliseconds: -1 }));
    assert.equal((await shopper.state()).status, 'open');
    assert.equal((await shopper.pay(1)).status, 'successful');
  });

  test('it can neither begin nor be cancelled at the half hour', async () => {
    const shopper = await paying.shopper();
    const body = await shopper.payBody(1);
    const { expires_at } = await shopper.state();
    paying.clock.set(expires_at);
    const page = await shopper.state();
    assert.deepEqual([page.status, page.return_url], ['expired', 'https://shop.example/cart']);
    assert.equal(page.may_cancel, false);
    assert.equal((await shopper.send('POST', 'pay', body)).body.status, 'expired');
    assert.equal((await shopper.cancel(1)).status, 'expired');
    assert.deepEqual(await shopper.attempts(), []);
    assert.equal(await shopper.callback(), null);
    const answer = await send(
      paying.service,
      paying.account,
      'GET',
      `/api/checkouts/${shopper.id}`,
    );
    assert.equal(answer.body.data.attributes.status, 'received');
  });

  for (const [about, late, status] of [
    ['at the last moment', { minutes: 15 }, 'successful'],
    ['a millisecond later', { minutes: 15, milliseconds: 1 }, 'expired'],
  ] as const) {
    test(`a shopper who returns from the bank ${about}: ${status}`, async () => {
      const shopper = await paying.shopper();
      const { expires_at } = await shopper.pay(3, { card: challengeCard });
      paying.clock.set(shift(expires_at, { minutes: 10 }));
      assert.equal((await shopper.state()).status, 'challenge');
      await shopper.decide('approve');
      paying.clock.set(shift(expires_at, late));
      const page = await shopper.comeBack();
      await paying.work();
      assert.equal((await shopper.state()).status, status);
      assert.equal(
        page.return_url,
        `https://shop.example/${status === 'successful' ? 'paid' : 'cart'}`,
      );
      assert.deepEqual(await shopper.live(), status === 'successful' ? [50_000] : []);
    });
  }

  test('an unanswered challenge is voided at the deadline, so that the bank cannot approve it later', async () => {
    const shopper = await paying.shopper();
    const { expires_at, challenge_url } = await shopper.pay(3, { card: challengeCard });
    await paying.pass(shift(expires_at, { minutes: 15 }));
    assert.equal((await shopper.state()).status, 'challenge');
    await paying.pass(shift(expires_at, { minutes: 15, milliseconds: 1 }));
    await paying.work();
    assert.equal((await shopper.state()).status, 'expired');
    const [attempt] = await shopper.attempts();
    assert.deepEqual(
      [attempt?.status, attempt?.settled_at],
      ['voided', shift(expires_at, { minutes: 15, milliseconds: 1 })],
    );
    await fetch(challenge_url as string, {
      method: 'POST',
      body: new URLSearchParams({ decision: 'approve' }),
      redirect: 'manual',
    });
    assert.deepEqual(await shopper.live(), []);
    assert.equal(await shopper.callback(), null);
  });
});

describe('a shopper whose browser never returns from the bank', () => {
  for (const minutes of [1, 11, 29, 41, 44]) {
    test(`and who approved after ${minutes} minutes has paid, callback included`, async () => {
      const shopper = await paying.shopper();
      const { created_at } = (await shopper.rows('checkouts'))[0];
      await shopper.pay(3, { card: challengeCard });
      await paying.pass(shift(created_at, { minutes }));
      await shopper.decide('approve');
      await paying.pass(shift(created_at, { minutes: 46 }));
      await paying.work();
      const page = await shopper.state();
      assert.equal(page.status, 'successful');
      assert.match((await shopper.callback()) ?? '', /"successful"/);
      assert.deepEqual(await shopper.live(), [50_000]);
      const [{ completed_at }] = await shopper.rows('checkouts');
      const waited = Temporal.Instant.from(completed_at).since(shift(created_at, { minutes }));
      assert.ok(
        waited.total('seconds') <= 90,
        `found out after ${waited.total('seconds')} seconds`,
      );
    });
  }

  test('and who declined can try again', async () => {
    const shopper = await paying.shopper();
    await shopper.pay(3, { card: challengeCard });
    await shopper.decide('decline');
    await paying.pass({ minutes: 2 });
    await paying.work();
    const page = await shopper.state();
    assert.deepEqual([page.status, page.decline?.reason], ['open', 'authentication_failed']);
    assert.equal((await shopper.pay(1)).status, 'successful');
  });
});

test('a checkout whose data the gateway refuses is invalid_payload, without a callback', async () => {
  const shopper = await paying.shopper({ customer: { email: 'refused@example.com' } });
  const page = await shopper.pay(3);
  assert.deepEqual(
    [page.status, page.return_url],
    ['invalid_payload', 'https://shop.example/cart'],
  );
  assert.equal(await shopper.callback(), null);
  assert.deepEqual(await shopper.live(), []);
  assert.equal((await shopper.pay(1)).status, 'invalid_payload');
  assert.equal((await shopper.cancel(1)).status, 'invalid_payload');
  assert.equal((await shopper.attempts()).length, 1);
  const answer = await send(paying.service, paying.account, 'GET', `/api/checkouts/${shopper.id}`);
  assert.equal(answer.body.data.attributes.status, 'invalid_payload');
  assert.equal(answer.body.data.attributes.number_of_payments, null);
});

test("the callback has the contract's members in the contract's order, compact, and goes to the notify_url", async () => {
  const notify_url = 'https://shop.example/hook?a=1';
  const shopper = await paying.shopper({
    amount: 100_003,
    notify_url,
    client_reference_id: ' x\\y\t',
  });
  await shopper.pay(6);
  assert.equal(
    await shopper.callback(),
    '{"status":"successful","amount":100003,"currency":"ZAR","client_reference_id":" x\\\\y\\t","number_of_payments":6}',
  );
  const [row] = await shopper.rows('callbacks');
  const [checkout] = await shopper.rows('checkouts');
  assert.deepEqual(
    [row.notify_url, row.integration_id, row.status, row.created_at],
    [notify_url, paying.account.id, 'pending', checkout.completed_at],
  );
});

describe('consent to later charges', () => {
  test('is recorded with the card for a term above one', async () => {
    const shopper = await paying.shopper();
    const { plans, consent_version } = await shopper.state();
    await shopper.pay(3, { card: numberOf('mastercard') });
    const cards = await shopper.rows('stored_cards');
    assert.equal(cards.length, 1);
    const [{ customer_ref, card_ref, brand, last4, consent }] = cards;
    assert.match(customer_ref, /^cus_/);
    assert.match(card_ref, /^pm_/);
    assert.deepEqual([brand, last4], ['mastercard', '4444']);
    const payments = plans.find((plan) => plan.number_of_payments === 3)?.payments;
    assert.deepEqual(consent, { version: consent_version, payments });
  });

  test('a single payment needs no consent and stores no card', async () => {
    const shopper = await paying.shopper();
    const { plans, consent_version: version } = await shopper.state();
    await shopper.pay(1, { consent: { version, payments: plans[0]?.payments } });
    assert.deepEqual(await shopper.rows('stored_cards'), []);
    const [attempt] = await shopper.attempts();
    assert.deepEqual(
      [attempt?.status, attempt?.consent, attempt?.card_ref],
      ['authorised', null, null],
    );
    const { payment_intents } = await shopper.books();
    const [intent] = payment_intents as unknown as { setup_future_usage: string | null }[];
    assert.equal(intent?.setup_future_usage, null);
  });

  test('is stored without members that we do not know', async () => {
    const shopper = await paying.shopper();
    const body = await shopper.payBody(3);
    assert.ok(body.consent !== null && typeof body.consent === 'object');
    const consent = structuredClone(body.consent) as Record<string, unknown> & {
      payments: object[];
    };
    const padded = {
      ...consent,
      extra: visa,
      payments: consent.payments.map((one) => ({ ...one, extra: 1 })),
    };
    const answer = await shopper.send('POST', 'pay', { ...body, consent: padded });
    assert.equal(answer.body.status, 'successful');
    const [card] = await shopper.rows('stored_cards');
    assert.deepEqual(card.consent, consent);
  });

  const plan = [50_000, 50_000, 50_000].map((amount, index) => ({
    number: index + 1,
    amount,
    due_on: '2026-11-15',
  }));
  for (const [about, consent] of [
    ['missing', null],
    ['another wording', { version: '2025-01', payments: plan }],
    ['fewer payments', { version: '2026-11', payments: plan.slice(1) }],
    ['more payments', { version: '2026-11', payments: [...plan, plan[0]] }],
    [
      'other amounts',
      { version: '2026-11', payments: plan.map((one) => ({ ...one, amount: 40_000 })) },
    ],
    ['other numbers', { version: '2026-11', payments: plan.map((one) => ({ ...one, number: 1 })) }],
    [
      'no dates',
      { version: '2026-11', payments: plan.map(({ number, amount }) => ({ number, amount })) },
    ],
    [
      'a day that does not exist',
      { version: '2026-11', payments: plan.map((one) => ({ ...one, due_on: '2026-02-31' })) },
    ],
    [
      'dates of another plan',
      { version: '2026-11', payments: plan.map((one) => ({ ...one, due_on: '2031-01-01' })) },
    ],
    ['no payments', { version: '2026-11' }],
    ['a word', 'yes'],
  ] as const) {
    test(`is refused with a 422 when it is ${about}`, async () => {
      const shopper = await paying.shopper();
      const body = await shopper.payBody(3);
      const answer = await shopper.send('POST', 'pay', { ...body, consent });
      assert.equal(answer.status, 422);
      assert.match(answer.body.errors[0].detail, /^Validation failed: consent/);
      assert.deepEqual(await shopper.attempts(), []);
    });
  }
});

test('a change of the rules does not change the terms of an existing checkout', async () => {
  const account = await createAccount(paying.service);
  const shopper = await paying.shopper({}, account);
  const changed = [{ from_amount: 10_000, to_amount: 2_000_000, terms: [2] }];
  await changeRules(paying.service.deps, 'test', { id: account.merchant.id, rules: changed });
  const { plans } = await shopper.state();
  assert.deepEqual(
    plans.map((plan) => plan.number_of_payments),
    rules[1]?.terms,
  );
  const refused = await shopper.send('POST', 'pay', {
    ...(await shopper.payBody(1)),
    number_of_payments: 2,
  });
  assert.equal(refused.status, 422);
  assert.match(refused.body.errors[0].detail, /number_of_payments must be one of 1, 3, 6, 12/);
  assert.equal((await shopper.pay(12)).status, 'successful');
});

describe('payments are dated by the local date of the moment of paying', () => {
  for (const [now, dates] of [
    ['2027-01-30T21:59:59.999Z', ['2027-01-30', '2027-02-28', '2027-03-30']],
    ['2027-01-30T22:00:00.000Z', ['2027-01-31', '2027-02-28', '2027-03-31']],
    ['2027-12-31T21:59:59.999Z', ['2027-12-31', '2028-01-31', '2028-02-29']],
    ['2027-12-31T22:00:00.000Z', ['2028-01-01', '2028-02-01', '2028-03-01']],
  ] as const) {
    test(now, async () => {
      paying.clock.set(now);
      const shopper = await paying.shopper({ amount: 100_001 });
      const { plans } = await shopper.state();
      await shopper.pay(3);
      const rows = (await shopper.rows('instalments')).sort((a, b) => a.number - b.number);
      assert.deepEqual(
        rows.map(({ number, amount, due_on, status, currency }) => [
          number,
          amount,
          due_on,
          status,
          currency,
        ]),
        [
          [1, 33_335, dates[0], 'authorised', 'ZAR'],
          [2, 33_333, dates[1], 'scheduled', 'ZAR'],
          [3, 33_333, dates[2], 'scheduled', 'ZAR'],
        ],
      );
      assert.deepEqual(
        plans.find((plan) => plan.number_of_payments === 3)?.payments.map(({ due_on }) => due_on),
        dates,
      );
    });
  }

  test('a page that was opened before midnight can still pay after it', async () => {
    paying.clock.set('2028-02-28T21:59:00Z');
    const shopper = await paying.shopper();
    const body = await shopper.payBody(3);
    paying.clock.set('2028-02-28T22:01:00Z');
    const answer = await shopper.send('POST', 'pay', body);
    assert.equal(answer.body.status, 'successful');
    const rows = await shopper.rows('instalments');
    assert.deepEqual(rows.map(({ due_on }) => due_on).sort(), [
      '2028-02-29',
      '2028-03-29',
      '2028-04-29',
    ]);
  });
});

describe('an invalid payment link is a 404', () => {
  const links: [about: string, make: (url: string) => string][] = [
    ['a word', () => '/pay/nonsense'],
    ['one letter changed', (url) => `${url.slice(0, -1)}${url.endsWith('A') ? 'B' : 'A'}`],
    ['cut short', (url) => url.slice(0, -4)],
    ['padded', (url) => `${url}==`],
    ['too long', (url) => `${url}${'A'.repeat(400)}`],
    ['bytes that are not text', () => '/pay/%ff%fe'],
    ['a nul', () => '/pay/%00'],
    ['empty', () => '/pay/'],
  ];
  for (const [about, make] of links) {
    test(about, async () => {
      const shopper = await paying.shopper();
      const url = make(shopper.url);
      for (const [method, action] of [
        ['GET', ''],
        ['GET', '/state'],
        ['GET', '/return'],
        ['POST', '/pay'],
        ['POST', '/cancel'],
      ] as const) {
        const answer = await paying.service.app.inject({
          method,
          url: `${url}${action}`,
          ...(method === 'POST' && { payload: await shopper.payBody(1) }),
        });
        assert.equal(answer.statusCode, 404, `${method} ${action}`);
      }
      assert.equal((await shopper.state()).status, 'open');
    });
  }

  test('a link under a key that we do not have', async () => {
    const other = await startService({
      databaseUrl: paying.service.databaseUrl,
      clock: paying.clock,
      env: { ...gatewayEnv(paying.gateway), MASTER_KEY: Buffer.alloc(32, 8).toString('base64') },
    });
    const { url } = await paying.shopper();
    assert.equal((await other.app.inject({ url: `${url}/state` })).statusCode, 404);
    await other.close();
  });
});

describe('a malformed body is refused as the client’s mistake', () => {
  const good = { number_of_payments: 1, card_token: 'ctoken_x', consent: null };
  const bodies: [about: string, action: 'pay' | 'cancel', body: unknown, statuses: number[]][] = [
    ['no JSON', 'pay', '{', [400]],
    ['nothing', 'pay', '', [400, 422]],
    ['null', 'pay', 'null', [400]],
    ['a list', 'pay', [], [400]],
    ['a number', 'pay', '5', [400]],
    ['a prototype', 'pay', '{"__proto__":{"number_of_payments":1}}', [400]],
    ['no members', 'pay', {}, [422]],
    ['no card token', 'pay', { ...good, card_token: undefined }, [422]],
    ['an empty card token', 'pay', { ...good, card_token: '' }, [422]],
    ['a card token that is too long', 'pay', { ...good, card_token: 'c'.repeat(256) }, [422]],
    ['a card token with a nul', 'pay', { ...good, card_token: 'a\u0000b' }, [422]],
    [
      'a card token of half a letter',
      'pay',
      '{"number_of_payments":1,"card_token":"\\ud800","consent":null}',
      [422],
    ],
    ['a card token that is a number', 'pay', { ...good, card_token: 4242 }, [422]],
    ['a term as text', 'pay', { ...good, number_of_payments: '1' }, [422]],
    ['a term of zero', 'pay', { ...good, number_of_payments: 0 }, [422]],
    ['half a term', 'pay', { ...good, number_of_payments: 1.5 }, [422]],
    [
      'a term beyond number',
      'pay',
      '{"number_of_payments":1e400,"card_token":"x","consent":null}',
      [422],
    ],
    ['a term that is not offered', 'pay', { ...good, number_of_payments: 2 }, [422]],
    ['no JSON', 'cancel', 'number_of_payments=1', [400]],
    ['no members', 'cancel', {}, [422]],
    ['a term that is not offered', 'cancel', { number_of_payments: 2 }, [422]],
    ['a term as text', 'cancel', { number_of_payments: '3' }, [422]],
    ['null', 'cancel', 'null', [400]],
    ['too large', 'cancel', { number_of_payments: 1, more: 'x'.repeat(2_000_000) }, [400]],
  ];
  for (const [about, action, body, statuses] of bodies) {
    test(`${action}: ${about}`, async () => {
      const shopper = await paying.shopper();
      const answer = await shopper.send('POST', action, body);
      assert.ok(
        statuses.includes(answer.status),
        `${answer.status} ${JSON.stringify(answer.body)}`,
      );
      assert.deepEqual(Object.keys(answer.body.errors[0]), ['status', 'code', 'title', 'detail']);
      assert.equal((await shopper.state()).status, 'open');
      assert.deepEqual(await shopper.attempts(), []);
    });
  }

  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/xml', '']) {
    test(`a body of type "${type}"`, async () => {
      const shopper = await paying.shopper();
      const answer = await paying.service.app.inject({
        method: 'POST',
        url: `${shopper.url}/pay`,
        headers: type === '' ? {} : { 'content-type': type },
        payload: JSON.stringify(good),
      });
      assert.ok([400, 422].includes(answer.statusCode), String(answer.statusCode));
      assert.deepEqual(await shopper.attempts(), []);
    });
  }

  test('an unknown card token asks for the card again', async () => {
    const shopper = await paying.shopper();
    const page = await shopper.pay(1, { token: 'ctoken_nobody' });
    assert.equal(page.status, 'open');
    assert.deepEqual(page.decline, { reason: 'processing_error', may_retry: true });
    assert.equal((await shopper.pay(1)).status, 'successful');
  });

  test('a card token cannot pay a second checkout', async () => {
    const token = await paying.gateway.tokenFor(visa);
    const first = await paying.shopper();
    const second = await paying.shopper();
    assert.equal((await first.pay(1, { token })).status, 'successful');
    assert.equal((await second.pay(1, { token })).status, 'open');
    assert.deepEqual(await second.live(), []);
  });
});

test('several processes serve one checkout: started on one, challenged on the next, recovered by a third', async () => {
  const others = await Promise.all(
    [1, 2].map(() =>
      startService({
        databaseUrl: paying.service.databaseUrl,
        clock: paying.clock,
        env: gatewayEnv(paying.gateway),
      }),
    ),
  );
  const [second, third] = others as [Service, Service];
  const shopper = await paying.shopper();
  const elsewhere = paying.open(shopper.id, paying.account, second.app);
  const bodies = await Promise.all([shopper.payBody(3), shopper.payBody(6), shopper.payBody(1)]);
  await Promise.all([
    shopper.send('POST', 'pay', bodies[0]),
    elsewhere.send('POST', 'pay', bodies[1]),
    paying.open(shopper.id, paying.account, third.app).send('POST', 'pay', bodies[2]),
  ]);
  assert.equal((await shopper.attempts()).length, 1);
  assert.equal((await shopper.live()).length, 1);

  const asked = await paying.shopper();
  await asked.pay(3, { card: challengeCard });
  await asked.decide('approve');
  const page = await paying.open(asked.id, paying.account, second.app).comeBack();
  assert.equal(page.status, 'successful');
  assert.equal((await asked.state()).status, 'successful');
  await Promise.all(others.map((other) => other.close()));
});

test('no card number is in the database, the logs or any request that reached us', async (t) => {
  const lines: string[] = [];
  const log = pino({ level: 'trace' }, { write: (line: string) => lines.push(line) });
  const own = await startPaying({ log });
  t.after(() => own.close());
  const received: Buffer[] = [];
  const address = await own.service.app.listen({ port: 0, host: '127.0.0.1' });
  const { port } = new URL(address);
  const wire = net.createServer((client) => {
    const server = net.connect(Number(port), '127.0.0.1');
    client.on('data', (bytes) => received.push(Buffer.from(bytes)));
    client.pipe(server).pipe(client);
    for (const socket of [client, server]) socket.on('error', () => {});
  });
  await new Promise<void>((resolve) => wire.listen(0, '127.0.0.1', resolve));
  t.after(() => wire.close());
  const base = `http://127.0.0.1:${(wire.address() as net.AddressInfo).port}`;
  const overTheWire = async (shopper: { url: string }, action: string, body: unknown) => {
    const answer = await fetch(`${base}${shopper.url}/${action}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', connection: 'close' },
      body: JSON.stringify(body),
    });
    assert.equal(answer.status, 200);
    return (await answer.json()) as { challenge_url: string | null; status: string };
  };
  for (const { number } of testCards) {
    const shopper = await own.shopper();
    const page = await overTheWire(shopper, 'pay', await shopper.payBody(3, { card: number }));
    if (page.challenge_url === null) continue;
    await shopper.decide('approve');
    await fetch(`${base}${shopper.url}/return`, {
      redirect: 'manual',
      headers: { connection: 'close' },
    });
  }
  assert.ok(Buffer.concat(received).includes('card_token'), 'the test sees the requests');
  assert.deepEqual(numbersIn(Buffer.concat(received).toString('latin1')), []);

  // A faulty page sends us the number. It is neither stored nor logged.
  const shopper = await own.shopper();
  const leaked = await shopper.payBody(3, { token: visa });
  await shopper.send('POST', 'pay', {
    ...leaked,
    card: visa,
    consent: { ...(leaked.consent as object), card: visa },
  });
  await shopper.send('POST', 'cancel', { number_of_payments: visa, card: visa });
  await own.service.app.inject({ url: `/pay/${visa}/state` });
  await own.service.app.inject({ url: `${shopper.url}/return?card=${visa}` });
  await own.work();

  assert.ok(lines.length > testCards.length, 'the test sees the log');
  assert.deepEqual(numbersIn(lines.join('')), []);
  const dump = await dumpOf(own.service);
  assert.match(dump, /ctoken|pm_|cus_/);
  assert.deepEqual(numbersIn(dump), []);
});

/** Every row of every table as text; bytes as they are. */
async function dumpOf({ deps }: Service): Promise<string> {
  const { pool } = deps.database;
  const { rows: tables } = await pool.query(
    "select relname from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r'",
  );
  let dump = '';
  for (const { relname } of tables) {
    const { rows } = await pool.query(`select * from ${relname}`);
    for (const row of rows) {
      for (const value of Object.values(row)) {
        dump += `${Buffer.isBuffer(value) ? value.toString('latin1') : JSON.stringify(value)}\n`;
      }
    }
  }
  return dump;
}

function numbersIn(text: string): string[] {
  return testCards.map(({ number }) => number).filter((number) => text.includes(number));
}
