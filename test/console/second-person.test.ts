import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { changeRules } from '#merchants/change-rules.ts';
import { createMerchant } from '#merchants/create-merchant.ts';
import { createIntegration } from '#merchants/integrations/create-integration.ts';
import { rotateCredential } from '#merchants/integrations/rotate-credential.ts';
import { setRefundMode } from '#merchants/integrations/set-refund-mode.ts';
import {
  invitePerson,
  releaseInvitation,
  requestInvitation,
} from '#operating/people/invite-person.ts';
import { changeAccess } from '#operating/people/manage-people.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { approvePayout, returnPayout } from '#purchases/payouts/review-payout.ts';
import { confirmAccount, proposeAccount } from '#purchases/payouts/set-bank-account.ts';
import { requestRefund } from '#purchases/refunds/request-refund.ts';
import { approveRefund } from '#purchases/refunds/review-refund.ts';
import type { Origin } from '#record/actions/operate.ts';
import { closeAlert, takeAlert } from '#record/alerts/handle-alert.ts';
import { raiseAlert } from '#record/alerts/raise-alert.ts';
import { createAuthenticator } from '../support/authenticator.ts';
import { addPerson, ask, cookieOf, openConsole } from '../support/console.ts';
import { askRefund } from '../support/money.ts';
import { type Paying, startPaying } from '../support/payments.ts';
import { createAccount, rules } from '../support/service.ts';

// A person can be the second approver only after a day with the same passkey.

let paying: Paying;
before(async () => {
  paying = await startPaying({ env: { SECOND_PERSON_HOURS: '24' } });
});
after(() => paying.close());

const bankAccount = {
  holder: 'Bean There',
  bank: 'A Bank',
  branch_code: '051001',
  account_number: '0123456789',
};

/** Acts as a person whose passkey counts from the given time. */
async function actingFrom(counts_from: string | null) {
  const { deps } = paying.service;
  const { id: person_id, session_id } = await addPerson(paying.service, { roles: ['admin'] });
  const ids = { person_id, access_id: person_id, session_id };
  const origin: Origin = { ...ids, roles: ['admin'], address: '192.0.2.7', counts_from };
  return { ...deps, origin };
}

test('a new passkey cannot approve what needs two people, as the first or the second', async () => {
  const { deps } = paying.service;
  const { pool } = deps.database;
  const { id: merchant_id } = paying.account.merchant;
  await changeRules(deps, 'test', { id: merchant_id, four_eyes_above: 1_000 });
  const shopper = await paying.shopper();
  await shopper.pay(1);
  await paying.work();
  const refund = await askRefund(paying, shopper, 2_000);
  const [draft, exported, export_id] = [1, 2, 3].map(() => deps.random.uuid());
  await pool.query(
    `insert into payouts (merchant_id, id, number, reference, business_on, amount, currency, lines,
       status, created_at, first_approver, approver, approved_at, export_id, exported_at)
     values
       ($1, $2, 1, 'TR-1', '2026-01-05', 100, 'ZAR', 1, 'draft', now(), null, null, null, null, null),
       ($1, $3, 2, 'TR-2', '2026-01-06', 100, 'ZAR', 1, 'exported', now(), 'a', 'b', now(), $4, now())`,
    [merchant_id, draft, exported, export_id],
  );
  const other = (await createAccount(paying.service)).merchant.id;
  await proposeAccount(deps, 'sipho', other, bankAccount);
  const caused = { kind: 'card_testing' as const, caused_by: 'sipho', detail: 'x' };
  const alert = await raiseAlert(deps, deps.database.db, caused);
  const wanted = { email: 'held@example.com', roles: ['viewer'], merchant_ids: null };
  const aged = await actingFrom(timestamp(paying.clock.now()));
  const unmailed = { ...aged, sendsMessages: false };
  const { person } = await requestInvitation(unmailed, 'sipho', wanted);
  const viewer = await addPerson(paying.service, { roles: ['viewer'] });
  const ask = {
    request_id: deps.random.uuid(),
    checkout_id: shopper.id,
    amount: 1_001,
    reason: null,
  };
  const third = await createAccount(paying.service);
  const mode = { refund_mode: 'auto', mayLiftReview: true } as const;
  const auto = await createIntegration(deps, 'test', { merchant_id: other, ...mode });
  const secret = { credential: 'client_secret', overlapSeconds: 0, mayLiftReview: true } as const;
  type Acting = Awaited<ReturnType<typeof actingFrom>>;
  const decisions: Record<string, (acting: Acting) => Promise<unknown>> = {
    'approve a payout': (acting) => approvePayout(acting, 'nomsa', String(draft)),
    'record a return': (acting) => returnPayout(acting, 'nomsa', String(exported), 'closed'),
    'propose an account': (acting) => proposeAccount(acting, 'nomsa', merchant_id, bankAccount),
    'confirm an account': (acting) =>
      confirmAccount(acting, 'nomsa', other, { number: 1, ...bankAccount }),
    'approve a refund': (acting) => approveRefund(acting, 'nomsa', refund),
    'ask for a refund': (acting) => requestRefund(acting, 'nomsa', ask),
    'release an invitation': (acting) => releaseInvitation(acting, 'nomsa', person.id, wanted),
    'invite a person': (acting) =>
      requestInvitation(acting, 'nomsa', { ...wanted, email: 'new@example.com' }),
    'widen access': (acting) => changeAccess(acting, 'nomsa', viewer.id, { roles: ['support'] }),
    'take an alert': (acting) => takeAlert(acting, 'nomsa', alert),
    'close an alert': (acting) => closeAlert(acting, 'nomsa', alert, 'Agreed.'),
    'raise the threshold': (acting) =>
      changeRules(acting, 'nomsa', { id: other, four_eyes_above: 'none', mayLiftReview: true }),
    'end the review': (acting) => setRefundMode(acting, 'nomsa', { id: third.id, ...mode }),
    'add an auto integration': (acting) =>
      createIntegration(acting, 'nomsa', { merchant_id: third.merchant.id, ...mode }),
    'rotate an auto secret': (acting) =>
      rotateCredential(acting, 'nomsa', { id: auto.id, ...secret }),
  };
  const now = paying.clock.now();
  for (const [name, decide] of Object.entries(decisions)) {
    const soon = await actingFrom(timestamp(now.add({ hours: 1 })));
    await assert.rejects(decide(soon), /Your passkey or your access is new\./, name);
    await assert.rejects(decide(await actingFrom(null)), /two people with passkeys/, name);
  }
  for (const decide of Object.values(decisions)) await decide(await actingFrom(timestamp(now)));
});

