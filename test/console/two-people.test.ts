import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import type { FastifyInstance } from 'fastify';
import { changeRules } from '#merchants/change-rules.ts';
import { runBulkActions } from '#operating/bulk-actions/run-bulk-actions.ts';
import { type OperatorRole, operatorRoles, permissionsOf } from '#operating/people/permission.ts';
import { timestamp } from '#platform/shared/clock.ts';
import {
  addPerson,
  ask,
  type ConsolePerson,
  openAnotherSession,
  openConsole,
} from '../support/console.ts';
import { type Paying, type Shopper, startPaying } from '../support/payments.ts';
import { type Account, createAccount, isLong, liftLimits, send } from '../support/service.ts';

// People with random roles and scopes do random things, each in two browsers. The audit shows who
// agreed to what: no refund above the threshold, payout or bank account gets through without two
// people. A person whose roles grew, or who was invited again, does not count for a day. An address
// that a merchant's administrator invited counts as that administrator, until the service's staff
// confirms it.

let paying: Paying;
let app: FastifyInstance;
before(async () => {
  paying = await startPaying({ env: { SECOND_PERSON_HOURS: '24' } });
  app = await openConsole(paying.service);
});
after(async () => {
  await app.close();
  await paying.close();
});

const query = async (text: string, ...values: unknown[]) =>
  (await paying.service.deps.database.pool.query(text, values)).rows;

type Scope = 'all' | 'own' | 'foreign';
type Given = { roles: OperatorRole[]; scope: Scope };

const kinds = [
  ...['ask', 'ask by API', 'approve', 'approve in bulk', 'decline', 'retry'],
  ...['make credentials', 'rotate', 'set the threshold', 'end the review'],
  ...['propose an account', 'confirm an account', 'approve a payout', 'export'],
  ...['change roles', 'invite again', 'release', 'invite a second self', 'confirm'],
] as const;
type Step = {
  kind: (typeof kinds)[number];
  person: number;
  browser: number;
  /** Which row, and which of the values of the action. */
  row: number;
  value: number;
};

const amounts = [5_000, 20_000, 20_001, 40_000];
const thresholds = [0, 20_000, 40_000, 'none', null] as const;
const accountNumbers = ['0123456789', '0123456780'];
/** The account that the approver of a payout saw. */
const seenAccounts = [1, 2, null];

const people = fc.array(
  fc.record<Given>({
    roles: fc.subarray(operatorRoles, { minLength: 1, maxLength: 3 }),
    scope: fc.constantFrom<Scope>('all', 'all', 'own', 'foreign'),
  }),
  { minLength: 2, maxLength: 4 },
);
const steps = fc.array(
  fc.record<Step>({
    kind: fc.constantFrom(...kinds),
    person: fc.nat(3),
    browser: fc.nat(1),
    row: fc.nat(5),
    value: fc.nat(4),
  }),
  { minLength: 10, maxLength: 30 },
);

/** Creates a merchant with a paid checkout and two payouts, and the people who work on them. */
async function createWorld(given: Given[]) {
  const { service } = paying;
  const account = await createAccount(service);
  const { id } = account.merchant;
  await changeRules(service.deps, 'test', { id, four_eyes_above: 20_000 });
  const shopper = await paying.shopper({}, account);
  await shopper.pay(3);
  for (const number of [1, 2]) {
    await query(
      `insert into payouts (merchant_id, id, number, reference, business_on, amount, currency, lines,
         status, created_at)
       values ($1, $2, $3::int, 'TR-' || $3::int, date '2026-01-05' + $3::int, 100 * $3::int, 'ZAR', 1, 'draft', now())`,
      id,
      service.deps.random.uuid(),
      number,
    );
  }
  const foreign = service.deps.random.uuid();
  const colleagues: { given: Given; browsers: ConsolePerson[] }[] = [];
  for (const one of given) {
    const merchant_ids = { all: null, own: [id], foreign: [foreign] }[one.scope];
    const options = { roles: one.roles, ...(merchant_ids && { merchant_ids }) };
    const person = await addPerson(service, options);
    const browsers = [person, await openAnotherSession(service, person)];
    await addPasskey(person.id);
    colleagues.push({ given: { ...one }, browsers });
  }
  const seenBy: Given[] = [];
  const typed = new Map<number, string>();
  /** By person, the number of an action in the audit. Their later agreements do not count. */
  const isNewSince = new Map<string, number>();
  /** By invited person, the administrator who used the invitation's link themselves. */
  const selves = new Map<string, string>();
  const credentials = [account];
  return { account, shopper, colleagues, credentials, typed, seenBy, isNewSince, selves };
}

