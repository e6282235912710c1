import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { FastifyInstance } from 'fastify';
import { rotateCredential } from '#merchants/integrations/rotate-credential.ts';
import { findMerchant } from '#merchants/merchant.sql.ts';
import { alertRoles } from '#operating/people/alert-mail.ts';
import { composePersonMail } from '#operating/people/compose-person-mail.ts';
import { invitePerson } from '#operating/people/invite-person.ts';
import { mailDueExports } from '#operating/people/mail-due-exports.ts';
import { mailEndingKeys } from '#operating/people/mail-ending-keys.ts';
import { updatePerson } from '#operating/people/person.sql.ts';
import { sendPersonMails } from '#operating/people/send-person-mails.ts';
import { transaction } from '#platform/database/transaction.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { noteDestinations } from '#purchases/callbacks/delivery/note-destinations.ts';
import { recordDispute } from '#purchases/disputes/record-dispute.ts';
import { merchantAlerts } from '#purchases/messages/merchant-mail.ts';
import { offerPaymentLink } from '#purchases/payment-links/offer-payment-link.ts';
import { openPaymentLink } from '#purchases/payment-links/open-payment-link.ts';
import { payPayout, returnPayout } from '#purchases/payouts/review-payout.ts';
import { eraseShopper } from '#purchases/shoppers/erase-shopper.ts';
import { commandLine } from '../support/cli.ts';
import { addPerson, ask, type ConsolePerson, openConsole } from '../support/console.ts';
import { type Paying, startPaying } from '../support/payments.ts';
import { createAccount, send } from '../support/service.ts';

// Tests which of a merchant's people get a mail about which event.

let paying: Paying;
let app: FastifyInstance;
let admin: ConsolePerson;
before(async () => {
  paying = await startPaying();
  app = await openConsole(paying.service);
  admin = await personOf('merchant-admin');
});
after(async () => {
  await app?.close();
  await paying?.close();
});

const merchantId = () => paying.account.merchant.id;
const personOf = (role: 'merchant-admin' | 'support' | 'till', merchant_ids = [merchantId()]) =>
  addPerson(paying.service, { roles: [role], merchant_ids });

async function mailsTo(person: ConsolePerson) {
  const { rows } = await paying.service.deps.database.pool.query(
    'select kind, facts, created_at from person_mails where person_id = $1 order by created_at, kind',
    [person.id],
  );
  return rows;
}
const kindsTo = async (person: ConsolePerson) => (await mailsTo(person)).map(({ kind }) => kind);

const choose = (
  by: ConsolePerson,
  of: ConsolePerson,
  kinds: string[],
  merchant_id = merchantId(),
) =>
  ask({ app, deps: paying.service.deps }, by, 'POST', `/api/people/${of.id}/alert-mails`, {
    body: { merchant_id, kinds },
  });
const choices = async (by: ConsolePerson, of: ConsolePerson) => {
  const path = `/api/people/${of.id}/alert-mails?merchant=${merchantId()}`;
  const { body } = await ask({ app, deps: paying.service.deps }, by, 'GET', path);
  type Choice = { kind: string; is_wanted: boolean };
  const wanted = (body.data as Choice[]).filter(({ is_wanted }) => is_wanted);
  return { may: body.data.length, wanted: wanted.map(({ kind }) => kind) };
};

/**
 * The events that some roles are mailed unless a person chooses otherwise. Exports and paid links
 * are not among them.
 */
const events = merchantAlerts.filter((kind) => alertRoles(kind).byDefault.length > 0);

