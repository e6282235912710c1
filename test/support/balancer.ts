import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { request } from './http.ts';

// A load balancer in front of several nodes, like HAProxy in ops/container/haproxy.cfg: it polls
// each node's /readyz, sends requests to the ready nodes in turn, and keeps its connections to them
// open. It never sends a request twice, so the client notices when a node cuts off a request.

const checkMilliseconds = 250;

/**
 * A node that has not been polled for this long, because the machine paused, is polled before it
 * gets a request.
 */
const staleMilliseconds = 1_000;

type Node = { url: string; agent: http.Agent; isReady: boolean; askedAt: number };

export type Balancer = {
  url: string;
  /** How many requests each node got. */
  requests(url: string): number;
  /** Adds a node. Returns once the node gets requests. */
  add(url: string): Promise<void>;
  remove(url: string): void;
  close(): Promise<void>;
};

export async function startBalancer(): Promise<Balancer> {
  const nodes = new Map<string, Node>();
  const counts = new Map<string, number>();
  let turn = 0;

  async function choose(): Promise<Node | undefined> {
    for (;;) {
      const ready = [...nodes.values()].filter(({ isReady }) => isReady);
      turn += 1;
      const node = ready[turn % ready.length];
      if (!node || performance.now() - node.askedAt < staleMilliseconds) return node;
      await check(node);
    }
  }

  const server = http.createServer(async (incoming, outgoing) => {
    const node = await choose();
    if (!node) {
      outgoing.writeHead(503).end('no node is ready');
      return;
    }
    counts.set(node.url, (counts.get(node.url) ?? 0) + 1);
    const { method, headers } = incoming;
    const passed = http.request(
      `${node.url}${incoming.url}`,
      { method, headers: { ...headers, connection: 'keep-alive' }, agent: node.agent },
      (answer) => {
        const { connection: _, ...rest } = answer.headers;
        outgoing.writeHead(answer.statusCode ?? 502, rest);
        answer.pipe(outgoing);
      },
    );
    passed.on('error', (error) => {
      if (!outgoing.headersSent) outgoing.writeHead(502);
      outgoing.end(String(error));
    });
    incoming.pipe(passed);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));

  async function check(node: Node): Promise<void> {
    const askedAt = performance.now();
    const answer = await request(`${node.url}/readyz`).catch(() => null);
    node.askedAt = askedAt;
    node.isReady = answer?.status === 200;
  }
  let closed = false;
  const checking = (async () => {
    while (!closed) {
      await Promise.all([...nodes.values()].map(check));
      await sleep(checkMilliseconds);
    }
  })();

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests: (url) => counts.get(url) ?? 0,
    async add(url) {
      const agent = new http.Agent({ keepAlive: true });
      const node = { url, agent, isReady: false, askedAt: 0 };
      while (!node.isReady) await check(node);
      nodes.set(url, node);
    },
    remove(url) {
      nodes.get(url)?.agent.destroy();
      nodes.delete(url);
    },
    async close() {
      closed = true;
      await checking;
      for (const { agent } of nodes.values()) agent.destroy();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
