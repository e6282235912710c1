/**
 * Browsers accept a `__Secure-` cookie over TLS only. `__Host-` would need the path `/`, but this
 * cookie belongs to one link. Over plain http, in a sandbox, browsers differ on the prefix.
 */
const nameOf = (baseUrl: string) => (baseUrl.startsWith('https:') ? '__Secure-plan' : 'plan');

/** The session's token in a `Cookie` header; null if the header lacks it. */
export function sessionTokenOf(cookie: string | undefined, baseUrl: string): string | null {
  const pairs = (cookie ?? '').split(';').map((pair) => pair.trim());
  const prefix = `${nameOf(baseUrl)}=`;
  const value = pairs.find((pair) => pair.startsWith(prefix))?.slice(prefix.length) ?? '';
  return /^[\w-]{43}$/.test(value) ? value : null;
}

/** The `Set-Cookie` of a session, for one payment link and the pages below it. */
export function sessionCookie(
  baseUrl: string,
  linkToken: string,
  { value, seconds }: { value: string; seconds: number },
): string {
  const secure = baseUrl.startsWith('https:') ? '; Secure' : '';
  return `${nameOf(baseUrl)}=${value}; Path=/pay/${linkToken}; Max-Age=${seconds}; HttpOnly; SameSite=Lax${secure}`;
}
