import { median } from './create.ts';
import {
  createSale,
  enterCard,
  openShop,
  readState,
  type Sale,
  type Shop,
  tryPay,
  untilSettled,
} from './shop.ts';

export type PressureResult = {
  /** Payments per second if shoppers pay one after the other. */
  maximal: number;
  /** How many milliseconds payments take at half of that rate, including the gateway's time. */
  p50: number;
  p99: number;
  /** Answers at three times that rate. */
  paid: number;
  refused: number;
  /** All other answers, and refusals that do not say when to retry. */
  wrong: number;
  /** Attempts without a known outcome after that. */
  unknown: number;
};

/** How many shoppers pay at once while the maximal rate is measured. */
const shoppers = 16;

/**
 * Measures payments under load, together with callbacks, mails and all other work: how long they
 * take at half of the rate that a node can sustain, and what it refuses at three times that rate.
 */
export async function benchPressure(
  { seconds }: { seconds: number },
  progress: (text: string) => void,
): Promise<PressureResult> {
  const shop = await openShop(2_000);
  try {
    progress('pressure: warming up');
    await payAtOnce(shop, await prepare(shop, 100));
    progress('pressure: maximal rate');
    const rates: number[] = [];
    for (let round = 0; round < 3; round += 1) {
      const sales = await prepare(shop, 200);
      const start = performance.now();
      await payAtOnce(shop, sales);
      rates.push((1_000 * sales.length) / (performance.now() - start));
      await untilSettled(shop);
    }
    const maximal = median(rates);
    progress(`pressure: half of ${maximal.toFixed(0)} a second`);
    const half = await payAtRate(shop, maximal / 2, seconds);
    await untilSettled(shop);
    progress(`pressure: three times ${maximal.toFixed(0)} a second`);
    const triple = await payAtRate(shop, maximal * 3, seconds);
    await untilSettled(shop);
    const { rows } = await shop.own.query<{ count: number }>(
      'select count(*) from payment_attempts where due_at is not null',
    );
    const sorted = half.map(({ milliseconds }) => milliseconds).sort((a, b) => a - b);
    const isRefused = ({ status, retryAfter }: Answer) => status === 503 && retryAfter;
    const paid = triple.filter(({ status }) => status === 200).length;
    const refused = triple.filter(isRefused).length;
    return {
      maximal,
      p50: sorted[Math.floor(sorted.length / 2)] ?? 0,
      p99: sorted[Math.floor(sorted.length * 0.99)] ?? 0,
      ...{ paid, refused, wrong: triple.length - paid - refused },
      unknown: rows[0]?.count ?? 0,
    };
  } finally {
    await shop.close();
  }
}

type Answer = Awaited<ReturnType<typeof tryPay>>;

/** Prepares sales up to the moment when the shopper pays. */
async function prepare(shop: Shop, count: number): Promise<Sale[]> {
  const sales: Sale[] = [];
  await Promise.all(
    Array.from({ length: shoppers }, async () => {
      while (sales.length < count) {
        const sale = await createSale(shop);
        sales.push(sale);
        await enterCard(shop, sale);
        await readState(shop, sale);
      }
    }),
  );
  return sales;
}

async function payAtOnce(shop: Shop, sales: Sale[]): Promise<void> {
  const left = [...sales];
  await Promise.all(
    Array.from({ length: shoppers }, async () => {
      for (let sale = left.pop(); sale; sale = left.pop()) await tryPay(shop, sale);
    }),
  );
}

/** Pays at a fixed rate, however long the answers take. */
async function payAtRate(shop: Shop, rate: number, seconds: number): Promise<Answer[]> {
  const sales = await prepare(shop, Math.ceil(rate * seconds));
  const start = performance.now();
  return await Promise.all(
    sales.map(async (sale, index) => {
      const at = start + (1_000 * index) / rate;
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, at - performance.now())));
      return await tryPay(shop, sale);
    }),
  );
}
