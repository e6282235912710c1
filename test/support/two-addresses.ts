import dns from 'node:dns';
import { syncBuiltinESMExports } from 'node:module';

// A program loads this before its own code (see `loopbackSettings` in loopback.ts). `localhost`
// then has two addresses, as on systems where it is 127.0.0.1 and ::1.

const addresses = ['127.0.0.1', '127.0.0.2'].map((address) => ({ address, family: 4 }));

type Answer = (error: Error | null, found: typeof addresses) => void;
const { lookup } = dns;
const { lookup: lookupLater } = dns.promises;
const isOurs = (host: string, options: unknown) =>
  host === 'localhost' && (options as { all?: boolean } | undefined)?.all === true;

dns.lookup = ((host: string, options: object, answer: Answer) =>
  isOurs(host, options)
    ? answer(null, addresses)
    : lookup(host, options, answer as never)) as typeof lookup;
dns.promises.lookup = (async (host: string, options: object) =>
  isOurs(host, options) ? addresses : await lookupLater(host, options)) as typeof lookupLater;
syncBuiltinESMExports();
