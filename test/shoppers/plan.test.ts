import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { PayPage } from '#purchases/shoppers/pay-page.ts';
import { countStatuses, inParallel } from '../support/expectations.ts';
import { cards, refundNow } from '../support/money.ts';
import { assertSound, type Paying, type Shopper, startPaying } from '../support/payments.ts';
import { readPdf } from '../support/pdf.ts';
import { actingOn } from '../support/plan-attempts.ts';

let paying: Paying;
before(async () => {
  paying = await startPaying();
});
after(() => paying.close());

const planOf = async (shopper: Shopper) => {
  const { plan } = await shopper.state();
  assert(plan);
  return plan;
};

/** `1 paid 50000 2026-11-15`, with what refunds changed. */
const linesOf = async (shopper: Shopper) =>
  (await planOf(shopper)).payments.map(
    ({ number, status, amount, due_on, reduced, refunded }) =>
      `${number} ${status} ${amount} ${due_on}${reduced ? ` reduced ${reduced}` : ''}${refunded ? ` refunded ${refunded}` : ''}`,
  );

/** Asks for a link and takes the token out of the mail. */
async function linkFor(shopper: Shopper, email = 'thandi@example.com'): Promise<string | null> {
  const count = (await mailsOf(shopper)).length;
  const answer = await shopper.send('POST', 'link', { email });
  assert.equal(answer.status, 202);
  assert.deepEqual(answer.body, { sent_if_known: true });
  await paying.work();
  const mails = await mailsOf(shopper);
  if (mails.length === count) return null;
  return /manage#([\w-]+)/.exec(mails.at(-1)?.text ?? '')?.[1] ?? null;
}

async function mailsOf(shopper: Shopper): Promise<{ text: string }[]> {
  const { rows } = await paying.service.deps.database.pool.query(
    "select text from mailbox where checkout_id = $1 and text like '%manage#%' order by sent_at, id",
    [shopper.id],
  );
  return rows;
}

const cookieOf = (answer: { headers: Record<string, unknown> }) =>
  String(answer.headers['set-cookie'] ?? '').split(';')[0] ?? '';

async function paidShopper(): Promise<Shopper> {
  const shopper = await paying.shopper();
  await shopper.pay(3);
  return shopper;
}

test('the payment link of a paid checkout shows the plan: paid, next, planned', async () => {
  paying.clock.set('2026-11-15T08:00:00Z');
  const shopper = await paidShopper();
  assert.deepEqual(await linesOf(shopper), [
    '1 paid 50000 2026-11-15',
    '2 next 50000 2026-12-15',
    '3 planned 50000 2027-01-15',
  ]);
  const { card, paid, outstanding } = await planOf(shopper);
  assert.deepEqual(
    { card, paid, outstanding },
    {
      card: { brand: 'visa', last4: '4242' },
      paid: 50_000,
      outstanding: 100_000,
    },
  );
  assert.equal((await paying.shopper().then((one) => one.state())).plan, null);
});

test('a payment that the bank declined is late, with the reason and the next attempt', async () => {
  const shopper = await paying.shopper();
  await shopper.pay(3, { card: cards.laterInsufficientFunds });
  const acting = await actingOn(paying, shopper);
  const lateIn = async (page: Promise<PayPage>) => {
    const payment = (await page).plan?.payments[1];
    assert.equal(payment?.status, 'late');
    return payment.late;
  };
  await paying.pass({ months: 1, hours: 1 });
  const late = await lateIn(acting.state());
  assert.equal(late?.reason, 'insufficient_funds');
  assert.ok(late?.retries_at);
  assert.deepEqual(await lateIn(shopper.state()), { ...late, reason: null }, 'the link alone');
  await paying.pass({ days: 8 });
  assert.deepEqual(await lateIn(acting.state()), {
    reason: 'insufficient_funds',
    retries_at: null,
  });
});

