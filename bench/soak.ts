import { readdirSync, readFileSync } from 'node:fs';
import { median } from './create.ts';
import {
  createSale,
  enterCard,
  openShop,
  paySale,
  Refused,
  readState,
  type Shop,
  visit,
} from './shop.ts';

type Sample = { memory: number; handles: number; connections: number };

export type SoakResult = { sales: number; refused: number; early: Sample; late: Sample };

/**
 * How many shoppers buy at once. Each pauses between two sales, so that the service is not
 * overloaded.
 */
const shoppers = 4;
const restMilliseconds = 500;

/**
 * Sells for a long time. Compares the service's memory, open files and sockets, and connections in
 * the second quarter of the time with those in the last quarter.
 */
export async function benchSoak(
  { minutes }: { minutes: number },
  progress: (text: string) => void,
): Promise<SoakResult> {
  const shop = await openShop(shoppers);
  try {
    const end = performance.now() + minutes * 60_000;
    const samples: Sample[] = [];
    let sales = 0;
    let refused = 0;
    const sell = async () => {
      while (performance.now() < end) {
        try {
          await buy(shop);
          sales += 1;
        } catch (error) {
          // The service refuses requests while other programs keep the machine busy for seconds.
          // The next shopper comes all the same.
          if (!(error instanceof Refused)) throw error;
          refused += 1;
        }
        await new Promise((resolve) => setTimeout(resolve, restMilliseconds));
      }
    };
    const sampling = async () => {
      const pause = (minutes * 60_000) / 200;
      while (performance.now() < end) {
        samples.push(await sample(shop));
        if (samples.length % 20 === 0) progress(`soak: ${sales} sales`);
        await new Promise((resolve) => setTimeout(resolve, pause));
      }
    };
    await Promise.all([sampling(), ...Array.from({ length: shoppers }, sell)]);
    const quarter = Math.floor(samples.length / 4);
    return {
      ...{ sales, refused },
      early: middle(samples.slice(quarter, 2 * quarter)),
      late: middle(samples.slice(-quarter)),
    };
  } finally {
    await shop.close();
  }
}

async function buy(shop: Shop): Promise<void> {
  const sale = await createSale(shop);
  await visit(shop, sale);
  await enterCard(shop, sale);
  await readState(shop, sale);
  await paySale(shop, sale);
  await visit(shop, sale);
}

async function sample({ service, own }: Shop): Promise<Sample> {
  const { rows } = await own.query<{ count: number }>(
    `select count(*) from pg_stat_activity
     where backend_type = 'client backend' and pid <> pg_backend_pid()`,
  );
  const status = readFileSync(`/proc/${service.pid}/status`, 'utf8');
  return {
    memory: Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) / 1024,
    handles: readdirSync(`/proc/${service.pid}/fd`).length,
    connections: rows[0]?.count ?? 0,
  };
}

const middle = (samples: Sample[]): Sample => ({
  memory: median(samples.map(({ memory }) => memory)),
  handles: median(samples.map(({ handles }) => handles)),
  connections: median(samples.map(({ connections }) => connections)),
});
