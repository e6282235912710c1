import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePorts } from '#platform/shared/free-ports.ts';
import type { Child, Children } from './children.ts';
import type { Network } from './network.ts';
import type { Parts } from './parts.ts';

// Three PostgreSQL servers under Patroni, an etcd, and HAProxy in front of them.

export const serverCount = 3;

/** The shortest `ttl` that Patroni accepts. A failover then fits into the deadline of a request. */
const dcs = { ttl: 20, loop_wait: 5, retry_timeout: 5 };

type Member = {
  name: string;
  role: string;
  state: string;
  timeline?: number;
  lag?: number | string;
};

export type Servers = {
  /** The address of HAProxy, which finds the primary. */
  proxiedUrl: string;
  /** The addresses of all servers, among which the service finds the primary. */
  directUrl: string;
  primary(): Promise<number>;
  members(): Promise<Member[]>;
  /** Waits until a primary has two standbys that follow it, one of them synchronous. */
  healthy(): Promise<void>;
  switchover(): Promise<void>;
  patroni(node: number): Child;
  startPatroni(node: number): void;
  /** PostgreSQL of a node: its postmaster and all its children. */
  postgresPids(node: number): number[];
  etcd: { stop(): Promise<void>; start(): Promise<void> };
  proxy: { restart(): Promise<void> };
  /** Processes that ended though no event killed them. */
  casualties(): string[];
};

