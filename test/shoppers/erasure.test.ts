import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { openLog } from '#hosting/running/log.ts';
import { findMerchant } from '#merchants/merchant.sql.ts';
import type { Merchant } from '#merchants/merchant.ts';
import { sendPersonMails } from '#operating/people/send-person-mails.ts';
import { answerShopper } from '#purchases/conversations/answer-shopper.ts';
import { askMerchant } from '#purchases/conversations/ask-merchant.ts';
import { stageEvidence } from '#purchases/disputes/answer-dispute.ts';
import { addFile, supplyEvidence } from '#purchases/disputes/supply-evidence.ts';
import { requestRefund } from '#purchases/refunds/request-refund.ts';
import { declineRefund } from '#purchases/refunds/review-refund.ts';
import { FreeText } from '#record/actions/free-text.ts';
import { operate } from '#record/actions/operate.ts';
import { verifyOperatorChain } from '#record/actions/verify-operator-chain.ts';
import { closeAlert } from '#record/alerts/handle-alert.ts';
import { raiseAlert } from '#record/alerts/raise-alert.ts';
import { addNote } from '#record/notes/add-note.ts';
import { commandLine, type Tranche } from '../support/cli.ts';
import { addPerson } from '../support/console.ts';
import { countLockWaits, findNodes } from '../support/database-server.ts';
import { pdfFile } from '../support/files.ts';
import { createLegacyCheckout, createPlugin, logIn } from '../support/legacy.ts';
import { askRefund, assertBalanced, cards, openDispute, refundNow } from '../support/money.ts';
import { assertSound, type Paying, type Shopper, startPaying } from '../support/payments.ts';
import { actingOn } from '../support/plan-attempts.ts';
import { checkoutBody, send } from '../support/service.ts';
import { tamper } from '../support/tamper.ts';
import { findTraces } from '../support/traces.ts';
import { until } from '../support/until.ts';

const person = {
  email: 'Nomvula.Dlamini@example.co.za',
  first_name: 'Nomvula',
  last_name: 'Dlamini',
  phone_number: '+27825550199',
  billing_address: '17 Jacaranda Road, Melville',
};

const declinedCard = '4000000000000002';
const firstCard = '378282246310005';
const newCard = '5555555555554444';

/** Every text by which someone could find the person, in every spelling that we were given. */
const traces = [
  person.email,
  encodeURIComponent(person.email),
  'Nomvula',
  'Dlamini',
  '82 555 0199',
  '825550199',
  'Jacaranda',
  firstCard.slice(-4),
  newCard.slice(-4),
];

const { hasCitus } = await findNodes();
let folder: string;
let log: ReturnType<typeof openLog>;
let paying: Paying;
let tranche: Tranche;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tranche-erasure-'));
  log = openLog({ logLevel: 'trace', traces: null }, join(folder, 'log'));
  paying = await startPaying({ log });
  const { clock, service } = paying;
  tranche = commandLine({ DATABASE_URL: service.databaseUrl }, { clock });
  // The receiver repeats what it knows about the shopper.
  paying.receiver.answer = ({ path }) =>
    path === '/other'
      ? {}
      : {
          headers: { 'x-shopper': person.email, 'content-type': 'application/json' },
          body: JSON.stringify({
            shopper: person,
            redirect_url: `https://shop.example/thanks?for=${encodeURIComponent(person.email)}`,
          }),
        };
});
after(async () => {
  await paying.close();
  await rm(folder, { recursive: true });
});

const query = async (text: string, values: unknown[] = []) =>
  (await paying.service.deps.database.pool.query(text, values)).rows;

const searched = (texts: string[]) => findTraces(paying.service.deps.database, texts);

const bodyOf = (order: string) => ({
  client_reference_id: `${order} ${person.email}`,
  notify_url: `${paying.receiver.url}/callback?shopper=${encodeURIComponent(person.email)}`,
  success_url: `https://shop.example/paid?phone=${encodeURIComponent(person.phone_number)}`,
  cancel_url: `https://shop.example/${encodeURIComponent(person.email)}/cart#Dlamini`,
  customer: person,
  line_items: [{ name: 'Ring for Nomvula', amount: 150_000, quantity: 1 }],
});

