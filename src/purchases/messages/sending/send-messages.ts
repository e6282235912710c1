import assert from 'node:assert/strict';
import { logoPath } from '#merchants/logo-path.ts';
import { isMailAddress, type Merchant } from '#merchants/merchant.ts';
import { type MerchantDueWork, runDueWork, runMerchantDueWork } from '#merchants/run-due-work.ts';
import type { Database } from '#platform/database/database.ts';
import { transaction } from '#platform/database/transaction.ts';
import { type Clock, secondsAfter, timestamp } from '#platform/shared/clock.ts';
import type { Language } from '#platform/shared/language.ts';
import type { Logger } from '#platform/shared/logger.ts';
import type { Random } from '#platform/shared/random.ts';
import type { Sealing } from '#platform/shared/sealing.ts';
import { linkUrls } from '#purchases/checkouts/link-token.ts';
import { paymentToken } from '#purchases/checkouts/payment-token.ts';
import { isAnswerable } from '#purchases/disputes/dispute.ts';
import { firstUncovered } from '#purchases/instalments/card-expiry.ts';
import { findForbiddingForGood } from '#purchases/instalments/instalment.ts';
import {
  dueMessages,
  insertMessageAttempts,
  type MessageAttempt,
  moveMessages,
  type SettledMessage,
} from '#purchases/messages/message.sql.ts';
import {
  aboutRefund,
  type Message,
  messageTokenContext,
  retriesAt,
  type ShopperMessageKind,
} from '#purchases/messages/message.ts';
import { statusOf } from '#purchases/payment-links/payment-link.ts';
import { lateToken, renewLateLinks } from '#purchases/shoppers/late-link.ts';
import { hasAlertSince } from '#record/alerts/alert.sql.ts';
import { raiseAlert } from '#record/alerts/raise-alert.ts';
import { composeLinkMail } from './compose-link-mail.ts';
import { composeMessage, type MessageSubject } from './compose-message.ts';
import { composeRequest } from './compose-request.ts';
import type { Letter } from './letter.ts';
import { type Mail, type MailOutcome, type MailTransport, mailDeadlineSeconds } from './mail.ts';
import { listMessageSources, type MessageSources, refundOf } from './message-subject.sql.ts';
import { renderHtml, renderSubject, renderText } from './render-letter.ts';

export type MessageDeps = {
  database: Database;
  clock: Clock;
  random: Random;
  log: Logger;
  sealing: Sealing;
  baseUrl: string;
  console: { url: string; merchantUrl: string | null };
  /** Null if messages are off. */
  mail: MailTransport | null;
};

/** How many times a message fails before the operator is alerted. */
const failuresBeforeAlert = 5;
const daySeconds = 24 * 3600;
/**
 * How long the reminder of a charge is postponed while its plan is paused. A whole day would be too
 * long, because the day of the charge could have come.
 */
const postponedSeconds = 3 * 3600;

type SendingDeps = MessageDeps & { mail: MailTransport };

const leaseSeconds = 420;
/**
 * A batch begins no message after this time, so that it ends and is recorded within its lease: 40
 * seconds are left for recording. If the mail server is slow, the batch releases the other
 * messages; otherwise another process would claim them after the lease and send them again.
 */
const beginSeconds = leaseSeconds - mailDeadlineSeconds - 40;

/** A run that left due messages for the next run has sent at least this many. */
export const messagesFullRun = 50;

const work: MerchantDueWork<'messages', SendingDeps> = {
  due: dueMessages,
  leaseSeconds,
  batchSize: messagesFullRun,
  merchantsMax: messagesFullRun,
  // While one loop reads and records, the other keeps the connections busy.
  concurrency: 2,
  roundMilliseconds: 10_000,
  run: sendBatch,
};

const isOn = (deps: MessageDeps): deps is SendingDeps => deps.mail !== null;

/** Sends the messages that are due, merchant by merchant. */
export async function sendDueMessages(deps: MessageDeps, stopping?: AbortSignal): Promise<number> {
  return isOn(deps) ? await runDueWork(deps, work, stopping) : 0;
}

export async function sendMerchantMessages(deps: MessageDeps, merchant: Merchant): Promise<number> {
  return isOn(deps) ? await runMerchantDueWork(deps, work, merchant) : 0;
}

