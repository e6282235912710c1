import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import type { FastifyInstance } from 'fastify';
import type { TSchema } from 'typebox';
import { createIntegration } from '#merchants/integrations/create-integration.ts';
import { runBulkActions } from '#operating/bulk-actions/run-bulk-actions.ts';
import type { ConsoleRoute } from '#operating/console/route.ts';
import { consoleRoutes } from '#operating/console/routes.ts';
import { type OperatorRole, operatorRoles, permissionsOf } from '#operating/people/permission.ts';
import { compileSchema } from '#platform/http/validation.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { offerPaymentLink } from '#purchases/payment-links/offer-payment-link.ts';
import { proposeAccount } from '#purchases/payouts/set-bank-account.ts';
import { operate } from '#record/actions/operate.ts';
import { verifyOperatorChain } from '#record/actions/verify-operator-chain.ts';
import { addNote } from '#record/notes/add-note.ts';
import { addPerson, ask, type ConsolePerson, openConsole, readPages } from '../support/console.ts';
import { type Paying, startPaying } from '../support/payments.ts';
import { type Account, type Answer, createAccount, isLong, send } from '../support/service.ts';
import { tamper } from '../support/tamper.ts';

// Every route of the console, asked in every role and scope. The routes come from the list that the
// server uses, so a new route is in the matrix, or makes it fail, as soon as it exists.

/** The rows of one merchant, for the parameters of routes and for the search for leaks. */
type Rows = {
  account: Account;
  checkout: string;
  refund: string;
  callback: string;
  link: string;
  /** A person of this merchant alone. */
  person: ConsolePerson;
  message: string;
  dispute: string;
  /** A file of the dispute. */
  file: string;
  payout: string;
  statement: string;
  /** A file for the bank. */
  bankRun: string;
  reference: string;
  email: string;
  /** An action of the person. */
  action: string;
};

let paying: Paying;
let app: FastifyInstance;
let own: Rows;
let foreign: Rows;
let alert: string;
let difference: string;

before(async () => {
  paying = await startPaying();
  app = await openConsole(paying.service);
  own = await createRows('own', paying.account);
  foreign = await createRows('foreign', await createAccount(paying.service));
  alert = await createAlert('books_differ');
  difference = await createAlert('gateway_unknown_to_us');
});
after(async () => {
  await app.close();
  await paying.close();
});

async function createAlert(kind: string): Promise<string> {
  const { database, random } = paying.service.deps;
  const id = random.uuid();
  await database.pool.query(
    `insert into alerts (id, at, kind, detail) values ($1, now(), $2, 'for the matrix')`,
    [id, kind],
  );
  return id;
}

async function createRows(name: string, account: Account): Promise<Rows> {
  const { service } = paying;
  const reference = `order-of-${name}-4711`;
  const email = `shopper-of-${name}@example.com`;
  const customer = { email, first_name: name, last_name: `Buyer-of-${name}` };
  const changes = { client_reference_id: reference, customer };
  const shopper = await paying.shopper(changes, account);
  await shopper.pay(3);
  await paying.work();
  const { body } = await send(service, account, 'POST', '/api/refunds', {
    body: { checkout_id: shopper.id, amount: 1_000 },
  });
  const link = await offerPaymentLink(service.deps, 'test', account.merchant.id, {
    ...{ amount: 150_000, client_reference_id: reference, customer: { email } },
  });
  const { pool } = service.deps.database;
  const callback = await pool.query('select id from callbacks where checkout_id = $1', [
    shopper.id,
  ]);
  await pool.query('update merchants set name = $2 where id = $1', [
    account.merchant.id,
    `Shop of ${name}`,
  ]);
  const id = () => service.deps.random.uuid();
  const [dispute, file, payout, bankRun, statement] = [id(), id(), id(), id(), id()];
  await pool.query(
    `insert into disputes (merchant_id, id, dispute_ref, checkout_id, instalment, payment_ref, amount,
       currency, reason, status, created_at, due_at, withdrawn, fee, is_pausing)
     values ($1, $2, $3, $4, 1, 'pi_1', 100, 'ZAR', 'general', 'needs_response', now(),
       now() + interval '1 year', 0, 0, true)`,
    [account.merchant.id, dispute, `dp_${name}`, shopper.id],
  );
  await pool.query(
    `insert into dispute_files (merchant_id, id, dispute_id, checkout_id, kind, name, media_type,
       sha256, content, added_at)
     values ($1, $2, $3, $4, 'receipt', $5, 'application/pdf', '', '%PDF-', now())`,
    [account.merchant.id, file, dispute, shopper.id, `slip-of-${name}.pdf`],
  );
  await pool.query(
    `insert into conversations (merchant_id, checkout_id, status, moved_at)
     values ($1, $2, 'open', now())`,
    [account.merchant.id, shopper.id],
  );
  await pool.query(
    `insert into payouts (merchant_id, id, number, reference, business_on, amount, currency, lines,
       status, created_at, first_approver, approver, approved_at, export_id, exported_at, bank_account)
     values
       ($1, $2, 1, 'TR-1', '2026-01-05', 100, 'ZAR', 1, 'draft', now(), null, null, null, null, null, null),
       ($1, $3, 2, 'TR-2', '2026-01-06', 100, 'ZAR', 1, 'exported', now(), 'a', 'b', now(), $4, now(), 1)`,
    [account.merchant.id, payout, id(), bankRun],
  );
  await pool.query(
    `insert into monthly_statements (merchant_id, id, number, reference, month, created_at, currency,
       lines_of, lines, opening, closing, reserve, sums, merchant_name, issuer_name, language, locale,
       time_zone)
     values ($1, $2, 1, 'S-1', '2026-01-01', now(), 'ZAR', 1, 1, 0, 0, 0, '[]', $3, 'Tranche', 'en',
       'en-ZA', 'Africa/Johannesburg')`,
    [account.merchant.id, statement, `Shop of ${name}`],
  );
  await pool.query('update statement_months set number = 2 where merchant_id = $1', [
    account.merchant.id,
  ]);
  const person = await personOf(account);
  return {
    account,
    link,
    person,
    action: await noteAs(person, account.merchant.id, shopper.id),
    dispute,
    file,
    payout,
    bankRun,
    statement,
    checkout: shopper.id,
    refund: body.data.id,
    callback: callback.rows[0].id,
    message: (await shopper.rows('messages'))[0].id,
    reference,
    email,
  };
}