/** Adds an old passkey, with which the person is signed in. */
async function addPasskey(person_id: string): Promise<void> {
  const long = timestamp(paying.clock.now().subtract({ hours: 48 }));
  const id = paying.service.deps.random.uuid();
  await query(
    `insert into passkeys (id, person_id, credential_id, public_key, counter, transports, name, created_at)
     values ($1::uuid, $2, $1::uuid::text, '', 0, '{}', 'a test', $3)`,
    ...[id, person_id, long],
  );
  await query('update people set access_since = $2 where id = $1', person_id, long);
  await query('update console_sessions set passkey_id = $2 where person_id = $1', person_id, id);
}

type World = Awaited<ReturnType<typeof createWorld>>;
type Row = Record<string, unknown> & { id: string };

const refundsOf = (shopper: Shopper): Promise<Row[]> =>
  query('select * from refund_requests where checkout_id = $1 order by number', shopper.id);
const payoutsOf = ({ merchant }: Account): Promise<Row[]> =>
  query('select * from payouts where merchant_id = $1 order by number', merchant.id);

/** Does one step. Most are refused, by the role, the scope or a rule. */
async function take(world: World, step: Step): Promise<void> {
  const { deps } = paying.service;
  const { account, shopper, colleagues, credentials } = world;
  const { browsers } = at(colleagues, step.person);
  const by = at(browsers, step.browser);
  const merchant = `/api/merchants/${account.merchant.id}`;
  const post = (url: string, body: object = {}) => ask({ app, deps }, by, 'POST', url, { body });
  const refunds = await refundsOf(shopper);
  const refund = refunds.length === 0 ? null : at(refunds, step.row);
  const amount = at(amounts, step.value);
  const account_number = at(accountNumbers, step.value);
  switch (step.kind) {
    case 'ask':
      await post(`/api/checkouts/${shopper.id}/refunds`, {
        amount,
        request_id: deps.random.uuid(),
      });
      break;
    case 'ask by API': {
      const body = { checkout_id: shopper.id, amount };
      await send(paying.service, at(credentials, step.row), 'POST', '/api/refunds', { body });
      break;
    }
    case 'approve':
    case 'retry':
      if (refund) await post(`/api/refunds/${refund.id}/${step.kind}`);
      break;
    case 'decline':
      if (refund) await post(`/api/refunds/${refund.id}/decline`, { reason: 'No.' });
      break;
    case 'approve in bulk':
      if (refund) await post('/api/refunds/approve', { ids: refunds.map(({ id }) => id) });
      while ((await runBulkActions(deps)) > 0);
      break;
    case 'make credentials': {
      const wanted = { merchant_id: account.merchant.id, refund_mode: 'manual' };
      const { status, body } = await post('/api/integrations', wanted);
      if (status !== 200) break;
      await liftLimits(deps, body.id);
      credentials.push({ ...body, merchant: account.merchant });
      break;
    }
    case 'rotate': {
      const body = { credential: 'client_secret', overlap_seconds: 0 };
      const { status, body: rotated } = await post(`/api/integrations/${account.id}/rotate`, body);
      if (status !== 200) break;
      Object.assign(account, { client_secret: rotated.value });
      world.seenBy = [{ ...at(colleagues, step.person).given }];
      break;
    }
    case 'set the threshold': {
      const body = { four_eyes_above: at(thresholds, step.value) };
      await ask({ app, deps }, by, 'PATCH', merchant, { body });
      break;
    }
    case 'end the review':
      await post(`/api/integrations/${account.id}/refund-mode`, { refund_mode: 'auto' });
      break;
    case 'propose an account': {
      const replaces = step.row % 2 === 0 && world.typed.size > 0 && { replaces: world.typed.size };
      const holder = { holder: 'Bean There', bank: 'A Bank', branch_code: '051001' };
      const body = { ...holder, account_number, ...replaces };
      const { status, body: payee } = await post(`${merchant}/bank-accounts`, body);
      if (status === 200) world.typed.set(payee.proposed.number, account_number);
      break;
    }
    case 'confirm an account': {
      const number = (step.row % 3) + 1;
      const url = `${merchant}/bank-accounts/${number}/confirm`;
      const { status } = await post(url, { account_number });
      if (status === 200) assert.equal(account_number, world.typed.get(number));
      break;
    }
    case 'approve a payout': {
      const { id } = at(await payoutsOf(account), step.row);
      const body = { account: at(seenAccounts, step.value) };
      const { status } = await post(`/api/payouts/${id}/approve`, body);
      if (status !== 200) break;
      const [inUse] = await query(
        `select max(number) as number from bank_accounts
         where merchant_id = $1 and confirmed_at is not null`,
        account.merchant.id,
      );
      assert.equal(body.account, inUse.number, 'it is for the account that the person saw');
      break;
    }
    case 'export':
      await post('/api/payouts/export');
      break;
    case 'change roles':
    case 'invite again':
    case 'release':
      await changePerson(world, step, by);
      break;
    case 'invite a second self':
      await inviteSelf(world, step, by);
      break;
    case 'confirm': {
      const { id } = at(at(colleagues, step.row).browsers, 0);
      const read = await ask({ app, deps }, by, 'GET', `/api/people/${id}`);
      const { roles, merchant_ids } = read.body;
      const { status } = await post(`/api/people/${id}/confirm`, { was: { roles, merchant_ids } });
      if (status !== 200) break;
      const { given } = at(colleagues, step.person);
      assert.ok(given.roles.includes('admin') && given.scope === 'all', 'staff confirms');
      world.selves.delete(id);
      seen.confirmed += 1;
      break;
    }
  }
}