async function sendBatch(deps: SendingDeps, merchant: Merchant, claimed: Message[]): Promise<void> {
  const lastBegin = deps.clock.monotonic() + beginSeconds * 1000;
  const now = merchant.now();
  const sources = await listMessageSources(deps.database.db, merchant.id, claimed, now);
  const results: Result[] = [];
  const queue = [...claimed];
  await renewLinks(deps, merchant, claimed, sources, now);
  const sendNext = async () => {
    for (let message = queue.shift(); message; message = queue.shift()) {
      const isLate = deps.clock.monotonic() >= lastBegin;
      const outcome = isLate ? 'released' : await trySending(deps, merchant, message, sources, now);
      results.push({ message, outcome });
    }
  };
  await Promise.all(Array.from({ length: deps.mail.concurrencyMax }, sendNext));
  await record(deps, merchant, results);
}

/** Makes the link of a mail about a late payment valid before the mail is sent. */
async function renewLinks(
  deps: SendingDeps,
  merchant: Merchant,
  claimed: Message[],
  sources: MessageSources,
  now: Temporal.Instant,
): Promise<void> {
  const today = merchant.localDate(now).toString();
  const late = claimed
    .filter((message) => message.kind === 'declined')
    .filter(isOfCheckout)
    .filter((message) => isStillTrue(message, sources, today, now))
    .sort((one, other) => one.planned_at.localeCompare(other.planned_at));
  if (late.length === 0) return;
  await transaction(deps, ({ db }) => renewLateLinks(deps, db, late, now));
}

/**
 * `skipped` means that there is nothing left to send, `postponed` that the plan is paused, and
 * `released` that the batch had no time left for it.
 */
type Result = { message: Message; outcome: MailOutcome | 'skipped' | 'postponed' | 'released' };

/**
 * A mail that cannot be written fails like one that cannot be sent. An exception would lose the
 * outcomes of the whole batch, and the mails that have left would be sent again.
 */
async function trySending(...given: Parameters<typeof sendOne>): Promise<Result['outcome']> {
  try {
    return await sendOne(...given);
  } catch (error) {
    const [deps, , message] = given;
    deps.log.error({ err: error, message_id: message.id }, 'a message could not be written');
    return { outcome: 'failed', response: 'the mail could not be written, and the log says why' };
  }
}

async function sendOne(
  deps: SendingDeps,
  merchant: Merchant,
  message: Message,
  sources: MessageSources,
  now: Temporal.Instant,
): Promise<Result['outcome']> {
  const today = merchant.localDate(now).toString();
  if (!isStillTrue(message, sources, today, now)) return 'skipped';
  // The plan is paused. If the pause ends in time, the shopper still gets notice of the charge.
  if (message.kind === 'charge_soon' && paymentOf(message, sources)?.paused) return 'postponed';
  const { kind } = message;
  const mail =
    kind === 'evidence_asked'
      ? requestOf(deps, merchant, message, sources)
      : kind === 'payment_link'
        ? linkMailOf(deps, merchant, message, sources)
        : letterTo(deps, merchant, { ...message, kind }, sources, today);
  if (mail === null) return 'skipped';
  const { merchant_id, checkout_id, id: message_id } = message;
  const sent_at = timestamp(now);
  return await deps.mail.send({ merchant_id, checkout_id, message_id, sent_at, ...mail });
}

type Content = Pick<Mail, 'to' | 'subject' | 'text' | 'html'>;

const contentOf = (to: string, letter: Letter, language: Language): Content => ({
  to,
  subject: renderSubject(letter),
  text: renderText(letter),
  html: renderHtml(letter, language),
});

function letterTo(
  deps: MessageDeps,
  merchant: Merchant,
  message: Message & { kind: ShopperMessageKind },
  sources: MessageSources,
  today: string,
): Content | null {
  const subject = subjectOf(merchant, message, sources, today, linkOf(deps, message, sources));
  const to = checkoutOf(message, sources)?.customer.email;
  if (subject === null || !to) return null;
  const letter = composeMessage(message, subject);
  const logo = merchant.logo === null ? {} : { logo: deps.baseUrl + logoPath(merchant.logo) };
  return contentOf(to, { ...letter, ...logo }, subject.language);
}

function linkMailOf(
  deps: MessageDeps,
  merchant: Merchant,
  { payment_link_id }: Message,
  { links }: MessageSources,
): Content | null {
  const link = links.get(payment_link_id ?? '');
  if (!link?.customer) return null;
  const letter = composeLinkMail(merchant, link, linkUrls(deps, link).url);
  return contentOf(link.customer.email, letter, merchant.language);
}