/** Adds a note as one of a merchant's own people. Returns the id of that action. */
async function noteAs(person: ConsolePerson, merchant_id: string, checkout: string) {
  const { deps } = paying.service;
  const { id: person_id, session_id, email } = person;
  const origin = {
    ...{
      person_id,
      access_id: person_id,
      session_id,
      roles: ['till'],
      merchant_ids: [merchant_id],
    },
    ...{ address: '192.0.2.9', counts_from: null },
  };
  await addNote({ ...deps, origin }, email, { merchant_id, id: checkout }, 'a note of a shop');
  const { rows } = await deps.database.pool.query(
    'select id from operator_actions where merchant_id = $1',
    [merchant_id],
  );
  return rows[0].id as string;
}

const personOf = ({ merchant }: Account) =>
  addPerson(paying.service, { roles: ['till'], merchant_ids: [merchant.id] });

const unknown = '00000000-0000-7000-8000-000000000000';

/** The values for the parameters of a route, and whether they belong to a merchant. */
function paramsOf(route: ConsoleRoute, rows: Rows): { path: string; ofMerchant: boolean } {
  const room = route.url.split('/')[2] ?? '';
  const ids: Record<string, { id: string; ofMerchant: boolean }> = {
    checkouts: { id: rows.checkout, ofMerchant: true },
    instalments: { id: rows.checkout, ofMerchant: true },
    conversations: { id: rows.checkout, ofMerchant: true },
    'payment-links': { id: rows.link, ofMerchant: true },
    refunds: { id: rows.refund, ofMerchant: true },
    callbacks: { id: rows.callback, ofMerchant: true },
    merchants: { id: rows.account.merchant.id, ofMerchant: true },
    integrations: { id: rows.account.id, ofMerchant: true },
    disputes: { id: rows.dispute, ofMerchant: true },
    payouts: { id: rows.payout, ofMerchant: true },
    statements: { id: rows.statement, ofMerchant: true },
    'payout-exports': { id: rows.bankRun, ofMerchant: false },
    alerts: { id: alert, ofMerchant: false },
    differences: { id: difference, ofMerchant: false },
    audit: { id: rows.action, ofMerchant: true },
    people: { id: rows.person.id, ofMerchant: true },
    sessions: { id: unknown, ofMerchant: false },
    passkeys: { id: unknown, ofMerchant: false },
    'bulk-actions': { id: unknown, ofMerchant: false },
  };
  if (!route.url.includes(':')) return { path: route.url, ofMerchant: false };
  const known = ids[room];
  assert.ok(known, `${route.url}: say here which row its parameters name`);
  const path = route.url
    .replace(':session', rows.person.session_id)
    .replace(':number', '2')
    .replace(':message', rows.message)
    .replace(':file', rows.file)
    .replace(/:(id|checkout)/, known.id);
  assert.ok(!path.includes(':'), `${route.url}: say here what its parameters are`);
  return { path, ofMerchant: known.ofMerchant };
}

