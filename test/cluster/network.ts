import { spawnSync } from 'node:child_process';
import type { Parts } from './parts.ts';

// Each database server has a network namespace of its own, joined by a bridge, so that its cable
// can be pulled. Without the right to make namespaces, all servers are on loopback.

export type Network = {
  hasCables: boolean;
  /** The address of what runs outside of the namespaces. */
  outside: string;
  addressOf(node: number): string;
  /** The words before a command that make it run on a node. */
  on(node: number): string[];
  setCable(node: number, state: 'up' | 'down'): void;
  remove(): void;
};

const loopback: Network = {
  hasCables: false,
  outside: '127.0.0.1',
  addressOf: () => '127.0.0.1',
  on: () => [],
  setCable: () => {},
  remove: () => {},
};

export function createNetwork({ ip }: Parts, nodes: number): Network {
  if (ip === null || process.getuid?.() !== 0) return loopback;
  const run = (...args: string[]) => spawnSync(ip, args, { encoding: 'utf8' }).status === 0;
  // Interface names have at most 15 characters.
  const id = process.pid % 100_000;
  const bridge = `trb${id}`;
  const third = id % 250;
  const prefix = `10.213.${third}`;
  const name = (node: number) => `trn${id}n${node}`;
  const network: Network = {
    hasCables: true,
    outside: `${prefix}.1`,
    addressOf: (node) => `${prefix}.${10 + node}`,
    on: (node) => [ip, 'netns', 'exec', name(node)],
    setCable: (node, state) => void run('link', 'set', `trv${id}n${node}`, state),
    remove() {
      for (let node = 0; node < nodes; node += 1) run('netns', 'del', name(node));
      run('link', 'del', bridge);
    },
  };
  const isMade =
    run('link', 'add', bridge, 'type', 'bridge') &&
    run('addr', 'add', `${prefix}.1/24`, 'dev', bridge) &&
    run('link', 'set', bridge, 'up') &&
    Array.from({ length: nodes }, (_, node) => node).every((node) => {
      const [outer, inner] = [`trv${id}n${node}`, `trw${id}n${node}`];
      return (
        run('netns', 'add', name(node)) &&
        run('link', 'add', outer, 'type', 'veth', 'peer', 'name', inner) &&
        run('link', 'set', inner, 'netns', name(node)) &&
        run('link', 'set', outer, 'master', bridge) &&
        run('link', 'set', outer, 'up') &&
        run('-n', name(node), 'addr', 'add', `${prefix}.${10 + node}/24`, 'dev', inner) &&
        run('-n', name(node), 'link', 'set', inner, 'up') &&
        run('-n', name(node), 'link', 'set', 'lo', 'up')
      );
    });
  if (isMade) return network;
  network.remove();
  return loopback;
}
