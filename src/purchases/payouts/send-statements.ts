import type { Merchant } from '#merchants/merchant.ts';
import { type MerchantDueWork, runDueWork, runMerchantDueWork } from '#merchants/run-due-work.ts';
import type { Database } from '#platform/database/database.ts';
import { reading, transaction } from '#platform/database/transaction.ts';
import { type Clock, type Timestamp, timestamp } from '#platform/shared/clock.ts';
import type { Logger } from '#platform/shared/logger.ts';
import type { Random } from '#platform/shared/random.ts';
import { retriesAt } from '#purchases/messages/message.ts';
import {
  type Mail,
  type MailOutcome,
  type MailTransport,
  mailDeadlineSeconds,
} from '#purchases/messages/sending/mail.ts';
import { findRecordEnd } from '#record/alerts/publish-end.ts';
import { raiseAlert } from '#record/alerts/raise-alert.ts';
import { findStatementAddress } from './bank-account.sql.ts';
import { findMonthlyStatement } from './monthly-statement.sql.ts';
import { findPayout, sumLines } from './payout.sql.ts';
import type { Payout, Totals } from './payout.ts';
import { readLines } from './read-lines.ts';
import { pdfLinesMax, writeStatementCsv } from './statement.ts';
import { dueStatementMails, moveStatementMail } from './statement-mail.sql.ts';
import type { StatementMail } from './statement-mail.ts';
import { writeStatementPdf } from './statement-pdf.ts';
import { writeMonthlyMail } from './write-monthly-mail.ts';
import { type MonthlyFormat, writeMonthlyStatement } from './write-monthly-statement.ts';
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
  // A statement may be large, and there is no hurry, so statements are sent one at a time.
  batchSize: 1,
  merchantsMax: 20,
  concurrency: 1,
  roundMilliseconds: 0,
  run: async (deps, merchant, mails) => {
    for (const mail of mails) await send(deps, merchant, mail);
  },
};

const isOn = (deps: StatementDeps): deps is SendingDeps => deps.mail !== null;

/**
 * Mails the statements for paid payouts and for months to merchants with an e-mail address for
 * them.
 */
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
  const letter =
    mail.statement_id === null
      ? await writeOfPayout(deps, merchant, mail)
      : await writeOfMonth(deps, merchant, mail, mail.statement_id);
  await record(deps, merchant, mail, letter && (await deps.mail.send(letter)));
}

/** Null if there is nothing left to send. */
async function writeOfPayout(
  deps: SendingDeps,
  merchant: Merchant,
  mail: StatementMail,
): Promise<Mail | null> {
  const found = await reading(deps, async (db) => {
    const to = await findStatementAddress(db, merchant.id);
    const payout = mail.payout_id && (await findPayout(db, merchant.id, mail.payout_id));
    // The bank may have returned the payout in the meantime.
    if (to === null || !payout || payout.status !== 'paid') return null;
    const recordEnd = await findRecordEnd(db, payout.created_at);
    return { to, payout, totals: await sumLines(db, payout), merchant, recordEnd };
  });
  if (!found) return null;
  const sent_at = timestamp(merchant.now());
  const attached = await writeAttached(deps, found, sent_at);
  return writeStatementMail(mail, { ...found, attached }, sent_at);
}

async function writeOfMonth(
  deps: SendingDeps,
  merchant: Merchant,
  mail: StatementMail,
  statement_id: string,
): Promise<Mail | null> {
  const { to, statement } = await reading(deps, async (db) => ({
    to: await findStatementAddress(db, merchant.id),
    statement: await findMonthlyStatement(db, merchant.id, statement_id),
  }));
  if (to === null || statement === null) return null;
  const write = (format: MonthlyFormat) => readAll(writeMonthlyStatement(deps, statement, format));
  const { lines } = statement;
  const files = {
    csv: lines <= attachedLinesMax ? String(await write('csv')) : null,
    pdf: await write('pdf'),
  };
  return writeMonthlyMail(mail, { statement, files, to }, timestamp(merchant.now()));
}

/** A file with this many lines has about three megabytes. Mail servers refuse much larger mails. */
const attachedLinesMax = pdfLinesMax;

async function writeAttached(
  deps: SendingDeps,
  {
    payout,
    totals,
    merchant,
    recordEnd,
  }: { payout: Payout; totals: Totals; merchant: Merchant; recordEnd: string | null },
  now: Timestamp,
) {
  if (payout.lines > attachedLinesMax) return { csv: null, pdf: null };
  const lines = () => readLines(deps, payout);
  return {
    csv: String(await readAll(writeStatementCsv(payout, lines()))),
    pdf: await readAll(writeStatementPdf(payout, lines(), totals, merchant, recordEnd, now)),
  };
}

async function readAll(pieces: AsyncIterable<string | Buffer>): Promise<Buffer> {
  return Buffer.concat((await Array.fromAsync(pieces)).map((piece) => Buffer.from(piece)));
}

/** Ends the mail or releases it for a retry. `outcome` is null if there was nothing to send. */
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
      subject_id: mail.payout_id ?? mail.statement_id ?? merchant.id,
      isPrivate: true,
      detail: `The mail server refused the statement for a ${mail.payout_id ? 'payout' : 'month'}. It will not be sent again: ${outcome?.response}`,
    });
  });
}

function endOf(outcome: MailOutcome | null): 'sent' | 'refused' | 'skipped' {
  if (outcome === null) return 'skipped';
  return outcome.outcome === 'sent' ? 'sent' : 'refused';
}