async function report(shopper: Shopper): Promise<void> {
  await shopper.send('POST', 'link', { email: person.email });
  await paying.work();
  const [mail] = await query(
    "select text from mailbox where checkout_id = $1 and text like '%manage#%'",
    [shopper.id],
  );
  const token = /manage#([\w-]+)/.exec(mail.text)?.[1];
  const opened = await shopper.send('POST', 'session', { token });
  assert.equal(opened.status, 200);
  const cookie = String(opened.headers['set-cookie']).split(';')[0] ?? '';
  const text = `I am Nomvula Dlamini, call ${person.phone_number}`;
  const answer = await shopper.send('POST', 'report', { text }, { cookie });
  assert.equal(answer.status, 202);
}

async function merchantOf({ id }: Shopper): Promise<Merchant> {
  const [{ merchant_id }] = await query('select merchant_id from checkouts where id = $1', [id]);
  const { database, clock } = paying.service.deps;
  const merchant = await findMerchant(database.db, clock, merchant_id);
  assert(merchant);
  return merchant;
}

async function seenAt({ id }: Shopper): Promise<string> {
  const [row] = await query('select moved_at from conversations where checkout_id = $1', [id]);
  return row.moved_at;
}

/**
 * Plays a shopper's history at two merchants: payments, declines, refunds, callbacks, messages, a
 * report.
 */
