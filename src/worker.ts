import { auditSlice } from '#checks/books/audit-books.ts';
import type { MoneyGuard } from '#checks/reconciliation/money-guard.ts';
import { runDailyReconciliation } from '#checks/reconciliation/reconcile.ts';
import type { FourEyesDefault, Merchant } from '#merchants/merchant.ts';
import { runBulkActions } from '#operating/bulk-actions/run-bulk-actions.ts';
import type { SecondPersonSettings } from '#operating/people/console-session.ts';
import { forgetIdentities } from '#operating/people/forget-identities.ts';
import { type PersonMailDeps, sendPersonMails } from '#operating/people/send-person-mails.ts';
import { rollUp, rollUpOverdue } from '#operating/rollups/roll-up.ts';
import type { AnyDueWork } from '#platform/database/due-work.sql.ts';
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
import { dueMessages } from '#purchases/messages/message.sql.ts';
import {
  type MessageDeps,
  sendDueMessages,
  sendMerchantMessages,
} from '#purchases/messages/sending/send-messages.ts';
import { dueAttempts } from '#purchases/payments/payment-attempt.sql.ts';
import {
  type PaymentDeps,
  recoverAttempts,
  recoverMerchantAttempts,
} from '#purchases/payments/settle-attempt.ts';
import { makeDuePayouts, makeMerchantPayouts } from '#purchases/payouts/make-payouts.ts';
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
import { deleteEndedProofs } from '#purchases/shoppers/plan-proof.sql.ts';
import { dueCustomers, dueErasures, dueRetentionDates } from '#purchases/shoppers/retention.sql.ts';
import { type AlertDeps, postAlerts } from '#record/alerts/post-alerts.ts';

export type WorkerDeps = PaymentDeps &
  AlertDeps &
  RetentionDeps &
  MessageDeps &
  PersonMailDeps &
  ErasureDeps &
  FourEyesDefault &
  SecondPersonSettings & { money: MoneyGuard };

