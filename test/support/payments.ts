import assert from 'node:assert/strict';
import type { FastifyInstance } from 'fastify';
import { findViolations } from '#checks/invariants/invariants.ts';
import { atTestGateway, environmentOf } from '#gateway/adapters/read-settings.ts';
import { OutcomeUnknown } from '#gateway/gateway.ts';
import { type GatewayName, gatewayName, mainGateway } from '#gateway/gateway-name.ts';
import type { Gateways } from '#gateway/gateways.ts';
import type { Protocol } from '#gateway/settings.ts';
import { timestamp } from '#platform/shared/clock.ts';
import type { Logger } from '#platform/shared/logger.ts';
import type { Random } from '#platform/shared/random.ts';
import { deliverDueCallbacks } from '#purchases/callbacks/delivery/deliver-due-callbacks.ts';
import type { CallbackSenderOptions } from '#purchases/callbacks/delivery/send-callback.ts';
import { paymentToken } from '#purchases/checkouts/payment-token.ts';
import { checkDueDisputes } from '#purchases/disputes/check-disputes.ts';
import { collectDueInstalments } from '#purchases/instalments/collect-instalments.ts';
import { detachReplacedCards } from '#purchases/instalments/detach-cards.ts';
import { sendDueMessages } from '#purchases/messages/sending/send-messages.ts';
import {
  isFirstPayment,
  isOnPlan,
  type PaymentAttempt,
} from '#purchases/payments/payment-attempt.ts';
import { recoverAttempts } from '#purchases/payments/settle-attempt.ts';
import { makeDueMonthlyStatements } from '#purchases/payouts/make-monthly-statements.ts';
import { makeDuePayouts } from '#purchases/payouts/make-payouts.ts';
import { sendDueStatements } from '#purchases/payouts/send-statements.ts';
import { processDueRefunds } from '#purchases/refunds/process-refunds.ts';
import { deleteErasedCustomers } from '#purchases/shoppers/delete-customers.ts';
import { eraseExpired, findExpired } from '#purchases/shoppers/erase-expired.ts';
import type { PayPage } from '#purchases/shoppers/pay-page.ts';
import { commandLine } from './cli.ts';
import {
  answerChallenge,
  type Books,
  type GatewayUnderTest,
  publishableKey,
  secretKey,
  startGateway,
} from './gateway.ts';
import { confirmInSession, useHyperswitch } from './hyperswitch.ts';
import { type Receiver, startReceiver } from './receiver.ts';
import {
  type Account,
  type Answer,
  createAccount,
  createCheckout,
  movableClock,
  type Service,
  startService,
} from './service.ts';

export const visa = '4242424242424242';
export const challengeCard = '4000002500003155';

/** The name of a second gateway beside the main one. */
export const secondGateway = gatewayName('peach') as GatewayName;

/** The settings by which a service finds both gateways of a test, each with its own books. */
export const bothEnv = (main: { url: string }, second: { url: string }) => ({
  ...gatewayEnv(main),
  ...environmentOf([
    {
      ...{ name: secondGateway, protocol: 'hyperswitch', environment: 'sandbox', secretKey },
      publicKey: publishableKey,
      ...atTestGateway('hyperswitch', second.url),
    },
  ]),
  GATEWAYS: `${mainGateway},${secondGateway}`,
});

/** The settings by which a service finds a test's gateway. */
export const gatewayEnv = ({ url, protocol = 'stripe' }: { url: string; protocol?: Protocol }) => ({
  // By default a service in the tests has the keys of the first adapter.
  ...(protocol !== 'stripe' && { STRIPE_SECRET_KEY: '', STRIPE_PUBLISHABLE_KEY: '' }),
  ...environmentOf([
    {
      ...{ name: mainGateway, protocol, environment: 'sandbox', secretKey },
      publicKey: publishableKey,
      ...atTestGateway(protocol, url),
    },
  ]),
});

/** The command line beside a paying service, with its database, its gateway and its clock. */
export const commandsOf = (
  { service, gateway, clock }: Paying,
  env: NodeJS.ProcessEnv = {},
  options: Parameters<typeof commandLine>[1] = {},
) =>
  commandLine(
    { DATABASE_URL: service.databaseUrl, ...gatewayEnv(gateway), ...env },
    { clock, ...options },
  );

/** The tables with due rows, and the functions that do their work. */
const dueWork: [table: string, run: (deps: Service['deps']) => Promise<number>][] = [
  ['payment_attempts', recoverAttempts],
  ['callbacks', deliverDueCallbacks],
  ['instalments', collectDueInstalments],
  ['refund_requests', processDueRefunds],
  ['replaced_cards', detachReplacedCards],
  ['messages', sendDueMessages],
  ['disputes', checkDueDisputes],
  ['erasures', eraseExpired],
  ['deleted_customers', deleteErasedCustomers],
  ['payout_days', makeDuePayouts],
  ['statement_months', makeDueMonthlyStatements],
  ['statement_mails', sendDueStatements],
];