async function playHistory(): Promise<Record<'paid' | 'legacy' | 'abandoned', Shopper>> {
  const { service, account } = paying;
  const created = await send(service, account, 'POST', '/api/checkouts', {
    body: checkoutBody(bodyOf('order-1')),
    headers: { 'idempotency-key': 'order-1' },
  });
  assert.equal(created.status, 200, JSON.stringify(created.body));
  const paid = paying.open(created.body.data.id);
  // The service keeps a request whose signature is wrong for some days.
  const unsigned = await send(service, account, 'POST', '/api/checkouts', {
    ...{ body: checkoutBody(bodyOf('order-3')), headers: { 'x-signature': 'wrong' } },
  });
  assert.equal(unsigned.status, 400);
  assert.equal((await query('select 1 from refused_requests')).length, 1);
  await paid.pay(3, { card: declinedCard });
  await paid.pay(3, { card: firstCard });
  await report(paid);
  const acting = await actingOn(paying, paid);
  await acting.replaceCard(newCard);
  await acting.pay('next', { card: declinedCard });
  await acting.pay('next');
  const doings = ['card verified', 'declined 2 50000', 'charged 2 50000'];
  assert.deepEqual(await acting.attempts(), doings);
  const declined = await askRefund(paying, paid, 1_000);
  await declineRefund(service.deps, 'nomsa', declined, 'Nomvula phoned from 082 555 0199');
  await refundNow(paying, paid, 120_000);
  const checkout = { merchant_id: account.merchant.id, id: paid.id };
  const note = `Mrs Dlamini wants the ring in silver, and has a card ending ${newCard.slice(-4)}`;
  await addNote(service.deps, 'nomsa', checkout, note);
  await answerShopper(
    service.deps,
    'nomsa',
    await merchantOf(paid),
    { checkout_id: paid.id },
    {
      request_id: randomUUID(),
      seen_at: await seenAt(paid),
      text: `Dear Mrs Dlamini, we call ${person.phone_number}.`,
      solves: true,
    },
  );
  await raiseAlert(service.deps, service.deps.database.db, {
    kind: 'message_refused',
    merchant_id: account.merchant.id,
    subject_id: paid.id,
    isPrivate: true,
    detail: `The mail server does not know ${person.email}`,
  });
  const [alert] = await query("select id from alerts where kind = 'message_refused'");
  await closeAlert(service.deps, 'nomsa', alert.id, `Wrote to ${person.email}`);

  await operate(service.deps, 'nomsa', 'lists read', async () => ({
    subject_id: null,
    details: { filters: { shopper: new FreeText(person.email.toLowerCase()) } },
    result: null,
  }));

  const { account: owner, plugin } = await createPlugin(service);
  const order = await createLegacyCheckout(service, await logIn(service, plugin), {
    merchant: { notify_url: `${paying.receiver.url}/v1`, return_url: 'https://shop.example/o/1' },
    purchase: { order_id: `Nomvula Dlamini 1` },
    customer: {
      name: person.first_name,
      lastName: person.last_name,
      emailAddress: person.email.toUpperCase(),
      telephoneNumber: person.phone_number,
      billingAddress: person.billing_address,
    },
  });
  // A colleague of the shop is told of the dispute by mail, with the number of the order.
  await addPerson(service, { roles: ['merchant-admin'], merchant_ids: [owner.merchant.id] });
  const legacy = paying.open(order.id, owner);
  await legacy.pay(1, { card: firstCard });
  const abandoned = await paying.shopper(bodyOf('order-2'));
  await paying.pass({ days: 3 });
  const dispute = await openDispute(paying, legacy);
  const slip = { kind: 'delivery' as const, name: `${person.last_name}.pdf` };
  const content = pdfFile(`For ${person.first_name} ${person.last_name}`);
  await addFile(service.deps, 'nomsa', dispute, { ...slip, content });
  const mails = await query("select facts from person_mails where kind = 'dispute_opened'");
  assert.match(JSON.stringify(mails), /Nomvula/);
  while ((await sendPersonMails(service.deps)) > 0);
  const told = await query("select text from mailbox where subject like '%is disputed'");
  assert.match(JSON.stringify(told), /Nomvula/);
  const [{ supplied_at }] = await legacy.rows('disputes');
  const supplied = { statement: `${person.first_name} signed for it.` };
  await supplyEvidence(service.deps, 'nomsa', dispute, supplied, supplied_at);
  await stageEvidence(service.deps, 'nomsa', dispute);
  const [{ dispute_ref }] = await legacy.rows('disputes');
  await paying.gateway.call('POST', `/_test/disputes/${dispute_ref}/resolve`, { outcome: 'won' });
  await paying.pass({ days: 1 });
  // A mail server quotes the recipient when it refuses a message.
  await tamper(
    paying.service.deps.database.pool,
    `update message_attempts set response = '550 no such user ' || $1 where message_id in (
       select id from messages where checkout_id = $2)`,
    [person.email, paid.id],
  );
  return { paid, legacy, abandoned };
}

