import { randomUUID } from 'node:crypto';
import type {
  CardVerification,
  Gateway,
  MerchantTime,
  PaymentState,
  RefusedData,
} from '#gateway/gateway.ts';
import { type GatewayName, mainGateway } from '#gateway/gateway-name.ts';
import { createGateways, type Gateways } from '#gateway/gateways.ts';
import type { Protocol } from '#gateway/settings.ts';
import { createStripeGateway } from '#gateway/stripe/stripe.ts';
import type { Fault } from '../../test-gateway/faults.ts';
import { startTestGateway, type TestGatewayOptions } from '../../test-gateway/gateway.ts';
import { until } from './until.ts';

export const secretKey = 'sk_test_of_the_suite';
export const publishableKey = 'pk_test_of_the_suite';

/**
 * The faults after which the caller cannot know whether a request had its effect. Each kind strikes
 * before the effect and after it.
 */
export const gatewayFaults = [
  'error_before',
  'error_after',
  'drop_before',
  'drop_after',
  'latency',
  'latency_after',
] as const satisfies Fault['fault'][];

/** The test gateway in this process, the adapter that calls it, and the means to disturb it. */
export type GatewayUnderTest = {
  url: string;
  protocol: Protocol;
  gateway: GatewayWithShopper;
  /** Calls the gateway's API without the adapter. */
  call(
    method: string,
    path: string,
    form?: Record<string, string>,
    headers?: object,
  ): Promise<Called>;
  /** A token for a card number or a `pm_…`. By default the card expires in three years. */
  tokenFor(card: string, expires?: string): Promise<string>;
  /** Returns the id of the fault. */
  fault(fault: Partial<Fault>): Promise<string>;
  /** Whether the newest fault of this kind has struck. */
  hasStruck(kind: Fault['fault']): Promise<boolean>;
  /** Resolves when the newest fault of this kind has struck. */
  struck(kind: Fault['fault']): Promise<void>;
  books(filter: { checkout?: string; customer?: string }): Promise<Books>;
  close(): Promise<void>;
};

export type Operation =
  | 'authorise'
  | 'capture'
  | 'void'
  | 'charge'
  | 'refund'
  | 'createCustomer'
  | 'pay'
  | 'verifyCard'
  | 'detachCard';

type Begin = Parameters<Gateway['begin']>[0];

/** The input of a first payment with a card. */
export type Payment = Omit<Begin, 'instalments' | 'capture' | 'card' | 'statement'> & {
  statement: NonNullable<Begin['statement']>;
  card_token: string;
};

type ShopperPayment = Omit<Begin, 'capture' | 'card' | 'store_card'> & {
  card: { card_ref: string } | { card_token: string; store: boolean };
};

type Verification = Omit<Parameters<Gateway['beginVerification']>[0], 'card_token' | 'currency'> & {
  card_token: string;
};

/**
 * The port with a shopper who enters a card, before a payment begins or in its session, as the
 * gateway requires. Each call ends when the gateway has the card.
 */
export type GatewayWithShopper = Gateway & {
  authorise(payment: Payment): Promise<PaymentState | RefusedData>;
  pay(payment: ShopperPayment): Promise<PaymentState>;
  verifyCard(card: Verification): Promise<CardVerification>;
};

/** A shopper whose card becomes a token before the payment begins. */
export const withTokens = (gateway: Gateway): GatewayWithShopper => ({
  ...gateway,
  authorise: ({ card_token, ...payment }) =>
    gateway.begin({ ...payment, instalments: [1], capture: 'later', card: { card_token } }),
  pay: ({ card, ...payment }) =>
    gateway.begin({
      ...payment,
      capture: 'now',
      card: 'card_ref' in card ? card : { card_token: card.card_token },
      store_card: 'store' in card && card.store,
    }) as Promise<PaymentState>,
  verifyCard: (card) => gateway.beginVerification({ ...card, currency: 'ZAR' }),
});

/** An adapter with an API of the test gateway, as the contract tests see it. */
export type ContractSubject = Omit<GatewayUnderTest, 'close'> & {
  /** This adapter with a short timeout, only for calls that must time out. */
  quick(): GatewayWithShopper;
  /** Whether a payment begins before the card is entered. */
  begins: boolean;
  /** The requests of an operation, for a fault to strike. */
  requestOf(
    operation: Operation,
    names: { key?: string; attempt_id?: string; checkout_id?: string; reference?: string },
  ): Partial<Fault>;
};

// biome-ignore lint/suspicious/noExplicitAny: the tests check what the answer holds
export type Called = { status: number; headers: Headers; body: any };

export type Books = {
  payment_intents: {
    id: string;
    status: string;
    amount: number;
    amount_received: number;
    /** Seconds since the epoch. */
    created: number;
    metadata: { attempt_id: string; checkout_id: string };
  }[];
  charges: {
    id: string;
    status: string;
    captured: boolean;
    amount_captured: number;
    amount_refunded: number;
  }[];
  refunds: {
    id: string;
    status: string;
    amount: number;
    created: number;
    payment_intent: string;
    metadata: { refund_id: string };
  }[];
};

export async function startGateway(
  options: Partial<TestGatewayOptions> & { timeoutMs?: number } = {},
): Promise<GatewayUnderTest> {
  const { timeoutMs, ...given } = options;
  const test = await startTestGateway({
    port: 0,
    stateFile: ':memory:',
    secretKey,
    publishableKey,
    ...given,
  });
  return { ...useGateway(test.url, timeoutMs), close: () => test.close() };
}

