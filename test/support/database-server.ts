import pg from 'pg';

/**
 * Services, commands and programs of the tests connect to databases at this address. They wait
 * longer than in production, because a busy machine may pause for longer than five seconds.
 */
export const serverUrl = patientUrl(process.env.TEST_DATABASE_URL ?? '');

function patientUrl(address: string): string {
  const url = URL.parse(address);
  url?.searchParams.set('connect_timeout', '120');
  return url?.href ?? address;
}

// If TEST_DATABASE_URL names the coordinator of a Citus cluster, the tests run on that cluster:
// their databases are made on all its nodes, and their tables are distributed.

/** The coordinator comes first. Without Citus, this is only the server. */
type Nodes = { urls: string[]; hasCitus: boolean };

let found: Nodes | undefined;

/**
 * Each call returns its own promise. The test runner attributes a test to a suite by the promises
 * that its file awaited, so files in one process must not await each other's.
 */
export async function findNodes(): Promise<Nodes> {
  found ??= await onDatabase(serverUrl, async (client): Promise<Nodes> => {
    const { rowCount } = await client.query(`select from pg_extension where extname = 'citus'`);
    if (rowCount === 0) return { urls: [serverUrl], hasCitus: false };
    const { rows } = await client.query<{ nodename: string; nodeport: number }>(
      'select nodename, nodeport from pg_dist_node where groupid <> 0 order by groupid',
    );
    const workers = rows.map(({ nodename, nodeport }) => {
      const worker = new URL(serverUrl);
      worker.hostname = nodename;
      worker.port = String(nodeport);
      return worker.href;
    });
    return { urls: [serverUrl, ...workers], hasCitus: true };
  });
  return found;
}

export async function onDatabase<T>(
  url: string,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> {
  if (url === '') throw new Error('TEST_DATABASE_URL is missing: run the tests with npm test');
  const client = new pg.Client({ connectionString: url });
  // A test may kill the server at any moment. The error can be ignored here, because the statement
  // in flight fails as well.
  client.on('error', () => {});
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/** Connections to the servers' own databases, which all test files of this process share. */
const administrators = new Map<string, pg.Pool>();

/** Runs a statement about whole databases on every node. */
export async function onEveryNode(statement: string): Promise<void> {
  for (const node of (await findNodes()).urls) {
    let pool = administrators.get(node);
    if (!pool) {
      pool = new pg.Pool({ connectionString: node, max: 4, allowExitOnIdle: true });
      pool.on('error', () => {});
      administrators.set(node, pool);
    }
    await patiently(() => pool.query(statement));
  }
}

/** A session that was told to end may take longer than the five seconds that the server waits. */
async function patiently(work: () => Promise<unknown>): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await work();
      return;
    } catch (error) {
      if ((error as { code?: string }).code !== '55006' || attempt === 10) throw error;
    }
  }
}

export function urlOf(database: string, node = serverUrl): string {
  const url = new URL(node);
  url.pathname = `/${database}`;
  return url.href;
}

/** The address of this database through a proxy that listens at a port of this machine. */
export function urlThrough(port: number, database: string): string {
  const url = new URL(database);
  url.host = `127.0.0.1:${port}`;
  // Otherwise the socket file of the server would be used.
  url.searchParams.delete('host');
  // Tests of broken connections need the time limit of production.
  url.searchParams.delete('connect_timeout');
  return url.href;
}

/** Joins the databases with this name on all nodes into a cluster. */
export async function joinCluster(name: string): Promise<void> {
  const urls = (await findNodes()).urls.map((node) => urlOf(name, node));
  for (const url of urls) await onDatabase(url, (client) => client.query('create extension citus'));
  const [coordinator = '', ...workers] = urls;
  await onDatabase(coordinator, async (client) => {
    // A few shards are enough to spread merchants over all nodes, and are created sooner.
    await client.query(`alter database ${name} set citus.shard_count = 4`);
    await client.query('select citus_set_coordinator_host($1, $2)', addressOf(coordinator));
    for (const worker of workers) {
      await client.query('select citus_add_node($1, $2)', addressOf(worker));
    }
    if (workers.length === 0) {
      await client.query(
        `select citus_set_node_property($1, $2, 'shouldhaveshards', true)`,
        addressOf(coordinator),
      );
    }
  });
}

function addressOf(url: string): [host: string, port: number] {
  const { hostname, port } = new URL(url);
  return [hostname, Number(port || 5432)];
}

/** Whether a session in a test database is waiting for a lock, on any node. */
export const isLockAwaited = async (pool: pg.Pool) => (await countLockWaits(pool)) > 0;

/** How many sessions in a test database are waiting for a lock, on any node. */
export async function countLockWaits(pool: pg.Pool): Promise<number> {
  const citus = await pool.query(`select from pg_extension where extname = 'citus'`);
  const { rowCount } = await pool.query(
    `select from ${citus.rowCount ? 'citus_stat_activity' : 'pg_stat_activity'}
     where datname = current_database() and wait_event_type = 'Lock'`,
  );
  return rowCount ?? 0;
}
