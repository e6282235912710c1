import type { FastifyInstance } from 'fastify';
import type pg from 'pg';
import type { EmbeddedPostgres } from '#hosting/embedded-postgres/server.ts';
import type { Deps } from '#main.ts';
import { cookieName } from '#operating/console/cookie.ts';
import { buildConsole } from '#operating/console/server.ts';
import { newToken, openConsoleSession } from '#operating/people/console-session.ts';
import { insertPerson } from '#operating/people/person.sql.ts';
import { rollUp, rollUpOverdue } from '#operating/rollups/roll-up.ts';
import { transaction } from '#platform/database/transaction.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { median } from './create.ts';
import { openFill, withoutIndexes } from './history.ts';
import type { ListResult } from './lists.ts';
import { ownMilliseconds, serverMilliseconds } from './processor-time.ts';
import { type Account, createAccount, startDatabase } from './service.ts';

type Side = {
  deps: Deps;
  app: FastifyInstance;
  cookie: string;
  /** One of the merchants with many checkouts. */
  merchant_id: string;
  /** How many checkouts all merchants have. */
  checkouts: number;
  /** A person with actions in the audit. */
  person_id: string;
  /** Cursors in the middle of the lists, by the lists' addresses. */
  deep: Map<string, string>;
  requests: number;
  /** The processor time so far of this process and of the side's server, in milliseconds. */
  readCost(): number;
};

const merchantsCount = 5;

/**
 * How many requests are measured together, because the time of a single one is too short to count.
 */
const requestsAtOnce = 5;

/**
 * Sends the console the same requests, alternately for a database with few checkouts and for one
 * with many: first pages and middle pages of every list, searches and the overview, for all
 * merchants and for one. Medians of the processor time of the service and its database, in
 * milliseconds: other programs on the machine change it less than the time until the answer.
 */
export async function benchConsole(
  options: { few: number; many: number; rounds: number; data?: string },
  progress: (text: string) => void,
): Promise<ListResult[]> {
  const [small, large] = [await startDatabase(), await startDatabase(2, options.data)];
  const sides: Side[] = [];
  try {
    await prepare(small, options.few, progress);
    await prepare(large, options.many, progress);
    sides.push(await openSide(small), await openSide(large));
    const [few, many] = sides as [Side, Side];
    const results: ListResult[] = [];
    for (const [what, urlOf] of Object.entries(requestsOf())) {
      progress(`console: ${what}`);
      // The passkey of a sign-in counts only for some minutes.
      for (const side of sides) side.cookie = (await signIn(side.deps)).cookie;
      const costs: { few: number[]; many: number[] } = { few: [], many: [] };
      for (let round = -3; round < options.rounds; round += 1) {
        const one = await cost(few, urlOf(few));
        const other = await cost(many, urlOf(many));
        // The first rounds fill the caches.
        if (round < 0) continue;
        costs.few.push(one);
        costs.many.push(other);
      }
      results.push({ what, few: median(costs.few), many: median(costs.many) });
    }
    return results;
  } finally {
    for (const { app } of sides) await app.close();
    await small.stop();
    await large.stop();
  }
}

const lists = {
  checkouts: '/api/checkouts?limit=5',
  'checkouts, cancelled': '/api/checkouts?limit=5&status=cancelled',
  'refunds to review': '/api/refunds?limit=5&view=review',
  overdue: '/api/overdue?limit=5',
  'callbacks given up': '/api/callbacks?limit=5&status=exhausted',
  callbacks: '/api/callbacks?limit=5',
  alerts: '/api/alerts?limit=5',
  'alerts, taken': '/api/alerts?limit=5&state=taken',
  'alerts, closed': '/api/alerts?limit=5&state=closed',
  disputes: '/api/disputes?limit=5',
  'disputes to answer': '/api/disputes?limit=5&status=needs_response',
  payouts: '/api/payouts?limit=5',
  'payouts to approve': '/api/payouts?limit=5&status=draft',
};

/** Lists that cannot be filtered by merchant, or in which one merchant has less than a page. */
const wholeLists = {
  merchants: '/api/merchants?limit=5',
  integrations: '/api/integrations?limit=5',
  differences: '/api/differences?limit=5',
  'differences, closed': '/api/differences?limit=5&state=closed',
  audit: '/api/audit?limit=5',
  people: '/api/people?limit=5',
};

