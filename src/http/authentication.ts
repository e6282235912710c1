import type { Callers } from '../integrations/callers.ts';
import { type Caller, type Environment, environmentOf } from '../integrations/integration.ts';
import { readLegacySecret } from '../legacy/legacy-credential.ts';
import { unauthorized } from './errors.ts';
import type { RateLimits } from './rate-limits.ts';

export const invalidToken = 'Provide a valid Bearer token in the Authorization header.';

export function bearerOf(authorization: string | undefined): string | undefined {
  return /^Bearer +(\S+) *$/i.exec(authorization ?? '')?.[1];
}

/** Recognises a request by its client secret. Failures are counted per address, successes never. */
export async function authenticate(
  deps: { callers: Callers; rateLimits: RateLimits; environment: Environment },
  request: { authorization: string | undefined; address: string },
): Promise<{ caller: Caller; clientSecret: string }> {
  const clientSecret = bearerOf(request.authorization);
  const environment = clientSecret === undefined ? null : environmentOf(clientSecret);
  if (clientSecret !== undefined && environment === deps.environment) {
    const caller = await deps.callers.recognise(clientSecret);
    if (caller) return { caller, clientSecret };
  }
  await deps.rateLimits.failedAuthentication(networkOf(request.address));
  if (environment !== null && environment !== deps.environment) {
    throw unauthorized(
      `${invalidToken} This client secret belongs to the ${environment} environment and this is ${deps.environment}.`,
    );
  }
  if (readLegacySecret(clientSecret ?? '') !== null) {
    throw unauthorized(
      `${invalidToken} This is one of v1: v2 takes the client secret of v2 itself.`,
    );
  }
  throw unauthorized(invalidToken);
}

/** One customer of an IPv6 network has a whole /64 to take addresses from. */
export function networkOf(address: string): string {
  if (!address.includes(':') || address.includes('.')) return address;
  const [head = '', tail = ''] = address.split('::');
  const left = head === '' ? [] : head.split(':');
  const right = tail === '' ? [] : tail.split(':');
  const zeros = Array<string>(Math.max(0, 8 - left.length - right.length)).fill('0');
  const groups = address.includes('::') ? [...left, ...zeros, ...right] : left;
  return `${groups.slice(0, 4).join(':')}::/64`;
}
