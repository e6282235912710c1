import { auditSlice } from '#checks/books/audit-books.ts';
import type { MoneyGuard } from '#checks/reconciliation/money-guard.ts';
import { runDailyReconciliation } from '#checks/reconciliation/reconcile.ts';
import { refusedCutoff } from '#merchants/integrations/keep-refused-request.ts';
import { deleteRefusedBefore } from '#merchants/integrations/refused-request.sql.ts';
import type { FourEyesDefault, Merchant } from '#merchants/merchant.ts';
import { runBulkActions } from '#operating/bulk-actions/run-bulk-actions.ts';
import { closeEndedAlerts } from '#operating/operations/close-ended-alerts.ts';
import type { SecondPersonSettings } from '#operating/people/console-session.ts';
import { forgetIdentities } from '#operating/people/forget-identities.ts';
import { mailDueExports } from '#operating/people/mail-due-exports.ts';
import { mailEndingKeys } from '#operating/people/mail-ending-keys.ts';
import { type PersonMailDeps, sendPersonMails } from '#operating/people/send-person-mails.ts';
import { rollUp, rollUpOverdue } from '#operating/rollups/roll-up.ts';
import { type AnyDueWork, type Awaited, listDueKinds } from '#platform/database/due-work.sql.ts';
import { transaction } from '#platform/database/transaction.ts';
import { deleteAnswersBefore } from '#platform/http/idempotency.sql.ts';
import { answersCutoff } from '#platform/http/idempotency.ts';
import { deleteEndedWindows } from '#platform/http/rate-limits.sql.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { deliverMerchantCallbacks } from '#purchases/callbacks/delivery/deliver-callback.ts';
import { deliverDueCallbacks } from '#purchases/callbacks/delivery/deliver-due-callbacks.ts';
import { writeDestinationStatistics } from '#purchases/callbacks/delivery/destination-statistics.ts';
import { dueCallbacks } from '#purchases/callbacks/delivery/due-callbacks.sql.ts';
import {
  expireAttempts,
  type RetentionDeps,
} from '#purchases/callbacks/delivery/expire-attempts.ts';
import { expireStatistics } from '#purchases/callbacks/delivery/expire-statistics.ts';
import {
  checkDueDisputes,
  checkMerchantDisputes,
  findNewDisputes,
} from '#purchases/disputes/check-disputes.ts';
import { dueDisputes } from '#purchases/disputes/dispute.sql.ts';
import {
  collectDueInstalments,
  collectMerchantInstalments,
} from '#purchases/instalments/collect-instalments.ts';
import { detachMerchantCards, detachReplacedCards } from '#purchases/instalments/detach-cards.ts';
import { dueInstalments, dueReplacedCards } from '#purchases/instalments/instalment.sql.ts';
import { deleteExpiredTokens } from '#purchases/legacy/legacy-token.sql.ts';
import type { MerchantMailDeps } from '#purchases/messages/mail-merchant.ts';
import { dueMessages } from '#purchases/messages/message.sql.ts';
import {
  type MessageDeps,
  messagesFullRun,
  sendDueMessages,
  sendMerchantMessages,
} from '#purchases/messages/sending/send-messages.ts';
import { customersCutoff } from '#purchases/payment-links/payment-link.ts';
import { dueAttempts } from '#purchases/payments/payment-attempt.sql.ts';
import {
  type PaymentDeps,
  recoverAttempts,
  recoverMerchantAttempts,
} from '#purchases/payments/settle-attempt.ts';
import {
  type MonthlyDeps,
  makeDueMonthlyStatements,
  makeMerchantMonthlyStatements,
} from '#purchases/payouts/make-monthly-statements.ts';
import { makeDuePayouts, makeMerchantPayouts } from '#purchases/payouts/make-payouts.ts';
import { dueStatementMonths } from '#purchases/payouts/monthly-statement.sql.ts';
import { duePayoutDays } from '#purchases/payouts/payout.sql.ts';
import { sendDueStatements, sendMerchantStatements } from '#purchases/payouts/send-statements.ts';
import { dueStatementMails } from '#purchases/payouts/statement-mail.sql.ts';
import { processDueRefunds, processMerchantRefunds } from '#purchases/refunds/process-refunds.ts';
import { dueRefunds } from '#purchases/refunds/refund.sql.ts';
import {
  deleteErasedCustomers,
  deleteMerchantCustomers,
} from '#purchases/shoppers/delete-customers.ts';
import {
  type ErasureDeps,
  eraseExpired,
  eraseMerchantExpired,
  findExpired,
  findMerchantExpired,
} from '#purchases/shoppers/erase-expired.ts';
import { eraseExpiredLinks } from '#purchases/shoppers/erase-shopper.ts';
import { deleteEndedPlanAccess } from '#purchases/shoppers/plan-access.sql.ts';
import { dueCustomers, dueErasures, dueRetentionDates } from '#purchases/shoppers/retention.sql.ts';
import { type AlertDeps, postAlerts } from '#record/alerts/post-alerts.ts';
import { publishEnd } from '#record/alerts/publish-end.ts';