/** A kind of due work. Any number of workers may run it at once. */
type Work = {
  name: string;
  pauseSeconds: number;
  /**
   * Whether it moves money or relies on the books. Such work waits while money is stopped (decision
   * 0097).
   */
  movesMoney?: true;
  /**
   * Does some of the due work and returns how much. The worker calls it again at once until it
   * returns 0. A long run finishes what it has begun when the signal aborts.
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

/** Returns 0 after a batch that is not full, because nothing is left to delete then. */
async function fullBatches(run: () => Promise<number>): Promise<number> {
  return (await run()) === deleteBatchSize ? deleteBatchSize : 0;
}

const dueWork: (Work & Partial<MerchantWork>)[] = [
  {
    name: 'settle payment attempts',
    movesMoney: true,
    pauseSeconds: 0.5,
    run: recoverAttempts,
    due: dueAttempts,
    runFor: recoverMerchantAttempts,
  },
  {
    name: 'deliver callbacks',
    pauseSeconds: 0.5,
    run: deliverDueCallbacks,
    due: dueCallbacks(),
    runFor: deliverMerchantCallbacks,
  },
  {
    name: 'collect payments',
    movesMoney: true,
    pauseSeconds: 1,
    run: collectDueInstalments,
    due: dueInstalments,
    runFor: collectMerchantInstalments,
  },
  {
    name: 'detach replaced cards',
    movesMoney: true,
    pauseSeconds: 5,
    run: detachReplacedCards,
    due: dueReplacedCards,
    runFor: detachMerchantCards,
  },
  {
    name: 'find checkouts to erase',
    pauseSeconds: 30,
    run: findExpired,
    due: dueRetentionDates,
    runFor: findMerchantExpired,
  },
  {
    name: 'erase shoppers',
    pauseSeconds: 30,
    run: eraseExpired,
    due: dueErasures,
    runFor: eraseMerchantExpired,
  },
  {
    name: 'delete shoppers at the gateway',
    movesMoney: true,
    pauseSeconds: 30,
    run: deleteErasedCustomers,
    due: dueCustomers,
    runFor: deleteMerchantCustomers,
  },
  {
    name: 'process refunds',
    movesMoney: true,
    pauseSeconds: 0.5,
    run: processDueRefunds,
    due: dueRefunds,
    runFor: processMerchantRefunds,
  },
  {
    name: 'send messages',
    pauseSeconds: 1,
    run: sendDueMessages,
    due: dueMessages,
    runFor: sendMerchantMessages,
  },
  { name: 'find disputes', movesMoney: true, pauseSeconds: 60, run: findNewDisputes },
  {
    name: 'check disputes',
    movesMoney: true,
    pauseSeconds: 5,
    run: checkDueDisputes,
    due: dueDisputes,
    runFor: checkMerchantDisputes,
  },
  {
    name: 'make payouts',
    movesMoney: true,
    pauseSeconds: 5,
    run: makeDuePayouts,
    due: duePayoutDays,
    runFor: makeMerchantPayouts,
  },
  {
    name: 'send statements',
    pauseSeconds: 5,
    run: sendDueStatements,
    due: dueStatementMails,
    runFor: sendMerchantStatements,
  },
  {
    name: 'raise the heartbeat here and at the gateway',
    pauseSeconds: 5,
    run: ({ money }) => money.raiseHeartbeat(),
  },
  { name: 'reconcile the gateway', pauseSeconds: 300, run: runDailyReconciliation },
  {
    name: 'audit the books',
    pauseSeconds: 2,
    run: auditSlice,
  },
  {
    name: 'post alerts',
    pauseSeconds: 5,
    run: postAlerts,
  },
  { name: 'add up the charts', pauseSeconds: 5, run: (deps) => rollUp(deps) },
  { name: 'add up what is overdue', pauseSeconds: 30, run: rollUpOverdue },
  { name: 'write statistics of receivers', pauseSeconds: 5, run: writeDestinationStatistics },
  { name: 'go on with bulk actions', pauseSeconds: 0.5, run: runBulkActions },
  { name: 'delete callback attempts', pauseSeconds: 60, run: (deps) => expireAttempts(deps) },
  {
    name: 'delete idempotency keys',
    pauseSeconds: 60,
    run: ({ database, clock }) =>
      fullBatches(() => deleteAnswersBefore(database.db, answersCutoff(clock), deleteBatchSize)),
  },
  {
    name: 'delete rate limit windows',
    pauseSeconds: 30,
    run: ({ database, clock }) =>
      fullBatches(() => deleteEndedWindows(database.db, timestamp(clock.now()), deleteBatchSize)),
  },
  {
    name: 'delete plan links and sessions',
    pauseSeconds: 60,
    // By the real clock: a sandbox merchant's is never behind it.
    run: ({ database, clock }) =>
      fullBatches(() => deleteEndedProofs(database.db, timestamp(clock.now()), deleteBatchSize)),
  },
  { name: 'send mail to people', pauseSeconds: 1, run: sendPersonMails },
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

/** Runs all due work until it is stopped. A failure is logged and retried after the pause. */
export function startWorker(deps: WorkerDeps): { stop(): Promise<void> } {
  const stopping = new AbortController();
  /** Whether there may be more to do at once. */
  const runOnce = async (work: Work) =>
    !(work.movesMoney && (await deps.money.stopReason()) !== null) &&
    (await work.run(deps, stopping.signal)) > 0;
  const loops = dueWork.map(async (work) => {
    while (!stopping.signal.aborted) {
      try {
        while (await runOnce(work)) if (stopping.signal.aborted) break;
      } catch (error) {
        deps.log.error({ err: error, work: work.name }, 'due work failed');
      }
      await deps.clock.sleep(work.pauseSeconds * 1000, stopping.signal);
    }
  });
  return {
    async stop() {
      stopping.abort();
      await Promise.all(loops);
    },
  };
}
