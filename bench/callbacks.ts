import { type ChildProcess, fork } from 'node:child_process';
import { createHmac, randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Agent, request } from 'undici';
import type { Deps } from '#main.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { sign } from '#platform/signing/signature.ts';
import { claimCallbacks } from '#purchases/callbacks/delivery/deliver-callback.ts';
import { deliverDueCallbacks } from '#purchases/callbacks/delivery/deliver-due-callbacks.ts';
import { listDueDestinations } from '#purchases/callbacks/delivery/due-callbacks.sql.ts';
import {
  claimBatchSize,
  destinationsMax,
  merchantDestinationsMax,
} from '#purchases/callbacks/delivery/limits.ts';
import { median } from './create.ts';
import { type Account, createAccount, startDatabase } from './service.ts';

/** Each merchant has a receiver. Together they fill all delivery slots of one process. */
const merchants = 64;
const concurrency = 1024;
const payload = JSON.stringify({
  status: 'successful',
  amount: 150_000,
  currency: 'ZAR',
  client_reference_id: 'order-1001',
  number_of_payments: 3,
});

const shopUrls = Array.from({ length: merchants }, (_, at) => `https://shop-${at}.example/`);

export type CallbacksResult = {
  /**
   * The ratio of deliveries to bare requests, both from the same round because the machine is
   * shared.
   */
  ratio: number;
  /** Rates per second. */
  bare: number;
  bareCpu: number;
  delivered: number;
  /** Seconds of one core for 1,000 deliveries: our process, then the database. */
  cpu: number;
  databaseCpu: number;
  failures: number;
};

/**
 * Delivers due callbacks to receivers that answer at once. Every attempt is committed with fsync
 * before and after it is sent. It alternates with a bare loop in the same process, which sends the
 * same signed requests without a database.
 */
export async function benchCallbacks(
  options: { count: number; rounds: number },
  progress: (text: string) => void,
): Promise<CallbacksResult> {
  const receiver = await startReceivers();
  const { server, deps, stop } = await startDatabase(12);
  try {
    const accounts = await createAccounts(deps);
    const bare: number[] = [];
    const bareCpu: number[] = [];
    const delivered: number[] = [];
    const cpu: number[] = [];
    const databaseCpu: number[] = [];
    let failures = 0;
    // Round 0 warms up.
    for (let round = 0; round <= options.rounds; round += 1) {
      progress(`callbacks: round ${round} of ${options.rounds}, bare requests`);
      const bareBefore = process.cpuUsage();
      const barePerSecond = await postBare(receiver.urls, accounts, options.count);
      const bareUsed = process.cpuUsage(bareBefore);
      await queue(deps, accounts, receiver.urls, options.count);
      progress(`callbacks: round ${round} of ${options.rounds}, delivering`);
      const databaseBefore = cpuSecondsOf(server.pid);
      const before = process.cpuUsage();
      const start = performance.now();
      const count = await deliverDueCallbacks(deps);
      const seconds = (performance.now() - start) / 1000;
      const { user, system } = process.cpuUsage(before);
      const databaseUsed = cpuSecondsOf(server.pid) - databaseBefore;
      // Counts over all rounds so far.
      failures = await countUndelivered(deps, options.count * (round + 1));
      if (round === 0) continue;
      bare.push(barePerSecond);
      bareCpu.push((bareUsed.user + bareUsed.system) / 1000 / options.count);
      delivered.push(count / seconds);
      cpu.push((user + system) / 1000 / count);
      databaseCpu.push((databaseUsed / count) * 1000);
    }
    return {
      ratio: median(delivered.map((perSecond, round) => perSecond / (bare[round] ?? 0))),
      bare: median(bare),
      bareCpu: median(bareCpu),
      delivered: median(delivered),
      cpu: median(cpu),
      databaseCpu: median(databaseCpu),
      failures,
    };
  } finally {
    await stop();
    receiver.stop();
  }
}

/** The time to list due destinations and claim a batch, with few other rows and with many. */
export async function benchClaims(
  options: { delivered: number; rounds: number },
  progress: (text: string) => void,
): Promise<{ few: number; many: number }> {
  const small = await startDatabase();
  const large = await startDatabase();
  try {
    const sides = await Promise.all(
      [small, large].map(async ({ deps }) => ({
        deps,
        accounts: await createAccounts(deps),
        times: [] as number[],
      })),
    );
    const [, full] = sides;
    if (full) await fillDelivered(full.deps, full.accounts, options.delivered, progress);
    for (const { deps, accounts } of sides) {
      await queue(deps, accounts, shopUrls, 2_000);
      await deps.database.pool.query('vacuum analyze callbacks');
    }
    // The first five rounds warm up.
    for (let round = -5; round < options.rounds; round += 1) {
      if (round % 10 === 0) progress(`callbacks: claims, round ${round} of ${options.rounds}`);
      for (const { deps, accounts, times } of sides) {
        const index = Math.abs(round) % merchants;
        const { merchant } = accounts[index] as Account;
        const start = performance.now();
        const now = timestamp(deps.clock.now());
        const due = await listDueDestinations(deps.database.db, now, {
          ofMerchant: merchantDestinationsMax,
          inAll: destinationsMax,
        });
        const host = `shop-${index}.example`;
        const claimed = await claimCallbacks(deps, merchant, claimBatchSize, { host });
        if (round >= 0) times.push(performance.now() - start);
        if (due.length !== merchants || claimed.length !== claimBatchSize) {
          throw new Error('there was not enough to claim');
        }
        await deps.database.pool.query(
          `update callbacks set lease = null, leased_until = null
           where merchant_id = $1 and due_at is not null`,
          [merchant.id],
        );
      }
    }
    const [few = 0, many = 0] = sides.map(({ times }) => median(times));
    return { few, many };
  } finally {
    await small.stop();
    await large.stop();
  }
}

