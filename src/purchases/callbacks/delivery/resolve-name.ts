import type { LookupAddress } from 'node:dns';
import { Resolver } from 'node:dns/promises';
import { nameServerQuery } from './limits.ts';

export type Resolve = (hostname: string) => Promise<LookupAddress[]>;

const loopback: LookupAddress[] = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
];

/**
 * Resolves the name of a receiver by asking the name servers of this machine directly. The system's
 * own look-up would block a thread for as long as the name server takes. Merchants choose the
 * names, and file access and all other look-ups share the same few threads. The hosts file is
 * therefore not read; `localhost` is always this machine.
 */
export function createResolve(servers?: string[]): Resolve {
  return async (hostname) => {
    const name = hostname.replace(/\.$/, '').toLowerCase();
    if (name === 'localhost' || name.endsWith('.localhost')) return loopback;
    // Each look-up uses a new resolver, and so the machine's current name servers.
    const resolver = new Resolver(nameServerQuery);
    if (servers) resolver.setServers(servers);
    const [four, six] = await Promise.allSettled([
      resolver.resolve4(name),
      resolver.resolve6(name),
    ]);
    const addresses = [
      ...addressesOf(four).map((address) => ({ address, family: 4 })),
      ...addressesOf(six).map((address) => ({ address, family: 6 })),
    ];
    if (addresses.length === 0 && four.status === 'rejected') throw four.reason;
    return addresses;
  };
}

const addressesOf = (answer: PromiseSettledResult<string[]>) =>
  answer.status === 'fulfilled' ? answer.value : [];
