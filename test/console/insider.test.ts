import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import type { FastifyInstance } from 'fastify';
import { createIntegration } from '#merchants/integrations/create-integration.ts';
import { consoleRoutes } from '#operating/console/routes.ts';
import { merchantRoles, type OperatorRole, operatorRoles } from '#operating/people/permission.ts';
import { confirmAccount, proposeAccount } from '#purchases/payouts/set-bank-account.ts';
import {
  addPerson,
  ask,
  type ConsolePerson,
  openAnotherSession,
  openConsole,
} from '../support/console.ts';
import { askRefund, openDispute } from '../support/money.ts';
import { type Paying, type Shopper, startPaying } from '../support/payments.ts';
import {
  type Account,
  type Answer,
  createAccount,
  createSuccessfulCheckout,
} from '../support/service.ts';

// Tries out what one person in each role can do alone, and compares the table of SECURITY.md with
// it. `TRANCHE_WRITE_TABLE=1 npm test -- console/insider` writes the table.

const document = new URL('../../SECURITY.md', import.meta.url);
const threshold = 20_000;

let paying: Paying;
let app: FastifyInstance;
let account: Account;
/** Shoppers whose payments the gateway has captured. It does not know those of `paid`. */
const disputable: Shopper[] = [];
before(async () => {
  paying = await startPaying();
  app = await openConsole(paying.service);
  account = await createAccount(paying.service);
  for (const _trial of [1, 2, 3]) {
    const shopper = await paying.shopper({}, account);
    await shopper.pay(3);
    disputable.push(shopper);
  }
  await paying.pass({ days: 2 });
});
after(async () => {
  await app.close();
  await paying.close();
});

type Step = (by: ConsolePerson) => Promise<Answer>;
/** The steps of an action, and whether the action was done after them. */
type Trial = { steps: Step[]; isDone: () => Promise<boolean> };
type Action = { name: string; prepare: () => Promise<Trial> };

const request = (by: ConsolePerson, method: 'GET' | 'POST' | 'PATCH', url: string, body?: object) =>
  ask({ app, deps: paying.service.deps }, by, method, url, body && { body });

const query = async (text: string, ...values: unknown[]) =>
  (await paying.service.deps.database.pool.query(text, values)).rows;

/** One request that is the whole action: done if it was accepted. */
function once(name: string, step: () => Promise<Step> | Step): Action {
  return {
    name,
    async prepare() {
      const send = await step();
      let isAccepted = false;
      const steps = [
        async (by: ConsolePerson) => {
          const answer = await send(by);
          isAccepted = answer.status < 300;
          return answer;
        },
      ];
      return { steps, isDone: async () => isAccepted };
    },
  };
}

async function paid(): Promise<string> {
  await query(
    'update merchants set four_eyes_above = $2 where id = $1',
    account.merchant.id,
    threshold,
  );
  return await createSuccessfulCheckout(paying.service, account);
}

/**
 * Requests a refund in parts, and then approves the last part as often as `approvals` says. The
 * action is done if every part was approved.
 */
function refundInParts(name: string, amounts: number[], approvals: number): Action {
  return {
    name,
    async prepare() {
      const checkout = await paid();
      const ids: string[] = [];
      const requests = amounts.map(
        (amount): Step =>
          async (by) => {
            const request_id = paying.service.deps.random.uuid();
            const url = `/api/checkouts/${checkout}/refunds`;
            const answer = await request(by, 'POST', url, { amount, request_id });
            if (answer.status === 200) ids.push(answer.body.id);
            return answer;
          },
      );
      const approve: Step = (by) => request(by, 'POST', `/api/refunds/${ids.at(-1)}/approve`, {});
      const isDone = async () => {
        const rows = await query(
          'select 1 from refund_requests where checkout_id = $1 and approved_at is not null',
          checkout,
        );
        return rows.length === amounts.length;
      };
      return { steps: [...requests, ...Array(approvals).fill(approve)], isDone };
    },
  };
}

/** A refund that the merchant requested through the API. */
function review(name: string, amount: number, approvals: number): Action {
  return {
    name,
    async prepare() {
      const checkout = await paid();
      const id = await askRefund(paying, { id: checkout } as never, amount, account);
      const approve: Step = (by) => request(by, 'POST', `/api/refunds/${id}/approve`, {});
      const isDone = async () =>
        (await query('select approved_at from refund_requests where id = $1', id))[0]
          .approved_at !== null;
      return { steps: Array(approvals).fill(approve), isDone };
    },
  };
}

