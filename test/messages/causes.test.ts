import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { timestamp } from '#platform/shared/clock.ts';
import { askMerchant } from '#purchases/disputes/ask-merchant.ts';
import { readAgain } from '#purchases/disputes/check-disputes.ts';
import { collectDueInstalments } from '#purchases/instalments/collect-instalments.ts';
import { showMessage } from '#purchases/messages/sending/send-again.ts';
import { sendDueMessages } from '#purchases/messages/sending/send-messages.ts';
import { retryRefund } from '#purchases/refunds/review-refund.ts';
import { cards, openDispute, refundNow } from '../support/money.ts';
import { assertSound, type Paying, type Shopper, startPaying } from '../support/payments.ts';
import { actingOn } from '../support/plan-attempts.ts';

let paying: Paying;
before(async () => {
  paying = await startPaying();
});
after(() => paying.close());

type Kept = { sent_at: string; subject: string; text: string; html: string };

async function mailboxOf(shopper: Shopper): Promise<Kept[]> {
  const { rows } = await paying.service.deps.database.pool.query(
    'select sent_at, subject, text, html from mailbox where checkout_id = $1 order by sent_at, subject',
    [shopper.id],
  );
  return rows;
}

const subjects = async (shopper: Shopper) =>
  (await mailboxOf(shopper)).map(
    ({ sent_at, subject }) => `${sent_at.slice(0, 16)} ${subject.replaceAll('\u00a0', ' ')}`,
  );

test('a shopper hears of every payment: receipt, reminder, charge, and the end of the plan', async () => {
  paying.clock.set('2026-11-15T08:00:00Z');
  const shopper = await paying.shopper();
  await shopper.pay(3);
  await paying.pass({ months: 3 });
  assert.deepEqual(await subjects(shopper), [
    '2026-11-15T08:00 R 500,00 paid to Bean There',
    '2026-12-12T06:00 R 500,00 will be charged on 15 December 2026',
    '2026-12-15T06:00 R 500,00 paid to Bean There',
    '2027-01-12T06:00 R 500,00 will be charged on 15 January 2027',
    '2027-01-15T06:00 Everything is paid: R 1 500,00 to Bean There',
  ]);
  const [receipt, ...later] = await mailboxOf(shopper);
  assert.match(later.at(-1)?.text ?? '', /We charged R 500,00 to your Visa card.* payment 3 of 3/);
  assert.match(receipt?.text ?? '', /Visa card ending 4242/);
  assert.match(
    receipt?.text ?? '',
    /R 500,00 of R 1 500,00 is paid\. Next: R 500,00 on 15 December 2026\./,
  );
  assert.match(receipt?.text ?? '', new RegExp(shopper.url));
  await assertSound(paying);
});

test('a once-off payment makes one message: its receipt', async () => {
  const shopper = await paying.shopper();
  await shopper.pay(1);
  await paying.pass({ days: 3 });
  assert.equal((await mailboxOf(shopper)).length, 1);
});

test('a shopper whose once-off hold lapsed is told so, with a link that pays it', async () => {
  paying.clock.set('2027-02-20T08:00:00Z');
  const shopper = await paying.shopper();
  await shopper.pay(1);
  await paying.work();
  // The service is down for longer than a hold lasts.
  paying.clock.advance({ days: 8 });
  await paying.work();
  const [, mail, ...more] = await mailboxOf(shopper);
  assert.match(mail?.subject ?? '', /^Your payment of .* did not go through$/);
  assert.match(
    mail?.text ?? '',
    /The reservation ended before we took the money\. Nothing was charged\./,
  );
  assert.match(mail?.text ?? '', /Please pay it now\. You can use any card\./);
  assert.doesNotMatch(mail?.text ?? '', /declined|try again|this card/);
  assert.deepEqual(more, []);
  const token = /manage#([\w-]+)\.late\.1$/m.exec(mail?.text ?? '')?.[1];
  const opened = await shopper.send('POST', 'session', { token });
  assert.deepEqual([opened.status, opened.body.scope], [200, 'late']);
  await assertSound(paying);
});

