import { setTimeout as sleep } from 'node:timers/promises';
import type { Network } from './network.ts';
import type { Servers } from './servers.ts';
import { eventually } from './servers.ts';
import type { Service } from './service.ts';

export type Scene = { servers: Servers; service: Service; network: Network };

export type Event = {
  name: string;
  /** A node dies with requests in flight, so some connections close without an answer. */
  cutsRequests?: true;
  needsCables?: true;
  /** Ends when everything that the event disturbed works again. */
  run(scene: Scene, round: number): Promise<void>;
};

/** This is longer than Patroni's ttl, so that another server is promoted meanwhile. */
const awayMilliseconds = 40_000;

/** The server returns long after another one was promoted, and must notice that. */
const stoppedMilliseconds = 60_000;

export const signalAll = (pids: number[], signal: NodeJS.Signals) => {
  for (const pid of pids) {
    try {
      process.kill(pid, signal);
    } catch {
      // The process has ended meanwhile.
    }
  }
};

export const events: Event[] = [
  {
    name: 'switchover',
    async run({ servers }) {
      const before = await servers.primary();
      await servers.switchover();
      await eventually('another primary', async () => (await servers.primary()) !== before);
      await servers.healthy();
    },
  },
  {
    name: 'SIGKILL of primary and Patroni',
    async run({ servers }) {
      const before = await servers.primary();
      const patroni = servers.patroni(before);
      const pids = servers.postgresPids(before);
      signalAll([patroni.pid, ...pids], 'SIGKILL');
      await patroni.exited;
      await eventually('another primary', async () => (await servers.primary()) !== before);
      servers.startPatroni(before);
      await servers.healthy();
    },
  },
  {
    name: 'HAProxy restart',
    async run({ servers }) {
      await servers.proxy.restart();
    },
  },
  {
    name: 'SIGKILL of a tranche node',
    cutsRequests: true,
    async run({ service }, round) {
      const node = service.nodes[round % service.nodes.length];
      node?.child().signal('SIGKILL');
      await node?.child().exited;
      await node?.start();
    },
  },
  {
    name: 'SIGSTOP of the primary for 60 s',
    async run({ servers }) {
      const before = await servers.primary();
      const patroni = servers.patroni(before);
      const pids = [patroni.pid, ...servers.postgresPids(before)];
      signalAll(pids, 'SIGSTOP');
      await sleep(stoppedMilliseconds);
      signalAll(pids, 'SIGCONT');
      await servers.healthy();
    },
  },
  {
    name: 'etcd down 30 s',
    async run({ servers }) {
      await servers.etcd.stop();
      await sleep(30_000);
      await servers.etcd.start();
      await servers.healthy();
    },
  },
  {
    name: 'rolling restart of tranche nodes',
    async run({ service }) {
      for (const node of service.nodes) {
        node.child().signal('SIGTERM');
        await node.child().exited;
        await node.start();
        // HAProxy has to see that this node is back before the next one stops.
        await sleep(1_500);
      }
    },
  },
  {
    name: 'network of the primary cut',
    needsCables: true,
    async run({ servers, network }) {
      const before = await servers.primary();
      network.setCable(before, 'down');
      await sleep(awayMilliseconds);
      network.setCable(before, 'up');
      await servers.healthy();
    },
  },
];
