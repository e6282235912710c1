import { merchantNow } from '#merchants/merchant.ts';
import type { Database } from '#platform/database/database.ts';
import { transaction } from '#platform/database/transaction.ts';
import { type Clock, timestamp } from '#platform/shared/clock.ts';
import type { QueueDeps } from '#purchases/messages/queue-messages.ts';
import { listDueExports, moveExportsDue } from './alert-mail.sql.ts';
import { exportPeriod, nextExportOn } from './export-schedule.ts';
import { insertPersonMails } from './person-mail.sql.ts';

const batchSize = 100;

/**
 * Writes one mail for each export that is due on its merchant's clock, and moves the exports to
 * their next days. A mail covers only the newest period, however many have passed. A person who
 * never registered gets no mail, and the choice of a person who lost the merchant ends. Before a
 * mail is sent, the person's access and choice are read again. Returns how many were due.
 */
export async function mailDueExports(
  deps: QueueDeps & { database: Database; clock: Clock },
): Promise<number> {
  if (!deps.sendsMessages) return 0;
  const now = timestamp(deps.clock.now());
  return await transaction(deps, async ({ db }) => {
    const listed = await listDueExports(db, now, batchSize);
    if (listed.length === 0) return 0;
    const due = listed.map((one) => ({
      ...one,
      today: merchantNow(deps.clock, one).toZonedDateTimeISO(one.time_zone).toPlainDate(),
    }));
    const mails = due
      .filter(({ has_merchant, is_registered }) => has_merchant && is_registered)
      .map(({ merchant_id, merchant_name, person_id, kind, today }) => {
        const { from, to } = exportPeriod(kind, today);
        const facts = { merchant_id, merchant: merchant_name };
        return {
          ...{ id: deps.random.uuid(), person_id, kind, sealed_token: null, created_at: now },
          facts: { ...facts, from: from.toString(), to: to.toString() },
          event: `${kind} ${merchant_id} ${from}`,
        };
      });
    if (mails.length > 0) await insertPersonMails(db, mails);
    const nextOf = ({ has_merchant, kind, today }: (typeof due)[number]) =>
      has_merchant ? nextExportOn(kind, today).toString() : null;
    await moveExportsDue(
      db,
      due.map((one) => ({ ...one, next: nextOf(one) })),
    );
    return due.length;
  });
}
