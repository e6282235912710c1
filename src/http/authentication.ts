import { isIP } from 'node:net';

export const invalidToken = 'Provide a valid Bearer token in the Authorization header.';

export function bearerOf(authorization: string | undefined): string | undefined {
  return /^Bearer +(\S+) *$/i.exec(authorization ?? '')?.[1];
}

/**
 * The network that a request is counted for. An IPv6 customer owns at least a /64, so counting
 * single addresses would give one customer a new count for every request.
 */
export function networkOf(request: {
  ip: string;
  socket: { remoteAddress?: string | undefined };
}): string {
  const address = addressOf(request.ip) ?? request.socket.remoteAddress ?? '';
  if (!address.includes(':') || address.includes('.')) return address;
  const [head = '', tail = ''] = address.split('::');
  const left = head === '' ? [] : head.split(':');
  const right = tail === '' ? [] : tail.split(':');
  const zeros = Array<string>(Math.max(0, 8 - left.length - right.length)).fill('0');
  const groups = address.includes('::') ? [...left, ...zeros, ...right] : left;
  return `${groups.slice(0, 4).join(':')}::/64`;
}

/**
 * A forwarded address without its port, which some proxies add; null when it is not an address. The
 * client chooses the header, which could have any length and differ in every request.
 */
function addressOf(forwarded: string): string | null {
  const bare = forwarded.replace(/^\[([^\]]*)\](?::\d+)?$|^([\d.]+):\d+$/, '$1$2');
  return isIP(bare) === 0 ? null : bare;
}