/** A value that fits a schema. Ids are those of the row that the route is about. */
function sampleOf(schema: TSchema, id: string): unknown {
  const parts = schema as {
    const?: unknown;
    enum?: unknown[];
    anyOf?: TSchema[];
    type?: string;
    format?: string;
    pattern?: string;
    minLength?: number;
    minimum?: number;
    minItems?: number;
    items?: TSchema;
    required?: string[];
    properties?: Record<string, TSchema>;
  };
  if ('const' in parts) return parts.const;
  if (parts.enum) return parts.enum[0];
  if (parts.anyOf) return sampleOf(parts.anyOf[0] as TSchema, id);
  switch (parts.type) {
    case 'string': {
      const texts = [
        id,
        `${id}:none`,
        '2027-01-31',
        'viewer',
        'ZA',
        'x'.repeat(parts.minLength ?? 1),
        '1',
      ];
      if (parts.format === 'uuid') return id;
      if (parts.format === 'date-time') return '2027-01-31T00:00:00.000Z';
      return texts.find((text) => new RegExp(parts.pattern ?? '^x').test(text)) ?? 'x';
    }
    case 'integer':
    case 'number':
      return parts.minimum ?? 1;
    case 'boolean':
      return true;
    case 'array':
      return Array.from({ length: Math.max(1, parts.minItems ?? 0) }, () =>
        sampleOf(parts.items as TSchema, id),
      );
    case 'object':
      return Object.fromEntries(
        (parts.required ?? []).map((name) => [
          name,
          sampleOf(parts.properties?.[name] as TSchema, id),
        ]),
      );
    default:
      return null;
  }
}

let asked = 0;
/**
 * Calls a route about a merchant's rows, from a new address each time, so that no limit is reached.
 */
async function askAbout(
  route: ConsoleRoute,
  rows: Rows,
  person: ConsolePerson | null,
  /** More parameters of the query, and members of each object in the body. */
  more: { query: string; members: object } = { query: '', members: {} },
) {
  asked += 1;
  // The route may revoke the person, so each call is about a new one.
  if (route.url.startsWith('/api/people/') && rows === own)
    rows.person = await personOf(rows.account);
  const { path } = paramsOf(route, rows);
  const { query, body } = route.schema;
  const { required = [] } = (query ?? {}) as { required?: string[] };
  const search = required.includes('q')
    ? `q=${rows.reference}&`
    : required.includes('merchant')
      ? `merchant=${rows.account.merchant.id}&`
      : required.includes('integration')
        ? `integration=${rows.account.id}&`
        : '';
  const idsOfBody: Record<string, string> = {
    refunds: rows.refund,
    payouts: rows.payout,
    instalments: `${rows.checkout}:2`,
  };
  const idOfBody = idsOfBody[route.url.split('/')[2] ?? ''] ?? rows.account.merchant.id;
  const sample = body && JSON.stringify(sampleOf(body, idOfBody));
  const isObject = (value: unknown) => value instanceof Object && !Array.isArray(value);
  const url = `${path}?${search}${more.query}`;
  return await ask({ app, deps: paying.service.deps }, person, route.method, url, {
    remoteAddress: `10.9.${asked >> 8}.${asked & 255}`,
    ...(sample && {
      body: JSON.parse(sample, (_name, value) =>
        isObject(value) ? { ...value, ...more.members } : value,
      ),
    }),
  });
}

const guarded = consoleRoutes.filter(({ permission }) => permission !== 'public');
const named = ({ method, url }: ConsoleRoute) => `${method} ${url}`;

/** The secrets and names of a merchant's rows, none of which may reach a foreign reader. */
const tracesOf = (rows: Rows) => {
  const { account, checkout, refund, callback, dispute, payout, reference, email } = rows;
  return [
    ...[account.merchant.id, account.id, checkout, refund, callback, reference, email],
    ...[
      dispute,
      rows.file,
      payout,
      rows.bankRun,
      rows.statement,
      rows.link,
      rows.person.id,
      rows.person.email,
    ],
    reference.replace('order-', 'Buyer-').replace('-4711', ''),
  ];
};

function assertNoTrace(route: ConsoleRoute, answer: Answer, rows: Rows): void {
  const whole = typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body);
  // The audit repeats an id that a person of the same shop searched for without finding anything.
  const text = whole.replaceAll(/"+filters"+:\{[^}]*\}/g, '');
  for (const trace of tracesOf(rows)) {
    assert.ok(!text.includes(trace), `${named(route)} shows ${trace}: ${text.slice(0, 500)}`);
  }
}

/** The statement of `digestOf`. */
let digestText: string | undefined;

/** One text for everything that a merchant has, to show that nothing of it changed. */
async function digestOf({ account }: Rows): Promise<string> {
  const { pool } = paying.service.deps.database;
  digestText ??= await writeDigest();
  // The statement is prepared, because it takes longer to plan than to run.
  const query = { name: 'digest of a merchant', text: digestText, values: [account.merchant.id] };
  const { rows } = await pool.query<{ name: string; digest: string }>(query);
  assert.ok(rows.length > 30);
  return rows.map(({ name, digest }) => `${name} ${digest}`).join('\n');
}

async function writeDigest(): Promise<string> {
  const { rows: tables } = await paying.service.deps.database.pool.query<{ name: string }>(
    `select c.relname as name from pg_class c join pg_attribute a on a.attrelid = c.oid
     where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p')
       and a.attname = 'merchant_id' and not a.attisdropped order by 1`,
  );
  return [...tables, { name: 'merchants' }]
    .map(
      ({ name }) =>
        `select '${name}' as name, md5(coalesce(string_agg(t::text, '|' order by t::text), '')) as digest
         from ${name} t where t.${name === 'merchants' ? 'id' : 'merchant_id'} = $1`,
    )
    .join(' union all ');
}