export async function startServers(
  parts: Parts,
  network: Network,
  children: Children,
): Promise<Servers> {
  const { folder } = children;
  const [etcdPort = 0, peerPort = 0, proxyPort = 0, ...others] = await freePorts(
    3 + 2 * serverCount,
  );
  const nodes = Array.from({ length: serverCount }, (_, index) => ({
    index,
    name: `database-${index + 1}`,
    address: network.addressOf(index),
    port: others[2 * index] ?? 0,
    rest: others[2 * index + 1] ?? 0,
    data: path.join(folder, `data-${index + 1}`),
  }));
  const user = process.getuid?.() === 0 ? 'postgres' : null;
  const asUser = user
    ? [parts.setpriv ?? '', `--reuid=${user}`, `--regid=${user}`, '--clear-groups']
    : [];
  if (user) spawnSync('chown', [user, folder]);

  const etcdUrl = `http://${network.outside}:${etcdPort}`;
  let etcd: Child;
  const startEtcd = async () => {
    const peer = `http://127.0.0.1:${peerPort}`;
    etcd = children.start('etcd', [
      ...[parts.etcd, '--name', 'etcd', '--data-dir', path.join(folder, 'etcd')],
      ...['--listen-client-urls', etcdUrl, '--advertise-client-urls', etcdUrl],
      ...['--listen-peer-urls', peer, '--initial-advertise-peer-urls', peer],
      ...['--initial-cluster', `etcd=${peer}`, '--enable-v2=false'],
    ]);
    await eventually('etcd', async () => (await fetch(`${etcdUrl}/health`)).ok);
  };

  const started: Child[] = [];
  const patronis: Child[] = [];
  const startPatroni = (index: number) => {
    const node = nodes[index] as (typeof nodes)[number];
    const file = path.join(folder, `${node.name}.json`);
    const account = (username: string) => ({ username, password: 'of-the-cluster' });
    const config = {
      scope: 'tranche',
      name: node.name,
      restapi: {
        listen: `${node.address}:${node.rest}`,
        connect_address: `${node.address}:${node.rest}`,
      },
      etcd3: { host: `${network.outside}:${etcdPort}` },
      bootstrap: {
        dcs: {
          ...dcs,
          failsafe_mode: true,
          synchronous_mode: true,
          synchronous_mode_strict: true,
          maximum_lag_on_failover: 1_048_576,
          postgresql: {
            use_pg_rewind: true,
            parameters: { max_connections: 100, shared_buffers: '64MB', wal_log_hints: 'on' },
          },
        },
        initdb: [{ encoding: 'UTF8' }, { locale: 'C.UTF-8' }, 'data-checksums'],
      },
      postgresql: {
        listen: `${node.address}:${node.port}`,
        connect_address: `${node.address}:${node.port}`,
        data_dir: node.data,
        bin_dir: parts.postgres,
        pgpass: path.join(folder, `pgpass-${index + 1}`),
        authentication: {
          superuser: account('postgres'),
          replication: account('replicator'),
          rewind: account('rewinder'),
        },
        parameters: { unix_socket_directories: folder },
        pg_hba: ['local all all trust', 'host all all all md5', 'host replication all all md5'],
      },
    };
    fs.writeFileSync(file, JSON.stringify(config));
    const child = children.start(node.name, [...network.on(index), ...asUser, parts.patroni, file]);
    patronis[index] = child;
    started.push(child);
  };

  let proxy: Child;
  const configureProxy = () => {
    const file = path.join(folder, 'databases.cfg');
    const servers = nodes.map(
      ({ name, address, port, rest }) => `  server ${name} ${address}:${port} check port ${rest}`,
    );
    fs.writeFileSync(
      file,
      [
        'defaults',
        '  mode tcp',
        '  timeout connect 2s',
        '  timeout client 30m',
        '  timeout server 30m',
        '  timeout check 2s',
        'listen primary',
        `  bind 127.0.0.1:${proxyPort}`,
        '  option httpchk GET /primary',
        '  http-check expect status 200',
        '  default-server inter 1s fall 3 rise 1 on-marked-down shutdown-sessions',
        ...servers,
        '',
      ].join('\n'),
    );
    return file;
  };
  const startProxy = () => {
    proxy = children.start('databases-haproxy', [parts.haproxy, '-db', '-f', configureProxy()]);
  };

  const askCluster = async (): Promise<Member[]> => {
    for (const { address, rest } of nodes) {
      try {
        const answer = await fetch(`http://${address}:${rest}/cluster`, {
          signal: AbortSignal.timeout(2_000),
        });
        if (answer.ok) return ((await answer.json()) as { members: Member[] }).members;
      } catch {
        // This node does not answer, so ask the next one.
      }
    }
    return [];
  };
  const isPrimary = async ({ address, rest }: (typeof nodes)[number]) => {
    try {
      const answer = await fetch(`http://${address}:${rest}/primary`, {
        signal: AbortSignal.timeout(2_000),
      });
      return answer.status === 200;
    } catch {
      return false;
    }
  };
  const primary = async () =>
    await eventually('a primary', async () => {
      const found = await Promise.all(nodes.map(isPrimary));
      const index = found.indexOf(true);
      return index >= 0 ? { index } : null;
    }).then(({ index }) => index);
  const healthy = async () => {
    await eventually(
      'a primary and two standbys',
      async () => {
        const members = await askCluster();
        const standbys = members.filter(
          ({ role, state }) => /sync_standby|replica/.test(role) && state === 'streaming',
        );
        const leaders = members.filter(
          ({ role, state }) => role === 'leader' && state === 'running',
        );
        const hasSync = standbys.some(({ role }) => role === 'sync_standby');
        return leaders.length === 1 && standbys.length === serverCount - 1 && hasSync;
      },
      180,
    );
  };

  const account = 'postgres:of-the-cluster';
  const hosts = nodes.map(({ address, port }) => `${address}:${port}`).join(',');
  await startEtcd();
  startPatroni(0);
  await primary();
  for (let index = 1; index < serverCount; index += 1) startPatroni(index);
  startProxy();
  await healthy();

  return {
    proxiedUrl: `postgres://${account}@127.0.0.1:${proxyPort}/tranche`,
    directUrl: `postgres://${account}@${hosts}/tranche?target_session_attrs=read-write`,
    primary,
    members: askCluster,
    healthy,
    async switchover() {
      const from = nodes[await primary()] as (typeof nodes)[number];
      const members = await askCluster();
      const candidate = members.find(({ role }) => role === 'sync_standby')?.name;
      const answer = await fetch(`http://${from.address}:${from.rest}/switchover`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ leader: from.name, candidate }),
      });
      if (!answer.ok) throw new Error(`the switchover was refused: ${await answer.text()}`);
    },
    patroni: (node) => patronis[node] as Child,
    startPatroni,
    postgresPids(node) {
      const file = path.join((nodes[node] as (typeof nodes)[number]).data, 'postmaster.pid');
      const postmaster = Number.parseInt(fs.readFileSync(file, 'utf8'), 10);
      return [postmaster, ...childrenOf(postmaster)];
    },
    etcd: {
      async stop() {
        etcd.signal('SIGKILL');
        await etcd.exited;
      },
      start: startEtcd,
    },
    proxy: {
      async restart() {
        proxy.signal('SIGKILL');
        await proxy.exited;
        startProxy();
      },
    },
    casualties: () =>
      [...patronis, etcd, proxy].filter((child) => child.hasExited()).map(({ name }) => name),
  };
}

/** The processes that a process started. */
export function childrenOf(parent: number): number[] {
  return fs
    .readdirSync('/proc')
    .map(Number)
    .filter((pid) => {
      if (!(pid > 0)) return false;
      try {
        const status = fs.readFileSync(`/proc/${pid}/stat`, 'utf8');
        return Number(status.slice(status.lastIndexOf(')') + 2).split(' ')[1]) === parent;
      } catch {
        return false;
      }
    });
}

/** Polls until the condition holds. An error means that it does not hold yet. */
export async function eventually<T>(
  what: string,
  condition: () => T | Promise<T>,
  seconds = 120,
): Promise<NonNullable<Exclude<T, false>>> {
  const end = performance.now() + seconds * 1_000;
  for (;;) {
    const value = await Promise.resolve()
      .then(condition)
      .catch(() => null);
    if (value) return value as NonNullable<Exclude<T, false>>;
    if (performance.now() > end) throw new Error(`waited ${seconds} seconds for ${what}`);
    await sleep(200);
  }
}