export type WorkerDeps = PaymentDeps &
  AlertDeps &
  RetentionDeps &
  MessageDeps &
  PersonMailDeps &
  ErasureDeps &
  FourEyesDefault &
  MonthlyDeps &
  MerchantMailDeps &
  SecondPersonSettings & { money: MoneyGuard };

/** A kind of due work. Any number of workers may run it at once. */
type Work = {
  name: string;
  /** How long it pauses after a run that found nothing to do. */
  pauseSeconds: number;
  /** How long it pauses between two runs that did something. Most work continues at once. */
  betweenSeconds?: number;
  /** A run that did this much is repeated at once, because more is probably due. */
  fullRun?: number;
  /**
   * If set, it runs only if one of these rows is due. One statement checks all such rows twice a
   * second. Work without it runs after each pause.
   */
  awaits?: Awaited;
  /** Whether a process that only serves requests does it too. */
  isOwn?: true;
  /** Whether it waits while money is stopped (decision 0097), because it calls a gateway. */
  movesMoney?: true;
  /**
   * Whether it makes or sends what the books say, without calling a gateway. Such work also waits
   * until the database has been compared with all gateways: a restored database could say something
   * else under the same number.
   */
  statesMoney?: true;
  /**
   * Does some of the due work and returns how much. The worker calls it again until it returns 0.
   * When the signal aborts, a long run finishes only what it has begun.
   */
  run(deps: WorkerDeps, stopping: AbortSignal): Promise<number>;
};

/** Due work on a merchant's clock, which can run for one merchant alone. */
export type MerchantWork = {
  name: string;
  due: AnyDueWork;
  runFor(deps: WorkerDeps, merchant: Merchant): Promise<number>;
};

const deleteBatchSize = 1_000;

/**
 * Runs work that deletes in batches. Returns 0 after a batch that is not full, because nothing is
 * left to delete.
 */
async function fullBatches(run: () => Promise<number>): Promise<number> {
  return (await run()) === deleteBatchSize ? deleteBatchSize : 0;
}

