/**
 * Fastify trusts no proxy if it is given a number, so this turns the number into a function. `true`
 * means one proxy here. To Fastify it means every entry of X-Forwarded-For, even those that the
 * client wrote.
 */
export function trustedProxies(trustProxy: boolean | number | string[]): unknown {
  if (typeof trustProxy !== 'number' && trustProxy !== true) return trustProxy;
  return (_address: string, hop: number) => hop < Number(trustProxy);
}