const bankAccount = {
  holder: 'Bean There',
  bank: 'A Bank',
  branch_code: '051001',
  account_number: '0123456789',
};

/** Creates a merchant with a confirmed account and a payout. Returns the payout's id. */
async function createPayout(status: 'draft' | 'exported'): Promise<string> {
  const { deps } = paying.service;
  const { merchant } = await createAccount(paying.service);
  await proposeAccount(deps, 'one', merchant.id, bankAccount);
  await confirmAccount(deps, 'other', merchant.id, { number: 1, ...bankAccount });
  const id = deps.random.uuid();
  await query(
    `insert into payouts (merchant_id, id, number, reference, business_on, amount, currency, lines,
       status, created_at)
     values ($1, $2, 1, 'TR-1', '2026-01-05', 100, 'ZAR', 1, 'draft', now())`,
    merchant.id,
    id,
  );
  if (status === 'exported') {
    await query(
      `update payouts set status = 'exported', first_approver = 'a', approver = 'b', bank_account = 1,
         approved_at = now(), export_id = $2, exported_at = now() where id = $1`,
      id,
      deps.random.uuid(),
    );
  }
  return id;
}

function decidePayout(name: string, from: 'draft' | 'exported', verb: string, to: string): Action {
  return {
    name,
    async prepare() {
      const id = await createPayout(from);
      const step: Step = (by) =>
        request(
          by,
          'POST',
          `/api/payouts/${id}/${verb}`,
          verb === 'approve' ? { account: 1 } : { reason: 'The bank said so.' },
        );
      const isDone = async () =>
        (await query('select status from payouts where id = $1', id))[0].status === to;
      return { steps: [step, step], isDone };
    },
  };
}

/** Lets the invited person accept, and signs them in. */
async function register(id: string, email: string): Promise<ConsolePerson> {
  await query('update people set oidc_subject = id::text, registered_at = now() where id = $1', id);
  return await openAnotherSession(paying.service, { id, email, cookie: '', session_id: '' });
}

/** Another person may have to release the link before it works. */
function invite(name: string, addressOf: () => Promise<string>): Action {
  return {
    name,
    async prepare() {
      const email = await addressOf();
      const read = async () =>
        (
          await query(
            `select p.id, l.released_at from people p left join person_links l on l.person_id = p.id
             where p.email = $1`,
            email,
          )
        )[0];
      const was = { roles: ['finance'], merchant_ids: null };
      const steps: Step[] = [
        (by) => request(by, 'POST', '/api/people', { email, ...was }),
        async (by) => request(by, 'POST', `/api/people/${(await read())?.id}/release`, { was }),
      ];
      return { steps, isDone: async () => ((await read())?.released_at ?? null) !== null };
    },
  };
}

/** The checkout that people read. Reading does not change it. */
let read: string | undefined;