const dueWork: (Work & Partial<MerchantWork>)[] = [
  {
    name: 'settle payment attempts',
    movesMoney: true,
    pauseSeconds: 0.5,
    run: recoverAttempts,
    awaits: dueAttempts,
    due: dueAttempts,
    runFor: recoverMerchantAttempts,
  },
  {
    name: 'deliver callbacks',
    pauseSeconds: 0.5,
    run: deliverDueCallbacks,
    awaits: dueCallbacks(),
    due: dueCallbacks(),
    runFor: deliverMerchantCallbacks,
  },
  {
    name: 'collect payments',
    movesMoney: true,
    pauseSeconds: 1,
    run: collectDueInstalments,
    awaits: dueInstalments,
    due: dueInstalments,
    runFor: collectMerchantInstalments,
  },
  {
    name: 'detach replaced cards',
    movesMoney: true,
    pauseSeconds: 5,
    run: detachReplacedCards,
    awaits: dueReplacedCards,
    due: dueReplacedCards,
    runFor: detachMerchantCards,
  },
  {
    name: 'find checkouts to erase',
    pauseSeconds: 60,
    run: findExpired,
    due: dueRetentionDates,
    runFor: findMerchantExpired,
  },
  {
    name: 'erase shoppers',
    pauseSeconds: 60,
    run: eraseExpired,
    due: dueErasures,
    runFor: eraseMerchantExpired,
  },
  {
    name: 'delete shoppers at the gateway',
    movesMoney: true,
    pauseSeconds: 60,
    run: deleteErasedCustomers,
    due: dueCustomers,
    runFor: deleteMerchantCustomers,
  },
  {
    name: 'process refunds',
    movesMoney: true,
    pauseSeconds: 0.5,
    run: processDueRefunds,
    awaits: dueRefunds,
    due: dueRefunds,
    runFor: processMerchantRefunds,
  },
  {
    name: 'send messages',
    pauseSeconds: 1,
    // Mails that fall due in the meantime share the next round (decision 0068).
    betweenSeconds: 0.4,
    fullRun: messagesFullRun,
    run: sendDueMessages,
    awaits: dueMessages,
    due: dueMessages,
    runFor: sendMerchantMessages,
  },
  { name: 'find disputes', movesMoney: true, pauseSeconds: 60, run: findNewDisputes },
  {
    name: 'check disputes',
    movesMoney: true,
    pauseSeconds: 5,
    run: checkDueDisputes,
    awaits: dueDisputes,
    due: dueDisputes,
    runFor: checkMerchantDisputes,
  },
  {
    name: 'make payouts',
    statesMoney: true,
    pauseSeconds: 5,
    run: makeDuePayouts,
    awaits: duePayoutDays,
    due: duePayoutDays,
    runFor: makeMerchantPayouts,
  },
  {
    name: 'make monthly statements',
    statesMoney: true,
    pauseSeconds: 5,
    run: makeDueMonthlyStatements,
    awaits: dueStatementMonths,
    due: dueStatementMonths,
    runFor: makeMerchantMonthlyStatements,
  },
  {
    name: 'send statements',
    statesMoney: true,
    pauseSeconds: 5,
    run: sendDueStatements,
    awaits: dueStatementMails,
    due: dueStatementMails,
    runFor: sendMerchantStatements,
  },
  {
    name: 'raise the heartbeat here and at the gateway',
    pauseSeconds: 10,
    run: ({ money }) => money.raiseHeartbeat(),
  },
  { name: 'reconcile the gateway', pauseSeconds: 300, run: runDailyReconciliation },
  {
    name: 'audit the books',
    // The pause keeps it from competing with shoppers, and from reading a small database all the
    // time.
    betweenSeconds: 2,
    pauseSeconds: 300,
    run: auditSlice,
  },
  {
    name: 'post alerts',
    // Without a webhook URL alerts stay due and wake this work at every check. A run that does
    // nothing is followed by this pause.
    pauseSeconds: 15,
    awaits: { shared: 'alerts' },
    run: postAlerts,
  },
  { name: 'mail due exports', pauseSeconds: 300, run: mailDueExports },
  { name: 'close alerts whose cause has ended', pauseSeconds: 15, run: closeEndedAlerts },
  { name: "post the end of the operators' actions", pauseSeconds: 300, run: publishEnd },
  { name: 'add up the charts', pauseSeconds: 30, run: (deps) => rollUp(deps) },
  { name: 'add up what is overdue', pauseSeconds: 60, run: rollUpOverdue },
  {
    name: 'write statistics of receivers',
    // A process that serves requests makes first deliveries, and counts them itself.
    isOwn: true,
    pauseSeconds: 5,
    run: writeDestinationStatistics,
  },
  {
    name: 'continue bulk actions',
    pauseSeconds: 0.5,
    awaits: { shared: 'bulk_actions' },
    run: runBulkActions,
  },
  {
    name: 'delete shoppers of payment links',
    pauseSeconds: 3_600,
    run: (deps) =>
      fullBatches(() => {
        const at = deps.clock.now();
        const times = { before: customersCutoff(at), now: timestamp(at) };
        return transaction(deps, ({ db }) => eraseExpiredLinks(db, times, deleteBatchSize));
      }),
  },
  { name: 'delete callback attempts', pauseSeconds: 60, run: (deps) => expireAttempts(deps) },
  {
    name: 'delete statistics of receivers',
    pauseSeconds: 3_600,
    run: (deps) => expireStatistics(deps),
  },
  {
    name: 'delete idempotency keys',
    pauseSeconds: 60,
    run: ({ database, clock }) =>
      fullBatches(() => deleteAnswersBefore(database.db, answersCutoff(clock), deleteBatchSize)),
  },
  {
    name: 'delete refused requests',
    pauseSeconds: 60,
    run: ({ database, clock }) =>
      fullBatches(() => deleteRefusedBefore(database.db, refusedCutoff(clock), deleteBatchSize)),
  },
  {
    name: 'delete rate limit windows',
    pauseSeconds: 60,
    run: ({ database, clock }) =>
      fullBatches(() => deleteEndedWindows(database.db, timestamp(clock.now()), deleteBatchSize)),
  },
  {
    name: 'delete plan links and sessions',
    pauseSeconds: 60,
    // Access expires on the merchant's clock, which is never behind the real one. So what has
    // expired on the real clock can be deleted.
    run: ({ database, clock }) =>
      fullBatches(() =>
        deleteEndedPlanAccess(database.db, timestamp(clock.now()), deleteBatchSize),
      ),
  },
  {
    name: 'send mail to people',
    pauseSeconds: 1,
    awaits: { shared: 'person_mails' },
    run: sendPersonMails,
  },
  { name: 'mail about expiring keys', pauseSeconds: 300, run: mailEndingKeys },
  { name: 'delete console sessions', pauseSeconds: 60, run: forgetIdentities },
  {
    name: 'delete v1 tokens',
    pauseSeconds: 60,
    run: ({ database, clock }) =>
      fullBatches(() => deleteExpiredTokens(database.db, timestamp(clock.now()), deleteBatchSize)),
  },
];

