import type { Merchant } from '#merchants/merchant.ts';
import { type MerchantDueWork, runDueWork, runMerchantDueWork } from '#merchants/run-due-work.ts';
import type { Database } from '#platform/database/database.ts';
import { reading, transaction } from '#platform/database/transaction.ts';
import { type Clock, timestamp } from '#platform/shared/clock.ts';
import type { Logger } from '#platform/shared/logger.ts';
import type { Random } from '#platform/shared/random.ts';
import { retriesAt } from '#purchases/messages/message.ts';
import {
  type MailOutcome,
  type MailTransport,
  mailDeadlineSeconds,
} from '#purchases/messages/sending/mail.ts';
import { raiseAlert } from '#record/alerts/raise-alert.ts';
import { findStatementAddress } from './bank-account.sql.ts';
import { findPayout, sumLines } from './payout.sql.ts';
import type { Payout, Totals } from './payout.ts';
import { readLines } from './read-lines.ts';
import { whyNotPrinted, writeStatementCsv, writeStatementHtml } from './statement.ts';
import { dueStatementMails, moveStatementMail } from './statement-mail.sql.ts';
import type { StatementMail } from './statement-mail.ts';
import { writeStatementMail } from './write-statement-mail.ts';

export type StatementDeps = {
  database: Database;
  clock: Clock;
  random: Random;
  log: Logger;
  /** Null if mail is off. */
  mail: MailTransport | null;
};

type SendingDeps = StatementDeps & { mail: MailTransport };

const work: MerchantDueWork<'statement_mails', SendingDeps> = {
  due: dueStatementMails,
  leaseSeconds: mailDeadlineSeconds + 60,
  // A statement may be large, and there is no hurry, so they are sent one at a time.
  batchSize: 1,
  merchantsMax: 20,
  concurrency: 1,
  roundMilliseconds: 0,
  run: async (deps, merchant, mails) => {
    for (const mail of mails) await send(deps, merchant, mail);
  },
};

const isOn = (deps: StatementDeps): deps is SendingDeps => deps.mail !== null;

/** Sends the statements of paid payouts to merchants that have an address for them. */
export async function sendDueStatements(
  deps: StatementDeps,
  stopping?: AbortSignal,
): Promise<number> {
  return isOn(deps) ? await runDueWork(deps, work, stopping) : 0;
}

export async function sendMerchantStatements(
  deps: StatementDeps,
  merchant: Merchant,
): Promise<number> {
  return isOn(deps) ? await runMerchantDueWork(deps, work, merchant) : 0;
}

async function send(deps: SendingDeps, merchant: Merchant, mail: StatementMail): Promise<void> {
  const found = await reading(deps, async (db) => {
    const to = await findStatementAddress(db, merchant.id);
    const payout = await findPayout(db, merchant.id, mail.payout_id);
    // The bank may have returned it meanwhile.
    if (to === null || payout?.status !== 'paid') return null;
    return { to, payout, totals: await sumLines(db, payout), merchant };
  });
  const sent_at = timestamp(merchant.now());
  const about = found && { ...found, attached: await writeAttached(deps, found) };
  const outcome = about && (await deps.mail.send(writeStatementMail(mail, about, sent_at)));
  await record(deps, merchant, mail, outcome);
}

/** About three megabytes. Mail servers refuse much more, and longer statements are read by API. */
const attachedLinesMax = 20_000;

async function writeAttached(
  deps: SendingDeps,
  { payout, totals, merchant }: { payout: Payout; totals: Totals; merchant: Merchant },
) {
  const write = async (pieces: AsyncIterable<string>) => (await Array.fromAsync(pieces)).join('');
  const isShort = payout.lines <= attachedLinesMax;
  const isPrinted = whyNotPrinted(payout) === null;
  const html = () => writeStatementHtml(payout, readLines(deps, payout), totals, merchant);
  return {
    csv: isShort ? await write(writeStatementCsv(payout, readLines(deps, payout))) : null,
    html: isPrinted ? await write(html()) : null,
  };
}

/** Null if there was nothing to send. */
async function record(
  deps: SendingDeps,
  merchant: Merchant,
  mail: StatementMail,
  outcome: MailOutcome | null,
): Promise<void> {
  const now = merchant.now();
  const again =
    outcome?.outcome === 'failed'
      ? retriesAt({ planned_at: mail.created_at, attempts: mail.attempts }, now)
      : null;
  const to = {
    attempts: mail.attempts + (outcome ? 1 : 0),
    response: outcome?.response ?? null,
    ...(again
      ? { status: 'pending' as const, due_at: timestamp(again), settled_at: null }
      : { status: endOf(outcome), due_at: null, settled_at: timestamp(now) }),
  };
  await transaction(deps, async ({ db }) => {
    const isOurs = await moveStatementMail(db, mail, to);
    if (!isOurs || to.status !== 'refused') return;
    await raiseAlert(deps, db, {
      kind: 'message_refused',
      merchant_id: merchant.id,
      subject_id: mail.payout_id,
      isPrivate: true,
      detail: `The mail server refused the statement of payout ${mail.payout_id}. It will not be sent again: ${outcome?.response}`,
    });
  });
}

function endOf(outcome: MailOutcome | null): 'sent' | 'refused' | 'skipped' {
  if (outcome === null) return 'skipped';
  return outcome.outcome === 'sent' ? 'sent' : 'refused';
}