function requestsOf(): Record<string, (side: Side) => string> {
  const requests: Record<string, (side: Side) => string> = {};
  for (const [name, url] of Object.entries(lists)) {
    const ofOne = (side: Side) => `${url}&merchant=${side.merchant_id}`;
    requests[`${name}, first page`] = () => url;
    requests[`${name}, deep page`] = (side) => `${url}&after=${side.deep.get(url)}`;
    requests[`${name}, one merchant`] = ofOne;
    requests[`${name}, one merchant, deep page`] = (side) =>
      `${ofOne(side)}&after=${side.deep.get(ofOne(side))}`;
  }
  for (const [name, url] of Object.entries(wholeLists)) {
    requests[`${name}, first page`] = () => url;
    requests[`${name}, deep page`] = (side) => `${url}&after=${side.deep.get(url)}`;
  }
  requests['integrations, one merchant'] = ({ merchant_id }) =>
    `${wholeLists.integrations}&merchant=${merchant_id}`;
  requests['audit, one person'] = ({ person_id }) => `${wholeLists.audit}&person=${person_id}`;
  requests['audit, one subject'] = ({ merchant_id }) =>
    `${wholeLists.audit}&subject=${merchant_id}`;
  requests['merchants by name'] = () => '/api/merchant-names?q=Shop%20500';
  // Each search finds equally many rows in both databases: eleven orders begin with the second
  // text.
  const searches: Record<string, (side: Side) => string> = {
    'an order': ({ checkouts }) => `order-${checkouts / 2}`,
    'a beginning': ({ checkouts }) => `order-${checkouts / 20}`,
    'an e-mail address': () => 'shopper500@example.com',
    'a last name': () => 'Dlaminifaa',
    "a gateway's reference": () => 'pi_500',
  };
  for (const [what, textOf] of Object.entries(searches)) {
    requests[`search ${what}`] = (side) => `/api/search?q=${encodeURIComponent(textOf(side))}`;
  }
  requests.overview = () => '/api/overview';
  requests['overview, one merchant'] = ({ merchant_id }) => `/api/overview?merchant=${merchant_id}`;
  requests['first page of a shop'] = ({ merchant_id }) => `/api/home?merchant=${merchant_id}`;
  requests['balance of a shop'] = ({ merchant_id }) => `/api/merchants/${merchant_id}/balance`;
  requests.counts = () => '/api/counts';
  return requests;
}

async function cost(side: Side, url: string): Promise<number> {
  const start = side.readCost();
  for (let sent = 0; sent < requestsAtOnce; sent += 1) await get(side, url);
  return (side.readCost() - start) / requestsAtOnce;
}

// biome-ignore lint/suspicious/noExplicitAny: only cursors are read.
async function get(side: Side, url: string): Promise<any> {
  side.requests += 1;
  // Every few requests come from another address, so that the limit per address is not reached.
  const remoteAddress = `10.0.${Math.floor(side.requests / 2_000) % 250}.${Math.floor(side.requests / 8) % 250}`;
  const answer = await side.app.inject({ url, remoteAddress, headers: { cookie: side.cookie } });
  if (answer.statusCode !== 200) throw new Error(`${url}: ${answer.statusCode} ${answer.body}`);
  return answer.json();
}

type Filled = { deps: Deps; server: EmbeddedPostgres };

/** Fills a database, unless it is filled already. */
async function prepare(
  { deps, server }: Filled,
  total: number,
  progress: (text: string) => void,
): Promise<void> {
  const { rows } = await deps.database.pool.query<{ total: number }>(
    'select coalesce(sum(total), 0)::float8 as total from list_totals',
  );
  if (rows[0]?.total === total) return;
  const accounts: Account[] = [];
  for (let index = 0; index < merchantsCount; index += 1) accounts.push(await createAccount(deps));
  const { person_id } = await signIn(deps);
  const client = await openFill(server.url);
  await withoutIndexes([client], filledTables, progress, async () => {
    await fillRegisters(client, accounts, total, person_id);
    await fill(client, accounts, total, progress);
  });
  await client.query('analyze');
  progress(`console: ${total} checkouts are added up`);
  while ((await rollUp(deps, 0)) > 0);
  await rollUpOverdue(deps);
  await client.query('vacuum analyze');
  await client.end();
}

