import { findMerchant } from '#merchants/merchant.sql.ts';
import type { Merchant } from '#merchants/merchant.ts';
import type { Database } from '#platform/database/database.ts';
import { reading } from '#platform/database/transaction.ts';
import { notFound } from '#platform/http/errors.ts';
import { cached } from '#platform/shared/cache.ts';
import type { Clock } from '#platform/shared/clock.ts';
import { timestamp } from '#platform/shared/clock.ts';
import type { Sealing } from '#platform/shared/sealing.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import { findCaller, isManaged } from './integration.sql.ts';
import { type Caller, hashClientSecret } from './integration.ts';

/**
 * A revocation, rotation or new rule must be in force within a second. This leaves half a second of
 * margin.
 */
export const rememberedMilliseconds = 500;

export type Callers = {
  /** The integration that a valid client secret belongs to, or null. */
  recognise(clientSecret: string): Promise<Caller | null>;
  /** The merchant, if it is the caller's own or one that the caller manages. */
  addressMerchant(caller: Caller, merchant_id: string): Promise<Merchant | null>;
  /** The one merchant of a plain integration; a 404 for an intermediary, which has none. */
  ownMerchant(caller: Caller): Promise<Merchant>;
};

/** Binds a sealed signing key to its row, so that it cannot be opened in another row. */
export const sealingContext = (key: { id: string; integration_id: string }) =>
  `signing_keys ${key.integration_id} ${key.id}`;

export function createCallers(deps: {
  database: Database;
  clock: Clock;
  sealing: Sealing;
}): Callers {
  const remember = {
    clock: deps.clock,
    milliseconds: rememberedMilliseconds,
    maxEntries: 10_000,
  };

  const bySecretHash = cached(remember, async (hash): Promise<Caller | null> => {
    const found = await reading(deps, (db) =>
      findCaller(db, Buffer.from(hash, 'base64'), timestamp(deps.clock.now())),
    );
    if (!found) return null;
    const { sealed_keys, ...integration } = found;
    return {
      ...integration,
      signing_keys: sealed_keys.map(({ id, sealed_key, first_used_at }) => ({
        id,
        key: deps.sealing.open(
          Buffer.from(sealed_key, 'base64'),
          sealingContext({ id, integration_id: integration.id }),
        ),
        first_used_at,
      })),
    };
  });

  const merchantFor = cached(remember, async (key): Promise<Merchant | null> => {
    const [merchant_id = '', managing_integration_id] = key.split(' ');
    return await reading(deps, async (db) => {
      if (
        managing_integration_id !== undefined &&
        !(await isManaged(db, managing_integration_id, merchant_id))
      ) {
        return null;
      }
      return await findMerchant(db, deps.clock, merchant_id);
    });
  });

  return {
    recognise: (clientSecret) => bySecretHash(hashClientSecret(clientSecret).toString('base64')),
    async addressMerchant(caller, merchant_id) {
      if (caller.merchant_id === merchant_id) return await merchantFor(merchant_id);
      if (!caller.intermediary || !isUuid(merchant_id)) return null;
      return await merchantFor(`${merchant_id.toLowerCase()} ${caller.id}`);
    },
    async ownMerchant({ merchant_id }) {
      const merchant = merchant_id && (await merchantFor(merchant_id));
      if (!merchant) throw notFound('This integration has no merchant of its own.');
      return merchant;
    },
  };
}