test('the page promises a retry only if every late payment is retried, and names it as the next charge', async () => {
  const shopper = await paying.shopper();
  await shopper.pay(3, { card: cards.laterInsufficientFunds });
  const shown = async () => {
    const page = String((await shopper.send('GET', 'manage')).body);
    // The page's own copy of all texts follows.
    return (page.split('application/json')[0] ?? '').replaceAll('\u00a0', ' ');
  };
  const promised = async () =>
    /It costs you nothing extra\. ([^<]+?)\.? *</.exec(await shown())?.[1];
  const next = async () => /Next: ([^<]+)\./.exec(await shown())?.[1];
  await paying.pass({ months: 1, hours: 1 });
  const { late } = (await planOf(shopper)).payments[1] ?? {};
  const date = Temporal.Instant.from(String(late?.retries_at)).toZonedDateTimeISO('+02:00').day;
  assert.match(
    String(await promised()),
    new RegExp(`^We will try again on ${date} .*, or you can pay it now`),
  );
  assert.match(String(await next()), new RegExp(`^R 500,00 on ${date} `));
  await paying.pass({ days: 8 });
  assert.equal(await promised(), 'We will not try again. Please pay it now');
  const third = (await planOf(shopper)).payments[2]?.due_on ?? '';
  assert.match(String(await next()), new RegExp(`^R 500,00 on ${Number(third.slice(8))} `));
  await paying.pass({ days: 23 });
  assert.deepEqual(
    (await planOf(shopper)).payments.map(({ late }) => late && late.retries_at !== null),
    [null, false, true],
  );
  assert.equal(await promised(), 'We will not try all of them again. Please pay them now');
  await paying.pass({ days: 8 });
  assert.equal(await promised(), 'We will not try again. Please pay them now');
});

test('a refund shows what it reduced, cancelled and returned', async () => {
  paying.clock.set('2027-06-15T08:00:00Z');
  const shopper = await paidShopper();
  await paying.pass({ days: 2 });
  await refundNow(paying, shopper, 120_000);
  await paying.work();
  assert.deepEqual(await linesOf(shopper), [
    '1 paid 50000 2027-06-15 refunded 20000',
    '2 cancelled 0 2027-07-15 reduced 50000',
    '3 cancelled 0 2027-08-15 reduced 50000',
  ]);
  const { refunds } = await planOf(shopper);
  assert.deepEqual(
    refunds.map(({ amount, status }) => ({ amount, status })),
    [{ amount: 120_000, status: 'complete' }],
  );
});

test('a one-time link opens one session, for one plan, for half an hour', async () => {
  const shopper = await paidShopper();
  const other = await paidShopper();
  const token = await linkFor(shopper);
  assert(token);
  assert.equal((await other.send('POST', 'session', { token })).status, 422);

  const opened = await shopper.send('POST', 'session', { token });
  assert.equal(opened.status, 200);
  assert.match(String(opened.headers['set-cookie']), /HttpOnly; SameSite=Lax/);
  assert.equal((await shopper.send('POST', 'session', { token })).status, 422, 'used up');

  const report = (who: Shopper, cookie: string) =>
    who.send('POST', 'report', { text: 'I paid twice' }, { cookie });
  assert.equal((await report(shopper, cookieOf(opened))).status, 202);
  assert.equal((await report(shopper, `plan-${shopper.id}=`)).status, 403);
  const ofOther = cookieOf(opened).replace(shopper.id, other.id);
  assert.equal((await report(other, ofOther)).status, 403, 'another plan');
  paying.clock.advance({ minutes: 31 });
  assert.equal((await report(shopper, cookieOf(opened))).status, 403, 'ended');
});

test('the page says until when its browser may act, and the mailed link leads to that page', async () => {
  const shopper = await paidShopper();
  const sessionIn = async (cookie: string) =>
    (await shopper.send('GET', 'state', undefined, { cookie })).body.session;
  assert.equal(await sessionIn(''), null);
  const opened = await shopper.send('POST', 'session', { token: await linkFor(shopper) });
  assert.deepEqual(await sessionIn(cookieOf(opened)), opened.body);
  assert.equal(await sessionIn(`plan-${shopper.id}=${'x'.repeat(43)}`), null);
  paying.clock.advance({ minutes: 31 });
  assert.equal(await sessionIn(cookieOf(opened)), null);

  const page = await shopper.send('GET', 'manage');
  assert.equal(page.status, 200);
  assert.match(String(page.headers['content-type']), /text\/html/);
  assert.equal(page.headers['cache-control'], 'no-store');
  assert.match(String(page.body), new RegExp(`"path":"${shopper.url}"`));
});

