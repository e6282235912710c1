import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import type { FastifyInstance } from 'fastify';
import { changeRules } from '#merchants/change-rules.ts';
import { runBulkActions } from '#operating/bulk-actions/run-bulk-actions.ts';
import { type OperatorRole, operatorRoles } from '#operating/people/permission.ts';
import {
  addPerson,
  ask,
  type ConsolePerson,
  openAnotherSession,
  openConsole,
} from '../support/console.ts';
import { type Paying, type Shopper, startPaying } from '../support/payments.ts';
import { type Account, createAccount, liftLimits, runs, send } from '../support/service.ts';

// People with random roles and scopes do random things, each in two browsers. The audit says who
// agreed to what: no refund above the threshold, payout or bank account gets through without two.

let paying: Paying;
let app: FastifyInstance;
before(async () => {
  paying = await startPaying();
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

/** A merchant with a paid checkout and two payouts, and the people who work on it. */
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
    colleagues.push({ given: one, browsers: [person, await openAnotherSession(service, person)] });
  }
  return { account, shopper, colleagues, credentials: [account], typed: new Map<number, string>() };
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
  const post = (url: string, body?: object) =>
    ask({ app, deps }, by, 'POST', url, body && { body });
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
      if (status === 200) Object.assign(account, { client_secret: rotated.value });
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
      const body = { holder: 'Bean There', bank: 'A Bank', branch_code: '051001', account_number };
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
    case 'approve a payout':
      await post(`/api/payouts/${at(await payoutsOf(account), step.row).id}/approve`);
      break;
    case 'export':
      await post('/api/payouts/export');
      break;
  }
}

function at<T>(values: readonly T[], index: number): T {
  return values[index % values.length] as T;
}

/** The agreements that the audit has, in their order. */
const agreements = (subjects: string[]) =>
  query(
    `select action, subject_id, person_id, details from operator_actions
     where subject_id = any($1) and person_id is not null order by number`,
    subjects,
  );

const different = (rows: { person_id?: string }[]) =>
  new Set(rows.map((row) => row.person_id)).size;

/** How much got through in all runs, so that the property is not about nothing. */
const seen = { alone: 0, byTwo: 0, exported: 0, lifted: 0 };

/** Asserts what the last step let through. */
async function check(world: World, step: Step, before: State): Promise<void> {
  const { account, shopper, colleagues } = world;
  const now = await readState(world);
  const { roles, scope } = at(colleagues, step.person).given;
  if (now.above > before.above || now.isAuto) {
    assert.ok(roles.includes('admin') && scope === 'all', 'only an administrator of all lifts');
    seen.lifted += 1;
    await query(`update integrations set refund_mode = 'manual' where id = $1`, account.id);
  }
  const refunds = (await refundsOf(shopper)).filter(({ approved_at }) => approved_at !== null);
  const audit = await agreements(refunds.map(({ id }) => id));
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
  await checkPayouts(account, before);
}

async function checkPayouts(account: Account, before: State): Promise<void> {
  const payouts = await payoutsOf(account);
  const audit = await agreements([account.merchant.id, ...payouts.map(({ id }) => id)]);
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

/** Two people do everything together, and each tries it alone before. */
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
  // Two agree to the account before, then to another one.
  ['approve a payout', 0, 0, 1],
  ['approve a payout', 1, 0, 1],
  ['propose an account', 1, 1],
  ['confirm an account', 0, 1, 1],
  ['export', 0, 0],
  ['approve a payout', 0, 0, 1],
  ['export', 0, 0],
  ['set the threshold', 0, 3],
];

test('no refund above the threshold, payout or account gets through without two different people', async () => {
  const admin: Given = { roles: ['admin'], scope: 'all' };
  await play(
    [admin, admin],
    together.map(([kind, person, value, row = 0], index) => ({
      ...{ kind, person, value, row },
      browser: index % 2,
    })),
  );
  assert.ok(
    Object.values(seen).every((count) => count > 0),
    JSON.stringify(seen),
  );
  await fc.assert(fc.asyncProperty(people, steps, play), { numRuns: runs(120) });
});