test('a shopper is exported and erased, and nothing that names them stays', async () => {
  const { paid, legacy, abandoned } = await playHistory();
  const other = await paying.shopper({ notify_url: `${paying.receiver.url}/other` });
  await other.pay(1);
  await paying.pass({ days: 2 });
  const others = await other.rows('checkouts');

  const exported = await tranche.json('shoppers', 'export', ` ${person.email.toLowerCase()} `);
  const ids = [paid.id, legacy.id, abandoned.id];
  assert.deepEqual(
    exported.checkouts.map((one: { checkout: { id: string } }) => one.checkout.id),
    ids,
  );
  const [first, second] = exported.checkouts;
  assert.equal(second.disputes[0].staged_evidence.customer_name, 'Nomvula Dlamini');
  assert.equal(first.checkout.customer.phone_number, person.phone_number);
  assert.match(first.callback.payload, /order-1/);
  assert.match(first.callback_attempts[0].response_body, /Jacaranda/);
  assert.equal(first.payment_attempts.length, 2 + 3);
  assert.equal(first.refund_requests.length, 2);
  assert.ok(first.mailbox.length > 0 && first.messages.length > 0);
  assert.match(JSON.stringify(first.alerts), /does not know Nomvula/);
  const texts = first.conversation_entries.map(({ text }: { text: string }) => text);
  assert.match(texts.sort().join(), /^Dear Mrs Dlamini, .*I am Nomvula/);
  assert.equal(first.idempotency_keys.length, 1);
  assert.match(first.notes[0].text, /^Mrs Dlamini wants the ring in silver/);
  assert.equal(first.replaced_cards[0].last4, firstCard.slice(-4));
  assert.equal(first.stored_cards[0].last4, newCard.slice(-4));
  assert.match(JSON.stringify(first.operator_actions), /Wrote to/);
  assert.doesNotMatch(JSON.stringify(exported), /sealed|_hash|"lease"/);

  const planned = await tranche.json('shoppers', 'erase', person.email, '--dry-run');
  const counts = { payment_links: 0, refused_requests: 1 };
  assert.deepEqual(planned, { dry_run: true, erased: ids, refused: [], ...counts, kept: [] });
  const found = await searched(traces);
  for (const trace of traces) {
    assert.ok(
      found.some((one) => one.endsWith(`: ${trace}`)),
      `a dry run keeps ${trace}`,
    );
  }
  assert.ok((await paid.rows('messages')).some(({ status }) => status === 'pending'));

  const before = await paid.rows('postings');
  const erasure = await tranche.json('shoppers', 'erase', person.email);
  assert.deepEqual(erasure.erased.toSorted(), ids.toSorted());
  assert.deepEqual(erasure.refused, []);
  assert.deepEqual(erasure.kept, []);
  assert.deepEqual(await searched(traces), []);
  const written = await tranche.json('audit', 'list', '--operator', 'nomsa');
  const reasons = written.data.map(
    ({ details }: { details: { reason?: string } }) => details.reason,
  );
  const erased = reasons.filter((reason?: string) =>
    /^erased on \d{4}-\d\d-\d\d$/.test(reason ?? ''),
  );
  assert.equal(erased.length, 2);
  assert.ok((await paid.rows('messages')).every(({ status }) => status !== 'pending'));

  assert.deepEqual(await paid.rows('postings'), before);
  assert.deepEqual(await other.rows('checkouts'), others, 'another shopper');
  await assertBalanced(paying, paid);
  const chain = await verifyOperatorChain(paying.service.deps);
  assert.deepEqual([chain.differences, chain.textsErased], [[], 3]);
  const [audit] = await query("select * from operator_actions where action = 'shoppers erase'");
  assert.equal(audit.operator, 'nomsa');
  assert.deepEqual(audit.details.erased.toSorted(), ids.toSorted());

  for (const shopper of [paid, legacy, abandoned]) {
    assert.equal((await shopper.send('GET', 'state')).status, 404);
    assert.equal((await shopper.send('GET', 'payments.ics')).status, 404);
  }
  assert.deepEqual(await tranche.json('shoppers', 'erase', person.email), {
    dry_run: false,
    erased: [],
    refused: [],
    payment_links: 0,
    refused_requests: 0,
    kept: [],
  });
  assert.deepEqual((await tranche.json('shoppers', 'export', person.email)).checkouts, []);

  await log.settled();
  const lines = (await readFile(join(folder, 'log'), 'utf8')).toLowerCase();
  assert.match(lines, /message_refused/);
  // IDs and times may contain the card's last four digits by chance, so those are matched below
  // with their label.
  const words = traces.filter((trace) => !/^\d{4}$/.test(trace));
  for (const trace of words) assert.ok(!lines.includes(trace.toLowerCase()), trace);
  assert.doesNotMatch(lines, /last4|ending \d{4}/);
});

