import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { freePorts } from '#platform/shared/free-ports.ts';
import type { Child, Children } from './children.ts';
import { isOlder, type Parts, readVersion } from './parts.ts';
import { eventually } from './servers.ts';
import { startNode } from './service.ts';

// PgBouncer in transaction mode between a node and the cluster.

/** From this version on PgBouncer keeps prepared statements in transaction mode. */
const preparedSince = [1, 21, 0] as const;

const password = 'of-the-cluster';

/**
 * Starts a node behind an unsuitable PgBouncer, where the node has to refuse to start, and then
 * behind a suitable one. Returns PgBouncer's version, the node's address (`url`) and what went
 * wrong (`damage`). If this PgBouncer is too old to be suitable, the address is null.
 */
export async function tryPooler(
  parts: Parts & { pgbouncer: string },
  children: Children,
  options: { databaseUrl: string; baseUrl: string; env: NodeJS.ProcessEnv },
): Promise<{ version: string; url: string | null; damage: string[] }> {
  const output = spawnSync(parts.pgbouncer, ['--version'], { encoding: 'utf8' });
  const version = readVersion(output.stdout) ?? [0, 0, 0];
  const keepsPrepared = !isOlder(version, [...preparedSince]);
  const [port = 0] = await freePorts(1);
  await onServer(options.databaseUrl, `create role pooled superuser login password '${password}'`);
  const damage: string[] = [];

  let pooler: Child | null = null;
  const startPooler = async (prepared: number | null) => {
    pooler?.signal('SIGKILL');
    await pooler?.exited;
    const file = path.join(children.folder, 'pgbouncer.ini');
    const { hostname, port: proxyPort } = new URL(options.databaseUrl);
    const database = `host=${hostname} port=${proxyPort} dbname=tranche user=pooled`;
    fs.writeFileSync(
      file,
      [
        '[databases]',
        `tranche = ${database} password=${password}`,
        '[pgbouncer]',
        'listen_addr = 127.0.0.1',
        `listen_port = ${port}`,
        'unix_socket_dir =',
        'auth_type = any',
        'pool_mode = transaction',
        'default_pool_size = 10',
        'max_client_conn = 200',
        // After a failed attempt to connect PgBouncer would wait for 15 seconds.
        'server_login_retry = 1',
        ...(prepared === null ? [] : [`max_prepared_statements = ${prepared}`]),
        '',
      ].join('\n'),
    );
    const asUser =
      process.getuid?.() === 0
        ? [parts.setpriv ?? '', '--reuid=postgres', '--regid=postgres', '--clear-groups']
        : [];
    pooler = children.start('pgbouncer', [...asUser, parts.pgbouncer, file]);
    await eventually('PgBouncer', () => onServer(pooledUrl, 'select 1'));
  };
  const pooledUrl = `postgres://pooled@127.0.0.1:${port}/tranche`;
  const node = { ...options, databaseUrl: pooledUrl };

  /** Starts a node that has to refuse. Returns what it said. */
  const refusal = async (name: string, message: RegExp): Promise<string> => {
    const { child } = await startNode(children, name, node);
    await Promise.race([child().exited, sleep(30_000)]);
    const text = fs.readFileSync(path.join(children.folder, `${name}.log`), 'utf8');
    if (!child().hasExited()) damage.push(`${name} started behind a PgBouncer that does not fit`);
    else if (!message.test(text)) damage.push(`${name} does not say why it refuses: ${text}`);
    child().signal('SIGKILL');
    return text;
  };

  await startPooler(keepsPrepared ? 0 : null);
  const said = await refusal('node-without-settings', /connection pooler/);
  for (const statement of said.match(/alter role pooled .*;/g) ?? []) {
    await onServer(options.databaseUrl, statement);
  }
  await startPooler(keepsPrepared ? 0 : null);
  await refusal('node-without-prepared', /1\.21 or newer and max_prepared_statements above 0/);
  if (!keepsPrepared) return { version: version.join('.'), url: null, damage };
  await startPooler(200);
  const { url, ready } = await startNode(children, 'node-pooled', node);
  await ready();
  return { version: version.join('.'), url, damage };
}

async function onServer(url: string, statement: string): Promise<true> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => {});
  await client.connect();
  try {
    await client.query(statement);
    return true;
  } finally {
    await client.end();
  }
}