export const merchantWork: MerchantWork[] = dueWork.flatMap(({ name, due, runFor }) =>
  due && runFor ? [{ name, due, runFor }] : [],
);

const lookSeconds = 0.5;
/** Work runs at least this often even if no check finds it due, because a check can fail. */
const unaskedSeconds = 300;

const awaited = new Map(
  dueWork.flatMap(({ name, awaits }) => (awaits ? [[name, awaits] as const] : [])),
);

/**
 * Checks for due rows of every kind, and wakes the work that waits for them. If it cannot check, it
 * wakes all work: each will report what is wrong.
 */
async function lookForDue(
  deps: WorkerDeps,
  waiting: Map<string, AbortController>,
  stopping: AbortSignal,
): Promise<void> {
  while (!stopping.aborted) {
    if (waiting.size > 0) {
      const now = timestamp(deps.clock.now());
      const due = await listDueKinds(deps.database.db, awaited, now).catch(() => awaited.keys());
      for (const name of due) waiting.get(name)?.abort();
    }
    await deps.clock.sleep(lookSeconds * 1000, stopping);
  }
}

async function mayRun(money: MoneyGuard, { movesMoney, statesMoney }: Work): Promise<boolean> {
  // The guard logs why a gateway was not compared.
  if (statesMoney) return (await money.problem().catch(() => 'not compared')) === null;
  return !movesMoney || (await money.mayClaim());
}

/**
 * Runs all due work until it is stopped, or only what each process does for itself. A failure is
 * logged and retried after the pause. An idle process checks for all kinds of due rows in one
 * statement.
 */
export function startWorker(
  deps: WorkerDeps,
  { isOwnOnly = false } = {},
): { stop(): Promise<void> } {
  const stopping = new AbortController();
  const waiting = new Map<string, AbortController>();
  /** Returns how much the run did. If it did something, there may be more to do at once. */
  const runOnce = async (work: Work) =>
    (await mayRun(deps.money, work)) ? await work.run(deps, stopping.signal) : 0;
  const waitForDue = async ({ name }: Work) => {
    const woken = new AbortController();
    waiting.set(name, woken);
    const either = AbortSignal.any([woken.signal, stopping.signal]);
    await deps.clock.sleep(unaskedSeconds * 1000, either);
    waiting.delete(name);
  };
  const works = dueWork.filter(({ isOwn }) => isOwn || !isOwnOnly);
  const loops = works.map(async (work) => {
    while (!stopping.signal.aborted) {
      if (work.awaits) await waitForDue(work);
      if (stopping.signal.aborted) break;
      let isFruitful = false;
      try {
        for (let done = await runOnce(work); done > 0; done = await runOnce(work)) {
          isFruitful = true;
          if (work.betweenSeconds && done < (work.fullRun ?? Number.POSITIVE_INFINITY)) {
            await deps.clock.sleep(work.betweenSeconds * 1000, stopping.signal);
          }
          if (stopping.signal.aborted) break;
        }
      } catch (error) {
        isFruitful = false;
        const about = { err: error, work: work.name };
        // A stop does not wait for ever: it closes the database while work may still be running.
        if (stopping.signal.aborted)
          deps.log.warn(about, 'a run of due work was cut off by the stop');
        else deps.log.error(about, 'a run of due work failed');
      }
      // Work that awaits rows pauses only if it could do nothing. Otherwise the next check starts
      // it again.
      if (!(work.awaits && isFruitful)) {
        await deps.clock.sleep(work.pauseSeconds * 1000, stopping.signal);
      }
    }
  });
  const look = isOwnOnly ? null : lookForDue(deps, waiting, stopping.signal);
  return {
    async stop() {
      stopping.abort();
      await Promise.all([...loops, look]);
    },
  };
}
