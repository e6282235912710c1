import fs from 'node:fs';
import path from 'node:path';
import { freePorts } from '#platform/shared/free-ports.ts';
import type { Child, Children } from './children.ts';
import type { Parts } from './parts.ts';
import { eventually } from './servers.ts';

// Two nodes of the service, and HAProxy in front of them as clients see it.

const entry = path.join(import.meta.dirname, '../../src/cli/main.ts');

/** The retry rules that operators get, so that this test proves them. The console has its own. */
const [given = []] = fs
  .readFileSync(path.join(import.meta.dirname, '../../ops/container/haproxy.cfg'), 'utf8')
  .split(/^frontend console$/m)
  .map((part) => part.split('\n'));
const retries = given.filter((line) => /^ +(option redispatch|retries|retry-on) /.test(line));
const retryRules = given.filter((line) => /^ +(acl|http-request disable-l7-retry) /.test(line));

export type Node = {
  name: string;
  url: string;
  child(): Child;
  /** Starts the node again after it has ended. */
  start(): Promise<void>;
  /** Resolves once the node serves, and rejects if the node ends first. */
  ready(): Promise<void>;
};

export type Service = {
  /** The address that clients call. */
  url: string;
  nodes: Node[];
  /** Processes that ended though no event killed them. */
  casualties(): string[];
};

export async function startNode(
  children: Children,
  name: string,
  options: { databaseUrl: string; baseUrl: string; env: NodeJS.ProcessEnv },
  givenPort?: number,
): Promise<Node> {
  const [freePort = 0, metrics = 0, console = 0, mailbox = 0] = await freePorts(4);
  const port = givenPort ?? freePort;
  const url = `http://127.0.0.1:${port}`;
  const launch = () =>
    children.start(name, [process.execPath, entry, 'serve'], {
      ...options.env,
      DATABASE_URL: options.databaseUrl,
      DATA_DIR: path.join(children.folder, name),
      BASE_URL: options.baseUrl,
      HOST: '127.0.0.1',
      PORT: String(port),
      METRICS_PORT: String(metrics),
      CONSOLE_PORT: String(console),
      MAILBOX_PORT: String(mailbox),
      RATE_LIMIT_STORE: 'postgres',
      // This is the production value. A request that a failover delayed may take long on a busy
      // machine.
      DRAIN_SECONDS: '10',
      LOG_LEVEL: 'warn',
    });
  let child = launch();
  const node: Node = {
    name,
    url,
    child: () => child,
    async start() {
      child = launch();
      await node.ready();
    },
    async ready() {
      const ended = child.exited.then(() => {
        throw new Error(`${name} did not start: its log says why`);
      });
      ended.catch(() => {});
      const isReady = async () => {
        const signal = AbortSignal.timeout(5_000);
        return (await fetch(`${url}/readyz`, { signal })).status === 200;
      };
      await Promise.race([eventually(`${name} to be ready`, isReady), ended]);
    },
  };
  return node;
}

export async function startNodes(
  parts: Parts,
  children: Children,
  options: { databaseUrls: string[]; env: NodeJS.ProcessEnv },
): Promise<Service> {
  const { folder } = children;
  const [frontPort = 0] = await freePorts(1);
  const url = `http://127.0.0.1:${frontPort}`;
  const nodes: Node[] = [];
  for (const [index, databaseUrl] of options.databaseUrls.entries()) {
    const one = { databaseUrl, baseUrl: url, env: options.env };
    const node = await startNode(children, `node-${index + 1}`, one);
    // The nodes start one after the other, because the first one migrates the database.
    await node.ready();
    nodes.push(node);
  }
  const file = path.join(folder, 'clients.cfg');
  fs.writeFileSync(
    file,
    [
      'global',
      '  maxconn 8000',
      '  log stdout format raw local0',
      'defaults',
      '  mode http',
      // The log has only what failed, with HAProxy's reason.
      '  log global',
      '  option httplog',
      '  option dontlog-normal',
      '  timeout connect 2s',
      '  timeout client 120s',
      '  timeout server 60s',
      // A busy machine answers checks late.
      '  timeout check 5s',
      ...retries,
      'frontend public',
      `  bind 127.0.0.1:${frontPort}`,
      ...retryRules,
      // While the database does not answer, no node is ready. Requests then wait at the nodes that
      // are alive.
      '  use_backend ready if { nbsrv(ready) gt 0 }',
      '  default_backend alive',
      ...['ready', 'alive'].flatMap((name) => [
        `backend ${name}`,
        '  balance leastconn',
        // A busy node is alive: it need not answer in time, only accept connections.
        ...(name === 'ready'
          ? ['  option httpchk GET /readyz', '  http-check expect status 200']
          : []),
        '  default-server check inter 500ms fall 2 rise 1',
        ...nodes.map((node) => `  server ${node.name} ${new URL(node.url).host}`),
      ]),
      '',
    ].join('\n'),
  );
  const front = children.start('clients-haproxy', [parts.haproxy, '-db', '-f', file]);
  await eventually('HAProxy', async () => (await fetch(`${url}/healthz`)).ok);
  return {
    url,
    nodes,
    casualties: () =>
      [front, ...nodes.map((node) => node.child())]
        .filter((child) => child.hasExited())
        .map(({ name }) => name),
  };
}