/** Null if the merchant no longer has an e-mail address as its contact. */
function requestOf(
  { console }: MessageDeps,
  merchant: Merchant,
  message: Message,
  sources: MessageSources,
): Content | null {
  const { contact } = merchant;
  const url = console.merchantUrl ?? console.url;
  const checkout = checkoutOf(message, sources);
  if (contact === null || !isMailAddress(contact) || !checkout) return null;
  return contentOf(contact, composeRequest(merchant, checkout, message.facts, url), 'en');
}

const isOfCheckout = (message: Message): message is Message & { checkout_id: string } =>
  message.checkout_id !== null;

const checkoutOf = ({ checkout_id }: Message, { checkouts }: MessageSources) =>
  checkouts.get(checkout_id ?? '');

function paymentOf({ checkout_id, facts }: Message, { instalments }: MessageSources) {
  return instalments.get(checkout_id ?? '')?.find(({ number }) => number === facts.instalment);
}

/**
 * Whether a message should still be sent. A reminder of a charge that will not happen is not sent,
 * and neither is a request to pay what has been paid.
 */
export function isStillTrue(
  message: Message,
  sources: MessageSources,
  today: string,
  now: Temporal.Instant,
): boolean {
  const { kind, facts } = message;
  if (kind === 'payment_link') {
    const link = sources.links.get(message.payment_link_id ?? '');
    return link !== undefined && statusOf(link, now) === 'active' && link.customer !== null;
  }
  const checkout = checkoutOf(message, sources);
  // The e-mail address of an erased shopper is a pseudonym.
  if (!checkout?.customer.email || checkout.erased_at !== null) return false;
  const payment = paymentOf(message, sources);
  switch (kind) {
    case 'charge_soon':
      return payment?.status === 'scheduled' && payment.due_on > today;
    case 'declined':
      return payment?.status === 'scheduled' || payment?.status === 'overdue';
    case 'card_expires': {
      // Another card may have replaced this one, and a refund may have cancelled the payments after
      // its expiry.
      const expires = sources.cards.get(checkout.id)?.expires ?? null;
      const plan = sources.instalments.get(checkout.id) ?? [];
      const toCome = plan.filter(({ status }) => status === 'scheduled');
      return expires === facts.card_expires && firstUncovered(toCome, expires) !== null;
    }
    case 'sign_in_link':
      return Temporal.Instant.compare(facts.expires_at ?? now, now) > 0;
    case 'answer':
      return sources.answers.has(facts.entry ?? '');
    case 'refunded': {
      // The card network may return a refund days after it was complete. If a retry pays it, only
      // the mail of the retry is sent.
      const refund = sources.refunds.get(refundOf(message) ?? '');
      return refund?.status === 'complete' && message.about.startsWith(aboutRefund(refund));
    }
    case 'evidence_asked': {
      const dispute = sources.disputes.get(facts.dispute ?? '');
      const isInTime = Temporal.Instant.compare(facts.expires_at ?? now, now) > 0;
      // A later stage of the dispute, or a later request, replaces this one.
      const isNewest = dispute?.asked_until === facts.expires_at;
      return isInTime && isNewest && dispute !== undefined && isAnswerable(dispute);
    }
    default:
      return true;
  }
}

export function subjectOf(
  merchant: Merchant,
  message: Message,
  sources: MessageSources,
  today: string,
  url: string,
): MessageSubject | null {
  const { instalments, refunded, cards, namedCards, declines, answers } = sources;
  const checkout = checkoutOf(message, sources);
  if (!checkout) return null;
  const { card_ref } = message.facts;
  const card = (card_ref ? namedCards.get(card_ref) : cards.get(checkout.id)) ?? null;
  const asked = card && { checkout_id: checkout.id, ...card };
  return {
    merchant,
    checkout,
    language: checkout.language ?? 'en',
    instalments: instalments.get(checkout.id) ?? [],
    card,
    isForbidden: asked !== null && findForbiddingForGood(declines, asked) !== null,
    answer: answers.get(message.facts.entry ?? '') ?? null,
    refund: sources.refunds.get(refundOf(message) ?? '') ?? null,
    refunded: refunded.get(checkout.id) ?? [],
    today,
    url,
  };
}

function linkOf(deps: MessageDeps, message: Message, sources: MessageSources): string {
  const checkout = checkoutOf(message, sources);
  assert(checkout);
  return `${deps.baseUrl}/pay/${paymentToken(deps.sealing, checkout)}${linkEndOf(deps, message)}`;
}