/** The next time at which a row falls due. A paused payment never does. */
const findNextDue = `select min(due_at) as due_at from (${[
  ...dueWork.map(([table]) => table),
  'retention_dates',
]
  .map(
    (table) => `select due_at from ${table}${table === 'instalments' ? ' where not paused' : ''}`,
  )
  .join(' union all ')}) due where due_at > $1 and due_at <= $2`;

/** The tables with rows that are due by the furthest clock, without payments that are paused. */
const findDue = `select name from (${dueWork
  .map(
    ([table]) => `select '${table}' as name, due_at from ${table} where due_at <= $1::timestamptz
    + (select max(clock_ahead_ms) from merchants) * interval '1 millisecond'
    ${table === 'instalments' ? 'and not paused' : ''}`,
  )
  .join(' union all ')}) due group by name`;

export type Paying = {
  service: Service;
  gateway: GatewayUnderTest;
  clock: ReturnType<typeof movableClock>;
  account: Account;
  /** Where callbacks go by default. */
  receiver: Receiver;
  /** Creates a checkout and a shopper with its link. */
  shopper(changes?: object, account?: Account): Promise<Shopper>;
  /** A shopper of an existing checkout, perhaps served by another process. */
  open(id: string, account?: Account, app?: FastifyInstance): Shopper;
  /** Does all due work until none is left. */
  work(): Promise<void>;
  /** Lets time pass and does due work at its due times, as a worker does. */
  pass(until: Temporal.DurationLike | string): Promise<void>;
  clearFaults(): Promise<void>;
  close(): Promise<void>;
};

/** Starts the service and the test gateway in this process, on a clock that a test moves. */
export async function startPaying(
  options: {
    env?: NodeJS.ProcessEnv;
    /** The API of the test gateway, and the adapter for it. */
    protocol?: Protocol;
    /** A further gateway of the service, in Hyperswitch's protocol. */
    second?: { url: string };
    gatewayTimeoutMs?: number;
    /** The service gives up on its calls to the gateway when a fault makes one of them wait. */
    givesUp?: boolean;
    log?: Logger;
    start?: string;
    /** The origins whose pages may show the card frame. */
    pageOrigins?: string[];
    callbackSender?: CallbackSenderOptions;
    databaseUrl?: string;
    clock?: Paying['clock'];
    random?: Random;
  } = {},
): Promise<Paying> {
  const patience = createPatience();
  const { pageOrigins = [], givesUp = false } = options;
  const started = await startGateway({ pageOrigins, ...(givesUp && { onWait: patience.end }) });
  const gateway: GatewayUnderTest =
    options.protocol === 'hyperswitch' ? { ...started, ...useHyperswitch(started.url) } : started;
  const receiver = await startReceiver();
  const clock = options.clock ?? movableClock(options.start);
  const service = await startService({
    clock,
    env: {
      ...(options.second ? bothEnv(gateway, options.second) : gatewayEnv(gateway)),
      ...options.env,
    },
    ...(options.gatewayTimeoutMs !== undefined && { gatewayTimeoutMs: options.gatewayTimeoutMs }),
    ...(options.log && { log: options.log }),
    ...(options.callbackSender && { callbackSender: options.callbackSender }),
    ...(options.databaseUrl && { databaseUrl: options.databaseUrl }),
    ...(options.random && { random: options.random }),
  }).catch(async (error) => {
    // Servers that stay open would keep the test process alive after its failure.
    await gateway.close();
    await receiver.close();
    throw error;
  });
  if (givesUp) patience.limit(service.deps.gateways);
  const account = await createAccount(service);
  return payingOn({ service, gateway, clock, account, receiver });
}

/**
 * Calls to the gateway that end when the test says so, as if their time limit had passed. A short
 * limit in real time would also end the calls that a busy machine is slow to answer.
 */
function createPatience() {
  const waiting = new Set<(error: Error) => void>();
  return {
    limit(gateways: Gateways): void {
      for (const gateway of gateways.names.map((name) => gateways.of(name))) {
        for (const [name, member] of Object.entries(gateway)) {
          if (typeof member !== 'function' || name === 'isAnswering') continue;
          const call = member as (...args: unknown[]) => Promise<unknown>;
          const limited = async (...args: unknown[]) => {
            const { promise, reject } = Promise.withResolvers<never>();
            waiting.add(reject);
            return await Promise.race([call(...args), promise]).finally(() =>
              waiting.delete(reject),
            );
          };
          Object.assign(gateway, { [name]: limited });
        }
      }
    },
    end(): void {
      const late = () => new OutcomeUnknown('the gateway did not answer in time', 'no_answer');
      for (const reject of waiting) reject(late());
    },
  };
}

