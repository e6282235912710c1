import type { FastifyReply, FastifyRequest } from 'fastify';
import { isLoopback } from '#platform/shared/loopback.ts';

/**
 * `__Host-` makes browsers refuse the cookie without TLS, or from another host. Over plain http the
 * name has no prefix, because browsers treat the prefix differently there. The settings allow plain
 * http only on this machine. Cookies ignore the port, so two consoles or two sandboxes on this
 * machine could end each other's sessions. To prevent this, the name of a cookie on this machine
 * contains the port (decision 0072).
 */
export function cookieName(url: string): string {
  const { protocol, hostname, port } = new URL(url);
  if (protocol !== 'https:') return `tranche-console-${port || '80'}`;
  return isLoopback(hostname)
    ? `__Host-tranche-console-${port || '443'}`
    : '__Host-tranche-console';
}

/** The cookie with the state of a sign-in while the person is at the OIDC issuer. */
const stateName = (url: string) => `${cookieName(url)}-oidc`;

export const sessionTokenOf = (request: FastifyRequest, url: string) =>
  cookieOf(request, cookieName(url));
export const stateOf = (request: FastifyRequest, url: string) => cookieOf(request, stateName(url));

/** Returns null if there is no such cookie, or more than one. */
function cookieOf(request: FastifyRequest, name: string): string | null {
  const prefix = `${name}=`;
  const values = (request.headers.cookie ?? '')
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(prefix))
    .map((pair) => pair.slice(prefix.length));
  const [value = ''] = values;
  return values.length === 1 && /^[\w-]{43}$/.test(value) ? value : null;
}

export function setSessionCookie(reply: FastifyReply, url: string, token: string): void {
  reply.header('set-cookie', `${cookieName(url)}=${token}; ${attributes(url)}`);
}

export function clearSessionCookie(reply: FastifyReply, url: string): void {
  reply.header('set-cookie', `${cookieName(url)}=; Max-Age=0; ${attributes(url)}`);
}

/** `Strict` means that no other site's link or form carries the session. */
function attributes(url: string): string {
  const secure = url.startsWith('https:') ? '; Secure' : '';
  return `Path=/; HttpOnly; SameSite=Strict${secure}`;
}

/** `Lax`, because the issuer sends the browser back with a navigation. */
export function setStateCookie(reply: FastifyReply, url: string, state: string | null): void {
  const age = state === null ? 0 : 600;
  const value = `${stateName(url)}=${state ?? ''}; Max-Age=${age}; ${attributes(url)}`;
  reply.header('set-cookie', value.replace('SameSite=Strict', 'SameSite=Lax'));
}