async function openSide({ deps, server }: Filled): Promise<Side> {
  type Known = Pick<Side, 'merchant_id' | 'checkouts' | 'person_id'>;
  const { rows } = await deps.database.pool.query<Known>(
    `select (select merchant_id from list_totals order by total desc, merchant_id limit 1),
       (select sum(total)::float8 from list_totals) as checkouts,
       (select person_id from operator_actions where person_id is not null
        order by number desc limit 1)`,
  );
  const app = buildConsole(deps);
  await app.ready();
  const side: Side = {
    ...{ deps, app },
    ...(rows[0] as Known),
    cookie: (await signIn(deps)).cookie,
    deep: new Map(),
    requests: 0,
    readCost: () => ownMilliseconds() + serverMilliseconds(server.pid, []),
  };
  for (const url of Object.values(wholeLists)) side.deep.set(url, await findMiddle(side, url));
  for (const url of Object.values(lists)) {
    for (const full of [url, `${url}&merchant=${side.merchant_id}`]) {
      side.deep.set(full, await findMiddle(side, full));
    }
  }
  return side;
}

/** A cursor in the middle of a list, or of its first hundred pages. A full page follows it. */
async function findMiddle(side: Side, url: string): Promise<string> {
  const cursors: string[] = [];
  for (let after = ''; cursors.length < 100; ) {
    const { next } = await get(side, `${url}${after}`);
    if (next === null) break;
    cursors.push(next);
    after = `&after=${next}`;
  }
  // The page after the last cursor is not full.
  const middle = cursors[Math.floor((cursors.length - 1) / 2)];
  if (middle === undefined || cursors.length < 2) throw new Error(`${url} has no second page.`);
  return middle;
}

export async function signIn(deps: Deps): Promise<{ cookie: string; person_id: string }> {
  const id = deps.random.uuid();
  const token = newToken(deps.random);
  await transaction(deps, async ({ db }) => {
    await insertPerson(db, {
      id,
      email: `${id}@example.com`,
      name: 'Bench',
      roles: ['admin'],
      merchant_ids: null,
      oidc_subject: null,
      created_at: timestamp(deps.clock.now()),
      registered_at: null,
      access_since: timestamp(deps.clock.now()),
      unconfirmed_since: null,
      unconfirmed_by: null,
      identity_id: null,
      revoked_at: null,
    });
    await openConsoleSession(deps, db, {
      id: deps.random.uuid(),
      token,
      person_id: id,
      access_id: id,
      method: 'passkey',
      address: '10.0.0.1',
      user_agent: 'bench',
      isFresh: true,
      passkey_id: null,
    });
  });
  return { cookie: `${cookieName(deps.console.url)}=${token}`, person_id: id };
}

const filledTables = [
  ...['checkouts', 'instalments', 'callbacks', 'postings', 'settlement_entries'],
  ...['payment_attempts', 'refund_requests', 'disputes', 'operator_actions', 'payouts'],
];

/**
 * Inserts the rows that the service would have written about the checkouts of the table `batch`.
 */