const scopes = { all: undefined, own: () => [own.account.merchant.id] } as const;
type ScopeName = keyof typeof scopes;

const personIn = (roles: OperatorRole[], scope: ScopeName) => {
  const merchant_ids = scopes[scope]?.();
  return addPerson(paying.service, { roles, ...(merchant_ids && { merchant_ids }) });
};

const eachRole: OperatorRole[][] = operatorRoles.map((role) => [role]);

const allows = ({ permission }: ConsoleRoute, roles: OperatorRole[], scope: ScopeName) =>
  permission === 'signed-in' || permissionsOf(roles, scope === 'all').includes(permission as never);

/**
 * The roles in which a route is asked. The server looks at permissions and never at roles, so a run
 * asks as the weakest role that may use the route, and as one person with all the roles that may
 * not. `npm run test:long` asks as each role.
 */
function rolesFor(route: ConsoleRoute, scope: ScopeName): OperatorRole[][] {
  if (isLong) return eachRole;
  const count = ([role]: OperatorRole[]) =>
    role ? permissionsOf([role], scope === 'all').length : 0;
  const [least] = eachRole
    .filter((roles) => allows(route, roles, scope))
    .sort((one, other) => count(one) - count(other));
  const others = eachRole.filter((roles) => !allows(route, roles, scope)).flat();
  return [least ?? [], others].filter((roles) => roles.length > 0);
}