test('the first and the last of four declines are mailed, with what happens next and the link that solves it', async () => {
  paying.clock.set('2027-03-01T08:00:00Z');
  const shopper = await paying.shopper();
  await shopper.pay(3, { card: cards.laterInsufficientFunds });
  await paying.pass({ days: 40 });
  const declined = (await mailboxOf(shopper)).filter(({ subject }) =>
    /did not go through/.test(subject),
  );
  assert.deepEqual(
    declined.map(({ sent_at }) => sent_at.slice(0, 10)),
    ['2027-04-01', '2027-04-08'],
  );
  assert.match(declined[0]?.text ?? '', /We will try again on 2 April 2027\./);
  assert.match(declined[1]?.text ?? '', /We will not try again\./);
  assert.match(declined[1]?.text ?? '', /The later payments will continue as planned\./);
  for (const { text } of declined) {
    assert.match(text, new RegExp(shopper.url));
    assert.match(text, /A late payment costs you nothing extra\./);
  }
  await assertSound(paying);
});

test('a refund is mailed with what it changed, and cancels the reminders of what it cancelled', async () => {
  paying.clock.set('2027-06-15T08:00:00Z');
  const shopper = await paying.shopper();
  await shopper.pay(3);
  await paying.pass({ days: 2 });
  await refundNow(paying, shopper, 100_000);
  await paying.pass({ months: 3 });
  const messages = (await subjects(shopper)).map((line) => line.slice(17));
  assert.deepEqual(messages, ['R 500,00 paid to Bean There', 'R 1 000,00 refunded by Bean There']);
  const [, refunded] = await mailboxOf(shopper);
  assert.match(refunded?.text ?? '', /Payment 3 of 3 .* cancelled/);
  await assertSound(paying);
});

test('after a refund of a part, every letter counts what is left of the plan', async () => {
  paying.clock.set('2027-08-15T08:00:00Z');
  const shopper = await paying.shopper();
  await shopper.pay(3);
  await paying.pass({ days: 2 });
  await refundNow(paying, shopper, 50_000);
  await paying.pass({ months: 2 });
  const [, refunded, , charged] = await mailboxOf(shopper);
  assert.match(refunded?.text ?? '', /R 500,00 of R 1 000,00 is paid\. Next: R 500,00 on 15 Sept/);
  const messages = (await subjects(shopper)).map((line) => line.slice(17));
  assert.deepEqual(messages.slice(3), ['Everything is paid: R 1 000,00 to Bean There']);
  assert.match(charged?.subject ?? '', /^Everything/);
  await assertSound(paying);
});