test('an erased checkout takes no note and no reason of a refund, and a note waits for an erasure', async () => {
  const { deps } = paying.service;
  const { pool } = deps.database;
  const shopper = await paying.shopper({ customer: { email: 'zanele@example.com' } });
  await shopper.pay(1);
  await paying.pass({ days: 1 });
  const checkout = { merchant_id: paying.account.merchant.id, id: shopper.id };
  const note = () => addNote(deps, 'nomsa', checkout, 'Zanele called again');
  const erasing = await pool.connect();
  let isOver = false;
  try {
    await erasing.query('begin');
    // The same lock as an erasure has.
    await erasing.query('select from checkouts where id = $1 for no key update', [shopper.id]);
    const written = note().finally(() => {
      isOver = true;
    });
    written.catch(() => {});
    await until('the note waits', async () => isOver || (await countLockWaits(pool)) > 0);
    assert.equal(isOver, false);
    await erasing.query('update checkouts set erased_at = created_at where id = $1', [shopper.id]);
    await erasing.query('commit');
    await assert.rejects(written, /was erased/);
  } finally {
    erasing.release();
  }
  await query('update checkouts set erased_at = null where id = $1', [shopper.id]);
  await note();
  await tranche.json('shoppers', 'erase', 'zanele@example.com');
  await assert.rejects(note(), /was erased/);
  assert.deepEqual(await shopper.rows('notes'), []);
  const wanted = { request_id: randomUUID(), checkout_id: shopper.id, amount: 1_000 };
  const refund = (reason: string | null) => requestRefund(deps, 'nomsa', { ...wanted, reason });
  await assert.rejects(refund('Zanele called'), /Leave it out/);
  assert.equal((await refund(null)).request_reason, null);
});

test('an erased checkout can still be refunded, and its callback sent again', async () => {
  const shopper = await paying.shopper(bodyOf('order-3'));
  await shopper.pay(1);
  await paying.pass({ days: 1 });
  await tranche.json('shoppers', 'erase', person.email);
  await refundNow(paying, shopper, 50_000);
  await paying.work();
  const messages = await shopper.rows('messages');
  assert.equal(messages.find(({ kind }) => kind === 'refunded').status, 'skipped');
  assert.deepEqual(await shopper.rows('mailbox'), [], 'no mail goes to a pseudonym');
  await assertBalanced(paying, shopper);
  const [callback] = await shopper.rows('callbacks');
  assert.equal(callback.notify_url, `${paying.receiver.url}/callback`);
  assert.match(callback.payload.toString(), new RegExp(`erased-${shopper.id}`));
});

test('an erasure empties the reasons of alerts that name the shopper, and of no others', async () => {
  const { deps } = paying.service;
  const email = 'palesa@example.com';
  const shopper = await paying.shopper({ customer: { email } });
  await shopper.pay(1);
  await paying.pass({ days: 1 });
  const close = async (detail: string, reason: string) => {
    const alert = { kind: 'messages_failing', merchant_id: paying.account.merchant.id } as const;
    const id = await raiseAlert(deps, deps.database.db, { ...alert, isPrivate: true, detail });
    await closeAlert(deps, 'nomsa', id, reason);
    const text = 'select text from action_texts join operator_actions o on o.id = action_id';
    return async () => (await query(`${text} where o.subject_id = $1`, [id]))[0].text;
  };
  const other = await close('The mail server is away', 'The server has moved');
  const own = await close(`The mail server does not know ${email}`, 'Called the shopper');
  await tranche.json('shoppers', 'erase', email);
  assert.deepEqual([await other(), await own()], ['The server has moved', null]);
});

test('open checkouts are refused with the reason, and finished ones are erased', async () => {
  const customer = { email: 'busi@example.com' };
  const begin = () => paying.shopper({ customer });
  const finished = await begin();
  await finished.pay(1);
  const planned = await begin();
  await planned.pay(3);
  const late = await begin();
  await late.pay(3, { card: cards.laterLost });
  await paying.pass({ months: 1, days: 10 });
  const refunding = await begin();
  await refunding.pay(1);
  await paying.pass({ days: 1 });
  await askRefund(paying, refunding, 1_000);
  const open = await begin();

  const { code, stdout } = await tranche.run('shoppers', 'erase', customer.email, '--json');
  assert.equal(code, 1);
  const { erased, refused } = JSON.parse(stdout);
  assert.deepEqual(erased, [finished.id]);
  const reasons = Object.fromEntries(
    refused.map((one: { checkout_id: string; reason: string }) => [one.checkout_id, one.reason]),
  );
  assert.deepEqual(reasons, {
    [planned.id]: 'payments are still to come',
    [late.id]: 'a payment is overdue',
    [refunding.id]: 'a refund is in progress',
    [open.id]: 'it can still be paid',
  });
  assert.equal((await planned.rows('checkouts'))[0].customer.email, customer.email);
  assert.match(
    (await tranche.run('shoppers', 'erase', customer.email)).stdout,
    new RegExp(`Refused checkout ${refunding.id}: a refund is in progress\\.`),
  );
  await paying.pass({ months: 3 });
  await assertSound(paying);
});

