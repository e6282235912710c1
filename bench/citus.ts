import pg from 'pg';
import { distributeDatabase } from '#platform/database/distribute-database.ts';
import { median } from './create.ts';
import { measure, sell, serveAfter } from './sale.ts';
import { type Account, type BenchDatabase, prepareDatabase, readPid } from './service.ts';
import { type Cost, createSale, openShop, type Shop, untilSettled } from './shop.ts';

/** A step on one server and on Citus: medians of the rounds, in milliseconds. */
export type CitusStep = { step: string; plain: Cost; citus: Cost };

export type CitusResult = {
  steps: CitusStep[];
  /** How many rows of `postings` each Citus worker has. */
  rows: number[];
};

type Options = {
  /** The superusers' addresses of one server, and of a coordinator that knows its workers. */
  plain: string;
  citus: string;
  creates: number;
  sales: number;
  deliveries: number;
  rounds: number;
};

type Progress = (text: string) => void;
type Steps = Record<string, Cost>;

const merchants = 24;
const callers = 64;
const idleSeconds = 10;

/**
 * Does the same work in turns on one PostgreSQL server and on a Citus cluster, all of them on this
 * machine, and reads the processor time of each part.
 */
export async function benchCitus(options: Options, progress: Progress): Promise<CitusResult> {
  const urls = [options.plain, options.citus];
  const shops: Shop[] = [];
  try {
    for (const url of urls) {
      progress('citus: preparing a database');
      shops.push(await openShop(callers, openDatabase(url), merchants));
    }
    for (const shop of shops) {
      progress('citus: warming up');
      await measureAll(shop, options, () => {});
      await shop.own.query('analyze');
    }
    const rounds: Steps[][] = [];
    for (let round = 1; round <= options.rounds; round += 1) {
      const both: Steps[] = [];
      for (const [side, shop] of shops.entries()) {
        const name = `citus: round ${round}, ${['plain', 'citus'][side]}`;
        both.push(await measureAll(shop, options, (step) => progress(`${name}, ${step}`)));
      }
      rounds.push(both);
    }
    const middle = (side: number, step: string): Cost => {
      const costs = rounds.map((both) => both[side]?.[step] as Cost);
      const of = (part: keyof Cost) => median(costs.map((cost) => cost[part]));
      return { service: of('service'), database: of('database'), workers: of('workers') };
    };
    const steps = Object.keys(rounds[0]?.[0] ?? {}).map((step) => {
      return { step, plain: middle(0, step), citus: middle(1, step) };
    });
    return { steps, rows: await countRows((shops[1] as Shop).own) };
  } finally {
    for (const shop of shops) await shop.close();
  }
}

async function measureAll(shop: Shop, options: Options, progress: Progress): Promise<Steps> {
  progress('creates');
  const together = await measure(shop, options.creates, () => createAll(shop, options.creates));
  progress('creates of one merchant');
  const one = { ...shop, accounts: shop.accounts.slice(0, 1) };
  const alone = await measure(shop, options.creates, () => createAll(one, options.creates));
  const { sales, steps } = await sell(shop, options.sales, progress);
  const after = await serveAfter(shop, sales, progress);
  progress('deliveries');
  await queueDeliveries(shop, options.deliveries);
  const deliveries = await measure(shop, options.deliveries, () => untilSettled(shop));
  progress('idle');
  const pause = () => new Promise<void>((resolve) => setTimeout(resolve, 1_000 * idleSeconds));
  const idle = await measure(shop, idleSeconds, pause);
  return {
    'create, 64 at once': together,
    'create, 64 at once of one merchant': alone,
    ...steps,
    ...after,
    delivery: deliveries,
    'a second without work': idle,
  };
}

async function createAll(shop: Shop, count: number): Promise<void> {
  let left = count;
  await Promise.all(
    Array.from({ length: callers }, async () => {
      for (left -= 1; left >= 0; left -= 1) await createSale(shop);
    }),
  );
}

