import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

type AllowedRange = [ipaddr.IPv4 | ipaddr.IPv6, number];

/** Where callbacks may go (decision 0033). */
export type Destinations = {
  /** The addresses that are allowed besides public ones (CALLBACK_ALLOW). */
  ranges: AllowedRange[];
  /**
   * The host names (CALLBACK_HOSTS); `*.shop.example` stands for every name below `shop.example`.
   * Null if any host is allowed.
   */
  hosts: string[] | null;
};

/** Reads `127.0.0.0/8,::1/128`. Throws an error that names the part that is not a range. */
export function parseAllowedRanges(text: string): AllowedRange[] {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .map((part) => {
      if (!ipaddr.isValidCIDR(part)) throw new Error(`"${part}" is not an address range`);
      return ipaddr.parseCIDR(part);
    });
}

const globalUnicast6 = ipaddr.parseCIDR('2000::/3');

function isAllowed(address: ipaddr.IPv4 | ipaddr.IPv6, { ranges }: Destinations): boolean {
  return ranges.some(
    ([range, bits]) => range.kind() === address.kind() && address.match(range, bits),
  );
}

/** Whether a callback may be sent to this address. An IPv4-mapped IPv6 address counts as IPv4. */
export function isReachable(address: string, allowed: Destinations): boolean {
  if (!ipaddr.isValid(address)) return false;
  const parsed = ipaddr.process(address);
  if (isAllowed(parsed, allowed)) return true;
  if (parsed.range() !== 'unicast') return false;
  return parsed.kind() === 'ipv4' || parsed.match(globalUnicast6 as [ipaddr.IPv6, number]);
}

/**
 * Returns what is wrong with the text of a notify_url, or null (decision 0033). A name may still
 * resolve to an address that callbacks may not reach; the connection guard checks that.
 */
export function explainBadNotifyUrl(url: URL, allowed: Destinations): string | null {
  if (url.username !== '' || url.password !== '') return 'must not carry a user name or password';
  const host = url.hostname
    .replace(/^\[|\]$/g, '')
    .replace(/\.+$/, '')
    .toLowerCase();
  const isLocalhost = host === 'localhost' || host.endsWith('.localhost');
  // The URL parser has already normalised unusual literals such as 0x7f.1 and 2130706433.
  const isLiteral = isIP(host) !== 0;
  // Developers name their own machine `localhost` as well as 127.0.0.1.
  const address = isLocalhost ? '127.0.0.1' : host;
  const isExempt = (isLiteral || isLocalhost) && isAllowed(ipaddr.process(address), allowed);
  if (isExempt) return null;
  if (host === 'host.docker.internal') {
    return 'must have a public host name: host.docker.internal is known only inside Docker. For a receiver beside the sandbox use localhost';
  }
  if (url.protocol !== 'https:') return 'must be an https URL';
  if (isLiteral && !isReachable(host, allowed)) return 'must have a public address';
  const isPrivateName =
    isLocalhost || (!isLiteral && !host.includes('.')) || /\.(local|internal)$/.test(host);
  if (isPrivateName) return 'must have a public host name';
  return isListed(host, allowed)
    ? null
    : 'must have a host that the payment service knows: ask it to add yours';
}

const isListed = (host: string, { hosts }: Destinations) =>
  hosts === null ||
  hosts.some((one) => (one.startsWith('*.') ? host.endsWith(one.slice(1)) : host === one));

/** Reads `shop.example,*.plugins.example`. Throws an error that names a bad part. */
export function parseHosts(text: string): string[] {
  const hosts = text.split(',').map((part) => part.trim().toLowerCase());
  for (const host of hosts) {
    const name = host.replace(/^\*\./, '');
    if (URL.parse(`https://${name}`)?.hostname !== name || !name.includes('.')) {
      throw new Error(`"${host}" is not a host name`);
    }
  }
  return hosts;
}
