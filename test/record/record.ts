import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createChildren } from '../cluster/children.ts';
import { createMerchant } from '../cluster/merchants.ts';
import { type Node, startNode } from '../cluster/service.ts';
import { publishableKey, secretKey, startGateway } from '../support/gateway.ts';
import { startReceiver } from '../support/receiver.ts';
import { readEverything, startClients } from './clients.ts';
import { createRecorder, type Operation } from './history.ts';
import { type Pair, startPair } from './pair.ts';

// Records a load with faults: two nodes of the service on a primary with a synchronous standby.

type Stage = { pair: Pair; nodes: Node[]; random(): number };

/** The faults by name. Each function returns when everything works again. */
const faults: Record<string, (stage: Stage) => Promise<void>> = {
  'a node is killed': async ({ nodes, random }) => {
    const node = nodes[Math.floor(random() * nodes.length)] as Node;
    node.child().signal('SIGKILL');
    await node.child().exited;
    await node.start();
  },
  'PostgreSQL is killed': ({ pair }) => pair.crash(),
  failover: ({ pair }) => pair.failOver(),
};

export type Recording = {
  seconds: number;
  random(): number;
  write(operation: Operation): void;
  say(line: string): void;
};

export async function record({ seconds, random, write, say }: Recording): Promise<void> {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'tranche-record-'));
  fs.chmodSync(folder, 0o711);
  const children = createChildren(folder);
  const ends: (() => Promise<unknown>)[] = [];
  try {
    const gateway = await startGateway();
    ends.unshift(() => gateway.close());
    const receiver = await startReceiver();
    ends.unshift(() => receiver.close());
    const pair = await startPair(folder);
    ends.unshift(() => pair.stop());
    const env = {
      MASTER_KEY: Buffer.alloc(32, 7).toString('base64'),
      STRIPE_SECRET_KEY: secretKey,
      STRIPE_PUBLISHABLE_KEY: publishableKey,
      TEST_GATEWAY_URL: gateway.url,
    };
    ends.unshift(() => children.killAll());
    const nodes: Node[] = [];
    for (const name of ['node-1', 'node-2']) {
      const baseUrl = nodes[0]?.url ?? 'http://127.0.0.1';
      const node = await startNode(children, name, { databaseUrl: pair.url, baseUrl, env });
      await node.ready();
      nodes.push(node);
    }
    const commandEnv = { ...env, BASE_URL: nodes[0]?.url, DATABASE_URL: pair.primaryUrl() };
    const merchants = [];
    for (const name of ['Bean There', 'Loom and Thread']) {
      // Refunds that a person reviews can be requested on the day of the purchase.
      merchants.push(await createMerchant(commandEnv, name, { refunds: 'manual' }));
    }
    const recorder = createRecorder(write);
    const node = () => (nodes[Math.floor(random() * nodes.length)] as Node).url;
    const scene = { recorder, node, merchants, gateway, receiver, random };
    const clients = startClients(scene, { servers: 3, shoppers: 3 });
    const end = performance.now() + seconds * 1_000;
    const names = Object.keys(faults);
    for (let count = 0; performance.now() < end; count += 1) {
      await sleep(Math.min(2_000 + random() * 3_000, Math.max(0, end - performance.now())));
      const name = names[count % names.length] as string;
      say(name);
      await recorder.record('faults', 'fault', { name }, async () => {
        await (faults[name] as (stage: Stage) => Promise<void>)({ pair, nodes, random });
        return {};
      });
    }
    await clients.stop();
    await readEverything(scene);
  } finally {
    for (const one of ends) await one();
    fs.rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  }
}
