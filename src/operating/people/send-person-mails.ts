import type { Database } from '#platform/database/database.ts';
import { reading, transaction } from '#platform/database/transaction.ts';
import { type Clock, secondsAfter, timestamp } from '#platform/shared/clock.ts';
import type { Logger } from '#platform/shared/logger.ts';
import type { Random } from '#platform/shared/random.ts';
import type { Sealing } from '#platform/shared/sealing.ts';
import { retriesAt } from '#purchases/messages/message.ts';
import {
  type MailOutcome,
  type MailTransport,
  mailDeadlineSeconds,
} from '#purchases/messages/sending/mail.ts';
import {
  renderHtml,
  renderSubject,
  renderText,
} from '#purchases/messages/sending/render-letter.ts';
import { raiseAlert } from '#record/alerts/raise-alert.ts';
import { composePersonMail } from './compose-person-mail.ts';
import { type ConsolePlaces, placeOf } from './console-place.ts';
import { hashToken } from './console-session.ts';
import { isStillFor } from './mail-merchant.ts';
import { findPerson } from './person.sql.ts';
import { findLiveLink } from './person-link.sql.ts';
import { claimDuePersonMails, movePersonMail } from './person-mail.sql.ts';
import { type PersonMail, personMailContext } from './person-mail.ts';

export type PersonMailDeps = {
  database: Database;
  clock: Clock;
  random: Random;
  log: Logger;
  sealing: Sealing;
  console: ConsolePlaces;
  /** Null if mail is off. */
  mail: MailTransport | null;
};

/** An SMTP transport has five connections. */
const batchSize = 5;
const leaseSeconds = mailDeadlineSeconds + 60;

export async function sendPersonMails(deps: PersonMailDeps): Promise<number> {
  const { mail: transport } = deps;
  if (transport === null) return 0;
  const now = deps.clock.now();
  const until = timestamp(secondsAfter(now, leaseSeconds));
  const due = await claimDuePersonMails(deps.database.db, timestamp(now), until, batchSize);
  await Promise.all(due.map((mail) => send(deps, transport, mail)));
  return due.length;
}

async function send(
  deps: PersonMailDeps,
  transport: MailTransport,
  mail: PersonMail,
): Promise<void> {
  const now = timestamp(deps.clock.now());
  const token = mail.sealed_token && deps.sealing.open(mail.sealed_token, personMailContext(mail));
  const person = await reading(deps, async (db) => {
    const isLive = token === null || (await findLiveLink(db, hashToken(token), 'register', now));
    const found = isLive ? await findPerson(db, mail.person_id) : null;
    return found && (await isStillFor(db, found, mail)) ? found : null;
  });
  const to = person?.email ?? null;
  const url = person ? placeOf(deps.console, person) : deps.console.url;
  // The token is in the fragment, which neither servers nor Referer headers see.
  const link = token === null ? null : `${url}/register#${token}`;
  const letter = composePersonMail(mail, { url, link });
  const outcome =
    to === null
      ? null
      : await transport.send({
          merchant_id: null,
          checkout_id: null,
          message_id: mail.id,
          sent_at: now,
          to,
          subject: renderSubject(letter),
          text: renderText(letter),
          html: renderHtml(letter, 'en'),
        });
  await record(deps, mail, outcome);
}

/** `outcome` is null if there was nothing left to send. */
async function record(
  deps: PersonMailDeps,
  mail: PersonMail,
  outcome: MailOutcome | null,
): Promise<void> {
  const now = deps.clock.now();
  const again =
    outcome?.outcome === 'failed'
      ? retriesAt({ planned_at: mail.created_at, attempts: mail.attempts }, now)
      : null;
  const ended = outcome?.outcome === 'sent' ? ('sent' as const) : ('refused' as const);
  const to = {
    attempts: mail.attempts + (outcome ? 1 : 0),
    response: outcome?.response ?? null,
    ...(again
      ? { status: 'pending' as const, due_at: timestamp(again), settled_at: null }
      : {
          status: outcome === null ? ('skipped' as const) : ended,
          due_at: null,
          settled_at: timestamp(now),
        }),
  };
  await transaction(deps, async ({ db }) => {
    const isOurs = await movePersonMail(db, mail, to);
    if (!isOurs || to.status !== 'refused') return;
    await raiseAlert(deps, db, {
      kind: 'message_refused',
      subject_id: mail.person_id,
      isPrivate: true,
      detail: `The mail server refused the mail \`${mail.kind}\` to a person at the console. It will not be sent again: ${outcome?.response}`,
    });
  });
}