test('a new administrator sets up a merchant whose refunds are reviewed as by default', async () => {
  const acting = await actingFrom(timestamp(paying.clock.now().add({ hours: 24 })));
  const merchant = { name: 'Bean There', territory: 'ZA', rules, mayLiftReview: true };
  const { id } = await createMerchant(acting, 'nomsa', merchant);
  const mode = { refund_mode: 'manual', mayLiftReview: true } as const;
  await createIntegration(acting, 'nomsa', { merchant_id: id, ...mode });
  await changeRules(acting, 'nomsa', { id, four_eyes_above: 500, mayLiftReview: true });
});

test('no one ends the review while a secret in force was seen by an administrator who was new', async () => {
  const { clock } = paying;
  const { id } = await createAccount(paying.service);
  const isNew = await actingFrom(timestamp(clock.now().add({ hours: 24 })));
  const secret = { credential: 'client_secret', overlapSeconds: 0, mayLiftReview: true } as const;
  await rotateCredential(isNew, 'nomsa', { id, ...secret });
  const aged = await actingFrom(timestamp(clock.now()));
  const lift = () => setRefundMode(aged, 'sipho', { id, refund_mode: 'auto', mayLiftReview: true });
  await assert.rejects(lift, /created by a person who could not end the review/);
  await rotateCredential(aged, 'sipho', { id, ...secret });
  await lift();
});

test('the passkey of the last re-authentication counts, a day after it was registered', async (t) => {
  const { deps } = paying.service;
  const app = await openConsole(paying.service);
  t.after(() => app.close());
  const console = { app, deps };
  const here = { origin: deps.console.url };
  const wanted = { email: 'nomsa@example.com', roles: ['finance'], merchant_ids: null };
  const { url } = await invitePerson(deps, 'test', wanted);
  const token = new URL(url).hash.slice(1);
  let cookie = '';
  const post = async (path: string, body?: object) => {
    paying.clock.advance({ seconds: 2 });
    return await ask(console, { cookie }, 'POST', path, body && { body });
  };
  const [first, second] = [createAuthenticator(), createAuthenticator()];
  const { options } = (await post('/api/invitation/options', { token })).body;
  const response = first.create(options, here);
  const registered = await post('/api/invitation/register', { token, response });
  cookie = cookieOf(registered);
  const { merchant } = await createAccount(paying.service);
  let proposed = 0;
  const propose = async () => {
    const body = { ...bankAccount, ...(proposed > 0 && { replaces: proposed }) };
    const answer = await post(`/api/merchants/${merchant.id}/bank-accounts`, body);
    if (answer.status === 200) proposed += 1;
    return answer;
  };
  const signIn = async (by: typeof first) => {
    const offered = (await post('/api/sign-in/options')).body.options;
    const answer = await post('/api/sign-in', { response: by.get(offered, here) });
    cookie = cookieOf(answer);
  };
  assert.match((await propose()).body.error.message, /^Your passkey or your access is new\./);
  paying.clock.advance({ hours: 24 });
  await signIn(first);
  assert.equal((await propose()).status, 200);
  const adding = (await post('/api/passkeys/options')).body.options;
  await post('/api/passkeys', { name: 'Phone', response: second.create(adding, here) });
  await signIn(second);
  assert.match((await propose()).body.error.message, /^Your passkey or your access is new\./);
  // The person confirms with the older passkey that it is them.
  const proof = (await post('/api/proof/options')).body.options;
  cookie = cookieOf(await post('/api/proof', { response: first.get(proof, here) }));
  assert.equal((await propose()).status, 200);
});