const actions: Action[] = [
  refundInParts('Refund up to the threshold', [threshold], 0),
  refundInParts('Refund above the threshold', [threshold + 1], 1),
  refundInParts('Refund more than the threshold, in parts', [threshold / 2, threshold / 2 + 1], 1),
  review('Approve a merchant’s request up to the threshold', threshold, 1),
  review('Approve a merchant’s request above the threshold', threshold + 1, 2),
  once('Raise or remove the threshold', async () => {
    await paid();
    return (by) =>
      request(by, 'PATCH', `/api/merchants/${account.merchant.id}`, { four_eyes_above: null });
  }),
  once('Let an integration refund without review', async () => {
    await query(`update integrations set refund_mode = 'manual' where id = $1`, account.id);
    return (by) =>
      request(by, 'POST', `/api/integrations/${account.id}/refund-mode`, { refund_mode: 'auto' });
  }),
  {
    name: 'Change the account that a merchant is paid to',
    async prepare() {
      const { merchant } = account;
      const url = `/api/merchants/${merchant.id}/bank-accounts`;
      const confirm = consoleRoutes.find((route) => route.url.endsWith('/:number/confirm'));
      const { account_number } = bankAccount;
      const read = async () =>
        (
          await query(
            `select number, confirmed_at from bank_accounts where merchant_id = $1
             order by number desc limit 1`,
            merchant.id,
          )
        )[0];
      const before = await read();
      const number = (before?.number ?? 0) + 1;
      const replaces = before && before.confirmed_at === null && { replaces: before.number };
      const steps: Step[] = [
        (by) => request(by, 'POST', url, { ...bankAccount, ...replaces }),
        (by) =>
          request(
            by,
            'POST',
            `${url}/${number}/confirm`,
            confirm?.schema.body && { account_number },
          ),
      ];
      const isDone = async () => {
        const row = await read();
        return row?.number === number && row.confirmed_at !== null;
      };
      return { steps, isDone };
    },
  },
  decidePayout('Approve a payout', 'draft', 'approve', 'approved'),
  decidePayout(
    'Record a payout as returned, so that it is owed again',
    'exported',
    'returned',
    'returned',
  ),
  once('Concede a dispute, whatever its amount', async () => {
    const shopper = disputable.pop();
    assert(shopper, 'more payments that can be disputed are needed');
    const id = await openDispute(paying, shopper);
    return (by) => request(by, 'POST', `/api/disputes/${id}/accept`, {});
  }),
  once('Save the bank’s file, with whole account numbers', async () => {
    const [{ export_id }] = await query(
      'select export_id from payouts where id = $1',
      await createPayout('exported'),
    );
    return (by) => request(by, 'POST', `/api/payout-exports/${export_id}/file`);
  }),
  once(
    'Make credentials for the API',
    () => (by) =>
      request(by, 'POST', '/api/integrations', {
        merchant_id: account.merchant.id,
        refund_mode: 'manual',
      }),
  ),
  once('Raise a limit of the API above the contract’s', async () => {
    // Each trial has its own integration: a limit that a person has raised could be set again by
    // others.
    const { id } = await createIntegration(paying.service.deps, 'test', {
      merchant_id: account.merchant.id,
      refund_mode: 'manual',
    });
    return (by) =>
      request(by, 'POST', `/api/integrations/${id}/limit`, {
        endpoint: 'POST /api/checkouts',
        max_requests: 1_000_000,
        window_seconds: 1,
      });
  }),
  once('Widen the bands of a merchant', () => {
    let longest = 12;
    return (by) => {
      longest += 1;
      const band = { from_amount: 10_000, to_amount: 2_000_000, terms: [1, 3, 6, 12, longest] };
      return request(by, 'PATCH', `/api/merchants/${account.merchant.id}`, { rules: [band] });
    };
  }),
  once('Set the fees of a merchant', async () => {
    const { merchant } = await createAccount(paying.service);
    const fees = { basis_points: 100, fixed: 0, vat_basis_points: 1_500 };
    return (by) => request(by, 'POST', `/api/merchants/${merchant.id}/terms`, fees);
  }),
  invite('Invite a new person', async () => `new-${paying.service.deps.random.uuid()}@example.com`),
  invite(
    'Invite a colleague again, who loses their passkeys',
    async () => (await addPerson(paying.service, { roles: ['finance'] })).email,
  ),
  {
    name: 'Count as two people by inviting a second address',
    async prepare() {
      const checkout = await paid();
      const email = `second-${paying.service.deps.random.uuid()}@example.com`;
      const was = { roles: ['till'], merchant_ids: [account.merchant.id] };
      let second: ConsolePerson | undefined;
      const steps: Step[] = [
        async (by) => {
          const answer = await request(by, 'POST', '/api/people', { email, ...was });
          if (answer.status === 200) second = await register(answer.body.person.id, email);
          return answer;
        },
        (by) => request(by, 'POST', `/api/people/${second?.id}/confirm`, { was }),
      ];
      // The action is done if the second address may request a refund above the threshold: that
      // request is the first of the two approvals, so only an approver may make it.
      const isDone = async () => {
        const body = { amount: threshold + 1, request_id: paying.service.deps.random.uuid() };
        const url = `/api/checkouts/${checkout}/refunds`;
        return second ? (await request(second, 'POST', url, body)).status === 200 : false;
      };
      return { steps, isDone };
    },
  },
  once('Revoke an administrator, while another one remains', async () => {
    const { id } = await addPerson(paying.service, { roles: ['admin'] });
    return (by) => request(by, 'POST', `/api/people/${id}/revoke`);
  }),
  {
    name: 'Change one’s own roles',
    async prepare() {
      let isAccepted = false;
      const change: Step = async (by) => {
        const roles = ['finance', 'admin'];
        const answer = await request(by, 'PATCH', `/api/people/${by.id}`, { roles });
        isAccepted = answer.status === 200;
        return answer;
      };
      return { steps: [change], isDone: async () => isAccepted };
    },
  },
  {
    name: 'Close the alert that one’s own action raised',
    async prepare() {
      const { merchant } = await createAccount(paying.service);
      const find = async () =>
        (
          await query(
            `select id, closed_at from alerts where merchant_id = $1 and kind = 'bank_account_proposed'`,
            merchant.id,
          )
        )[0];
      const steps: Step[] = [
        (by) => request(by, 'POST', `/api/merchants/${merchant.id}/bank-accounts`, bankAccount),
        async (by) =>
          request(by, 'POST', `/api/alerts/${(await find())?.id}/close`, { reason: 'Seen.' }),
      ];
      return { steps, isDone: async () => ((await find())?.closed_at ?? null) !== null };
    },
  },
  once('Read shoppers’ names and addresses', async () => {
    read ??= await paid();
    const checkout = read;
    return (by) => request(by, 'GET', `/api/checkouts/${checkout}`);
  }),
  once('Read the audit', () => (by) => request(by, 'GET', '/api/audit')),
];

