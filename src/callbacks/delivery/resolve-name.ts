import type { LookupAddress } from 'node:dns';
import { Resolver } from 'node:dns/promises';

export type Resolve = (hostname: string) => Promise<LookupAddress[]>;

/** Together shorter than the time for a connection, so that it is known what was slow. */
const patience = { timeout: 1_000, tries: 2 };

const loopback: LookupAddress[] = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
];

/**
 * The addresses of a merchant's receiver, by the name servers of this machine. Not by the system's
 * own look-up: that blocks one of the few threads which files and every other look-up share, for
 * as long as a name server likes, and anybody may name a server that says nothing. So what only
 * this machine knows (its hosts file) is not asked; a developer's `localhost` is what it always is.
 */
export function createResolve(servers?: string[]): Resolve {
  return async (hostname) => {
    const name = hostname.replace(/\.$/, '').toLowerCase();
    if (name === 'localhost' || name.endsWith('.localhost')) return loopback;
    // One of its own for every name: it knows of name servers that changed.
    const resolver = new Resolver(patience);
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
