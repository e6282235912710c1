import { merchantNow } from '#merchants/merchant.ts';
import type { Database } from '#platform/database/database.ts';
import { transaction } from '#platform/database/transaction.ts';
import { type Clock, timestamp } from '#platform/shared/clock.ts';
import type { QueueDeps } from '#purchases/messages/queue-messages.ts';
import { listDueExports, moveExportDue } from './alert-mail.sql.ts';
import { exportPeriod, nextExportOn } from './export-schedule.ts';
import { insertPersonMails } from './person-mail.sql.ts';

const batchSize = 100;

/**
 * Writes the mails about exports that are due on the merchants' clocks, each once, and moves them on.
 * Only the newest period is told of, however many have passed. Before a mail is sent, the person's
 * access and choice are read again. Returns how many were due.
 */
export async function mailDueExports(
  deps: QueueDeps & { database: Database; clock: Clock },
): Promise<number> {
  if (!deps.sendsMessages) return 0;
  const now = timestamp(deps.clock.now());
  return await transaction(deps, async ({ db }) => {
    const due = await listDueExports(db, now, batchSize);
    for (const one of due) {
      const { merchant_id, person_id, kind, due_on } = one;
      const today = merchantNow(deps.clock, one).toZonedDateTimeISO(one.time_zone).toPlainDate();
      const { from, to } = exportPeriod(kind, today);
      const facts = { merchant_id, merchant: one.merchant_name };
      await insertPersonMails(db, [
        {
          ...{ id: deps.random.uuid(), person_id, kind, sealed_token: null, created_at: now },
          facts: { ...facts, from: from.toString(), to: to.toString() },
          event: `${kind} ${merchant_id} ${from}`,
        },
      ]);
      await moveExportDue(db, { merchant_id, person_id, kind, due_on }, nextExportOn(kind, today));
    }
    return due.length;
  });
}