type Outcome = 'alone' | 'with another' | 'no';

/** Trials in which no step has been accepted yet, so that another person can begin them. */
const untouched = new Map<Action, Trial>();

async function begin(action: Action): Promise<Trial> {
  const trial = untouched.get(action) ?? (await action.prepare());
  untouched.set(action, trial);
  return trial;
}

/**
 * Plays the steps of an action until one is refused, each by the person that `actorOf` names.
 * Returns whether the action was done and `self` did a part of it.
 */
async function play(
  action: Action,
  self: ConsolePerson,
  actorOf: (index: number) => ConsolePerson,
): Promise<boolean> {
  const { steps, isDone } = await begin(action);
  let hasTakenPart = false;
  for (const [index, step] of steps.entries()) {
    const actor = actorOf(index);
    const { status } = await step(actor);
    if (status >= 300) break;
    untouched.delete(action);
    hasTakenPart ||= actor === self;
  }
  return hasTakenPart && (await isDone());
}

async function observe(
  action: Action,
  roles: OperatorRole[],
  merchant_ids?: string[],
): Promise<Outcome> {
  const self = await addPerson(paying.service, { roles, ...(merchant_ids && { merchant_ids }) });
  if (await play(action, self, () => self)) return 'alone';
  const { length } = (await begin(action)).steps;
  if (length === 1) return 'no';
  const other = await addPerson(paying.service, { roles: ['admin'] });
  for (let own = 0; own < length; own += 1) {
    const isPart = await play(action, self, (index) => (index === own ? self : other));
    if (isPart) return 'with another';
  }
  return 'no';
}

test('SECURITY.md says what a person in each role can do alone', async () => {
  const columns: { name: string; roles: OperatorRole[]; merchant_ids?: string[] }[] = [
    ...operatorRoles.map((role) => ({
      name: role,
      roles: [role],
      ...(merchantRoles.includes(role) && { merchant_ids: [account.merchant.id] }),
    })),
    { name: 'admin of one merchant', roles: ['admin'], merchant_ids: [account.merchant.id] },
  ];
  const rows: string[][] = [['action', ...columns.map(({ name }) => `\`${name}\``)]];
  for (const action of actions) {
    const cells: string[] = [action.name];
    for (const { roles, merchant_ids } of columns) {
      cells.push(await observe(action, roles, merchant_ids));
    }
    rows.push(cells);
  }
  const text = await readFile(document, 'utf8');
  const table = /(?<=<!-- insiders -->\n\n).*?(?=\n\n<!-- \/insiders -->)/s;
  assert.match(text, table);
  const wanted = text.replace(table, () => layOut(rows));
  if (process.env.TRANCHE_WRITE_TABLE) await writeFile(document, wanted);
  assert.equal(
    await readFile(document, 'utf8'),
    wanted,
    'what people can do has changed: TRANCHE_WRITE_TABLE=1 npm test -- console/insider',
  );
});

/** A table of Markdown with columns of even width. */
function layOut(rows: string[][]): string {
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0)),
  );
  const line = (cells: string[], fill = ' ') =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0, fill)).join(' | ')} |`;
  const [head = [], ...body] = rows;
  return [
    line(head),
    line(
      head.map(() => ''),
      '-',
    ),
    ...body.map((row) => line(row)),
  ].join('\n');
}