test('a refund to the card is mailed with what was returned, not any more once it has failed, and once if it is retried', async () => {
  paying.clock.set('2035-06-15T08:00:00Z');
  const { deps } = paying.service;
  const bought = async () => {
    const shopper = await paying.shopper();
    await shopper.pay(1, { card: cards.refundFails });
    return shopper;
  };
  const refunds = new Map<Shopper, string>();
  const [mailed, unmailed, unmailedYet] = [await bought(), await bought(), await bought()];
  await paying.pass({ days: 2 });
  for (const shopper of [mailed, unmailed, unmailedYet]) {
    const { id, status } = await refundNow(paying, shopper, 60_000);
    assert.equal(status, 'complete');
    refunds.set(shopper, id);
  }
  const delay = (shopper: Shopper, days: number) =>
    deps.database.pool.query(
      `update messages set due_at = due_at + make_interval(days => $2)
       where checkout_id = $1 and kind = 'refunded'`,
      [shopper.id, days],
    );
  await delay(unmailed, 6);
  await delay(unmailedYet, 20);
  await paying.work();
  const refunded = async (shopper: Shopper) => {
    const [message] = (await shopper.rows('messages')).filter(({ kind }) => kind === 'refunded');
    return { message, shown: await showMessage(deps, paying.account.merchant, message) };
  };
  const { shown } = await refunded(mailed);
  assert.match(
    shown.text,
    /Bean There refunded R 600,00 of order \S+\n\nBack to your card: R 600,00\./,
  );
  assert.doesNotMatch(shown.text, /table/);
  assert.match(shown.text, /^Payment .*R\s600,00 refunded$/m);
  assert.equal(shown.refusal, null);
  await paying.pass({ days: 7 });
  const [one, other] = [await refunded(mailed), await refunded(unmailed)];
  assert.deepEqual([one.message.status, other.message.status], ['sent', 'skipped']);
  assert.match(String(one.shown.refusal), /no longer true/);
  await delay(unmailedYet, -20);
  for (const id of refunds.values()) {
    assert.equal((await retryRefund(deps, 'nomsa', id)).status, 'complete');
  }
  await paying.work();
  for (const [shopper, before] of [
    [mailed, 'sent'],
    [unmailed, 'skipped'],
    // The first mail waited until the retry, and would say the same as the second.
    [unmailedYet, 'skipped'],
  ] as const) {
    const messages = (await shopper.rows('messages')).filter(({ kind }) => kind === 'refunded');
    messages.sort((a, b) => a.created_at.localeCompare(b.created_at));
    assert.deepEqual(
      messages.map(({ status }) => status),
      [before, 'sent'],
    );
    const { text } = await showMessage(deps, paying.account.merchant, messages.at(-1));
    assert.match(text, /Back to your card: R 600,00\./);
  }
  await assertSound(paying);
});

test('a shopper who pays off the rest on the day of purchase hears once that the plan is finished', async () => {
  paying.clock.set('2027-10-15T08:00:00Z');
  const shopper = await paying.shopper();
  await shopper.pay(3);
  const acting = await actingOn(paying, shopper);
  assert.equal((await acting.pay('rest')).attempt?.status, 'done');
  await paying.pass({ days: 3 });
  const messages = (await subjects(shopper)).map((line) => line.slice(17));
  assert.deepEqual(messages, [
    'R 1 000,00 paid to Bean There',
    'R 500,00 paid to Bean There',
    'Everything is paid: R 1 500,00 to Bean There',
  ]);
  await assertSound(paying);
});

/**
 * Makes a plan whose payment 2 is declined. The mail about it waits, because the mail server does
 * not answer.
 */
async function declinedUnheard(): Promise<Shopper> {
  const shopper = await paying.shopper();
  await shopper.pay(3, { card: cards.laterInsufficientFunds });
  const due = Temporal.Instant.from((await paymentOf(shopper, 2)).due_at);
  await paying.pass(due.subtract({ minutes: 1 }).toString());
  paying.clock.set(timestamp(due));
  await collectDueInstalments(paying.service.deps);
  assert.equal((await paymentOf(shopper, 2)).declines, 1);
  return shopper;
}

const paymentOf = async (shopper: Shopper, number: number) =>
  (await shopper.rows('instalments')).find((one) => one.number === number);

const declineMails = async (shopper: Shopper) =>
  (await mailboxOf(shopper)).filter(({ subject }) => /did not go through/.test(subject));

test('a decline that could not be mailed before the shopper paid is not mailed afterwards', async () => {
  paying.clock.set('2030-11-15T08:00:00Z');
  const shopper = await declinedUnheard();
  const acting = await actingOn(paying, shopper);
  assert.equal((await acting.pay('late', { card: '5555555555554444' })).attempt?.status, 'done');
  await paying.work();
  assert.deepEqual(await declineMails(shopper), []);
  const messages = await shopper.rows('messages');
  assert.equal(messages.find(({ kind }) => kind === 'declined').status, 'skipped');
  await assertSound(paying);
});

test('a decline that is mailed late does not promise a retry on a day that has passed', async () => {
  paying.clock.set('2031-11-15T08:00:00Z');
  const shopper = await declinedUnheard();
  const retry = Temporal.Instant.from((await paymentOf(shopper, 2)).due_at);
  paying.clock.set(timestamp(retry.add({ hours: 30 })));
  await sendDueMessages(paying.service.deps);
  const [mail, ...more] = await declineMails(shopper);
  assert.match(mail?.text ?? '', /Nothing was charged/);
  assert.doesNotMatch(mail?.text ?? '', /try again/);
  assert.deepEqual(more, []);
  await paying.pass({ months: 3 });
});