/**
 * Lets a merchant's administrator invite their own second identity, and wait until its passkey is
 * old.
 */
async function inviteSelf(world: World, step: Step, by: ConsolePerson): Promise<void> {
  const { service } = paying;
  const { given } = at(world.colleagues, step.person);
  const merchant_ids = [world.account.merchant.id];
  const email = `self-${service.deps.random.uuid()}@example.com`;
  const access = { email, roles: ['merchant-admin'], merchant_ids };
  const answer = await ask({ app, deps: service.deps }, by, 'POST', '/api/people', {
    body: access,
  });
  if (answer.status !== 200) return;
  const { id } = answer.body.person;
  const person = { id, email, cookie: '', session_id: '' };
  const browsers = [
    await openAnotherSession(service, person),
    await openAnotherSession(service, person),
  ];
  await query('update people set registered_at = now() where id = $1', id);
  await addPasskey(id);
  world.colleagues.push({ given: { roles: ['merchant-admin'], scope: 'own' }, browsers });
  // An administrator of the service could also count twice in this way, and is trusted with it
  // (SECURITY.md).
  if (given.scope !== 'all') world.selves.set(id, world.selves.get(by.id) ?? by.id);
  seen.selves += 1;
}

/**
 * Lets a person give a colleague, or themselves, every role, or make them the merchant's
 * administrator.
 */
async function changePerson(world: World, step: Step, by: ConsolePerson): Promise<void> {
  const { deps } = paying.service;
  const { given, browsers } = at(world.colleagues, step.row);
  const { id, email } = at(browsers, 0);
  const wanted: Given =
    step.value % 2 === 0
      ? { roles: [...operatorRoles], scope: 'all' }
      : { roles: ['merchant-admin'], scope: 'own' };
  const merchant_ids = wanted.scope === 'all' ? null : [world.account.merchant.id];
  const access = { roles: wanted.roles, merchant_ids };
  const requests = {
    'change roles': ['PATCH', `/api/people/${id}`, access],
    'invite again': ['POST', '/api/people', { email, ...access }],
    release: ['POST', `/api/people/${id}/release`, { was: access }],
  } as const;
  const [method, url, body] = requests[step.kind as keyof typeof requests];
  const { status } = await ask({ app, deps }, by, method, url, { body });
  if (status !== 200 || step.kind === 'invite again') return;
  const grows =
    (given.scope !== 'all' && given.scope !== wanted.scope) ||
    permissionsOf(wanted.roles, true).some(
      (one) => !permissionsOf(given.roles, true).includes(one),
    );
  Object.assign(given, wanted);
  if (!grows && step.kind === 'change roles') return;
  const [{ number }] = await query('select max(number) as number from operator_actions');
  world.isNewSince.set(id, Number(number));
  seen.renewed += 1;
}

function at<T>(values: readonly T[], index: number): T {
  return values[index % values.length] as T;
}