describe('every route of the console', () => {
  test('needs a session, unless it is a way to get one', async () => {
    for (const route of guarded) {
      const answer = await askAbout(route, own, null);
      assert.equal(answer.status, 401, named(route));
      assert.equal(answer.body.error.code, 'signed_out', named(route));
    }
    const open = consoleRoutes.filter((route) => !guarded.includes(route));
    assert.ok(open.every(({ url }) => /^\/api\/(sign-in|invitation)(\/|$)/.test(url)));
  });

  test('that changes something refuses another origin, even from an administrator', async () => {
    const admin = await personIn(['admin'], 'all');
    for (const route of consoleRoutes.filter(({ method }) => method !== 'GET')) {
      const { path } = paramsOf(route, own);
      const options = { headers: { origin: 'https://evil.example' }, body: {} };
      const answer = await ask(
        { app, deps: paying.service.deps },
        admin,
        route.method,
        path,
        options,
      );
      assert.equal(answer.status, 403, named(route));
      assert.equal(answer.body.error.code, 'foreign_origin', named(route));
    }
  });

  for (const scope of Object.keys(scopes) as ScopeName[]) {
    test(`of ${scope} merchants: what the role allows, and 403 for the rest`, async () => {
      const before = await digestOf(foreign);
      const readers = new Map<string, ConsolePerson>();
      for (const route of guarded) {
        const { permission, method } = route;
        for (const roles of rolesFor(route, scope)) {
          const isAllowed = allows(route, roles, scope);
          // A person who may end their own session or give up their passkey does so.
          const ends = isAllowed && method !== 'GET' && permission === 'signed-in';
          const reader = ends ? undefined : readers.get(roles.join(' '));
          const person = reader ?? (await personIn(roles, scope));
          if (!ends) readers.set(roles.join(' '), person);
          const answer = await askAbout(route, own, person);
          const what = `${named(route)} as ${roles.join(' and ')}: ${answer.status} ${JSON.stringify(answer.body).slice(0, 300)}`;
          if (!isAllowed) {
            assert.equal(answer.status, 403, what);
            assert.equal(answer.body.error.code, 'forbidden', what);
            continue;
          }
          assert.notEqual(answer.body?.error?.code, 'forbidden', what);
          assertAllowed(route, answer, what);
          if (scope === 'own') assertNoTrace(route, answer, foreign);
        }
      }
      if (scope === 'own') assert.equal(await digestOf(foreign), before, 'a foreign row changed');
    });
  }

  test("of one merchant answers 404 about another's rows and changes none of them", async () => {
    const before = await digestOf(foreign);
    // A person who may do more sees more, so all roles together see what each of them sees.
    for (const roles of isLong ? eachRole : [[...operatorRoles]]) {
      const reader = await personIn(roles, 'own');
      for (const route of guarded) {
        // The test above shows that the others answer 403, before they look at any row.
        if (!allows(route, roles, 'own') || route.permission === 'signed-in') continue;
        const answer = await askAbout(route, foreign, reader);
        const what = `${named(route)}: ${answer.status} ${JSON.stringify(answer.body).slice(0, 300)}`;
        if (paramsOf(route, foreign).ofMerchant) assert.equal(answer.status, 404, what);
        // An error may repeat ids from the request, so only successful answers are searched.
        if (answer.status < 300) assertNoTrace(route, answer, foreign);
      }
      // Bulk actions continue in the worker.
      while ((await runBulkActions(paying.service.deps, new AbortController().signal)) > 0);
      assert.equal(await digestOf(foreign), before, 'a foreign row changed');
    }
  });

  test('with an input that lifts the review of refunds, a limit or the bands needs the permission for it, too', async () => {
    const account = await createAccount(paying.service);
    const other = (await createAccount(paying.service)).merchant.id;
    const managed_merchant_ids = [account.merchant.id];
    const shared = await createIntegration(paying.service.deps, 'test', {
      ...{ refund_mode: 'auto', managed_merchant_ids },
    });
    const wide = [{ from_amount: 1_000, to_amount: 900_000_000, terms: [1, 120] }];
    const lifts: Record<string, object | object[]> = {
      'PATCH /api/merchants/:id': [{ four_eyes_above: 'none' }, { rules: wide }],
      'POST /api/integrations': { merchant_id: account.merchant.id, refund_mode: 'auto' },
      'POST /api/integrations/:id/refund-mode': { refund_mode: 'auto' },
      'POST /api/integrations/:id/rotate': { credential: 'client_secret', overlap_seconds: 0 },
      'POST /api/integrations/:id/limit': {
        ...{ endpoint: 'POST /api/checkouts', max_requests: 2, window_seconds: 1 },
      },
      'POST /api/integrations/:id/managed-merchants': { add: [other], remove: [] },
    };
    const routes = guarded.filter(({ mayNeed }) => mayNeed.length > 0);
    assert.deepEqual(routes.map(named).sort(), Object.keys(lifts).sort());
    const { deps } = paying.service;
    const { pool } = deps.database;
    const people = await Promise.all(
      operatorRoles.flatMap((role) =>
        (Object.keys(scopes) as ScopeName[]).map(async (scope) => ({
          name: `${role} of ${scope}`,
          scope,
          permissions: permissionsOf([role], scope === 'all'),
          person: await addPerson(paying.service, {
            roles: [role],
            ...(scope === 'own' && { merchant_ids: [account.merchant.id] }),
          }),
        })),
      ),
    );
    const state = async () => {
      const { rows } = await pool.query(
        `select rules, four_eyes_above, (select array_agg(refund_mode order by id) from integrations
           where merchant_id = m.id) as modes,
           (select count(*) from integration_limits where integration_id = $2) as limits,
           (select count(*) from managed_merchants where integration_id = $3) as managed,
           (select count(*) from client_secrets where integration_id = $2) as secrets
         from merchants m where id = $1`,
        [account.merchant.id, account.id, shared.id],
      );
      return rows[0];
    };
    const { rows: narrow } = await pool.query('select rules from merchants where id = $1', [
      account.merchant.id,
    ]);
    const trials = routes.flatMap((route) =>
      [lifts[named(route)] ?? []].flat().map((body) => ({ route, body })),
    );
    for (const { route, body } of trials) {
      const asked = new Set<string>();
      for (const { name, scope, permissions, person } of people) {
        const held = [route.permission, ...route.mayNeed].filter((one) =>
          permissions.includes(one as never),
        );
        // The server looks at permissions, so a run asks once for each set of them.
        if (!isLong && asked.has(`${scope} ${held}`)) continue;
        asked.add(`${scope} ${held}`);
        await pool.query(`update merchants set four_eyes_above = '1', rules = $2 where id = $1`, [
          account.merchant.id,
          JSON.stringify(narrow[0].rules),
        ]);
        // Rotating a credential lifts a limit only if refunds are approved without review: the
        // person who sees the new credential could then refund alone.
        const mode = route.url.endsWith('/rotate') ? 'auto' : 'manual';
        await pool.query('update integrations set refund_mode = $2 where id = $1', [
          account.id,
          mode,
        ]);
        await pool.query('delete from integration_limits where integration_id = $1', [account.id]);
        await pool.query('delete from managed_merchants where merchant_id = $1', [other]);
        const before = await state();
        const isShared = route.url.endsWith('/managed-merchants');
        const { id } = isShared ? shared : account;
        const { path } = paramsOf(route, { ...own, account: { ...account, id } });
        const answer = await ask({ app, deps }, person, route.method, path, { body });
        const isAllowed = [route.permission, ...route.mayNeed].every((one) =>
          permissions.includes(one as never),
        );
        const what = `${named(route)} as ${name}: ${JSON.stringify(answer.body)}`;
        // An intermediary does not belong to the merchants of a scope.
        const isUnseen =
          isShared && scope === 'own' && permissions.includes(route.permission as never);
        assert.equal(answer.status, isAllowed ? 200 : isUnseen ? 404 : 403, what);
        if (answer.status === 403) assert.equal(answer.body.error.code, 'forbidden', what);
        assert.equal(isDeepStrictEqual(await state(), before), !isAllowed, what);
      }
    }
    // A merchant's own administrator can narrow the rules and lower the limit, but can undo
    // neither.
    const staff = await addPerson(paying.service, {
      roles: ['admin'],
      merchant_ids: [account.merchant.id],
    });
    const narrower = [{ from_amount: 60_000, to_amount: 70_000, terms: [3] }];
    const limit = { endpoint: 'POST /api/checkouts', window_seconds: 60 };
    const limitUrl = `/api/integrations/${account.id}/limit`;
    for (const [status, method, path, body] of [
      [200, 'PATCH', `/api/merchants/${account.merchant.id}`, { rules: narrower }],
      [403, 'PATCH', `/api/merchants/${account.merchant.id}`, narrow[0]],
      [200, 'POST', limitUrl, { ...limit, max_requests: 1 }],
      [403, 'POST', limitUrl, { ...limit, max_requests: 2 }],
    ] as const) {
      const answer = await ask({ app, deps }, staff, method, path, { body });
      assert.equal(answer.status, status, JSON.stringify(answer.body));
    }
  });

  test('shows the rows of the scope, so that the search for others means something', async () => {
    const everything = await personIn(['admin'], 'all');
    const reader = await personIn(['admin'], 'own');
    const lists = [
      ...['checkouts', 'refunds', 'callbacks', 'merchants', 'integrations', 'search'],
      ...['disputes', 'payouts'],
    ];
    for (const name of lists) {
      const route = guarded.find(({ url }) => url === `/api/${name}`);
      assert.ok(route, name);
      const shows = async (person: ConsolePerson, rows: Rows) => {
        const text = JSON.stringify((await askAbout(route, rows, person)).body);
        return tracesOf(rows).some((trace) => text.includes(trace));
      };
      assert.ok(await shows(reader, own), `${name} shows its own rows`);
      assert.ok(await shows(everything, foreign), `${name} shows all rows to an administrator`);
    }
  });

  test('that names a shopper is counted, and needs the passkey after too many', async () => {
    const { rateLimits } = paying.service.deps;
    const admin = await personIn(['admin'], 'all');
    const unproved = await addPerson(paying.service, { roles: ['admin'], isFresh: false });
    for (const kind of ['pages', 'rows'] as const) {
      await readPages({ rateLimits } as typeof paying.service.deps, unproved, 301, kind);
    }
    const naming: string[] = [];
    for (const route of guarded.filter(({ method }) => method === 'GET')) {
      const { body } = await askAbout(route, own, admin);
      if (!JSON.stringify(body).includes(own.email)) continue;
      naming.push(route.url);
      const answer = await askAbout(route, own, unproved);
      assert.equal(answer.body.error?.code, 'proof_needed', named(route));
    }
    for (const room of ['checkouts', 'payment-links', 'conversations', 'refunds', 'disputes']) {
      assert.ok(naming.includes(`/api/${room}/:id`), room);
    }
  });

  test('with a filter by a merchant outside of the scope shows nothing of it', async () => {
    const reader = await personIn(['admin'], 'own');
    for (const route of guarded.filter(({ method }) => method === 'GET')) {
      const { properties = {} } = (route.schema.query ?? {}) as { properties?: object };
      if (!('merchant' in properties)) continue;
      const { path } = paramsOf(route, own);
      const filter = `?merchant=${foreign.account.merchant.id}`;
      const deps = paying.service.deps;
      const answer = await ask({ app, deps }, reader, 'GET', path + filter);
      assert.ok([200, 403, 404].includes(answer.status), `${named(route)}: ${answer.status}`);
      if (answer.status === 200) assertNoTrace(route, answer, foreign);
    }
  });
});