test('a reminder waits while a dispute pauses the plan, and is sent once the dispute is won', async () => {
  paying.clock.set('2032-11-15T08:00:00Z');
  const shopper = await paying.shopper();
  await shopper.pay(3);
  await paying.pass('2032-12-12T05:00:00Z');
  // The gateway learns the time from requests, and counts the bank's deadline from that time.
  await (await paying.shopper()).pay(1);
  await openDispute(paying, shopper);
  const [dispute] = await shopper.rows('disputes');
  const reminders = async () =>
    (await subjects(shopper)).filter((line) => /will be charged/.test(line));
  // The reminder fell due two days ago. The charge is at 06:00 on the next day.
  paying.clock.set('2032-12-14T07:00:00Z');
  await paying.work();
  assert.deepEqual(await reminders(), []);
  const path = `/_test/disputes/${dispute.dispute_ref}/resolve`;
  await paying.gateway.call('POST', path, { outcome: 'won' });
  const won = await readAgain(paying.service.deps, paying.account.merchant, dispute);
  assert.equal(won.is_pausing, false);
  await paying.pass('2032-12-15T07:00:00Z');
  assert.deepEqual(await reminders(), [
    '2032-12-14T10:00 R 500,00 will be charged on 15 December 2032',
  ]);
  assert.equal((await paymentOf(shopper, 2)).status, 'collected');
  await assertSound(paying);
});

const expiryMails = async (shopper: Shopper) =>
  (await mailboxOf(shopper)).filter(({ subject }) => /expires/.test(subject));

test('a card that expires before the last payment is announced 21 days before the first payment that it misses', async () => {
  paying.clock.set('2027-11-15T08:00:00Z');
  const shopper = await paying.shopper();
  await shopper.pay(6, { expires: '2028-01' });
  await paying.pass({ months: 6 });
  // Payments fall due on the 15th. The payment for February is the first after the card has
  // expired.
  const [mail, ...more] = await expiryMails(shopper);
  assert.equal(mail?.sent_at.slice(0, 16), '2028-01-25T06:00');
  assert.match(mail?.text ?? '', /ending 4242 expires at the end of January 2028/);
  assert.deepEqual(more, []);
  await assertSound(paying);
});

test('a card that covers the plan to its last month makes no such message', async () => {
  paying.clock.set('2028-11-15T08:00:00Z');
  const shopper = await paying.shopper();
  await shopper.pay(3, { expires: '2029-01' });
  assert.ok((await shopper.rows('messages')).every(({ kind }) => kind !== 'card_expires'));
  await paying.pass({ months: 3 });
});

test('the shopper hears nothing about a card that was replaced, or that has nothing left to pay', async () => {
  paying.clock.set('2029-11-15T08:00:00Z');
  const replaced = await paying.shopper();
  await replaced.pay(6, { expires: '2030-01' });
  await paying.service.deps.database.pool.query(
    "update stored_cards set expires = '2035-01' where checkout_id = $1",
    [replaced.id],
  );
  const refunded = await paying.shopper();
  await refunded.pay(6, { expires: '2030-01' });
  await paying.pass({ days: 2 });
  await refundNow(paying, refunded, 100_000);
  await paying.pass({ months: 6 });
  for (const shopper of [replaced, refunded]) {
    assert.deepEqual(await expiryMails(shopper), []);
    const messages = await shopper.rows('messages');
    const { status } = messages.find(({ kind }) => kind === 'card_expires');
    assert.equal(status, 'skipped');
  }
  await assertSound(paying);
});