async function createAccounts(deps: Deps): Promise<Account[]> {
  return await Promise.all(Array.from({ length: merchants }, () => createAccount(deps)));
}

async function startReceivers(): Promise<{ urls: string[]; stop(): void }> {
  const file = fileURLToPath(new URL('receiver.ts', import.meta.url));
  const child: ChildProcess = fork(file, [String(merchants)]);
  const ports = await new Promise<number[]>((resolve, reject) => {
    child.once('message', (message) => resolve(message as number[]));
    child.once('exit', () => reject(new Error('the receivers ended')));
  });
  return {
    urls: ports.map((port) => `http://127.0.0.1:${port}/tranche/callback`),
    stop: () => child.disconnect(),
  };
}

/** Sends the same requests with the least code that can. */
async function postBare(urls: string[], accounts: Account[], count: number): Promise<number> {
  const agent = new Agent({ pipelining: 1 });
  const body = Buffer.from(payload);
  let left = count;
  const post = async (index: number) => {
    const url = urls[index] ?? '';
    const key = accounts[index]?.signing_key ?? '';
    while (left > 0) {
      left -= 1;
      const id = randomUUID();
      const seconds = String(Math.floor(Date.now() / 1000));
      const signed = Buffer.concat([Buffer.from(`${id}.${seconds}.`), body]);
      const answer = await request(url, {
        method: 'POST',
        dispatcher: agent,
        body,
        headers: {
          'content-type': 'application/json',
          'x-signature': sign(key, body),
          'user-agent': 'Tranche-Callback/1',
          'x-callback-id': id,
          'x-callback-attempt': '1',
          'webhook-id': id,
          'webhook-timestamp': seconds,
          'webhook-signature': `v1,${createHmac('sha256', key).update(signed).digest('base64')}`,
        },
      });
      await answer.body.dump();
      if (answer.statusCode !== 200) throw new Error(`the receiver said ${answer.statusCode}`);
    }
  };
  const start = performance.now();
  await Promise.all(Array.from({ length: concurrency }, (_, index) => post(index % merchants)));
  const perSecond = (count / (performance.now() - start)) * 1000;
  await agent.close();
  return perSecond;
}

/** Writes due callbacks, spread evenly over the merchants, without checkouts. */
async function queue(
  deps: Deps,
  accounts: Account[],
  urls: string[],
  count: number,
): Promise<void> {
  await insertCallbacks(deps, accounts, urls, count, 'pending');
  await deps.database.pool.query('analyze callbacks');
}

async function fillDelivered(
  deps: Deps,
  accounts: Account[],
  count: number,
  progress: (text: string) => void,
): Promise<void> {
  const step = 100_000;
  for (let made = 0; made < count; made += step) {
    progress(`callbacks: ${made} of ${count} delivered ones made`);
    await insertCallbacks(deps, accounts, shopUrls, Math.min(step, count - made), 'delivered');
  }
}

async function insertCallbacks(
  deps: Deps,
  accounts: Account[],
  urls: string[],
  count: number,
  status: 'pending' | 'delivered',
): Promise<void> {
  const now = timestamp(deps.clock.now());
  const client = await deps.database.pool.connect();
  try {
    await client.query('begin');
    await client.query('set local session_replication_role = replica');
    for (const [index, account] of accounts.entries()) {
      await client.query(
        `insert into callbacks (merchant_id, id, checkout_id, listed_id, integration_id, notify_url,
           host, payload, status, created_at, due_at, delivered_at, attempts, run_attempts)
         select $1, uuidv7(), checkout_id, checkout_id, $2, $3, $8, $4, $5::text, $6::timestamptz,
           case when $5 = 'pending' then $6::timestamptz end,
           case when $5 = 'delivered' then $6::timestamptz end,
           case when $5 = 'delivered' then 1 else 0 end, case when $5 = 'delivered' then 1 else 0 end
         from (select uuidv7() as checkout_id from generate_series(1, $7::int)) checkouts`,
        [
          ...[account.merchant.id, account.id, urls[index], Buffer.from(payload), status, now],
          // If the count cannot be divided evenly, the first merchants have one more each.
          Math.floor(count / accounts.length) + (index < count % accounts.length ? 1 : 0),
          new URL(urls[index] ?? '').host,
        ],
      );
    }
    await client.query('commit');
  } finally {
    client.release();
  }
}

async function countUndelivered(deps: Deps, count: number): Promise<number> {
  const { rows } = await deps.database.pool.query(
    `select count(*) from callbacks c
     where status = 'delivered' and exists (
       select from callback_attempts a where a.merchant_id = c.merchant_id
         and a.callback_id = c.id and a.outcome = 'delivered' and a.response_status = 200)`,
  );
  return count - rows[0].count;
}

/** CPU seconds that a server's processes have used; 0 where /proc does not exist. */
function cpuSecondsOf(postmaster: number): number {
  try {
    const used = readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map((pid) => {
        try {
          const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
            .replace(/^.*\) /, '')
            .split(' ');
          const [parent, user, system] = [fields[1], fields[11], fields[12]].map(Number);
          return parent === postmaster ? (user ?? 0) + (system ?? 0) : 0;
        } catch {
          return 0;
        }
      });
    return used.reduce((sum, ticks) => sum + ticks, 0) / 100;
  } catch {
    return 0;
  }
}
