import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/** Address ranges that callbacks may reach besides the public ones (CALLBACK_ALLOW, D6). */
export type AllowedRange = [ipaddr.IPv4 | ipaddr.IPv6, number];

/** `127.0.0.0/8,::1/128` → ranges; throws with the part that is none. */
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

function isAllowed(address: ipaddr.IPv4 | ipaddr.IPv6, allowed: AllowedRange[]): boolean {
  return allowed.some(
    ([range, bits]) => range.kind() === address.kind() && address.match(range, bits),
  );
}

/** Whether a callback may be sent to this address. An IPv4 address in IPv6's clothes is IPv4. */
export function isReachable(address: string, allowed: AllowedRange[]): boolean {
  if (!ipaddr.isValid(address)) return false;
  const parsed = ipaddr.process(address);
  if (isAllowed(parsed, allowed)) return true;
  if (parsed.range() !== 'unicast') return false;
  return parsed.kind() === 'ipv4' || parsed.match(globalUnicast6 as [ipaddr.IPv6, number]);
}

/**
 * What is wrong with a notify_url by itself, or null (D6). A name may still resolve to an address
 * that is not reachable: that is checked when the connection is made.
 */
export function explainBadNotifyUrl(url: URL, allowed: AllowedRange[]): string | null {
  if (url.username !== '' || url.password !== '') return 'must not carry a user name or password';
  const host = url.hostname
    .replace(/^\[|\]$/g, '')
    .replace(/\.+$/, '')
    .toLowerCase();
  const isLocalhost = host === 'localhost' || host.endsWith('.localhost');
  // A URL's parser has respelled every odd literal (0x7f.1, 2130706433) by now.
  const isLiteral = isIP(host) !== 0;
  // A developer's own machine goes by its name as well as by its address.
  const address = isLocalhost ? '127.0.0.1' : host;
  const isExempt = (isLiteral || isLocalhost) && isAllowed(ipaddr.process(address), allowed);
  if (isExempt) return null;
  if (url.protocol !== 'https:') return 'must be an https URL';
  if (isLiteral && !isReachable(host, allowed)) return 'must have a public address';
  const isPrivateName =
    isLocalhost || (!isLiteral && !host.includes('.')) || /\.(local|internal)$/.test(host);
  return isPrivateName ? 'must have a public host name' : null;
}
