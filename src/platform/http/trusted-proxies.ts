/**
 * Fastify trusts no proxy when it is given a number, so turn the number into a function. `true` is
 * one proxy. Fastify takes `true` to mean every entry of X-Forwarded-For, even those that the
 * client wrote.
 */
export function trustedProxies(trustProxy: boolean | number | string[]): unknown {
  if (typeof trustProxy !== 'number' && trustProxy !== true) return trustProxy;
  return (_address: string, hop: number) => hop < Number(trustProxy);
}
