import { bearerOf, invalidToken } from '#platform/http/authentication.ts';
import { unauthorized } from '#platform/http/errors.ts';
import type { RateLimits } from '#platform/http/rate-limits.ts';
import type { Environment } from '#platform/shared/environment.ts';
import type { Callers } from './callers.ts';
import { type Caller, readCredential } from './integration.ts';

/** Recognises a caller by its client secret. Counts failures per network, but not successes. */
export async function authenticate(
  deps: { callers: Callers; rateLimits: RateLimits; environment: Environment },
  request: { authorization: string | undefined; network: string },
): Promise<{ caller: Caller; clientSecret: string }> {
  const bearer = bearerOf(request.authorization) ?? '';
  const credential = readCredential(bearer);
  if (credential?.kind === 'client_secret' && credential.environment === deps.environment) {
    const caller = await deps.callers.recognise(bearer);
    if (caller) return { caller, clientSecret: bearer };
  }
  const quota = await deps.rateLimits.failedAuthentication(request.network);
  const hint = credential && explain(credential, deps.environment);
  throw unauthorized(hint ? `${invalidToken} ${hint}` : invalidToken, quota);
}

function explain(
  { kind, environment }: NonNullable<ReturnType<typeof readCredential>>,
  ours: Environment,
): string | null {
  switch (kind) {
    case 'client_secret':
      return environment === ours
        ? null
        : `This client secret belongs to the ${environment} environment and this is ${ours}.`;
    case 'legacy_secret':
    case 'legacy_token':
      return 'This is one of v1: v2 takes the client secret of v2 itself.';
    case 'signing_key':
      return 'This is the signing key, which only signs. The Bearer token is the client secret, which begins with cs_.';
  }
}