/**
 * The same shoppers, gateway and clock with another service. Closing the result closes only that
 * service.
 */
export function continueOn(paying: Paying, service: Service): Paying {
  return { ...payingOn({ ...paying, service }), close: () => service.close() };
}

function payingOn(
  parts: Pick<Paying, 'service' | 'gateway' | 'clock' | 'account' | 'receiver'>,
): Paying {
  const { service, gateway, clock, account, receiver } = parts;
  const open: Paying['open'] = (id, owner = account, app = service.app) =>
    shopperOf({ service, gateway, app }, owner.merchant.id, id);
  // At most of the times that a test reaches, only one kind of work is due. One statement tells
  // which kind.
  async function listDue(): Promise<Set<string>> {
    const { rows } = await service.deps.database.pool.query<{ name: string }>({
      // Both statements about due work are prepared, because they take longer to plan than to run.
      name: 'find due work',
      text: findDue,
      values: [timestamp(clock.now())],
    });
    return new Set(rows.map(({ name }) => name));
  }
  async function work(): Promise<void> {
    for (let round = 0; ; round += 1) {
      assert.ok(round < 100, 'due work comes to an end');
      // With a retention period, this also creates the rows that fall due.
      let moved = service.deps.retentionDays === null ? 0 : await findExpired(service.deps);
      const due = await listDue();
      for (const [table, run] of dueWork) if (due.has(table)) moved += await run(service.deps);
      if (moved === 0) break;
    }
  }
  return {
    ...parts,
    open,
    work,
    async shopper(changes = {}, owner = account) {
      const notify_url = `${receiver.url}/callback`;
      return open(await createCheckout(service, owner, { notify_url, ...changes }), owner);
    },
    async pass(until) {
      const target =
        typeof until === 'string'
          ? Temporal.Instant.from(until)
          : clock.now().toZonedDateTimeISO('UTC').add(until).toInstant();
      for (;;) {
        await work();
        const { rows } = await service.deps.database.pool.query<{ due_at: string }>({
          name: 'find next due work',
          text: findNextDue,
          values: [timestamp(clock.now()), timestamp(target)],
        });
        clock.set(rows[0]?.due_at ?? target.toString());
        if (!rows[0]?.due_at) break;
      }
    },
    async clearFaults() {
      await gateway.call('DELETE', '/_test/faults');
    },
    async close() {
      await service.close();
      await gateway.close();
      await receiver.close();
    },
  };
}

type PayOptions = {
  card?: string;
  /** The last month in which the card works, `2027-03`. */
  expires?: string;
  /** A token to use instead of a new one for the card. */
  token?: string;
  consent?: unknown;
};

export type Shopper = ReturnType<typeof shopperOf>;