/** Each event happens once, and the inquiry becomes a dispute. */
async function everyEvent(): Promise<void> {
  const { deps } = paying.service;
  const { pool } = deps.database;
  const shopper = await paying.shopper();
  await shopper.pay(1);
  await paying.work();
  const own = { ...paying.account.merchant, now: () => deps.clock.now() };
  const [{ payment_ref }] = await shopper.rows('instalments');
  const gateway = (await shopper.rows('checkouts'))[0].gateway;
  const state = {
    ...{ dispute_ref: `dp_${shopper.id}`, payment_ref, amount: 90_000, currency: 'ZAR' },
    ...{ reason: 'fraudulent', network_reason_code: null },
    ...{ opened_at: timestamp(deps.clock.now()), due_by: null, has_answer: false },
    ...{ withdrawn: 0, fee: 0, other_currency: null },
  };
  let of: Parameters<typeof recordDispute>[2] = { checkout_id: shopper.id, gateway };
  for (const status of ['inquiry', 'inquiry', 'needs_response', 'needs_response'] as const) {
    of = await recordDispute(deps, own, of, { ...state, status });
  }
  const { rows } = await pool.query('select * from callbacks where checkout_id = $1', [shopper.id]);
  const failed = Array.from({ length: 5 }, () => ({ callback: rows[0], reason: 'status 500' }));
  for (let round = 0; round < 2; round += 1) {
    await transaction(deps, async ({ db }) => noteDestinations(deps, db, failed));
  }
  await rotateCredential(deps, 'test', {
    ...{ id: paying.account.id, credential: 'client_secret', overlapSeconds: 3_600 },
    mayLiftReview: true,
  });
  for (let round = 0; round < 2; round += 1) await mailEndingKeys(deps);
  const id = deps.random.uuid();
  await pool.query(
    `insert into payouts (merchant_id, id, number, reference, business_on, amount, currency, lines,
       status, created_at, first_approver, approver, approved_at, export_id, exported_at)
     values ($1, $2, 7, 'TR-7', '2026-01-06', 12345, 'ZAR', 1, 'exported', now(), 'a', 'b', now(),
       $3, now())`,
    [merchantId(), id, deps.random.uuid()],
  );
  await payPayout(deps, 'one', id, 'FT');
  await returnPayout(deps, 'one', id, 'account closed');
  await returnPayout(deps, 'two', id, 'account closed');
}

test('one mail for each event goes to administrators who did not unsubscribe, and to those chosen', async () => {
  const other = await createAccount(paying.service);
  const [left, chosen, till, stranger] = await Promise.all([
    personOf('merchant-admin'),
    personOf('support'),
    personOf('till'),
    personOf('merchant-admin', [other.merchant.id]),
  ]);
  const staff = await addPerson(paying.service, { roles: ['admin'] });
  assert.deepEqual(await choices(admin, admin), { may: 10, wanted: events });
  assert.deepEqual(await choices(admin, chosen), { may: 8, wanted: [] });
  assert.deepEqual(await choices(admin, till), { may: 1, wanted: [] });
  assert.equal((await choose(left, left, [])).status, 200);
  assert.equal((await choose(admin, chosen, ['dispute_opened'])).status, 200);
  assert.deepEqual(await choices(admin, chosen), { may: 8, wanted: ['dispute_opened'] });

  await everyEvent();
  const escalated = 'dispute_opened';
  assert.deepEqual((await kindsTo(admin)).sort(), [...events, escalated].sort());
  assert.deepEqual(await kindsTo(chosen), ['dispute_opened', escalated]);
  for (const one of [left, till, stranger, staff]) assert.deepEqual(await kindsTo(one), []);
  for (const mail of await mailsTo(admin)) {
    const created_at = timestamp(paying.clock.now());
    const letter = composePersonMail({ ...mail, created_at }, { url: 'https://c', link: null });
    const text = [letter.subject, ...letter.paragraphs, ...letter.footer].join(' ');
    assert.doesNotMatch(text, /undefined|null|passkey/, text);
    assert.match(text, /Under People, its administrators choose who gets which e-mails/);
  }
});

test('a person gets no mail about what their roles do not show, and no one chooses for people of another shop', async () => {
  const other = await createAccount(paying.service);
  const till = await personOf('till');
  const both = await personOf('merchant-admin', [merchantId(), other.merchant.id]);
  const stranger = await personOf('merchant-admin', [other.merchant.id]);
  const refused = async (answer: ReturnType<typeof choose>, status: number) =>
    assert.equal((await answer).status, status);
  await refused(choose(admin, till, ['payout_paid']), 409);
  await refused(choose(admin, stranger, []), 404);
  await refused(choose(stranger, till, []), 404);
  await refused(choose(both, till, [], other.merchant.id), 409);
  // A choice is for one merchant. The answer does not reveal that the colleague also belongs to
  // another.
  await refused(choose(admin, both, []), 200);
  await refused(choose(admin, both, [], other.merchant.id), 404);
  await refused(choose(both, both, ['key_ends'], other.merchant.id), 200);
});

