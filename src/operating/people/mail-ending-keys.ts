import type { Database } from '#platform/database/database.ts';
import { transaction } from '#platform/database/transaction.ts';
import { type Clock, timestamp } from '#platform/shared/clock.ts';
import type { QueueDeps } from '#purchases/messages/queue-messages.ts';
import { listEndingKeyMails } from './alert-mail.sql.ts';
import { alertRoles } from './alert-mail.ts';
import { insertPersonMails } from './person-mail.sql.ts';

const hoursBefore = 24;
const batchSize = 500;

/**
 * Informs merchants' people, a day ahead, that a secret or a key will expire. A person gets one
 * mail about each, even if two processes run this at once. A batch takes two statements, and a
 * batch that finds nothing takes one.
 */
export async function mailEndingKeys(
  deps: QueueDeps & { database: Database; clock: Clock },
): Promise<0> {
  if (!deps.sendsMessages) return 0;
  const now = deps.clock.now();
  const span = { from: timestamp(now), to: timestamp(now.add({ hours: hoursBefore })) };
  let found: number;
  do {
    found = await transaction(deps, async ({ db }) => {
      const mails = await listEndingKeyMails(db, span, alertRoles('key_ends'), batchSize);
      if (mails.length === 0) return 0;
      await insertPersonMails(
        db,
        mails.map(({ person_id, merchant_id, merchant_name, credential, expires_at, event }) => ({
          ...{ id: deps.random.uuid(), person_id, kind: 'key_ends' as const, event },
          ...{ sealed_token: null, created_at: timestamp(now) },
          facts: {
            merchant_id,
            merchant: merchant_name,
            credential: credential.replace('_', ' '),
            until: expires_at,
          },
        })),
      );
      return mails.length;
    });
  } while (found === batchSize);
  return 0;
}