test('an administrator who was added today does not count as another one when the last is revoked', async (t) => {
  const { clock, service } = paying;
  const { deps } = service;
  const app = await openConsole(service);
  t.after(() => app.close());
  const { pool } = deps.database;
  await pool.query('update people set revoked_at = now() where revoked_at is null');
  const addAdmin = async () => {
    const one = await addPerson(service, { roles: ['admin'] });
    await pool.query(
      `insert into passkeys
         (id, person_id, credential_id, public_key, counter, transports, name, created_at)
       values (gen_random_uuid(), $1::uuid, $1::uuid::text, '\\x00', 0, '{}', 'Phone', $2)`,
      [one.id, timestamp(clock.now())],
    );
    return one;
  };
  const old = await addAdmin();
  clock.advance({ hours: 25 });
  const [by, today] = [await addAdmin(), await addAdmin()];
  const revoke = async (one: { id: string }) => {
    const answer = await ask({ app, deps }, by, 'POST', `/api/people/${one.id}/revoke`);
    return answer.status;
  };
  assert.equal(await revoke(old), 409);
  const roles = ['admin', 'viewer'];
  const widened = await ask({ app, deps }, by, 'PATCH', `/api/people/${old.id}`, {
    body: { roles },
  });
  assert.equal(widened.status, 200);
  assert.equal(await revoke(old), 409, 'a role that gives nothing new does not make them new');
  assert.equal(await revoke(today), 200, 'what was given today is taken back at once');
  const other = await addAdmin();
  await pool.query('update people set access_since = $2 where id = $1', [
    ...[other.id, timestamp(clock.now().subtract({ hours: 25 }))],
  ]);
  assert.equal(await revoke(old), 409, 'the passkey is new');
});

test('access that grows raises an alert, is mailed, and counts a day later', async (t) => {
  const { clock } = paying;
  const deps = { ...paying.service.deps, sendsMessages: true };
  const app = await openConsole({ ...paying.service, deps });
  t.after(() => app.close());
  const console = { app, deps };
  const { pool } = deps.database;
  const viewer = await addPerson(paying.service, {
    roles: ['viewer'],
    merchant_ids: [paying.account.merchant.id],
  });
  const admin = await addPerson(paying.service, { roles: ['admin'] });
  for (const { id } of [viewer, admin]) {
    await pool.query(
      `with added as (
         insert into passkeys
           (id, person_id, credential_id, public_key, counter, transports, name, created_at)
         values (gen_random_uuid(), $1::uuid, $1::uuid::text, '\\x00', 0, '{}', 'Phone', $2)
         returning id)
       update console_sessions set passkey_id = (select id from added) where person_id = $1::uuid`,
      [id, timestamp(clock.now())],
    );
  }
  clock.advance({ hours: 25 });
  const signInAgain = () =>
    pool.query(
      `update console_sessions set ended_at = null, seen_at = $2, proof_at = $2,
         expires_at = $2::timestamptz + interval '1 hour' where person_id = any($1)`,
      [[viewer.id, admin.id], timestamp(clock.now())],
    );
  await signInAgain();
  const change = async (body: object) => {
    clock.advance({ seconds: 1 });
    const answer = await ask(console, admin, 'PATCH', `/api/people/${viewer.id}`, { body });
    assert.equal(answer.status, 200);
  };
  const told = async () => {
    const alerts = await pool.query(
      `select caused_by, caused_person_id, detail from alerts
       where kind = 'access_widened' and subject_id = $1 order by at`,
      [viewer.id],
    );
    const mails = await pool.query(
      `select facts from person_mails where kind = 'access_widened' and person_id = $1
       order by created_at`,
      [viewer.id],
    );
    return { alerts: alerts.rows, mails: mails.rows };
  };
  await change({ name: 'Kim Jacobs' });
  assert.deepEqual(await told(), { alerts: [], mails: [] });
  await change({ roles: ['admin'] });
  await change({ merchant_ids: null });
  const { alerts, mails } = await told();
  assert.equal(alerts.length, 2);
  const names = mails.map(({ facts }) => facts.by);
  assert.deepEqual(names, ['The payment service', admin.email], 'by then they belong to the staff');
  assert.equal(alerts[1].caused_by, admin.email);
  assert.equal(alerts[1].caused_person_id, admin.id);
  assert.match(alerts[1].detail, /admin for all merchants\. Before: admin for one merchant/);
  await change({ roles: ['finance', 'admin'] });
  await change({ roles: ['finance'] });
  assert.equal((await told()).alerts.length, 3);
  const { merchant } = await createAccount(paying.service);
  const propose = () =>
    ask(console, viewer, 'POST', `/api/merchants/${merchant.id}/bank-accounts`, {
      body: bankAccount,
    });
  await signInAgain();
  assert.match((await propose()).body.error.message, /^Your passkey or your access is new\./);
  clock.advance({ hours: 24 });
  await signInAgain();
  assert.equal((await propose()).status, 200);
});
