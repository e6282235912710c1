import assert from 'node:assert/strict';
import net from 'node:net';
import { after, before, beforeEach, describe, test } from 'node:test';
import { sql } from 'kysely';
import { findViolations } from '#checks/invariants/invariants.ts';
import { compileOnce } from '#platform/database/compile-once.ts';
import type { Handle } from '#platform/database/database.ts';
import { transaction } from '#platform/database/transaction.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { paymentToken } from '#purchases/checkouts/payment-token.ts';
import { findSession, openSession } from '#purchases/shoppers/open-session.ts';
import { insertLateLinks, insertPlanLink } from '#purchases/shoppers/plan-access.sql.ts';
import { hashToken } from '#purchases/shoppers/send-link.ts';
import { raiseAlert } from '#record/alerts/raise-alert.ts';
import { addPerson, ask, openConsole } from '../support/console.ts';
import { onDatabase, urlThrough } from '../support/database-server.ts';
import { frozenClock } from '../support/expectations.ts';
import { type GatewayUnderTest, startGateway } from '../support/gateway.ts';
import { type HttpAnswer, post, request } from '../support/http.ts';
import { gatewayEnv, visa } from '../support/payments.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import {
  type Account,
  checkoutBody,
  createAccount,
  createCheckout,
  createSuccessfulCheckout,
  createTestDatabase,
  type Service,
  startService,
} from '../support/service.ts';
import { until } from '../support/until.ts';

// Decision 0013: a 500 means that nothing was committed. The connection to the database breaks
// around COMMIT, the only moment at which the service cannot know what became of a transaction.

const faults = [
  'COMMIT never arrives',
  'the answer to COMMIT is lost',
  'COMMIT arrives late, after the connection was lost',
] as const;
type Fault = (typeof faults)[number];