test('a shopper who is only in a request that was refused is exported and erased, too', async () => {
  const own = [
    JSON.stringify({ email: 'ZO\u00c9@example.com' }).replace('\u00c9', '\\u00c9'),
    JSON.stringify({ email: 'zoe\u0301@example.com' }),
    'email=zo%C3%A9%40example.com&name=Zo',
  ];
  const others = ['anzo\u00e9@example.com', 'zo\u00e9@example.com.au', 'zoe@example.com'].map(
    (email) => JSON.stringify({ email }),
  );
  for (const body of [...own, ...others]) {
    await query(
      `insert into refused_requests (id, integration_id, at, request, header, body, body_bytes, expected)
       select $1, id, now(), 'POST /api/checkouts', 'wrong', $2, 40, 'right' from integrations limit 1`,
      [randomUUID(), body],
    );
  }
  const requests = async () =>
    (await tranche.json('shoppers', 'export', 'zo\u00e9@example.com')).refused_requests;
  assert.deepEqual(
    (await requests()).map((one: { body: string }) => one.body).sort(),
    own.toSorted(),
  );
  assert.equal(
    (await tranche.run('shoppers', 'erase', 'zo\u00e9@example.com')).stdout,
    'Erased the shopper in refused requests: 3.\n',
  );
  assert.deepEqual(await requests(), []);
  const left = await query('select body from refused_requests order by body');
  assert.deepEqual(
    left.map(({ body }) => body),
    others.toSorted(),
  );
});

test('a shopper is found in both normal forms of Unicode, and erased', async () => {
  const [email, name] = ['zo\u00e9.nkosi@example.com', 'Zo\u00e9 Nkosi'];
  for (const [stored, written] of [
    ['NFC', 'NFD'],
    ['NFD', 'NFC'],
  ] as const) {
    const shopper = await paying.shopper({
      customer: { email: email.normalize(stored), first_name: name.normalize(stored) },
      client_reference_id: `for ${name.normalize(written)}`,
    });
    await paying.pass({ hours: 2 });
    for (const typed of [email, email.normalize('NFD')]) {
      const { checkouts } = await tranche.json('shoppers', 'export', typed);
      assert.equal(checkouts.length, 1, typed);
    }
    const { erased } = await tranche.json('shoppers', 'erase', email);
    assert.deepEqual(erased, [shopper.id]);
    const forms = [email, name].flatMap((text) => [text, text.normalize('NFD')]);
    assert.deepEqual(await searched(forms), []);
  }
});

test('a malformed address is refused, and an unknown one is not an error', async () => {
  await tranche.refused(2, /EMAIL must be an e-mail address/, 'shoppers', 'erase', 'busi');
  await tranche.refused(2, /EMAIL is missing/, 'shoppers', 'export');
  const { code, stdout } = await tranche.run('shoppers', 'erase', 'unknown@example.com');
  assert.deepEqual([code, stdout], [0, 'No data is stored for this address.\n']);
});