test('the mails after a lost card ask for another one, and never say that the bank declined what it was not asked', async () => {
  paying.clock.set('2033-03-01T08:00:00Z');
  const shopper = await paying.shopper();
  await shopper.pay(3, { card: cards.laterLost, expires: '2036-01' });
  await paying.pass({ days: 70 });
  assert.deepEqual((await subjects(shopper)).slice(1), [
    '2033-03-29T06:00 R 500,00 will be charged on 1 April 2033',
    '2033-04-01T06:00 Your payment of R 500,00 to Bean There did not go through',
    '2033-04-28T06:00 Your payment of R 500,00 on 1 May 2033 needs another card',
    '2033-05-01T06:00 Your payment of R 500,00 to Bean There did not go through',
  ]);
  const [, , declined, soon, unasked] = (await mailboxOf(shopper)).map(({ text }) => text);
  assert.match(declined ?? '', /Your bank declined payment 2/);
  assert.match(soon ?? '', /We cannot charge your Visa card ending 7104 again\./);
  assert.doesNotMatch(soon ?? '', /we will charge|need to do anything/);
  assert.match(unasked ?? '', /We did not charge payment 3 .* because of earlier declines\./);
  assert.doesNotMatch(unasked ?? '', /Your bank declined/);
  for (const text of [declined, unasked]) {
    assert.match(
      text ?? '',
      /We cannot charge this card again\. Please pay now, with another card\./,
    );
    assert.doesNotMatch(text ?? '', /this card or another|continue as planned/);
  }
  await assertSound(paying);
});

test('once another card is stored, the reminder announces a charge again', async () => {
  paying.clock.set('2034-03-01T08:00:00Z');
  const shopper = await paying.shopper();
  await shopper.pay(3, { card: cards.laterLost, expires: '2036-01' });
  await paying.pass({ days: 40 });
  const acting = await actingOn(paying, shopper);
  const { attempt } = await acting.pay('late', { card: '5555555555554444', keep: true });
  assert.equal(attempt?.status, 'done');
  await paying.pass('2034-04-28T07:00:00Z');
  const { subject, text } = (await mailboxOf(shopper)).at(-1) ?? { subject: '', text: '' };
  assert.match(subject, /will be charged on/);
  assert.match(text, /Mastercard card ending 4444/);
  await paying.pass({ months: 1 });
  await assertSound(paying);
});

test('no message has more of a card than its last four digits, an image, or an address elsewhere', async () => {
  const { rows } = await paying.service.deps.database.pool.query('select text, html from mailbox');
  assert(rows.length > 10);
  for (const { text, html } of rows) {
    assert.doesNotMatch(text + html, /\d{12,19}/);
    assert.doesNotMatch(html, /<img|<script|url\(|src=/i);
    const addresses: string[] = html.match(/https?:\/\/[^/"]+/g) ?? [];
    assert.deepEqual([...new Set(addresses)], ['http://localhost:3000']);
  }
});

test('a merchant is not asked for evidence once the dispute is decided or at a later stage', async () => {
  paying.clock.set('2036-11-15T08:00:00Z');
  const { deps } = paying.service;
  const { merchant } = paying.account;
  await deps.database.pool.query('update merchants set contact = $2 where id = $1', [
    ...[merchant.id, 'help@bean.example'],
  ]);
  const asked: string[] = [];
  for (const [reason, outcome] of [[], [undefined, 'won'], ['inquiry', 'escalated']]) {
    const shopper = await paying.shopper();
    await shopper.pay(1);
    await paying.pass({ days: 2 });
    await askMerchant(deps, 'nomsa', await openDispute(paying, shopper, 1, reason));
    const [dispute] = await shopper.rows('disputes');
    const path = `/_test/disputes/${dispute.dispute_ref}/resolve`;
    if (outcome) await paying.gateway.call('POST', path, { outcome });
    await readAgain(deps, merchant, dispute);
    await paying.work();
    const messages = await shopper.rows('messages');
    asked.push(messages.find(({ kind }) => kind === 'evidence_asked').status);
  }
  assert.deepEqual(asked, ['sent', 'skipped', 'skipped']);
  await assertSound(paying);
});