const batchStatements = [
  `insert into checkouts (merchant_id, id, number, integration_id, status, amount, currency,
     client_reference_id, notify_url, success_url, cancel_url, customer, line_items, terms,
     number_of_payments, signed, created_at, expires_at, completed_at)
   select merchant_id, id, number, integration_id, status, 150000, 'ZAR', 'order-' || n,
     'https://shop.example/callback', 'https://shop.example/paid', 'https://shop.example/cart',
     jsonb_build_object('email', 'shopper' || n || '@example.com', 'first_name', 'Thandi',
       'last_name', 'Dlamini' || translate(n::text, '0123456789', 'abcdefghij')), '[]', '{1,3}',
     case when status = 'received' then null else 3 end, true, at, at + interval '30 minutes',
     case when status = 'received' then null else at end
   from batch`,
  `insert into instalments (merchant_id, checkout_id, number, amount, currency, due_on, status,
     collected_at, due_at)
   select merchant_id, id, k, 50000, 'ZAR', (at + (k - 1) * interval '30 days')::date,
     case when k = 1 then 'collected' when k = 2 and n % 10 = 3 then 'overdue'
       else 'scheduled' end,
     case when k = 1 then at end,
     case when k = 1 or (k = 2 and n % 10 = 3) then null else at + k * interval '30 days' end
   from batch, generate_series(1, 3) k where status = 'successful'`,
  `insert into callbacks (merchant_id, id, checkout_id, listed_id, integration_id, notify_url, host,
     payload, status, created_at, attempts, delivered_at)
   select merchant_id, id, id, id, integration_id, 'https://shop.example/callback', 'shop.example',
     '{}',
     case when n % 10 = 4 then 'exhausted' else 'delivered' end, at, 1,
     case when n % 10 = 4 then null else at end
   from batch where status <> 'received'`,
  `insert into postings (merchant_id, id, checkout_id, kind, debit, credit, amount, currency, at)
   select merchant_id, id, id, 'sold', 'outstanding', 'sale', 150000, 'ZAR', at
   from batch where status = 'successful'`,
  // The first entries stay open, equally many in both databases.
  `insert into settlement_entries (merchant_id, id, kind, checkout_id, gross, fee, vat, net,
     currency, at, payout_id, line)
   select b.merchant_id, b.id, 'sale', b.id, 150000, 6000, 900, 143100, 'ZAR',
     b.at - interval '1 day', p.id, case when p.id is not null then b.number end
   from batch b left join (select distinct on (merchant_id) merchant_id, id from payouts
     where status = 'paid' order by merchant_id, number) p
     on p.merchant_id = b.merchant_id and b.n >= 500
   where b.status = 'successful'`,
  `insert into payment_attempts (merchant_id, id, checkout_id, purpose, number, instalments,
     number_of_payments, amount, currency, uses_stored_card, created_at, written_id, status,
     payment_ref, card_last4, settled_at)
   select merchant_id, id, id, 'first_payment', 1, '{1}', 3, 50000, 'ZAR', false, at, id,
     'authorised', 'pi_' || n, '4242', at
   from batch where status = 'successful'`,
  `insert into refund_requests (merchant_id, id, number, checkout_id, integration_id, status,
     amount, currency, signed, created_at)
   select merchant_id, id, number, id, integration_id, 'requested', 1000, 'ZAR', true, at
   from batch where n % 10 = 5`,
  `insert into disputes (merchant_id, id, dispute_ref, checkout_id, instalment, payment_ref,
     amount, currency, reason, status, created_at, due_by, withdrawn, fee, is_pausing, closed_at,
     due_at)
   select merchant_id, id, 'dp_' || n, id, 1, 'pi_' || n, 50000, 'ZAR', 'fraudulent',
     case when n % 20 = 6 then 'needs_response' else 'won' end, at, at + interval '7 days', 0, 0,
     n % 20 = 6, case when n % 20 = 6 then null else at end,
     case when n % 20 = 6 then at + interval '7 days' end
   from batch where n % 10 = 6`,
];

/**
 * Checkouts of all merchants in turn, over the last 30 days. Of ten, seven are paid in three
 * payments, one is cancelled and two are open. One has a refund to review, one an overdue payment,
 * one an exhausted callback and one a dispute, so that even the small database has full pages of
 * everything.
 */
async function fill(
  client: pg.Client,
  accounts: Account[],
  total: number,
  progress: (text: string) => void,
): Promise<void> {
  const ids = accounts.map(({ merchant }) => merchant.id);
  const integrations = accounts.map(({ id }) => id);
  const step = 50_000;
  const start = Date.now() - 30 * 86_400_000;
  for (let from = 0; from < total; from += step) {
    progress(`console: ${from} of ${total} checkouts made`);
    const to = Math.min(from + step, total) - 1;
    await client.query(
      `create temp table batch as
       select n, ($3::uuid[])[1 + n / 10 % ${merchantsCount}] as merchant_id,
         ($4::uuid[])[1 + n / 10 % ${merchantsCount}] as integration_id,
         1 + n / ${10 * merchantsCount} * 10 + n % 10 as number,
         to_timestamp(($5::bigint + n * $6::numeric) / 1000) as at,
         (lpad(to_hex(($5::bigint + n * $6::numeric)::bigint), 12, '0') || '7000' || '8000'
           || lpad(to_hex(n), 12, '0'))::uuid as id,
         case when n % 10 < 7 then 'successful' when n % 10 = 7 then 'cancelled' else 'received' end
           as status
       from generate_series($1::bigint, $2::bigint) n`,
      [from, to, ids, integrations, start, (29 * 86_400_000) / total],
    );
    for (const text of batchStatements) await client.query(text);
    await client.query('drop table batch');
  }
  await client.query(
    `insert into list_totals (merchant_id, list, total, last_created_at)
     select merchant_id, 'checkouts', max(number), max(created_at) from checkouts
     group by merchant_id`,
  );
}

