import type { Database, Handle } from '#platform/database/database.ts';
import type { EndingKind } from '#platform/shared/alert-kinds.ts';
import type { Clock } from '#platform/shared/clock.ts';
import { type Alert, listOpenAlerts } from '#record/alerts/alert.sql.ts';
import { endAlerts } from '#record/alerts/end-alerts.ts';
import {
  isMoneyStopped,
  listExhaustedCallbacks,
  listFailedRefunds,
  listLateComparisons,
  listPausingDisputes,
  listUnanswered,
  listUnbookedDisputes,
  listUnrecordedDisputes,
  listWithFailingReceiver,
  listWithProposedAccount,
  listWithRefusedMail,
  listWithUnsentMail,
} from './alert-causes.sql.ts';
import { listOverdueOf } from './alert-subjects.sql.ts';

type Cause = {
  /** The reason that the closed alert records. */
  ended: string;
  /** Returns the ids of the alerts, subjects or merchants for which the cause still exists. */
  lasting(db: Handle, alerts: Alert[]): Promise<string[]>;
  /** The member of an alert that is compared with the ids from `lasting`. */
  by: 'subject_id' | 'merchant_id' | 'id';
};

const causes: Record<EndingKind, Cause> = {
  payment_overdue: {
    ended: 'No payment of this order is late any more.',
    by: 'subject_id',
    lasting: async (db, alerts) =>
      (await listOverdueOf(db, 'all merchants', alerts)).map(({ checkout_id }) => checkout_id),
  },
  refund_failed: {
    ended: 'The refund was retried.',
    by: 'subject_id',
    lasting: listFailedRefunds,
  },
  callback_exhausted: {
    ended: 'The callback was sent again.',
    by: 'subject_id',
    lasting: listExhaustedCallbacks,
  },
  dispute_closed: {
    ended: 'An operator decided on the plan.',
    by: 'subject_id',
    lasting: listPausingDisputes,
  },
  dispute_unbooked: {
    ended: 'The gateway has booked the money.',
    by: 'subject_id',
    lasting: listUnbookedDisputes,
  },
  destination_failing: {
    ended: 'The receiver answers again, and no callback is waiting for it.',
    by: 'merchant_id',
    lasting: listWithFailingReceiver,
  },
  bank_account_proposed: {
    ended: 'The account was confirmed.',
    by: 'merchant_id',
    lasting: listWithProposedAccount,
  },
  dispute_unknown: {
    ended: 'The dispute has been recorded.',
    by: 'id',
    lasting: listUnrecordedDisputes,
  },
  dispute_unrecorded: {
    ended: 'The dispute has been recorded.',
    by: 'id',
    lasting: listUnrecordedDisputes,
  },
  message_refused: {
    ended: 'A later mail to the same address was sent.',
    by: 'subject_id',
    lasting: listWithRefusedMail,
  },
  messages_failing: {
    ended: 'No failed message is waiting any more.',
    by: 'merchant_id',
    lasting: listWithUnsentMail,
  },
  gateway_trouble: {
    ended: 'The gateway has answered.',
    by: 'subject_id',
    lasting: listUnanswered,
  },
  gateway_ahead: {
    ended: 'Money moves again.',
    by: 'id',
    lasting: async (db, alerts) => ((await isMoneyStopped(db)) ? alerts.map(({ id }) => id) : []),
  },
  gateway_not_reconciled: {
    ended: 'A later comparison with the gateway has finished.',
    by: 'id',
    lasting: listLateComparisons,
  },
};

const batchSize = 200;

/**
 * Closes alerts whose cause has ended: a late payment was paid, or a failure was retried. There are
 * few open alerts, so each run reads all of them. Returns how many it closed.
 */
export async function closeEndedAlerts(deps: {
  database: Database;
  clock: Clock;
}): Promise<number> {
  const { db } = deps.database;
  let closed = 0;
  let after: string | null = null;
  do {
    const kinds = Object.keys(causes) as EndingKind[];
    const batch = await listOpenAlerts(db, kinds, after, batchSize);
    for (const [kind, { ended, by, lasting }] of Object.entries(causes)) {
      const alerts = batch.filter((alert) => alert.kind === kind && alert[by] !== null);
      if (alerts.length === 0) continue;
      const listOver = async (handle: Handle, asked: Alert[]) => {
        const going = new Set(await lasting(handle, asked));
        return asked.filter((alert) => !going.has(alert[by] as string));
      };
      const over = await listOver(db, alerts);
      if (over.length > 0) closed += await endAlerts(deps, over, ended, listOver);
    }
    after = batch.length === batchSize ? (batch.at(-1)?.id ?? null) : null;
  } while (after !== null);
  return closed;
}