/** Writes callbacks of checkouts that were created, and makes all of them due at once. */
async function queueDeliveries({ own, deps, accounts, notifyUrl }: Shop, count: number) {
  const each = Math.ceil(count / accounts.length);
  const payload = Buffer.from(JSON.stringify({ status: 'successful', amount: 150_000 }));
  await own.query('begin');
  for (const { merchant, id } of accounts as Account[]) {
    const ids = Array.from({ length: each }, () => deps.random.uuid());
    const { rows } = await own.query<{ id: string }>(
      `select id from checkouts c where merchant_id = $1 and status = 'received' and not exists (
         select from callbacks b where b.merchant_id = c.merchant_id and b.checkout_id = c.id)
       limit $2`,
      [merchant.id, each],
    );
    await own.query(
      `insert into callbacks (merchant_id, id, checkout_id, listed_id, integration_id, notify_url,
         host, payload, status, created_at, due_at, attempts, run_attempts)
       select $1::uuid, c.id, c.checkout_id, c.checkout_id, $2::uuid, $3, $7, $4::bytea, 'pending',
         now(), now(), 0, 0
       from unnest($5::uuid[], $6::uuid[]) c (id, checkout_id)`,
      [
        merchant.id,
        id,
        notifyUrl,
        payload,
        ids,
        rows.map((row) => row.id),
        new URL(notifyUrl).host,
      ],
    );
  }
  await own.query('commit');
}

/** Creates a database on a server or a Citus cluster. It is dropped at the end. */
async function openDatabase(server: string): Promise<BenchDatabase> {
  const name = `bench_${process.pid}_${Date.now()}`;
  const nodes = await listNodes(server);
  for (const node of nodes) await ask(node, `create database ${name}`);
  const urls = nodes.map((node) => withDatabase(node, name));
  const [url = '', ...workers] = urls;
  if (workers.length > 0) await join(urls);
  const deps = await prepareDatabase(url, 2);
  if (workers.length > 0) await distributeDatabase(deps.database);
  const [pid = 0, ...workerPids] = await Promise.all(urls.map(readPostmaster));
  return {
    ...{ url, pid, workers: workerPids, logFile: '', deps },
    listPids: (connection) => listPids(connection, workers),
    async stop() {
      await deps.close();
      for (const node of nodes) await ask(node, `drop database ${name} with (force)`);
    },
  };
}

/**
 * The processes that serve a connection. On Citus each worker has one more, whose name contains the
 * connection's id.
 */
async function listPids(connection: pg.ClientBase, workers: string[]): Promise<number[]> {
  const pids = [await readPid(connection)];
  if (workers.length === 0) return pids;
  await connection.query('set citus.max_adaptive_executor_pool_size = 1');
  await connection.query(`set citus.max_cached_connection_lifetime = '1d'`);
  await connection.query('select count(*) from checkouts');
  const { rows } = await connection.query('select citus_backend_gpid() as id');
  for (const worker of workers) {
    const found = await ask(
      worker,
      `select pid from pg_stat_activity where application_name like '%gpid=${rows[0].id}'`,
    );
    pids.push(...found.map(({ pid }) => Number(pid)));
  }
  return pids;
}

/** The addresses of the nodes: the coordinator first, or the only server. */
async function listNodes(server: string): Promise<string[]> {
  const found = await ask(server, `select from pg_extension where extname = 'citus'`);
  if (found.length === 0) return [server];
  const workers = await ask(
    server,
    'select nodename, nodeport from pg_dist_node where groupid <> 0 order by groupid',
  );
  return [
    server,
    ...workers.map(({ nodename, nodeport }) => {
      const url = new URL(server);
      url.host = `${nodename}:${nodeport}`;
      return url.href;
    }),
  ];
}

function withDatabase(server: string, name: string): string {
  const url = new URL(server);
  url.pathname = `/${name}`;
  return url.href;
}

async function join(urls: string[]): Promise<void> {
  for (const url of urls) await ask(url, 'create extension citus');
  const [coordinator = '', ...workers] = urls;
  const address = (url: string) => `'${new URL(url).hostname}', ${new URL(url).port}`;
  await ask(coordinator, `select citus_set_coordinator_host(${address(coordinator)})`);
  for (const worker of workers) {
    await ask(coordinator, `select citus_add_node(${address(worker)})`);
  }
}

/** The process of the server, which runs on this machine. */
async function readPostmaster(url: string): Promise<number> {
  const [row] = await ask(url, `select pg_read_file('postmaster.pid') as file`);
  return Number(String(row?.file).split('\n')[0]);
}

async function countRows(own: pg.ClientBase): Promise<number[]> {
  const { rows } = await own.query<{ result: string }>(
    `select nodeport, sum(result::bigint) as result
     from run_command_on_shards('postings', 'select count(*) from %s') r
     join citus_shards using (shardid) group by nodeport order by nodeport`,
  );
  return rows.map(({ result }) => Number(result));
}

async function ask(url: string, statement: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(statement)).rows;
  } finally {
    await client.end();
  }
}