/** The agreements that the audit shows, in their order. */
async function agreements({ isNewSince, selves }: World, subjects: string[]) {
  const rows = await query(
    `select action, subject_id, person_id, details, number from operator_actions
     where subject_id = any($1) and person_id is not null order by number`,
    subjects,
  );
  const isOld = (row: Record<string, string>) =>
    Number(row.number) <= (isNewSince.get(String(row.person_id)) ?? Number.POSITIVE_INFINITY);
  const human = (id: string) => selves.get(id) ?? id;
  return rows.map((row) => ({
    ...row,
    person_id: isOld(row) ? human(row.person_id) : undefined,
  }));
}

/** How many different people, of those who count, have agreed. */
const different = (rows: { person_id?: string }[]) =>
  new Set(rows.flatMap(({ person_id }) => person_id ?? [])).size;

/**
 * How often each of these happened in all runs. The test asserts that each happened at least once:
 * otherwise the property could hold only because nothing got through.
 */
const seen = { alone: 0, byTwo: 0, exported: 0, lifted: 0, renewed: 0, selves: 0, confirmed: 0 };

/** Asserts that the last step let through only what was agreed to. */
async function check(world: World, step: Step, before: State): Promise<void> {
  const { account, shopper, colleagues } = world;
  const now = await readState(world);
  const lifts = ({ roles, scope }: Given) => roles.includes('admin') && scope === 'all';
  if (now.above > before.above || now.isAuto) {
    assert.ok(lifts(at(colleagues, step.person).given), 'only an administrator of all lifts');
    const knows = now.isAuto ? world.seenBy : [];
    assert.ok(knows.every(lifts), 'others do not know a secret that refunds without a review');
    seen.lifted += 1;
    await query(`update integrations set refund_mode = 'manual' where id = $1`, account.id);
  }
  const refunds = (await refundsOf(shopper)).filter(({ approved_at }) => approved_at !== null);
  const audit = await agreements(
    world,
    refunds.map(({ id }) => id),
  );
  const agreed = (id: string) =>
    audit.filter(
      ({ subject_id, action }) =>
        subject_id === id && (action === 'refunds create' || action === 'refunds approve'),
    );
  const alone = refunds.filter(({ id }) => different(agreed(id)) < 2);
  const isNew = ({ id }: Row) => !before.approved.has(id);
  const sum = alone.reduce((total, { amount }) => total + Number(amount), 0);
  if (alone.some(isNew)) assert.ok(sum <= now.above, `${sum} cents were let pass by one`);
  seen.alone += alone.filter(isNew).length;
  seen.byTwo += refunds.filter((one) => isNew(one) && !alone.includes(one)).length;
  await checkPayouts(world, before);
}

async function checkPayouts(world: World, before: State): Promise<void> {
  const { account } = world;
  const payouts = await payoutsOf(account);
  const audit = await agreements(world, [account.merchant.id, ...payouts.map(({ id }) => id)]);
  const of = (action: string, number: number) =>
    audit.filter((row) => row.action === action && row.details.number === number);
  for (const { number } of await query(
    'select number from bank_accounts where merchant_id = $1 and confirmed_at is not null',
    account.merchant.id,
  )) {
    const two = [...of('merchants bank', number), ...of('merchants bank confirm', number)];
    assert.equal(different(two), 2, 'one proposed the account and another confirmed it');
  }
  for (const { id, status, amount, bank_account } of payouts) {
    if (status !== 'exported' || before.exported.has(id)) continue;
    let inUse: number | null = null;
    const approvals: { person_id?: string }[] = [];
    for (const row of audit) {
      if (row.action === 'merchants bank confirm') inUse = row.details.number;
      const isFor = row.action === 'payouts approve' && row.subject_id === id;
      if (isFor && inUse === bank_account && row.details.amount === amount) approvals.push(row);
    }
    assert.ok(different(approvals) >= 2, 'two approved the amount for the account');
    assert.equal(bank_account, inUse, 'the account is the one in use');
    seen.exported += 1;
  }
}

type State = { above: number; isAuto: boolean; approved: Set<string>; exported: Set<string> };