describe('hostile input', () => {
  test('gets a refusal of each route and never a 5xx', async () => {
    const admin = await personIn(['admin'], 'all');
    const long = 'x'.repeat(3_000);
    const texts = [
      '%00',
      '%F0%9F%92%A9',
      '..%2F..%2Fetc',
      "'%20or%201=1--",
      long,
      '-1',
      '%E2%80%AE',
    ];
    const bodies = ['null', '[]', '{', '{"__proto__": {"a": 1}}', `{"a": "${long}"}`, '"x"'];
    const wrong: unknown[] = [null, 7, -1, 1e300, true, [], {}, '\u0000', '\ud800', long, [[[]]]];
    // Many routes and members have the same types. So, unless the run is long, each is tried with
    // only a sixth of the texts, values and bodies, in rotation.
    let turn = 0;
    const someOf = <T>(values: T[]): T[] => {
      turn += 1;
      return isLong ? values : values.filter((_, index) => (index + turn) % 6 === 0);
    };
    for (const route of guarded) {
      // Signing out would end the test.
      if (route.method === 'DELETE' && /^\/api\/sessions?/.test(route.url)) continue;
      for (const text of someOf(texts)) {
        const path = route.url.replace(/:\w+/g, text);
        const answer = await attack(route, admin, `${path}?after=${text}&limit=${text}&q=${text}`);
        assert.ok(answer.status < 500, `${named(route)} with ${text}: ${answer.status}`);
      }
      if (route.schema.body === undefined) continue;
      const { path } = paramsOf(route, own);
      const { properties = {} } = route.schema.body as { properties?: Record<string, TSchema> };
      const sample = sampleOf(route.schema.body as TSchema, unknown) as object;
      const made = Object.keys(properties).flatMap((name) =>
        someOf(wrong).map((value) => JSON.stringify({ ...sample, [name]: value })),
      );
      for (const body of [...someOf(bodies), ...made]) {
        const answer = await attack(route, admin, path, body);
        const what = `${named(route)} with ${body.slice(0, 100)}: ${answer.status}`;
        assert.ok(answer.status < 500, what);
      }
    }
  });

  test('of members that a route does not name leaves nothing in the audit, nor do free texts', async () => {
    const { database, rateLimits } = paying.service.deps;
    const admin = await personIn([...operatorRoles], 'all');
    await readPages({ rateLimits } as typeof paying.service.deps, admin, 101);
    const strays = { query: 'text_sha256=x&z=%00', members: { text_sha256: 'x', z: '\u0000' } };
    for (const route of guarded) {
      const { method, permission } = route;
      const ends = method !== 'GET' && permission === 'signed-in';
      const person = ends ? await personIn(['admin'], 'all') : admin;
      const { properties = {} } = (route.schema.query ?? {}) as {
        properties?: Record<string, { type?: string; format?: string; pattern?: string }>;
      };
      const typed = Object.entries(properties)
        .filter(([, { type, ...rest }]) => type === 'string' && !('enum' in rest))
        .filter(([, { format, pattern }]) => !format && !pattern)
        .map(([name]) => `${name}=Thandi+Dlamini&`);
      for (const query of ['', ...typed]) {
        const more = { ...strays, query: query + strays.query };
        const answer = await askAbout(route, own, person, more);
        const what = `${named(route)} with ${query}: ${answer.status} ${JSON.stringify(answer.body)}`;
        assert.ok(answer.status < 500, what);
      }
    }
    const { rows } = await database.pool.query(
      `select action, details,
         details::text ~ 'Thandi' or details @? '$.** ? (exists (@.z))' as is_strange
       from operator_actions where person_id = $1`,
      [admin.id],
    );
    for (const action of ['files read', 'lists read', 'refunds approve many']) {
      assert.ok(
        rows.some((row) => row.action === action),
        action,
      );
    }
    assert.deepEqual(
      rows.filter((row) => row.is_strange),
      [],
    );
    assert.deepEqual((await verifyOperatorChain({ database })).differences, []);
  });

  test('a body that is too large, or is not JSON, is refused', async () => {
    const admin = await personIn(['admin'], 'all');
    const invite = guarded.find(({ method, url }) => method === 'POST' && url === '/api/people');
    assert.ok(invite);
    const large = await attack(invite, admin, invite.url, `{"email":"${'x'.repeat(70_000)}"}`);
    assert.equal(large.status, 400);
    const form = { 'content-type': 'application/x-www-form-urlencoded' };
    assert.equal((await attack(invite, admin, invite.url, 'email=x', form)).status, 400);
  });

  async function attack(
    route: ConsoleRoute,
    person: ConsolePerson,
    url: string,
    payload?: string,
    headers: Record<string, string> = { 'content-type': 'application/json' },
  ): Promise<{ status: number }> {
    asked += 1;
    const response = await app.inject({
      method: route.method,
      url,
      remoteAddress: `10.8.${(asked >> 8) & 255}.${asked & 255}`,
      headers: {
        cookie: person.cookie,
        origin: paying.service.deps.console.url,
        ...(payload !== undefined && headers),
      },
      ...(payload !== undefined && { payload }),
    });
    return { status: response.statusCode };
  }
});

