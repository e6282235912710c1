import { type ChildProcess, execFile, spawn } from 'node:child_process';
import fs from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { programIn } from '#hosting/embedded-postgres/binaries.ts';
import { prepareCluster } from '#hosting/embedded-postgres/cluster.ts';
import { serverEnvironment } from '#hosting/embedded-postgres/run-program.ts';
import { startEmbeddedPostgres } from '#hosting/embedded-postgres/server.ts';
import { freePorts } from '#platform/shared/free-ports.ts';
import { until } from '../support/until.ts';

// A primary and a synchronous standby, with nothing but the embedded PostgreSQL. An acknowledged
// commit is on both, so that a failover loses nothing.

const quiet = { info: () => {}, warn: () => {}, error: () => {} };

type Server = { data: string; port: number; process: ChildProcess };

export type Pair = {
  /** The addresses of both servers. The service finds the one that takes writes. */
  url: string;
  /** The address of the server that is the primary now. */
  primaryUrl(): string;
  /** Kills the primary and starts it again. */
  crash(): Promise<void>;
  /** Kills the primary, promotes the standby, and makes another standby. */
  failOver(): Promise<void>;
  stop(): Promise<void>;
};

export async function startPair(folder: string): Promise<Pair> {
  const dataDir = path.join(folder, 'database');
  // This call makes the cluster and its password. From then on both servers are run from here.
  const made = await startEmbeddedPostgres({ dataDir, log: quiet, settings: { fsync: 'off' } });
  const { username, password } = new URL(made.url);
  await made.stop();
  const { account, binaries, home, data } = await prepareCluster(dataDir);
  const ports = await freePorts(2);
  const address = (hosts: string) => `postgresql://${username}:${password}@${hosts}/tranche`;
  const log = await fs.open(path.join(folder, 'postgres.log'), 'a');
  let copies = 0;

  const spawnServer = (data: string, port: number, source?: number): Server => {
    const from = `host=127.0.0.1 port=${source} user=${username} password=${password}`;
    const settings = {
      ...{ port: String(port), wal_keep_size: '512MB', hot_standby: 'on' },
      ...(source && { primary_conninfo: `${from} application_name=standby` }),
    };
    const args = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    const child = spawn(programIn(binaries, 'postgres'), ['-D', data, ...args], {
      ...{ cwd: home, env: serverEnvironment, stdio: ['ignore', log.fd, log.fd] },
      ...account,
    });
    return { data, port, process: child };
  };
  const on = async <T>(server: Server, work: (client: pg.Client) => Promise<T>): Promise<T> => {
    const client = new pg.Client({ connectionString: address(`127.0.0.1:${server.port}`) });
    client.on('error', () => {});
    await client.connect();
    return await work(client).finally(() => client.end());
  };
  const answers = (server: Server, sql: string) =>
    on(server, async (client) => (await client.query(sql)).rows.length > 0).catch(() => false);
  const kill = async ({ process: child }: Server) => {
    const exited = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await exited;
  };
  /** Children of a killed server keep its port and its folder until they notice. */
  const start = async (data: string, port: number): Promise<Server> => {
    let server = spawnServer(data, port);
    await until('PostgreSQL', () => {
      if (server.process.exitCode !== null) server = spawnServer(data, port);
      return answers(server, 'select 1');
    });
    return server;
  };
  const addStandby = async (primary: Server, port: number): Promise<Server> => {
    copies += 1;
    const copy = path.join(home, `copy-${copies}`);
    await on(primary, async (client) => {
      await client.query(`select pg_backup_start('standby', true)`);
      // Files may disappear while they are copied. The log that follows brings the copy up to date.
      await promisify(execFile)('cp', ['-a', primary.data, copy]).catch(() => {});
      const { rows } = await client.query('select labelfile from pg_backup_stop()');
      await fs.writeFile(path.join(copy, 'backup_label'), rows[0].labelfile);
    });
    await fs.rm(path.join(copy, 'postmaster.pid'), { force: true });
    await fs.writeFile(path.join(copy, 'standby.signal'), '');
    for (const name of ['backup_label', 'standby.signal']) {
      if (account) await fs.chown(path.join(copy, name), account.uid, account.gid);
    }
    let standby = spawnServer(copy, port, primary.port);
    await until('the standby', () => {
      if (standby.process.exitCode !== null) standby = spawnServer(copy, port, primary.port);
      return answers(primary, `select 1 from pg_stat_replication where state = 'streaming'`);
    });
    await on(primary, async (client) => {
      await client.query(`alter system set synchronous_standby_names = 'standby'`);
      await client.query('select pg_reload_conf()');
    });
    await until('the standby to be synchronous', () =>
      answers(primary, `select 1 from pg_stat_replication where sync_state = 'sync'`),
    );
    return standby;
  };

  let primary = await start(data, ports[0] as number);
  let standby = await addStandby(primary, ports[1] as number);
  return {
    url: `${address(ports.map((port) => `127.0.0.1:${port}`).join())}?target_session_attrs=read-write`,
    primaryUrl: () => address(`127.0.0.1:${primary.port}`),
    async crash() {
      await kill(primary);
      primary = await start(primary.data, primary.port);
      await until('the standby to follow', () =>
        answers(primary, `select 1 from pg_stat_replication where sync_state = 'sync'`),
      );
    },
    async failOver() {
      const { port } = primary;
      await kill(primary);
      await on(standby, (client) => client.query('select pg_promote(true, 60)'));
      primary = standby;
      standby = await addStandby(primary, port);
    },
    async stop() {
      await kill(standby);
      await kill(primary);
      await log.close();
    },
  };
}