/**
 * The end of the link, with its token and the panel that the page opens. Both follow the `#`, so
 * that browsers do not send them and logs do not contain them.
 */
function linkEndOf({ sealing }: MessageDeps, message: Message): string {
  const { kind, facts, sealed_token } = message;
  if (kind === 'declined') return `/manage#${lateToken(sealing, message)}.late.${facts.instalment}`;
  // The page shows the conversation once the shopper has signed in, which may have happened
  // already.
  if (kind === 'answer') return '/manage#.report';
  if (sealed_token === null) return '';
  const token = sealing.open(sealed_token, messageTokenContext(message));
  return `/manage#${token}${facts.panel ? `.${facts.panel}` : ''}`;
}

/** Records the batch in one transaction: every attempt, and the new state of each message. */
async function record(deps: MessageDeps, merchant: Merchant, results: Result[]): Promise<void> {
  const now = merchant.now();
  const at = timestamp(now);
  const settled = results.map((result) => settle(result, now));
  await transaction(deps, async ({ db }) => {
    const moved = new Set(await moveMessages(db, merchant.id, settled));
    // The other messages were claimed by another process, or this batch is already committed.
    const kept = results.filter(({ message }) => moved.has(message.id));
    const sent = kept.flatMap(({ message, outcome }) =>
      typeof outcome === 'string' ? [] : [{ message, outcome }],
    );
    const attempts = sent.map(
      ({ message, outcome }): MessageAttempt => ({
        message_id: message.id,
        number: message.attempts + 1,
        at,
        ...outcome,
      }),
    );
    if (attempts.length > 0) await insertMessageAttempts(db, merchant.id, attempts);
    for (const { message, outcome } of sent) {
      const isOver = settled.find(({ id }) => id === message.id)?.status === 'refused';
      // The mail with a payment link raises no alert: the link's page in the console shows the
      // refusal to the shop, which gave the e-mail address.
      if (isOver && isOfCheckout(message)) await alertRefused(deps, db, message, outcome);
    }
    const failing = sent.find(
      ({ message, outcome }) =>
        outcome.outcome === 'failed' && message.attempts + 1 >= failuresBeforeAlert,
    );
    if (failing) await alertFailing(deps, db, merchant, failing.outcome);
  });
}

function settle({ message, outcome }: Result, now: Temporal.Instant): SettledMessage {
  const { id, lease, attempts } = message;
  const ended = { id, lease: lease ?? '', due_at: null, settled_at: timestamp(now) };
  const waiting = { id, lease: lease ?? '', status: 'pending', settled_at: null } as const;
  if (outcome === 'skipped') return { ...ended, status: 'skipped', attempts };
  if (outcome === 'released') return { ...waiting, due_at: message.due_at, attempts };
  if (outcome === 'postponed') {
    return { ...waiting, due_at: timestamp(secondsAfter(now, postponedSeconds)), attempts };
  }
  if (outcome.outcome !== 'failed')
    return { ...ended, status: outcome.outcome, attempts: attempts + 1 };
  const again = retriesAt(message, now);
  return again === null
    ? { ...ended, status: 'refused', attempts: attempts + 1 }
    : { ...waiting, due_at: timestamp(again), attempts: attempts + 1 };
}

type Db = Parameters<typeof raiseAlert>[1];

async function alertRefused(
  deps: MessageDeps,
  db: Db,
  message: Message & { checkout_id: string },
  { response }: MailOutcome,
): Promise<void> {
  await raiseAlert(deps, db, {
    kind: 'message_refused',
    merchant_id: message.merchant_id,
    subject_id: message.checkout_id,
    isPrivate: true,
    detail: `The mail about "${message.kind.replaceAll('_', ' ')}" could not be sent and is not retried: ${response}`,
  });
}

/** An outage of the mail server raises one alert per day and merchant, not one per message. */
async function alertFailing(
  deps: MessageDeps,
  db: Db,
  merchant: Merchant,
  { response }: MailOutcome,
): Promise<void> {
  const since = timestamp(secondsAfter(deps.clock.now(), -daySeconds));
  if (await hasAlertSince(db, 'messages_failing', merchant.id, since)) return;
  await raiseAlert(deps, db, {
    kind: 'messages_failing',
    merchant_id: merchant.id,
    isPrivate: true,
    detail: `Messages to shoppers cannot be sent: ${response}. They are retried for three days. Check the log, MAIL_URL and the mail server.`,
  });
}