test('a mail that waits is not sent to a person who lost access or unsubscribed meanwhile', async () => {
  const { deps } = paying.service;
  const { db } = deps.database;
  const merchant_id = merchantId();
  const other = await createAccount(paying.service);
  const own = () => personOf('merchant-admin');
  const people = await Promise.all([own(), own(), own(), own(), own()]);
  const [, revoked, moved, demoted, left] = people;
  const at = timestamp(deps.clock.now());
  const of = { merchant_id, at, facts: { merchant: 'A shop' } };
  await deps.mailMerchant(db, { ...of, kind: 'payout_paid', event: deps.random.uuid() });
  await deps.mailMerchant(db, { ...of, kind: 'bank_proposed', by: null });
  const tried: string[] = [];
  const mail = {
    send: async ({ to }: { to: string }) => {
      tried.push(to);
      return { outcome: 'failed' as const, response: 'down' };
    },
    concurrencyMax: 1,
    async close() {},
  };
  const sendDue = async () => {
    tried.length = 0;
    while ((await sendPersonMails({ ...deps, mail })) > 0);
    return people.map(({ email }) => tried.filter((to) => to === email).length);
  };
  assert.deepEqual(await sendDue(), [2, 2, 2, 2, 2]);

  await updatePerson(db, revoked.id, { revoked_at: at });
  await updatePerson(db, moved.id, { merchant_ids: [other.merchant.id] });
  await updatePerson(db, demoted.id, { roles: ['till'] });
  assert.equal((await choose(left, left, [])).status, 200);
  paying.clock.advance({ minutes: 2 });
  assert.deepEqual(await sendDue(), [2, 0, 0, 0, 1]);
  const { rows } = await deps.database.pool.query(
    "select count(*)::int from person_mails where person_id = any($1) and status = 'skipped'",
    [people.map(({ id }) => id)],
  );
  assert.equal(rows[0].count, 7);
});

test('a person’s choices about a merchant follow the merchant to their other access', async () => {
  const other = (await createAccount(paying.service)).merchant.id;
  const till = await personOf('till');
  await choose(admin, till, ['link_paid']);
  const body = { email: till.email, roles: ['till'], merchant_ids: [other] };
  const by = await personOf('merchant-admin', [other]);
  const console = { app, deps: paying.service.deps };
  const { id } = (await ask(console, by, 'POST', '/api/people', { body })).body.person;
  const staff = await addPerson(paying.service, { roles: ['admin'] });
  const change = (one: string, merchant_ids: string[]) =>
    ask(console, staff, 'PATCH', `/api/people/${one}`, { body: { merchant_ids } });
  assert.equal((await change(id, [merchantId(), other])).status, 200);
  assert.deepEqual((await choices(staff, { ...till, id })).wanted, ['link_paid']);
  // The choices of a person who had the merchant before are replaced.
  assert.equal((await change(id, [other])).status, 200);
  const back = { ...body, merchant_ids: [merchantId()] };
  await invitePerson(paying.service.deps, 'test', back);
  await choose(admin, till, []);
  assert.equal((await change(id, [merchantId(), other])).status, 200);
  assert.deepEqual((await choices(staff, { ...till, id })).wanted, []);
});

test('an export is announced once after each week, on the merchant’s clock, to those who chose it and still may see it', async () => {
  const { deps } = paying.service;
  const { pool } = deps.database;
  const [weekly, gone, invited, till] = await Promise.all([
    personOf('support'),
    personOf('merchant-admin'),
    personOf('support'),
    personOf('till'),
  ]);
  assert.equal((await choose(admin, till, ['orders_week'])).status, 409);
  for (const one of [weekly, gone, invited]) {
    assert.equal((await choose(admin, one, ['orders_week'])).status, 200);
  }
  const bookkeeper = await personOf('support');
  assert.equal((await choose(admin, bookkeeper, ['refunds_week'])).status, 200);
  await pool.query('update people set registered_at = null where id = $1', [invited.id]);
  assert.equal(await mailDueExports(deps), 0);
  paying.clock.advance({ hours: 24 * 7 });
  await updatePerson(deps.database.db, gone.id, { revoked_at: timestamp(deps.clock.now()) });
  // Choosing again does not lose the export that is already due.
  const third = await personOf('merchant-admin');
  assert.equal((await choose(third, weekly, ['orders_week', 'dispute_opened'])).status, 200);
  // Two processes at once write one mail.
  await Promise.all([mailDueExports(deps), mailDueExports(deps)]);
  assert.equal(await mailDueExports(deps), 0);
  const [mail, another] = await mailsTo(weekly);
  assert.deepEqual([mail.kind, another], ['orders_week', undefined]);
  for (const one of [gone, invited]) assert.deepEqual(await kindsTo(one), []);
  const { from, to } = mail.facts;
  const days = Temporal.PlainDate.from(from).until(to).days;
  assert.deepEqual([Temporal.PlainDate.from(from).dayOfWeek, days], [1, 6]);
  const created_at = timestamp(paying.clock.now());
  const letter = composePersonMail({ ...mail, created_at }, { url: 'https://c', link: null });
  const url = `https://c/checkouts?merchant=${merchantId()}&from=${from}&to=${to}`;
  assert.deepEqual(letter.link, { label: 'Open the orders', url });
  const [refunds] = await mailsTo(bookkeeper);
  const ofRefunds = composePersonMail({ ...refunds, created_at }, { url: 'https://c', link: null });
  assert.deepEqual(ofRefunds.link, {
    label: 'Open the refunds',
    url: `https://c/refunds?view=all&merchant=${merchantId()}&from=${from}&to=${to}`,
  });
  // However many weeks have passed, only the newest is announced.
  paying.clock.advance({ hours: 24 * 28 });
  // The choices of the person who left have ended. The invited person may still register.
  assert.equal(await mailDueExports(deps), 3);
  assert.equal((await mailsTo(weekly)).length, 2);
  await pool.query('update alert_mails set due_on = null where person_id = any($1)', [
    [invited.id, bookkeeper.id],
  ]);
  // The session of the first administrator has ended.
  const later = await personOf('merchant-admin');
  assert.equal((await choose(later, weekly, [])).status, 200);
  paying.clock.advance({ hours: 24 * 7 });
  assert.equal(await mailDueExports(deps), 0);
});