/** A shopper with a payment link, who sends what the page would send. */
function shopperOf(
  { service, gateway, app }: { service: Service; gateway: GatewayUnderTest; app: FastifyInstance },
  merchant_id: string,
  id: string,
) {
  const url = `/pay/${paymentToken(service.deps.sealing, { merchant_id, id })}`;
  // Every shopper has their own address, so that one's declines do not limit another.
  let remoteAddress = `10.${[...Buffer.from(id.slice(-6), 'hex')].join('.')}`;

  async function send(
    method: 'GET' | 'POST',
    action: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Answer> {
    const answer = await app.inject({
      method,
      remoteAddress,
      url: action === '' ? url : `${url}/${action}`,
      headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
      ...(body !== undefined && {
        payload: typeof body === 'string' ? body : JSON.stringify(body),
      }),
    });
    const isJson = String(answer.headers['content-type'] ?? '').includes('json');
    return {
      status: answer.statusCode,
      body: isJson ? answer.json() : answer.body,
      headers: answer.headers,
    };
  }

  async function allAttempts(): Promise<PaymentAttempt[]> {
    const { rows } = await service.deps.database.pool.query(
      'select * from payment_attempts where checkout_id = $1 order by number',
      [id],
    );
    return rows;
  }

  async function page(method: 'GET' | 'POST', action: string, body?: unknown): Promise<PayPage> {
    const answer = await send(method, action, body);
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
    return answer.body;
  }

  const cardOf = async (options: PayOptions) =>
    options.token ?? (await gateway.tokenFor(options.card ?? visa, options.expires));

  /** Enters the card in the session of a payment that has begun. */
  async function confirm(begun: PayPage, card: string): Promise<PayPage> {
    const session = begun.card_session ?? begun.attempt?.card_session;
    assert(session, 'a session is open');
    await confirmInSession(gateway.url, session.client_secret, card);
    return await page('POST', 'confirm', {});
  }

  async function payBody(number_of_payments: number, options: PayOptions = {}) {
    const card_token = gateway.protocol === 'stripe' ? await cardOf(options) : null;
    const { plans, consent_version } = await page('GET', 'state');
    const plan = plans.find((one) => one.number_of_payments === number_of_payments);
    const shown = plan && { version: consent_version, payments: plan.payments };
    const consent = number_of_payments > 1 ? (shown ?? null) : null;
    return {
      number_of_payments,
      card_token,
      consent: options.consent === undefined ? consent : options.consent,
    };
  }

  return {
    id,
    url,
    send,
    /** Sends later requests from this address. */
    moveTo(address: string): void {
      remoteAddress = address;
    },
    payBody,
    state: () => page('GET', 'state'),
    confirm,
    async pay(number_of_payments = 1, options: PayOptions = {}): Promise<PayPage> {
      const begun = await page('POST', 'pay', await payBody(number_of_payments, options));
      return begun.status === 'begun' ? await confirm(begun, await cardOf(options)) : begun;
    },
    cancel: (number_of_payments = 1) => page('POST', 'cancel', { number_of_payments }),
    /** Answers the bank's challenge without returning to the page. */
    async decide(decision: 'approve' | 'decline' | 'close'): Promise<void> {
      const { challenge_url } = await page('GET', 'state');
      assert.ok(challenge_url);
      await answerChallenge(challenge_url, decision);
    },
    /** The bank sends the browser back to the page. */
    async comeBack(): Promise<PayPage> {
      const answer = await send('GET', 'return?payment_intent=pi_1&redirect_status=succeeded');
      assert.deepEqual([answer.status, answer.headers.location], [303, url]);
      return await page('GET', 'state');
    },
    /** The attempts to make the first payment. */
    async attempts(): Promise<PaymentAttempt[]> {
      return (await allAttempts()).filter(isFirstPayment);
    },
    async planAttempts(): Promise<PaymentAttempt[]> {
      return (await allAttempts()).filter(isOnPlan);
    },
    // biome-ignore lint/suspicious/noExplicitAny: assertions read the rows.
    async rows(table: string): Promise<any[]> {
      const { rows } = await service.deps.database.pool.query(
        `select * from ${table} where ${table === 'checkouts' ? 'id' : 'checkout_id'} = $1
         ${table === 'instalments' ? 'order by number' : ''}`,
        [id],
      );
      return rows;
    },
    async callback(): Promise<string | null> {
      const rows = await this.rows('callbacks');
      assert.ok(rows.length < 2);
      return rows[0] ? rows[0].payload.toString('utf8') : null;
    },
    books: (): Promise<Books> => gateway.books({ checkout: id }),
    /** The amounts of the authorisations that are live at the gateway. */
    async live(): Promise<number[]> {
      const { payment_intents } = await gateway.books({ checkout: id });
      return payment_intents
        .filter(({ status }) => ['requires_capture', 'succeeded'].includes(status))
        .map(({ amount }) => amount);
    },
  };
}

/**
 * Stops payouts and monthly statements from falling due. Time passes for all merchants, and the
 * payouts of merchants whose test is over would test nothing more.
 */
export async function endPayouts({ service }: Pick<Paying, 'service'>): Promise<void> {
  for (const table of ['payout_days', 'statement_months']) {
    await service.deps.database.pool.query(`update ${table} set due_at = '2100-01-01'`);
  }
}

/**
 * Stops the payments of plans from falling due. Time passes for all merchants, and the plans of tests
 * that are over would only repeat what they showed.
 */
export async function endPlans({ service }: Pick<Paying, 'service'>): Promise<void> {
  await service.deps.database.pool.query(
    `update instalments set due_at = '2100-01-01' where status = 'scheduled'`,
  );
}

/** Stops everything of finished tests from falling due: also holds, retries, mails and disputes. */
export async function endWork(paying: Pick<Paying, 'service' | 'clock'>): Promise<void> {
  const { service, clock } = paying;
  await endPayouts(paying);
  for (const table of ['instalments', 'messages', 'disputes']) {
    await service.deps.database.pool.query(
      `update ${table} set due_at = '2100-01-01' where due_at > $1`,
      [timestamp(clock.now())],
    );
  }
}

/** Asserts that all invariants hold. Call it when no due work is left. */
export async function assertSound({ service, clock }: Pick<Paying, 'service' | 'clock'>) {
  // Messages move no money, so tests need not send them themselves.
  while ((await sendDueMessages(service.deps)) > 0);
  assert.deepEqual(await findViolations(service.deps.database, timestamp(clock.now())), []);
}