/** A service that has only this gateway. */
export const onlyGateway = (gateway: Gateway): Gateways =>
  createGateways([{ name: mainGateway, isClosed: false, gateway }]);

/** The gateway of a service that has only one. */
export const gatewayOf = ({ gateways }: { gateways: Gateways }): Gateway =>
  gateways.of(gateways.names[0] as GatewayName);

/** Makes an adapter for a test gateway that is already running, and the means to disturb it. */
export function useGateway(url: string, timeoutMs = 120_000): Omit<GatewayUnderTest, 'close'> {
  const adapter = createStripeGateway({
    protocol: 'stripe',
    environment: 'sandbox',
    secretKey,
    publicKey: publishableKey,
    apiUrl: url,
    scriptUrl: `${url}/v1/tranche.js`,
    testGateway: true,
    timeoutMs,
  });
  const gateway = withTokens(adapter);

  async function call(
    method: string,
    path: string,
    form: Record<string, string> = {},
    headers: object = {},
  ): Promise<Called> {
    const query = method === 'GET' ? `?${new URLSearchParams(form)}` : '';
    const response = await fetch(`${url}${path}${query}`, {
      method,
      headers: { Authorization: `Bearer ${secretKey}`, ...headers },
      ...(method === 'POST' && { body: new URLSearchParams(form) }),
    });
    return { status: response.status, headers: response.headers, body: await response.json() };
  }

  const hasStruck = async (kind: Fault['fault']): Promise<boolean> => {
    const { body } = await call('GET', '/_test/faults');
    const newest = (body.data as Fault[]).findLast(({ fault }) => fault === kind);
    return (newest?.struck ?? 0) > 0;
  };

  return {
    url,
    protocol: 'stripe',
    gateway,
    call,
    async tokenFor(card, expires) {
      const [exp_year = '', exp_month = ''] = expires?.split('-') ?? [];
      const form: Record<string, string> = card.startsWith('pm_')
        ? { payment_method: card }
        : {
            'payment_method_data[type]': 'card',
            'payment_method_data[card][number]': card,
            ...(expires !== undefined && {
              'payment_method_data[card][exp_month]': String(Number(exp_month)),
              'payment_method_data[card][exp_year]': exp_year,
            }),
          };
      const { status, body } = await call('POST', '/v1/test_helpers/confirmation_tokens', form);
      if (status !== 200) throw new Error(`no token: ${body.error.code}`);
      return body.id;
    },
    async fault(fault) {
      const response = await fetch(`${url}/_test/faults`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${secretKey}` },
        body: JSON.stringify(fault),
      });
      if (response.status !== 200) throw new Error(await response.text());
      return ((await response.json()) as Fault).id;
    },
    hasStruck,
    async struck(kind) {
      await until(`the fault ${kind}`, () => hasStruck(kind));
    },
    async books(filter) {
      const { body } = await call('GET', '/_test/books', filter);
      return body;
    },
  };
}

/** Makes Stripe's adapter for the first API of the test gateway. */
export function useStripe(url: string): ContractSubject {
  return {
    ...useGateway(url),
    quick: () => useGateway(url, 250).gateway,
    begins: false,
    requestOf: (_, { key = '' }) => ({ method: 'POST', key_contains: key }),
  };
}

/** A new merchant whose time the test chooses. */
export function merchantAt(now = '2026-11-15T08:00:00.000Z'): MerchantTime & {
  later(duration: Temporal.DurationLike): MerchantTime;
} {
  const id = randomUUID();
  return {
    id,
    now,
    later: (duration) => ({
      id,
      now: Temporal.Instant.from(now)
        .toZonedDateTimeISO('UTC')
        .add(duration)
        .toInstant()
        .toString({ fractionalSecondDigits: 3 }),
    }),
  };
}

/** Makes the input of a first payment with a card. */
export async function newPayment(
  { gateway, tokenFor }: Pick<GatewayUnderTest, 'gateway' | 'tokenFor'>,
  card: string,
  given: Partial<Payment> & { email?: string } = {},
): Promise<Payment> {
  const { email = 'shopper@example.com', ...rest } = given;
  const merchant = given.merchant ?? merchantAt();
  const checkout_id = randomUUID();
  const { customer_ref } = await gateway.createCustomer({
    key: `${checkout_id}:customer`,
    merchant,
    checkout_id,
    shopper: { email, name: 'A Shopper', phone_number: '+27215550100' },
  });
  return {
    key: `${checkout_id}:p1`,
    merchant,
    checkout_id,
    attempt_id: randomUUID(),
    customer_ref,
    amount: 50_000,
    currency: 'ZAR',
    statement: { merchant_name: 'Bean There', instalments: [1], number_of_payments: 3 },
    card_token: await tokenFor(card),
    store_card: true,
    return_url: 'https://pay.example.com/pay/token/return',
    ...rest,
  };
}

export type Held = Extract<PaymentState, { outcome: 'authorised' }>;

/** Answers the challenge as the issuer's page would. Returns where the shopper is sent. */
export async function answerChallenge(
  url: string,
  decision: 'approve' | 'decline' | 'close',
): Promise<URL> {
  const response = await fetch(url, {
    method: 'POST',
    body: new URLSearchParams({ decision }),
    redirect: 'manual',
  });
  return new URL(response.headers.get('location') ?? '');
}