/**
 * Fills the tables that do not belong to checkouts. It makes a hundredth of `total` merchants,
 * integrations and people, and a tenth of `total` alerts, actions and payouts. It makes at least
 * 500 of each, so that even the small database has full pages. Both databases have equally many
 * drafts of payouts.
 */
async function fillRegisters(
  client: pg.Client,
  accounts: Account[],
  total: number,
  person_id: string,
): Promise<void> {
  const ids = accounts.map(({ merchant }) => merchant.id);
  const [few, many] = [Math.max(500, total / 100), Math.max(500, total / 10)];
  const at = `timestamptz '2020-01-01' + n * interval '1 minute'`;
  await client.query(
    `with made as (
       insert into merchants (id, name, territory, rules, created_at)
       select gen_random_uuid(), 'Shop ' || n, 'ZA', '[]', ${at} from generate_series(1, $1) n
       returning id, created_at)
     insert into integrations (id, merchant_id, intermediary, refund_mode, created_at)
     select gen_random_uuid(), id, false, 'manual', created_at from made`,
    [few],
  );
  await client.query(
    `insert into people (id, email, name, roles, created_at, access_since)
     select gen_random_uuid(), 'person' || n || '@example.com', 'Person ' || n, '{viewer}', ${at},
       ${at}
     from generate_series(1, $1) n`,
    [few],
  );
  await client.query(
    `insert into alerts (id, at, kind, merchant_id, detail, taken_at, taken_by, closed_at, closed_by,
       close_reason)
     select gen_random_uuid(), ${at},
       case when n / 50 % 4 = 0 then 'gateway_other_amount' else 'callback_exhausted' end,
       case when n % 2 = 0 then ($2::uuid[])[1 + n / 2 % ${merchantsCount}] end, 'Bench.',
       case when n / 10 % 5 > 0 then ${at} end, case when n / 10 % 5 > 0 then 'bench' end,
       case when n / 10 % 5 > 1 then ${at} end, case when n / 10 % 5 > 1 then 'bench' end,
       case when n / 10 % 5 > 1 then 'Done.' end
     from generate_series(1, $1) n`,
    [many, ids],
  );
  await client.query(
    `insert into operator_actions (id, at, operator, action, subject_id, details, person_id, roles,
       number, hash)
     select gen_random_uuid(), ${at}, 'person' || n % 50, 'merchants rules',
       ($2::uuid[])[1 + n % ${merchantsCount}], '{}', case when n % 50 = 0 then $3::uuid end, '{admin}',
       1000000000 + n, ''
     from generate_series(1, $1) n`,
    [many, ids, person_id],
  );
  await client.query(
    `insert into payouts (merchant_id, id, number, reference, business_on, amount, currency, lines,
       status, created_at, first_approver, approver, approved_at, export_id, exported_at, paid_at,
       bank_reference)
     select ($2::uuid[])[1 + n % ${merchantsCount}], gen_random_uuid(), n, 'TR-' || n,
       date '1600-01-01' + n, 1000, 'ZAR', 1, status, ${at}, 'one',
       case when status = 'paid' then 'other' end, case when status = 'paid' then ${at} end,
       case when status = 'paid' then gen_random_uuid() end, case when status = 'paid' then ${at} end,
       case when status = 'paid' then ${at} end, case when status = 'paid' then 'FT' || n end
     from (select n, case when n <= 500 and n % 4 = 0 then 'draft' else 'paid' end as status
       from generate_series(1, $1) n) made`,
    [many, ids],
  );
}
