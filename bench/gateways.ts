import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { createGateway } from '#gateway/adapters/create-gateway.ts';
import { atTestGateway } from '#gateway/adapters/read-settings.ts';
import type { Gateway } from '#gateway/gateway.ts';
import { type Protocol, protocols } from '#gateway/settings.ts';
import { confirmCard } from '#hosting/sandbox/card-frame.ts';
import { startTestGatewayProcess } from '#hosting/sandbox/test-gateway-process.ts';
import { systemClock, timestamp } from '#platform/shared/clock.ts';
import { systemRandom } from '#platform/shared/random.ts';
import { median } from './create.ts';
import { createCardToken, type TestGateway } from './service.ts';

/** How many payments are in flight at once. */
const inFlight = 32;

export type GatewaysResult = {
  /** Milliseconds of this process for each payment, as medians of the rounds, by protocol. */
  milliseconds: Record<Protocol, { create: number; charge: number }>;
  /** The second protocol's time divided by the first one's, as medians of the rounds' ratios. */
  create: number;
  charge: number;
};

type Subject = { protocol: Protocol; adapter: Gateway; gateway: TestGateway };

const clock = systemClock;
const random = systemRandom;
const merchant = () => ({
  id: '0199a8f0-7c1e-7d62-9a1f-4a2b8f0c6d11',
  now: timestamp(clock.now()),
});
const visa = '4242424242424242';

/**
 * The processor time of the adapters for the same payments, in turns: payments with the shopper,
 * from their beginning until their outcome is known, and charges of the stored cards. The gateways
 * and the shoppers' browsers are other programs, and their time does not count.
 */
export async function benchGateways(
  options: { payments: number; rounds: number },
  progress: (text: string) => void,
): Promise<GatewaysResult> {
  const folder = mkdtempSync(join(tmpdir(), 'tranche-bench-gateways-'));
  const stops: (() => Promise<void>)[] = [];
  try {
    const subjects: Subject[] = [];
    for (const protocol of protocols) {
      const gateway = await startTestGatewayProcess(
        { clock, random, log: pino({ level: 'warn' }) },
        {
          ...{ dataDir: folder, port: 0, pageOrigin: 'http://localhost', webhookUrl: null },
          ...{ protocol, files: protocol },
        },
      );
      stops.push(gateway.stop);
      const adapter = createGateway({
        ...{ protocol, environment: 'sandbox' },
        ...{ secretKey: gateway.secret_key, publicKey: gateway.publishable_key },
        ...atTestGateway(protocol, gateway.url),
      });
      subjects.push({ protocol, adapter, gateway });
    }
    const rounds: Record<Protocol, { create: number; charge: number }>[] = [];
    // The first round warms up caches and the compiler.
    for (let round = 0; round <= options.rounds; round += 1) {
      progress(`gateways: round ${round} of ${options.rounds}`);
      const measured = {} as (typeof rounds)[number];
      for (const subject of round % 2 === 0 ? subjects : subjects.toReversed()) {
        measured[subject.protocol] = await measureRound(subject, options.payments);
      }
      if (round > 0) rounds.push(measured);
    }
    const [first, second] = protocols;
    const of = (protocol: Protocol, what: 'create' | 'charge') =>
      median(rounds.map((round) => round[protocol][what]));
    const ratio = (what: 'create' | 'charge') =>
      median(rounds.map((round) => round[second][what] / round[first][what]));
    const both = (protocol: Protocol) => ({
      create: of(protocol, 'create'),
      charge: of(protocol, 'charge'),
    });
    return {
      milliseconds: {
        [first]: both(first),
        [second]: both(second),
      } as GatewaysResult['milliseconds'],
      create: ratio('create'),
      charge: ratio('charge'),
    };
  } finally {
    for (const stop of stops) await stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function measureRound(
  { adapter, gateway }: Subject,
  count: number,
): Promise<{ create: number; charge: number }> {
  const entersBefore = adapter.cardEntry.entersCard === 'before';
  const payments = await atOnce(count, async () => {
    const checkout_id = random.uuid();
    const { customer_ref } = await adapter.createCustomer({
      ...{ merchant: merchant(), checkout_id, key: `${checkout_id}:customer` },
      shopper: { email: 'thandi@example.com' },
    });
    const card_token = entersBefore ? await createCardToken(gateway) : null;
    return { checkout_id, attempt_id: random.uuid(), customer_ref, card_token };
  });
  const begun = await costOf(count, (index) => begin(adapter, payments[index] as Payment));
  // The shopper's browser confirms the payment.
  await atOnce(count, async (index) => {
    const state = begun.results[index];
    if (state?.outcome === 'begun') await confirmCard(adapter.cardEntry, state.session, visa);
  });
  const decided = await costOf(count, async (index) => {
    const state = begun.results[index];
    return state?.outcome === 'begun'
      ? await adapter.payment(merchant(), state.payment_ref)
      : state;
  });
  const charged = await costOf(count, async (index) => {
    const { customer_ref } = payments[index] as Payment;
    const state = decided.results[index];
    if (state?.outcome !== 'authorised' || state.card.card_ref === null) {
      throw new Error(`a card was not stored: ${state?.outcome}`);
    }
    return await charge(adapter, customer_ref, state.card.card_ref);
  });
  if (charged.results.some(({ outcome }) => outcome !== 'charged')) throw new Error('declined');
  return {
    create: begun.milliseconds + decided.milliseconds,
    charge: charged.milliseconds,
  };
}

type Payment = {
  checkout_id: string;
  attempt_id: string;
  customer_ref: string;
  card_token: string | null;
};

const statement = (instalment: number) => ({
  ...{ instalments: [instalment], number_of_payments: 2, merchant_name: 'Karoo Outfitters' },
});

const begin = (adapter: Gateway, { card_token, ...payment }: Payment) =>
  adapter.begin({
    ...payment,
    ...{ key: `${payment.checkout_id}:p1`, merchant: merchant(), instalments: [1] },
    ...{ amount: 75_000, currency: 'ZAR', capture: 'later', store_card: true },
    card: card_token === null ? null : { card_token },
    statement: statement(1),
    return_url: 'https://pay.example/return',
  });

const charge = (adapter: Gateway, customer_ref: string, card_ref: string) => {
  const checkout_id = random.uuid();
  return adapter.charge({
    ...{ key: `${checkout_id}:i2:a1`, merchant: merchant(), checkout_id, instalment: 2 },
    ...{ attempt_id: random.uuid(), customer_ref, card_ref, amount: 75_000, currency: 'ZAR' },
    statement: statement(2),
  });
};

/** Does the work `count` times, and returns the processor time of this process for one of them. */
async function costOf<T>(
  count: number,
  work: (index: number) => Promise<T>,
): Promise<{ milliseconds: number; results: T[] }> {
  const before = process.cpuUsage();
  const results = await atOnce(count, work);
  const { user, system } = process.cpuUsage(before);
  return { milliseconds: (user + system) / 1_000 / count, results };
}

async function atOnce<T>(count: number, work: (index: number) => Promise<T>): Promise<T[]> {
  const results: T[] = [];
  let next = 0;
  const run = async () => {
    for (let index = next; index < count; index = next) {
      next += 1;
      results[index] = await work(index);
    }
  };
  await Promise.all(Array.from({ length: inFlight }, run));
  return results;
}