/** The compiled schemas of answers by route, because compiling one takes longer than an answer. */
const explainers = new Map<ConsoleRoute, ReturnType<typeof compileSchema>>();

function assertAllowed(route: ConsoleRoute, answer: Answer, what: string): void {
  const { path, ofMerchant } = paramsOf(route, own);
  if (route.method === 'GET' && (ofMerchant || !path.includes(unknown))) {
    assert.equal(answer.status, 200, what);
    const type = String(answer.headers['content-type']);
    if (type.includes('json')) {
      const explain = explainers.get(route) ?? compileSchema(route.schema.response);
      explainers.set(route, explain);
      assert.deepEqual(explain(answer.body), [], what);
    }
    return;
  }
  // An action that the role allows may still be refused, for the state of a row or a made-up value.
  const codes = path.includes(unknown) ? [404] : [];
  const proofs = route.permission === 'signed-in' ? [403, 404] : [];
  assert.ok([200, 202, 409, 422, ...codes, ...proofs].includes(answer.status), what);
}

describe('a recent re-authentication', () => {
  test('is needed by every action that moves money, touches credentials or changes people', async () => {
    const careful =
      /^(refunds\.(create|review|retry)|instalments\.retry|(integrations|merchants)\.change|credentials\.rotate|people\.manage|payouts\.(approve|settle)|bank\.(propose|confirm)|disputes\.answer)$/;
    for (const route of guarded) {
      const previews = route.url.endsWith('-preview');
      if (route.method === 'GET' || previews || !careful.test(route.permission)) continue;
      assert.ok(route.fresh, `${named(route)} needs fresh: true`);
    }
  });

  test('is asked for by every route that says so, after the permission', async () => {
    const stale = await addPerson(paying.service, { roles: ['admin'], isFresh: false });
    const viewer = await addPerson(paying.service, { roles: ['viewer'], isFresh: false });
    const viewerMay = new Set<string>(permissionsOf(['viewer'], true));
    const fresh = guarded.filter((route) => route.fresh);
    assert.ok(fresh.length > 3);
    for (const route of fresh) {
      const answer = await askAbout(route, own, stale);
      assert.equal(answer.status, 403, named(route));
      assert.equal(answer.body.error.code, 'proof_needed', named(route));
      if (route.permission === 'signed-in') continue;
      const expected = viewerMay.has(route.permission) ? 'proof_needed' : 'forbidden';
      assert.equal((await askAbout(route, own, viewer)).body.error.code, expected, named(route));
    }
  });
});