test('a question and an answer that are written while the shopper is erased do not stay', async () => {
  const { deps } = paying.service;
  const shopper = await paying.shopper({ customer: { email: 'ayanda@example.com' } });
  await shopper.pay(1);
  const merchant = await merchantOf(shopper);
  const ask = (text: string) =>
    askMerchant(deps, merchant, { merchant_id: merchant.id, id: shopper.id }, text);
  await ask('Where is my order?');
  const answer = { request_id: randomUUID(), seen_at: await seenAt(shopper), solves: true };
  const client = await deps.database.pool.connect();
  try {
    await client.query('begin');
    await client.query('select from checkouts where id = $1 for no key update', [shopper.id]);
    const written = Promise.allSettled([
      ask('I am Ayanda.'),
      answerShopper(
        deps,
        'nomsa',
        merchant,
        { checkout_id: shopper.id },
        { ...answer, text: 'Dear Ayanda' },
      ),
    ]);
    const both = async () => (await countLockWaits(deps.database.pool)) === 2;
    await until('both to wait for the erasure', both);
    await client.query('delete from conversation_entries where checkout_id = $1', [shopper.id]);
    await client.query('delete from conversations where checkout_id = $1', [shopper.id]);
    await client.query('update checkouts set erased_at = now() where id = $1', [shopper.id]);
    await client.query('commit');
    assert.deepEqual(
      (await written).map((one) => one.status === 'rejected' && one.reason.message),
      [
        'This payment link is not known.',
        'The shopper’s data was erased, so no answer can be sent.',
      ],
    );
  } finally {
    client.release(true);
  }
  assert.deepEqual(await shopper.rows('conversation_entries'), []);
});

test('messages of finished orders move to an archive, are read as before, and erasing reaches them', async () => {
  const email = 'busi.nkosi@example.com';
  const customer = { email };
  const done = await paying.shopper({ customer });
  const open = await paying.shopper({ customer });
  await done.pay(1);
  await open.pay(3);
  await paying.pass({ days: 2 });
  paying.clock.set('2032-01-01T08:00:00Z');
  const show = () => tranche.json('checkouts', 'show', done.id);
  const count = async () => (await query('select 1 from messages')).length;
  const [before, all] = [await show(), await count()];
  const [sent, stays] = [await done.rows('messages'), await open.rows('messages')];
  assert.ok(sent.length > 0 && stays.length > 0);

  // A hundred merchants are read at a time, and these come before the one with messages.
  await query(`insert into merchants (id, name, territory, rules, created_at)
    select lpad(n::text, 32, '0')::uuid, 'Shop ' || n, 'ZA', '[]', '2026-01-01'
    from generate_series(1, 100) n`);
  await tranche.refused(2, /at least 100/, 'database', 'archive', '--days', '99');
  const archive = () => tranche.json('database', 'archive', '--days', '730');
  const runs = await Promise.all([archive(), archive()]);
  assert.equal(runs[0].moved + runs[1].moved, all - (await count()));
  assert.deepEqual(await archive(), { moved: 0 });
  const actions = await query(`select action, details from operator_actions
    where action like 'database archive%' order by number`);
  assert.deepEqual(
    actions.map(({ action, details }) => [action, details.moved]).slice(-2),
    [
      ['database archive', undefined],
      ['database archive end', 0],
    ],
    'the audit has the start and the end',
  );
  assert.deepEqual(await done.rows('messages'), []);
  assert.deepEqual(await open.rows('messages'), stays, 'an order that is not finished');
  assert.deepEqual(await show(), before);
  const { checkouts } = await tranche.json('shoppers', 'export', email);
  const [{ messages }] = checkouts[0].archived_messages;
  assert.deepEqual(
    messages.map(({ id }: { id: string }) => id),
    sent.map(({ id }) => id).sort(),
  );

  const { stdout } = await tranche.run('shoppers', 'erase', email, '--json');
  assert.deepEqual(JSON.parse(stdout).erased, [done.id]);
  const [{ attempts }] = await done.rows('archived_messages');
  assert.deepEqual(
    attempts.map(({ response }: { response: string }) => response),
    sent.flatMap(({ status }) => (status === 'sent' ? ['erased'] : [])),
  );
  if (hasCitus) return;
  for (const change of [
    'delete from archived_messages',
    "update archived_messages set messages = '[]'",
    "update archived_messages set attempts = '[]'",
    'delete from message_attempts',
  ]) {
    await assert.rejects(query(change), { code: '42501' }, change);
  }
});