const late = async (shopper: Shopper): Promise<string[]> =>
  (await mailsOf(shopper))
    .flatMap(({ text }) => [...text.matchAll(/manage#([\w-]+)\.late\.2$/gm)])
    .map(([, token = '']) => token);

test('the link in a decline mail pays what is late, and nothing else, as often as it is opened', async () => {
  const shopper = await paying.shopper();
  await shopper.pay(6, { card: cards.laterInsufficientFunds });
  const other = await paying.shopper();
  await other.pay(6, { card: cards.laterInsufficientFunds });
  await paying.pass({ months: 1, hours: 1 });
  const [token, ...more] = await late(shopper);
  assert(token);
  assert.deepEqual(more, []);
  const open = (who: Shopper, given: string) => who.send('POST', 'session', { token: given });
  // A program that scans mails opens the link, which uses nothing up.
  await shopper.send('GET', 'manage');
  assert.equal((await open(shopper, token)).status, 200);
  const opened = await open(shopper, token);
  assert.equal(opened.body.scope, 'late');
  assert.equal((await open(other, token)).status, 422, 'another plan');

  const cookie = cookieOf(opened);
  const post = (path: string, body: unknown) => shopper.send('POST', path, body, { cookie });
  const full = await actingOn(paying, shopper);
  assert.equal((await post('plan/pay', await full.payBody('rest'))).status, 403);
  assert.equal((await post('plan/pay', await full.payBody('next'))).status, 403);
  assert.equal((await post('plan/card', await full.cardBody('5555555555554444'))).status, 403);
  assert.equal((await post('report', { text: 'hello' })).status, 403);

  // The payment after it is late too. The mail about that revokes the first link.
  await paying.pass({ days: 8 });
  const [, last] = await late(shopper);
  assert(last);
  assert.equal((await open(shopper, token)).status, 422, 'revoked');
  assert.equal((await open(shopper, last)).status, 200);
  // The mail was sent a day ago. If the card network asks to wait, retries take 30 days.
  paying.clock.advance({ days: 29 });
  assert.equal((await open(shopper, last)).status, 200);
  paying.clock.advance({ days: 2 });
  assert.equal((await open(shopper, last)).status, 422, 'ended');
});

test('the link in a decline mail works until the next such mail has left', async () => {
  const shopper = await paying.shopper();
  await shopper.pay(6, { card: cards.laterInsufficientFunds });
  await paying.pass({ months: 1, hours: 1 });
  const [token] = await late(shopper);
  const open = async (given: string | undefined) =>
    (await shopper.send('POST', 'session', { token: given })).status;
  const { deps } = paying.service;
  const { mail } = deps;
  assert(mail);
  deps.mail = { ...mail, send: async () => ({ outcome: 'failed', response: '450 later' }) };
  try {
    await paying.pass({ days: 8 });
    assert.equal(await open(token), 200, 'the next mail has not left');
  } finally {
    deps.mail = mail;
  }
  await paying.pass({ hours: 2 });
  const [, next] = await late(shopper);
  assert.equal(await open(token), 422, 'replaced');
  assert.equal(await open(next), 200);
  await assertSound(paying);
});

test('of two late payments the shopper pays one, by the link in its mail; with nothing late the link opens nothing', async () => {
  const shopper = await paying.shopper();
  await shopper.pay(6, { card: cards.laterInsufficientFunds });
  await paying.pass({ months: 2, hours: 1 });
  const mail = (await mailsOf(shopper)).at(-1)?.text ?? '';
  const token = /manage#([\w-]+)\.late\.3$/m.exec(mail)?.[1];
  const opened = await shopper.send('POST', 'session', { token });
  const cookie = cookieOf(opened);
  const full = await actingOn(paying, shopper);
  const all = await full.payBody('late', { card: '5555555555554444' });
  assert.deepEqual(all.payments, [2, 3]);
  const one = { ...all, payments: [3], amount: all.amount / 2 };
  const wrong = { ...one, payments: [3, 4] };
  const refused = await shopper.send('POST', 'plan/pay', wrong, { cookie });
  assert.equal(refused.body.attempt.refusal, 'plan_changed');
  const paid = await shopper.send('POST', 'plan/pay', one, { cookie });
  assert.equal(paid.body.attempt.status, 'done');
  const states = paid.body.plan.payments.map(({ status }: { status: string }) => status);
  assert.deepEqual(states, ['paid', 'late', 'paid', 'next', 'planned', 'planned']);
  await full.pay('late', { card: '5555555555554444' });
  assert.equal((await shopper.send('POST', 'session', { token })).status, 422);
  await assertSound(paying);
});

test('a link continues with what the shopper asked for', async () => {
  const shopper = await paidShopper();
  await shopper.send('POST', 'link', { email: 'thandi@example.com', panel: 'card' });
  await paying.work();
  assert.match((await mailsOf(shopper)).at(-1)?.text ?? '', /manage#[\w-]{43}\.card$/m);
  const odd = await shopper.send('POST', 'link', { email: 'thandi@example.com', panel: 'all' });
  assert.equal(odd.status, 422);
});

test('the page says whether a link can be mailed', async () => {
  const shopper = await paidShopper();
  assert.equal((await shopper.state()).sends_links, true);
  const { deps } = paying.service;
  deps.sendsMessages = false;
  try {
    assert.equal((await shopper.state()).sends_links, false);
  } finally {
    deps.sendsMessages = true;
  }
});

test('a link that is ten minutes old opens nothing', async () => {
  const shopper = await paidShopper();
  const token = await linkFor(shopper);
  paying.clock.advance({ minutes: 10 });
  const answer = await shopper.send('POST', 'session', { token });
  assert.equal(answer.status, 422);
  assert.match(answer.body.errors[0].detail, /has been used or has ended\. Ask for a new one\./);
});

test('twenty uses of one link at once open one session', async () => {
  const shopper = await paidShopper();
  const token = await linkFor(shopper);
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => shopper.send('POST', 'session', { token })),
  );
  assert.equal(answers.filter(({ status }) => status === 200).length, 1);
});

test('a request with another address gets the same answer, takes as long, and sends nothing', async () => {
  const shopper = await paidShopper();
  const ask = async (email: string) => {
    const begun = performance.now();
    const answer = await shopper.send('POST', 'link', { email });
    const { 'x-request-id': _, date: __, ...headers } = answer.headers;
    return { status: answer.status, body: answer.body, headers, took: performance.now() - begun };
  };
  const known = await ask('  Thandi@Example.com ');
  const unknown = await ask('sipho@example.com');
  assert.deepEqual(
    { ...known, took: 0, headers: Object.keys(known.headers) },
    { ...unknown, took: 0, headers: Object.keys(unknown.headers) },
  );
  assert.ok(known.took >= 395 && unknown.took >= 395, 'both wait for the same time at least');
  await paying.work();
  assert.equal((await mailsOf(shopper)).length, 1);
});

test('links are limited per plan and address, and a stranger locks out no shopper', async () => {
  const shoppers: Shopper[] = [];
  for (let count = 0; count < 8; count += 1) shoppers.push(await paidShopper());
  const [shopper, ...others] = shoppers;
  assert(shopper);
  const ask = (one: Shopper) => one.send('POST', 'link', { email: 'thandi@example.com' });
  shopper.moveTo('192.0.2.66');
  const ofPlan = await inParallel(4, () => ask(shopper));
  assert.deepEqual(countStatuses(ofPlan), { 202: 3, 429: 1 });
  shopper.moveTo('192.0.2.67');
  assert.equal((await ask(shopper)).status, 202);
  // Seven other plans could have 21 links, but not from one address.
  for (const one of others) one.moveTo('192.0.2.21');
  const ofAddress = await Promise.all(others.flatMap((one) => [ask(one), ask(one), ask(one)]));
  assert.deepEqual(countStatuses(ofAddress), { 202: 20, 429: 1 });
});

test('a shopper gets at most ten mails with a link in a quarter of an hour, whoever asks', async () => {
  const shopper = await paidShopper();
  const ask = (email: string) => shopper.send('POST', 'link', { email });
  for (let count = 0; count < 12; count += 1) {
    shopper.moveTo(`192.0.2.${100 + count}`);
    assert.equal((await ask('sipho@example.com')).status, 202);
    assert.equal((await ask('thandi@example.com')).status, 202);
  }
  await paying.work();
  assert.equal((await mailsOf(shopper)).length, 10);
});

test('guesses at a link and reports are limited, and the right link works after any number of them', async () => {
  const shopper = await paidShopper();
  const token = await linkFor(shopper);
  const guess = () => shopper.send('POST', 'session', { token: 'x'.repeat(43) });
  assert.deepEqual(countStatuses(await inParallel(22, guess)), { 422: 20, 429: 2 });
  assert.equal((await shopper.send('POST', 'session', { token })).status, 200);
  const other = await paidShopper();
  const { headers } = await actingOn(paying, other);
  const report = () => other.send('POST', 'report', { text: 'Where is it?' }, headers);
  assert.deepEqual(countStatuses(await inParallel(11, report)), { 202: 10, 429: 1 });
});

test('no token of a link or session is in the database in clear', async () => {
  const shopper = await paidShopper();
  paying.clock.advance({ hours: 1 });
  const token = await linkFor(shopper);
  assert(token);
  const opened = await shopper.send('POST', 'session', { token });
  const session = cookieOf(opened).slice(`plan-${shopper.id}=`.length);
  const hex = [token, session].map((one) => Buffer.from(one).toString('hex'));
  const { pool } = paying.service.deps.database;
  // The sandbox's mailbox stands for the recipient's, so it may contain the link.
  await pool.query('delete from mailbox');
  const { rows: tables } = await pool.query<{ table_name: string }>(
    "select table_name from information_schema.tables where table_schema = 'public'",
  );
  for (const { table_name } of tables) {
    const { rows } = await pool.query<{ row: string }>(
      `select t::text as row from ${table_name} t`,
    );
    for (const { row } of rows) {
      assert(!row.includes(token) && !row.includes(session), table_name);
      assert(!hex.some((one) => row.includes(one)), table_name);
    }
  }
});

test('a page of another site cannot act with the shopper’s session', async () => {
  const shopper = await paidShopper();
  const opened = await shopper.send('POST', 'session', { token: await linkFor(shopper) });
  const headers = { cookie: cookieOf(opened), origin: 'https://evil.example' };
  const answer = await shopper.send('POST', 'report', { text: 'hello' }, headers);
  assert.equal(answer.status, 403);
});

test('“something is wrong” opens a conversation, which a session of the whole plan shows', async () => {
  const shopper = await paidShopper();
  const opened = await shopper.send('POST', 'session', { token: await linkFor(shopper) });
  const cookie = cookieOf(opened);
  const report = async (text: string) =>
    (await shopper.send('POST', 'report', { text }, { cookie })).status;
  const shown = async (headers: Record<string, string>) =>
    (await shopper.send('GET', 'state', undefined, headers)).body.conversation;
  assert.equal(await report('Where is\r\nmy \u202erefund\u0007? 🙏'), 202);
  // A page that got no answer sends its text again.
  assert.equal(await report('Where is\r\nmy \u202erefund\u0007? 🙏'), 202);
  const { entries, is_answered } = await shown({ cookie });
  assert.deepEqual(
    entries.map(({ name, text }: { name: string | null; text: string }) => [name, text]),
    [[null, 'Where is\nmy refund? 🙏']],
  );
  assert.equal(is_answered, false);
  assert.equal(await shown({}), null, 'the link alone');
  const { rows } = await paying.service.deps.database.pool.query(
    'select kind from alerts where subject_id = $1',
    [shopper.id],
  );
  assert.deepEqual(rows, [], 'it has a queue and is not an alert');
  assert.equal(await report('x'.repeat(1_001)), 422);
  assert.equal(await report(' \u202e\n '), 422);
  for (let count = 0; count < 8; count += 1) await report(`again ${count}`);
  assert.equal(await report('once more'), 429, 'ten a day');
});

test('the coming dates are an iCalendar file of whole lines', async () => {
  paying.clock.set('2028-01-31T08:00:00Z');
  const shopper = await paidShopper();
  const answer = await shopper.send('GET', 'payments.ics');
  assert.equal(answer.status, 200);
  const text = String(answer.body);
  assert.ok(text.split('\r\n').every((line) => Buffer.byteLength(line) <= 75));
  const unfolded = text.replace(/\r\n /g, '');
  assert.deepEqual(unfolded.match(/DTSTART;VALUE=DATE:\d+/g), [
    'DTSTART;VALUE=DATE:20280229',
    'DTSTART;VALUE=DATE:20280331',
  ]);
  assert.match(unfolded, /SUMMARY:R 500\\,00 to Bean There/);
});

test('a paid payment has a receipt, one that is not paid has none', async () => {
  const shopper = await paidShopper();
  const receipt = await shopper.send('GET', 'receipts/1');
  assert.equal(receipt.status, 200);
  assert.match(String(receipt.body).replaceAll('\u00a0', ' '), /R 500,00/);
  assert.match(String(receipt.headers['content-security-policy']), /default-src 'none'/);
  assert.equal((await shopper.send('GET', 'receipts/2')).status, 404);
  assert.equal((await shopper.send('GET', 'receipts/9')).status, 404);
});

test('a receipt is a PDF too, with the items of the order, in the shopper’s language', async () => {
  const items = [
    { name: 'Stewels <b>', amount: 40_000, quantity: 2 },
    { name: 'Kouse', amount: 30_000, quantity: 1 },
  ];
  const shopper = await paying.shopper({ amount: 150_000, line_items: items });
  await shopper.pay(3);
  await paying.work();
  const html = String((await shopper.send('GET', 'receipts/1')).body).replaceAll('\u00a0', ' ');
  assert.match(html, /<dt>2 × Stewels &lt;b&gt;<\/dt><dd>R 800,00<\/dd>/);
  const read = async (number: number) =>
    await paying.service.app.inject({
      url: `${shopper.url}/receipts/${number}/pdf`,
      headers: { 'accept-language': 'af' },
    });
  const answer = await read(1);
  assert.equal(answer.statusCode, 200);
  assert.equal(answer.headers['content-type'], 'application/pdf');
  const { pages, source } = readPdf(answer.rawPayload);
  const texts = pages.flat().map((text) => text.replaceAll('\u00a0', ' '));
  for (const said of ['Kwitansie', 'R 500,00', '2 × Stewels <b>', 'R 800,00', '1 × Kouse']) {
    assert.ok(texts.includes(said), `${said} in ${texts}`);
  }
  assert.deepEqual(texts.slice(-5), ['Ander koste', 'R 400,00', 'Totaal', 'R 1 500,00', '1']);
  assert.match(source, /\/Lang \(af\)/);
  assert.equal((await read(2)).statusCode, 404);
});

test('a receipt names the day and the card of its own payment', async () => {
  paying.clock.set('2028-06-15T08:00:00Z');
  const shopper = await paidShopper();
  const acting = await actingOn(paying, shopper);
  await acting.pay('next', { card: '5555555555554444' });
  await paying.pass({ months: 2, days: 1 });
  const read = async (number: number) =>
    String((await shopper.send('GET', `receipts/${number}`)).body);
  for (const [number, card, date] of [
    [1, 'Visa ending 4242', '15 June 2028'],
    [2, 'Mastercard ending 4444', '15 June 2028'],
    [3, 'Visa ending 4242', '15 August 2028'],
  ] as const) {
    const receipt = await read(number);
    assert.ok(receipt.includes(card), `payment ${number}: ${card}`);
    assert.ok(receipt.includes(date), `payment ${number}: ${date}`);
  }
});

test('a payment link stops showing the order a hundred days after the last movement', async () => {
  paying.clock.set('2029-01-15T08:00:00Z');
  const shopper = await paidShopper();
  await paying.pass('2029-03-16T08:00:00Z');
  assert.equal((await planOf(shopper)).outstanding, 0);
  paying.clock.set('2029-06-22T08:00:00Z');
  assert.equal((await shopper.send('GET', 'state')).status, 200);
  paying.clock.set('2029-06-26T08:00:00Z');
  assert.equal((await shopper.send('GET', 'state')).status, 404);
  assert.equal((await shopper.send('POST', 'link', { email: 'thandi@example.com' })).status, 404);
  // The order is paid, so the page must not say that nothing was charged, or ask for it again.
  const [, said = ''] = /<main([\s\S]*)<\/main>/.exec((await shopper.send('GET', '')).body) ?? [];
  assert.match(said, /If you have paid, your receipts are in your mail/);
  assert.doesNotMatch(said, /charged|again/);
  await assertSound(paying);
});

test('the link of a cancelled, abandoned or refunded order stops showing it, too', async () => {
  const cancelled = await paying.shopper();
  await cancelled.cancel();
  const abandoned = await paying.shopper();
  const refunded = await paidShopper();
  await paying.pass({ days: 2 });
  await refundNow(paying, refunded, 150_000);
  await paying.work();
  const statuses = () =>
    Promise.all(
      [cancelled, abandoned, refunded].map(async (one) => (await one.send('GET', 'state')).status),
    );
  paying.clock.advance({ hours: 97 * 24 });
  assert.deepEqual(await statuses(), [200, 200, 200]);
  // The last payment of the refunded order was planned less than a hundred days ago.
  paying.clock.advance({ hours: 4 * 24 });
  assert.deepEqual(await statuses(), [404, 404, 404]);
  assert.equal((await refunded.send('GET', 'receipts/1')).status, 404);
});