async function readState({ account, shopper }: World): Promise<State> {
  const [row] = await query(
    `select four_eyes_above, (select refund_mode from integrations where id = $2) as mode
     from merchants where id = $1`,
    account.merchant.id,
    account.id,
  );
  const own = row.four_eyes_above ?? paying.service.deps.fourEyesAbove;
  const refunds = await refundsOf(shopper);
  const payouts = await payoutsOf(account);
  return {
    above: own === 'none' || own === null ? Number.POSITIVE_INFINITY : own,
    isAuto: row.mode === 'auto',
    approved: new Set(refunds.filter((one) => one.approved_at !== null).map(({ id }) => id)),
    exported: new Set(payouts.filter((one) => one.status === 'exported').map(({ id }) => id)),
  };
}

async function play(given: Given[], taken: Step[]): Promise<void> {
  const world = await createWorld(given);
  for (const step of taken) {
    const before = await readState(world);
    await take(world, step);
    await check(world, step, before);
  }
}

/** Two people do everything together, and each first tries it alone. */
const together: [kind: Step['kind'], person: number, value: number, row?: number][] = [
  ['ask', 0, 1],
  ['ask', 0, 2],
  ['approve', 0, 0, 1],
  ['approve', 1, 0, 1],
  ['ask by API', 0, 1],
  ['approve', 0, 0, 2],
  ['approve', 0, 0, 2],
  ['approve in bulk', 0, 0],
  ['approve in bulk', 1, 0],
  ['propose an account', 0, 0],
  ['confirm an account', 0, 0],
  ['confirm an account', 1, 1],
  ['confirm an account', 1, 0],
  ['approve a payout', 0, 0],
  ['approve a payout', 0, 0],
  ['approve a payout', 1, 0],
  ['export', 0, 0],
  // Two people approve a payout for the earlier account, and then another account is in use. They
  // approve again, first for the earlier account, which they still see, and then for the new one.
  ['approve a payout', 0, 0, 1],
  ['approve a payout', 1, 0, 1],
  ['propose an account', 1, 1],
  ['confirm an account', 0, 1, 1],
  ['export', 0, 0],
  ['approve a payout', 0, 0, 1],
  ['approve a payout', 1, 0, 1],
  ['export', 0, 0],
  ['approve a payout', 0, 1, 1],
  ['export', 0, 0],
  ['approve a payout', 1, 1, 1],
  ['export', 0, 0],
  ['set the threshold', 0, 3],
];

/**
 * The second person, who belongs to one merchant, sees a secret of an integration. As long as they
 * know it, the review of its refunds cannot end.
 */
const secret: typeof together = [
  ['rotate', 1, 0],
  ['end the review', 0, 0],
  ['rotate', 0, 0],
  ['end the review', 0, 0],
];

/**
 * A person gets more roles, once by a change and once by a new invitation, and can decide nothing
 * with them today.
 */
const renewed: typeof together = [
  ['change roles', 0, 0, 2],
  ['ask', 0, 2],
  ['approve', 2, 0],
  ['invite again', 0, 0, 3],
  ['release', 0, 0, 3],
  ['release', 1, 0, 3],
  ['approve', 3, 0],
  ['propose an account', 2, 0],
  ['approve a payout', 2, 2],
  ['propose an account', 0, 0],
  ['confirm an account', 2, 0],
];

/** A merchant's administrator counts as two people only once the second one was confirmed. */
const selves: typeof together = [
  ['invite a second self', 1, 0],
  ['ask', 1, 2],
  ['approve', 2, 0],
  ['ask', 2, 2],
  ['confirm', 1, 0, 2],
  ['confirm', 2, 0, 2],
  ['invite again', 1, 1, 2],
  ['change roles', 1, 1, 2],
  ['approve', 2, 0],
  ['confirm', 0, 0, 2],
  ['approve', 2, 0],
];

test('no refund above the threshold, payout or account gets through without two different people', async () => {
  const admin: Given = { roles: ['admin'], scope: 'all' };
  const playAll = (given: Given[], wanted: typeof together) =>
    play(
      given,
      wanted.map(([kind, person, value, row = 0], index) => ({
        ...{ kind, person, value, row },
        browser: index % 2,
      })),
    );
  await playAll([admin, admin], together);
  await playAll([admin, { ...admin, scope: 'own' }], secret);
  const viewer: Given = { roles: ['viewer'], scope: 'own' };
  await playAll([admin, admin, viewer, viewer], renewed);
  await playAll([admin, { roles: ['merchant-admin'], scope: 'own' }], selves);
  assert.ok(
    Object.values(seen).every((count) => count > 0),
    JSON.stringify(seen),
  );
  await fc.assert(fc.asyncProperty(people, steps, play), { numRuns: isLong ? 120 : 6 });
});
