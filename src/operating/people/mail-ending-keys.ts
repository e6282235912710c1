import type { Database } from '#platform/database/database.ts';
import { transaction } from '#platform/database/transaction.ts';
import { type Clock, timestamp } from '#platform/shared/clock.ts';
import type { MerchantMailDeps } from '#purchases/messages/mail-merchant.ts';
import { type EndingCredential, listEndingCredentials } from './alert-mail.sql.ts';

const hoursBefore = 24;
const batchSize = 100;

/**
 * Tells merchants' people, a day before, of a secret or a key that ends. A run looks at all of them
 * again: a person gets one mail about each.
 */
export async function mailEndingKeys(
  deps: MerchantMailDeps & { database: Database; clock: Clock; sendsMessages: boolean },
): Promise<0> {
  if (!deps.sendsMessages) return 0;
  const now = deps.clock.now();
  const span = { from: timestamp(now), to: timestamp(now.add({ hours: hoursBefore })) };
  let after: EndingCredential | null = null;
  do {
    const keys: EndingCredential[] = await transaction(deps, async ({ db }) => {
      const found = await listEndingCredentials(db, span, after, batchSize);
      for (const { merchant_id, merchant_name, integration_id, credential, expires_at } of found) {
        await deps.mailMerchant(db, {
          ...{ merchant_id, kind: 'key_ends', at: timestamp(now) },
          event: `${credential} ${integration_id} ${expires_at}`,
          facts: {
            merchant: merchant_name,
            credential: credential.replace('_', ' '),
            until: expires_at,
          },
        });
      }
      return found;
    });
    after = keys.length < batchSize ? null : (keys.at(-1) ?? null);
  } while (after !== null);
  return 0;
}