test('those who chose it, a till too, get a mail when a payment link is paid', async () => {
  const { deps } = paying.service;
  const manager = await personOf('merchant-admin');
  const seller = await personOf('till');
  assert.equal((await choose(manager, seller, ['link_paid'])).status, 200);
  const id = await offerPaymentLink(deps, 'test', merchantId(), {
    ...{ amount: 150_000, client_reference_id: 'bean-9', notify_url: paying.receiver.url },
  });
  const of = { merchant_id: merchantId(), id };
  const merchant = await findMerchant(deps.database.db, deps.clock, of.merchant_id);
  assert(merchant);
  const shopper = { email: 'bean@example.com', amount: null };
  const opened = await openPaymentLink(deps, merchant, of, shopper);
  assert(opened !== null && typeof opened === 'object');
  assert.deepEqual(await kindsTo(seller), []);
  await paying.open(opened.id).pay(1);
  const [mail, another] = await mailsTo(seller);
  assert.deepEqual([mail.kind, another], ['link_paid', undefined]);
  const created_at = timestamp(paying.clock.now());
  const { subject } = composePersonMail({ ...mail, created_at }, { url: 'https://c', link: null });
  assert.equal(subject.replaceAll('\u00a0', ' '), 'R 1 500,00 was paid by link for bean-9');
  assert.deepEqual(await kindsTo(manager), []);
  // The order may name the shopper, so the mail is erased with them.
  await paying.pass({ days: 2 });
  assert.deepEqual((await eraseShopper(deps, 'nomsa', shopper.email)).erased, [opened.id]);
  assert.deepEqual(await kindsTo(seller), []);
});

test('the command shows and changes what one of a merchant’s people gets by mail', async () => {
  const tranche = commandLine({ DATABASE_URL: paying.service.databaseUrl });
  const person = await personOf('support');
  const { rows } = await paying.service.deps.database.pool.query(
    'select email from people where id = $1',
    [person.id],
  );
  const args = ['operators', 'alert-mails', rows[0].email, '--merchant', merchantId()];
  const wanted = async (...more: string[]) => {
    const { mails } = await tranche.json(...args, ...more);
    return mails.flatMap((one: { kind: string; is_wanted: boolean }) =>
      one.is_wanted ? [one.kind] : [],
    );
  };
  assert.deepEqual(await wanted(), []);
  assert.deepEqual(await wanted('--mail', 'dispute_opened'), ['dispute_opened']);
  const by = await personOf('merchant-admin');
  assert.deepEqual((await choices(by, person)).wanted, ['dispute_opened']);
  assert.deepEqual(await wanted('--none'), []);
});

test('a merchant’s administrator reads the actions of its key in its own audit', async () => {
  const shop = await createAccount(paying.service);
  const customer = { email: 'thandi@example.com' };
  const order = { amount: 150_000, currency: 'ZAR', client_reference_id: 'order-1' };
  const body = { ...order, customer, mail: true };
  const made = await send(paying.service, shop, 'POST', '/api/payment-links', { body });
  const path = `/api/audit?subject=${made.body.data.id}`;
  const read = async (by: ConsolePerson) => {
    const answer = await ask({ app, deps: paying.service.deps }, by, 'GET', path);
    const rows = answer.body.data as { name: string; operator: string; action: string }[];
    return rows.map(({ name, operator, action }) => [name, operator, action]);
  };
  const own = await personOf('merchant-admin', [shop.merchant.id]);
  assert.deepEqual(await read(own), [['API key', 'API key', 'payment-links create']]);
  assert.deepEqual(await read(await personOf('merchant-admin')), []);
});
