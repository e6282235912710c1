/**
 * The cookie's name contains the checkout's id, because its path cannot: browsers require the path
 * `/` for a `__Host-` cookie. Over plain http, in a sandbox, the name lacks that prefix, because
 * not every browser accepts it there.
 */
const nameOf = (baseUrl: string, checkoutId: string) =>
  `${baseUrl.startsWith('https:') ? '__Host-' : ''}plan-${checkoutId}`;

/** The token of the plan's session in a `Cookie` header; null if the header has no valid one. */
export function sessionTokenOf(
  cookie: string | undefined,
  baseUrl: string,
  checkoutId: string,
): string | null {
  const pairs = (cookie ?? '').split(';').map((pair) => pair.trim());
  const prefix = `${nameOf(baseUrl, checkoutId)}=`;
  const value = pairs.find((pair) => pair.startsWith(prefix))?.slice(prefix.length) ?? '';
  return /^[\w-]{43}$/.test(value) ? value : null;
}

/** The `Set-Cookie` header of a session, for the plan of one checkout. */
export function sessionCookie(
  baseUrl: string,
  checkoutId: string,
  { value, seconds }: { value: string; seconds: number },
): string {
  const secure = baseUrl.startsWith('https:') ? '; Secure' : '';
  return `${nameOf(baseUrl, checkoutId)}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Lax${secure}`;
}
