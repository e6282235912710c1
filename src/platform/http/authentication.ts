import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

export const invalidToken = 'Provide a valid Bearer token in the Authorization header.';

export function bearerOf(authorization: string | undefined): string | undefined {
  return /^Bearer +(\S+) *$/i.exec(authorization ?? '')?.[1];
}

/**
 * The network that a request is counted for. An IPv6 customer owns at least a /64, so counting
 * single addresses would give one customer a new count for every request.
 */
export function networkOf(request: Caller): string {
  const address = clientAddress(request);
  if (!address.includes(':')) return address;
  const parsed = ipaddr.process(withoutZone(address));
  if (parsed.kind() === 'ipv4') return parsed.toString();
  const [a, b, c, d] = (parsed as ipaddr.IPv6).parts.map((part) => part.toString(16));
  return `${a}:${b}:${c}:${d}::/64`;
}

type Caller = { ip: string; socket: { remoteAddress?: string | undefined } };

/** The address that a request came from, as a trusted proxy or the connection says. */
export function clientAddress(request: Caller): string {
  return addressOf(request.ip) ?? request.socket.remoteAddress ?? '';
}

/**
 * A forwarded address without its port, which some proxies add; null when it is not an address. The
 * client chooses the header, which could have any length and differ in every request.
 */
function addressOf(forwarded: string): string | null {
  if (isIP(forwarded) !== 0) return forwarded;
  const bare = forwarded.replace(/^\[([^\]]*)\](?::\d+)?$|^([\d.]+):\d+$/, '$1$2');
  return isIP(bare) === 0 ? null : bare;
}

/** The zone of a link-local address (`fe80::1%eth0`) can have any length too. */
function withoutZone(address: string): string {
  return address.split('%', 1)[0] as string;
}