test('no answer to a merchant’s people names the staff of the service, or has their notes', async () => {
  const { deps } = paying.service;
  const name = 'Zanele Unmistakable';
  const email = 'zanele@unmistakable.example';
  const noteOfStaff = 'a note of staff';
  const staff = await addPerson(paying.service, { roles: ['admin'], name, email });
  const origin = {
    ...{ person_id: staff.id, access_id: staff.id, roles: ['admin'], address: '192.0.2.77' },
    ...{ session_id: staff.session_id, counts_from: timestamp(deps.clock.now()) },
  };
  const acting = { ...deps, origin };
  const { merchant } = own.account;
  await addNote(acting, email, { merchant_id: merchant.id, id: own.checkout }, noteOfStaff);
  const account = { holder: 'Shop', bank: 'Absa', branch_code: '632005' };
  await proposeAccount(acting, email, merchant.id, { ...account, account_number: '4079112233' });
  for (const subject_id of [own.checkout, own.refund, own.dispute, own.payout, own.callback]) {
    for (const what of ['refunds retry', 'refunds approve', 'refunds decline']) {
      const row = { subject_id, details: {}, result: null };
      await operate(acting, email, what, async () => row);
    }
  }
  const plant = (text: string, ...values: string[]) => tamper(deps.database.pool, text, values);
  await plant(
    `update refund_requests set requested_by = $2, requested_by_name = $3, first_approved_by = $2,
       first_approved_by_name = $3 where id = $1`,
    ...[own.refund, staff.id, email],
  );
  await plant(
    `update payouts set first_approver = $2, return_noted_by = $2 where merchant_id = $1`,
    ...[merchant.id, email],
  );
  await plant('update callback_attempts set operator = $1', email);
  await plant(
    `insert into alerts (id, at, kind, detail, merchant_id, caused_by, caused_person_id, taken_at,
       taken_by, taken_person_id, closed_at, closed_by, closed_person_id, close_reason)
     select gen_random_uuid(), now(), 'a_test', 'of staff', $1, $3, $2::uuid, now(), $3, $2::uuid,
       case when n = 1 then now() end, case when n = 1 then $3::text end,
       case when n = 1 then $2::uuid end, case when n = 1 then 'done' end
     from generate_series(1, 2) n`,
    ...[merchant.id, staff.id, email],
  );
  const merchant_ids = [merchant.id];
  const viewer = await addPerson(paying.service, { roles: [...operatorRoles], merchant_ids });
  const seen = { merchant: 0, staff: 0, ownNote: 0, staffNote: 0 };
  const colleagueOfAll = await addPerson(paying.service, { roles: [...operatorRoles] });
  const traces = [name, email, staff.id, staff.session_id, noteOfStaff];
  for (const route of guarded.filter(({ method }) => method === 'GET')) {
    const textOf = async (person: ConsolePerson) => {
      const { status, body } = await askAbout(route, own, person);
      return { status, text: typeof body === 'string' ? body : JSON.stringify(body) };
    };
    const { status, text } = await textOf(viewer);
    for (const trace of traces) assert.ok(!text.includes(trace), `${named(route)}: ${trace}`);
    if (status === 200) seen.merchant += 1;
    const all = await textOf(colleagueOfAll);
    if (traces.some((trace) => all.text.includes(trace))) seen.staff += 1;
    if (text.includes('a note of a shop')) seen.ownNote += 1;
    if (all.text.includes(noteOfStaff)) seen.staffNote += 1;
  }
  assert.ok(seen.merchant > 20 && seen.staff > 8, JSON.stringify(seen));
  // The page of the checkout, and the pages of its notes.
  assert.deepEqual([seen.ownNote, seen.staffNote], [2, 2]);
});