/** Opens a proxy to the database, which breaks when the test says so. */
async function openLine(databaseUrl: string) {
  const target = new URL(databaseUrl);
  const line = { next: null as Fault | null, staysAway: false, isCut: false, broken: 0 };
  const open = new Set<net.Socket>();
  // A simple query message: its length and its text.
  const commit = Buffer.from('Q\0\0\0\x0bcommit\0', 'latin1');

  const server = net.createServer((client) => {
    if (line.isCut) return void client.destroy();
    const database = net.connect(Number(target.port), target.hostname);
    let fault: Fault | null = null;
    open.add(client).add(database);
    client.on('close', () => open.delete(client));
    database.on('close', () => open.delete(database));
    client.on('error', () => {}).on('close', () => fault === null && database.destroy());
    database.on('error', () => {}).on('close', () => client.destroy());
    database.on('data', (chunk) => {
      if (fault === null) client.write(chunk);
      else if (chunk.includes('COMMIT\0')) {
        client.destroy();
        database.destroy();
      }
    });
    client.on('data', (data) => {
      const chunk = data as Buffer;
      const at = chunk.indexOf(commit);
      if (line.next === null || at < 0) return void database.write(chunk);
      fault = line.next;
      line.next = null;
      line.broken += 1;
      if (line.staysAway) {
        line.isCut = true;
        for (const other of open) if (other !== client && other !== database) other.destroy();
      }
      database.write(chunk.subarray(0, at));
      if (fault === 'the answer to COMMIT is lost') return void database.write(chunk.subarray(at));
      client.destroy();
      if (fault === 'COMMIT never arrives') database.destroy();
      else setTimeout(() => database.write(chunk.subarray(at)), 100);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = urlThrough((server.address() as net.AddressInfo).port, databaseUrl);
  return Object.assign(line, {
    url,
    /** Cuts every connection and refuses new ones. */
    cut() {
      line.isCut = true;
      for (const socket of open) socket.destroy();
    },
    close() {
      for (const socket of open) socket.destroy();
      return new Promise((resolve) => server.close(resolve));
    },
  });
}

let database: Awaited<ReturnType<typeof createTestDatabase>>;
let line: Awaited<ReturnType<typeof openLine>>;
let direct: Service;
let broken: Service;
let account: Account;
let baseUrl: string;
let gateway: GatewayUnderTest;
let receiver: Receiver;
// A pause of the machine uses up no deadline: a deadline ends only when a test lets time pass.
const clock = frozenClock();

before(async () => {
  database = await createTestDatabase();
  line = await openLine(database.url);
  gateway = await startGateway();
  receiver = await startReceiver();
  direct = await startService({ databaseUrl: database.url, clock });
  account = await createAccount(direct);
  // The server limits waits for locks to the deadline in real time, so the deadline must not be
  // short.
  const env = { ...gatewayEnv(gateway), REQUEST_DEADLINE_SECONDS: '5' };
  broken = await startService({ databaseUrl: line.url, clock, env });
  baseUrl = await broken.app.listen({ port: 0, host: '127.0.0.1' });
});
after(async () => {
  await broken.close();
  await line.close();
  await direct.close();
  await gateway.close();
  await receiver.close();
  await database.drop();
});

beforeEach(() => {
  line.isCut = false;
  line.staysAway = false;
});

type Kind = { path: string; body(): Promise<object>; table: 'checkouts' | 'refund_requests' };
const kinds: Kind[] = [
  {
    path: '/api/checkouts',
    table: 'checkouts',
    body: async () => checkoutBody({ client_reference_id: crypto.randomUUID() }),
  },
  {
    path: '/api/refunds',
    table: 'refund_requests',
    body: async () => ({
      checkout_id: await createSuccessfulCheckout(direct, account),
      amount: 50_000,
    }),
  },
];

async function ids({ table }: Kind): Promise<string[]> {
  const { rows } = await direct.deps.database.pool.query(`select id from ${table} order by number`);
  return rows.map(({ id }) => id);
}

/**
 * Asserts every invariant but those of payments, because this test marks checkouts as paid without
 * a gateway.
 */
async function assertWhole(): Promise<void> {
  const names = ['M1', 'M2', 'S1', 'S2', 'S3', 'A5', 'L1'];
  const now = new Date().toISOString();
  assert.deepEqual(await findViolations(direct.deps.database, now, names), []);
}

/** Returns the answer, or null if the connection was closed without one. */
const answerOf = (sent: Promise<HttpAnswer>) => sent.catch(() => null);

for (const kind of kinds) {
  describe(`POST ${kind.path} over a connection that breaks at COMMIT`, () => {
    for (const fault of faults) {
      for (const keyed of [false, true]) {
        const key = `${kind.path} ${fault}`;
        const headers: Record<string, string> = keyed ? { 'idempotency-key': key } : {};
        const how = keyed ? ' with an Idempotency-Key' : '';

        test(`${fault}${how}: exactly one is created, and the answer is a 200`, async () => {
          const body = await kind.body();
          const before = await ids(kind);
          const { broken } = line;
          line.next = fault;
          const answer = await post(`${baseUrl}${kind.path}`, account, body, { headers });
          assert.equal(line.broken, broken + 1, 'the line did break');
          assert.equal(answer.status, 200, JSON.stringify(answer.body));
          assert.deepEqual(await ids(kind), [...before, answer.body.data.id]);
          await assertWhole();
          if (keyed) {
            const again = await post(`${baseUrl}${kind.path}`, account, body, { headers });
            assert.equal(again.body.data.id, answer.body.data.id);
          }
        });
      }

      test(`${fault}, and the database stays away: the service gives no answer`, async () => {
        const body = await kind.body();
        const before = await ids(kind);
        const headers = { 'idempotency-key': `${kind.path} ${fault} away` };
        line.next = fault;
        line.staysAway = true;
        const { broken } = line;
        const sent = answerOf(post(`${baseUrl}${kind.path}`, account, body, { headers }));
        await until('the line to break', () => line.broken > broken);
        if (fault === 'the answer to COMMIT is lost') {
          await until('the commit', async () => (await ids(kind)).length > before.length);
        }
        clock.advance({ seconds: 10 });
        assert.equal(await sent, null, 'closed without an answer');
        line.isCut = false;

        // A retry with the same key gets the row that was created.
        const retried = await post(`${baseUrl}${kind.path}`, account, body, { headers });
        assert.equal(retried.status, 200);
        const created = (await ids(kind)).slice(before.length);
        assert.deepEqual(created, [retried.body.data.id]);
        if (fault !== 'COMMIT never arrives') {
          assert.equal(retried.headers['idempotent-replayed'], 'true');
        }
        await assertWhole();
      });
    }

    test('the answer to COMMIT is lost, and its outcome cannot be read: the service gives no answer', async () => {
      const body = await kind.body();
      const before = await ids(kind);
      const { pool } = direct.deps.database;
      const { broken } = line;
      line.next = 'the answer to COMMIT is lost';
      line.staysAway = true;
      const sent = answerOf(post(`${baseUrl}${kind.path}`, account, body));
      await until('the line to break', () => line.broken > broken);
      await until('the commit', async () => (await ids(kind)).length > before.length);
      await pool.query('alter table checkouts rename to checkouts_elsewhere');
      line.isCut = false;
      try {
        assert.equal(await sent, null, 'a 500 would say that nothing was committed');
      } finally {
        await pool.query('alter table checkouts_elsewhere rename to checkouts');
      }
      await assertWhole();
    });

    test('a database that is away before anything was sent gives a 503, and nothing is created', async () => {
      const body = await kind.body();
      const before = await ids(kind);
      line.cut();
      const sent = post(`${baseUrl}${kind.path}`, account, body);
      // Let every wait for the database end at once.
      const hurry = setInterval(() => clock.advance({ seconds: 10 }), 5);
      const { status, headers } = await sent.finally(() => clearInterval(hurry));
      assert.deepEqual([status, headers['retry-after']], [503, '5']);
      assert.deepEqual(await ids(kind), before);
    });
  });
}

describe('a link to a plan over a connection that breaks at COMMIT', () => {
  const insertLink = {
    plan: insertPlanLink,
    late: (db: Handle, link: Parameters<typeof insertPlanLink>[1]) => insertLateLinks(db, [link]),
  };
  for (const fault of faults) {
    for (const scope of ['plan', 'late'] as const) {
      test(`${fault}: the shopper has a session for ${scope}`, async () => {
        const { merchant } = account;
        const checkout_id = await createSuccessfulCheckout(direct, account);
        const key = { merchant_id: merchant.id, checkout_id };
        const token = `${scope} ${fault}`;
        const created_at = timestamp(clock.now());
        const expires_at = timestamp(clock.now().add({ minutes: 20 }));
        const link = { ...key, token_hash: hashToken(token), created_at, expires_at };
        await insertLink[scope](direct.deps.database.db, link);
        line.next = fault;
        const session = await openSession(broken.deps, merchant, key, token, true);
        assert.ok(session, 'the link counts as used');
        assert.equal((await findSession(broken.deps, merchant, key, session))?.scope, scope);
      });
    }
  }
});

describe('a database that goes away once the outcome is recorded', () => {
  const requests = {
    pay: async () => ({
      number_of_payments: 1,
      card_token: await gateway.tokenFor(visa),
      consent: null,
    }),
    cancel: async () => ({ number_of_payments: 1 }),
  };
  const countUnknown = async () => {
    const text = await broken.deps.metrics.registry.metrics();
    return Number(/^tranche_http_unknown_outcomes_total (\d+)$/m.exec(text)?.[1]);
  };
  for (const [step, body] of Object.entries(requests)) {
    test(`${step}: the page gets no answer, because something was changed`, async () => {
      const before = await countUnknown();
      const notify_url = `${receiver.url}/${step}`;
      const id = await createCheckout(direct, account, { notify_url });
      const key = { merchant_id: account.merchant.id, id };
      const url = `${baseUrl}/pay/${paymentToken(direct.deps.sealing, key)}`;
      // The callback is sent after the outcome is committed. Its receiver cuts the connection.
      receiver.answer = () => {
        line.cut();
        return {};
      };
      const sent = answerOf(
        request(`${url}/${step}`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(await body()),
        }),
      );
      await until('the callback', () => receiver.at(`/${step}`).length > 0);
      const hurry = setInterval(() => clock.advance({ seconds: 1 }), 50);
      const answer = await sent.finally(() => clearInterval(hurry));
      assert.equal(answer, null, `closed without an answer, not ${answer?.status}`);
      assert.equal(await countUnknown(), before + 1);
      line.isCut = false;
      const state = await request(`${url}/state`);
      assert.equal(state.body.status, { pay: 'successful', cancel: 'cancelled' }[step]);
      await assertWhole();
    });
  }
});

test('rows that stay locked beyond the deadline give every request a 503, and nothing is created', async (t) => {
  line.isCut = false;
  line.staysAway = false;
  const app = await openConsole(broken);
  t.after(() => app.close());
  const person = await addPerson(direct, { roles: ['admin'] });
  const about = { kind: 'books_differ' as const, detail: 'The rows of a test.' };
  const alert = await raiseAlert(direct.deps, direct.deps.database.db, about);
  const bodies = await Promise.all(kinds.map((kind) => kind.body()));
  const before = await Promise.all(kinds.map(ids));
  const send = () =>
    kinds.map(({ path }, index) => post(`${baseUrl}${path}`, account, bodies[index] as object));
  let arrived = 0;
  const count = () => {
    arrived += 1;
  };
  broken.app.server.on('request', count);
  t.after(() => broken.app.server.off('request', count));
  const waits = async (about: string) => {
    const { rowCount } = await direct.deps.database.pool.query(
      `select from pg_stat_activity
       where wait_event_type = 'Lock' and datname = current_database() and query like $1`,
      [`%${about}%`],
    );
    return rowCount;
  };
  const answers = await onDatabase(database.url, async (holder) => {
    await holder.query('begin');
    await holder.query('select from list_totals where merchant_id = $1 for update', [
      account.merchant.id,
    ]);
    const sent = send();
    await until('one of each kind to wait', async () => (await waits('')) === kinds.length);
    // Further requests queue in the service behind these.
    for (let count = 0; count < 5; count += 1) sent.push(...send());
    await holder.query('select from alerts where id = $1 for update', [alert]);
    const take = ask({ app, deps: broken.deps }, person, 'POST', `/api/alerts/${alert}/take`);
    await until('the person to wait', () => waits('alerts'));
    // A connection that is busy without waiting for a lock has a request that will soon wait or
    // queue.
    const { pool } = broken.deps.database;
    await until('every request to wait or to queue', async () => {
      const locked = await waits('');
      const busy = pool.totalCount - pool.idleCount;
      return arrived === sent.length && pool.waitingCount === 0 && busy === locked;
    });
    // Each request has one deadline. A stage that began a new one would never end, as no more time
    // passes.
    clock.advance({ seconds: 6 });
    return await Promise.all([take, ...sent]);
  });
  const seen = answers.map(({ status, headers }) => `${status} ${headers['retry-after']}`);
  assert.deepEqual([...new Set(seen)], ['503 5']);
  // The database answers; only the rows are locked. So the text does not blame the database.
  const texts = answers.map(({ body }) => body.error?.message ?? body.errors[0].detail);
  assert.deepEqual(
    [...new Set(texts)],
    ['The service could not do this in time and nothing was changed. Try again in 5 seconds.'],
  );
  const created = await Promise.all(send());
  assert.deepEqual(
    await Promise.all(kinds.map(ids)),
    before.map((earlier, index) => [...earlier, created[index]?.body.data.id]),
  );
  await assertWhole();
});

const write = compileOnce(() => sql<{ is_written: boolean }>`select true as is_written`);
const waitTooLong = compileOnce(
  () => sql<never>`do $$ begin raise 'waited too long' using errcode = '55P03'; end $$`,
);

test('a statement that fails with COMMIT behind it is retried, also if their answers come together', async () => {
  const { pool } = direct.deps.database;
  let attempts = 0;
  const answer = await transaction(direct.deps, async ({ db, client, commit }) => {
    attempts += 1;
    const { processID, connection } = client as unknown as {
      processID: number;
      connection: { stream: net.Socket };
    };
    await client.query('select 1');
    connection.stream.pause();
    const statement = attempts === 1 ? waitTooLong(db, {}) : write(db, {});
    const sent = Promise.all([statement, commit()]);
    sent.catch(() => {});
    const state = 'select state from pg_stat_activity where pid = $1';
    await until('the answer to COMMIT', async () => {
      const { rows } = await pool.query(state, [processID]);
      return rows[0].state === 'idle';
    });
    connection.stream.resume();
    const [[row]] = await sent;
    return row;
  });
  assert.deepEqual([answer, attempts], [{ is_written: true }, 2]);
});
