import { type Caller, readCredential } from '#merchants/integrations/integration.ts';
import type { Merchant } from '#merchants/merchant.ts';
import { reading } from '#platform/database/transaction.ts';
import { bearerOf, invalidToken } from '#platform/http/authentication.ts';
import { unauthorized } from '#platform/http/errors.ts';
import { mustBeOpen } from '#platform/http/open-access.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { hashLegacy } from './legacy-credential.ts';
import { findTokenOwner } from './legacy-token.sql.ts';
import type { LoginDeps } from './log-in.ts';

/** Authenticates a v1 request by its token, which also names the merchant. */
export async function recogniseToken(
  deps: LoginDeps,
  request: { authorization: string | undefined; network: string },
): Promise<{ caller: Caller; merchant: Merchant }> {
  const token = bearerOf(request.authorization) ?? '';
  const credential = readCredential(token);
  if (credential?.kind === 'legacy_token' && credential.environment === deps.environment) {
    await mustBeOpen(deps);
    const now = timestamp(deps.clock.now());
    const found = await reading(deps, (db) => findTokenOwner(db, hashLegacy(token), now));
    const caller = found && { ...found.integration, signing_keys: [] };
    // The intermediary may no longer manage the merchant that it logged in for.
    const merchant = caller && (await deps.callers.addressMerchant(caller, found.merchant_id));
    if (merchant) return { caller, merchant };
  }
  const quota = await deps.rateLimits.failedAuthentication(request.network);
  throw unauthorized(`${invalidToken} ${explain(token)}`, quota);
}

function explain(token: string): string {
  if (readCredential(token)?.kind === 'client_secret') {
    return 'This is a client secret of v2: v1 takes the token that POST /login answers.';
  }
  return 'A token is what POST /login answers; after an hour another one is needed.';
}
