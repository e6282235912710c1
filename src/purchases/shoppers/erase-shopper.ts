import { findMerchant } from '#merchants/merchant.sql.ts';
import type { Handle } from '#platform/database/database.ts';
import { reading } from '#platform/database/transaction.ts';
import { type Timestamp, timestamp } from '#platform/shared/clock.ts';
import { findCheckoutCallback, listCheckoutEvents } from '#purchases/callbacks/callback.sql.ts';
import { callbackPayload } from '#purchases/callbacks/callback.ts';
import { formPayload, isForm } from '#purchases/callbacks/delivery/legacy-form.ts';
import { lockCheckout } from '#purchases/checkouts/checkout.sql.ts';
import type { Checkout } from '#purchases/checkouts/checkout.ts';
import { listCheckoutDisputes } from '#purchases/disputes/dispute.sql.ts';
import { type OperatorDeps, operate } from '#record/actions/operate.ts';
import {
  deleteErasedNotes,
  deleteErasedPersonMails,
  deleteErasedRequests,
  deleteLinkCustomers,
  findOpenReason,
  type Link,
  listAnswersAbout,
  listRefundReasons,
  listShopperAlerts,
  lockErasedRows,
  updateAlertTexts,
  updateErasedCallback,
  updateErasedCards,
  updateErasedCheckout,
  updateErasedEvidence,
  updateErasedLink,
  updateErasedLinkCustomers,
  updateErasedMessages,
  updateErasedSearches,
  updateErasedTexts,
  updateErasedUnopenedLink,
  updateKeptAnswer,
  updateRefundReason,
} from './erasure.sql.ts';
import { readEmail } from './export-shopper.ts';
import {
  bareUrl,
  type Identifiers,
  identifiersOf,
  namesAddress,
  namesPerson,
  pseudonymise,
  withoutPerson,
} from './pseudonyms.ts';
import { insertDeletedCustomers } from './retention.sql.ts';
import {
  selectShopperCheckouts,
  selectShopperLinks,
  selectShopperRequests,
} from './shopper-data.sql.ts';

export type Erasure = {
  erased: string[];
  /** The checkouts that stay as they are, and why. */
  refused: { checkout_id: string; reason: string }[];
  /** How many payment links and refused requests named the shopper. */
  payment_links: number;
  refused_requests: number;
  /** Data that names the shopper and cannot be erased yet. */
  kept: Kept[];
};

export type Kept = {
  table: 'idempotency_keys';
  checkout_id: string;
  count: number;
};

/** An erasure reads at most this many events of an order. No order ever has that many. */
const eventsMax = 100_000;

/**
 * Removes the shopper from the event of a refund, which contains the reason why the refund failed:
 * a person may have written that.
 */
function withoutReason(payload: Buffer, identifiers: Identifiers): Buffer {
  const event = JSON.parse(payload.toString('utf8'));
  const { attributes } = event.data;
  if (typeof attributes.reason !== 'string') return payload;
  attributes.reason = withoutPerson(attributes.reason, identifiers, 'written by people');
  return Buffer.from(JSON.stringify(event));
}

/** Reports what erasing would do now, and changes nothing. */
export async function previewErasure(deps: OperatorDeps, address: string): Promise<Erasure> {
  return await reading(deps, async (db) => {
    const { found, counts } = await findShopper(db, readEmail(address));
    return { ...(await sortOut(deps, db, found)), ...counts, kept: [] };
  });
}

async function findShopper(db: Handle, email: string) {
  const found = await selectShopperCheckouts(db, email).execute();
  const links = await selectShopperLinks(email).execute(db);
  const requests = await listRequests(db, email);
  const counts = { payment_links: links.rows.length, refused_requests: requests.length };
  return { found, links: links.rows.map(({ row }) => row), counts };
}

/** The ids of refused requests that name the shopper. */
async function listRequests(db: Handle, email: string): Promise<string[]> {
  const { rows } = await selectShopperRequests(email).execute(db);
  return rows.flatMap(({ row }) => (namesAddress(row.body, email) ? [row.id] : []));
}

/**
 * Erases what is stored about the shopper with this e-mail address, in finished checkouts of every
 * merchant. Checkouts that are still open are refused, each with the reason. Amounts, dates,
 * statuses, postings and the gateway's references stay. The audit row does not name the shopper.
 */
export async function eraseShopper(
  deps: OperatorDeps,
  operator: string,
  address: string,
): Promise<Erasure> {
  const email = readEmail(address);
  const { found, links, counts } = await reading(deps, (db) => findShopper(db, email));
  if (found.length + counts.payment_links + counts.refused_requests === 0) {
    return { erased: [], refused: [], ...counts, kept: [] };
  }
  return await operate(deps, operator, 'shoppers erase', async (db, now) => {
    // Lock in the order of the ids, so that two erasures cannot deadlock.
    const locked: Checkout[] = [];
    for (const { merchant_id, id } of found.toSorted((one, other) =>
      one.id < other.id ? -1 : 1,
    )) {
      const checkout = await lockCheckout(db, merchant_id, id);
      if (!checkout || checkout.erased_at !== null) continue;
      await lockErasedRows(db, { merchant_id, checkout_id: id });
      locked.push(checkout);
    }
    const { erased, refused } = await sortOut(deps, db, locked);
    const finished = locked.filter(({ id }) => erased.includes(id));
    const kept = await eraseFinished(deps, db, finished, now, { known: locked });
    await updateErasedLinkCustomers(db, email, now);
    await eraseUnopened(db, links, locked, now);
    await deleteErasedRequests(db, await listRequests(db, email));
    const result = { erased, refused, ...counts, kept };
    const details = { erased, refused: refused.map(({ checkout_id }) => checkout_id) };
    return { subject_id: null, details, result };
  });
}

/**
 * Links that no shopper opened stay, without their customer. If a link's reference or one of its
 * URLs names the person, that is erased too and the link is cancelled, because the shop could no
 * longer tell what a payment was for.
 */
async function eraseUnopened(
  db: Handle,
  links: Link[],
  known: Checkout[],
  now: Timestamp,
): Promise<void> {
  if (links.length === 0) return;
  const identifiers = identifiersOf([...links, ...known].flatMap(({ customer }) => customer ?? []));
  // Name each integration once, because the statement reads all of its answers.
  const integrations = [...new Set(links.map(({ integration_id }) => integration_id))];
  const ids = links.map(({ id }) => id);
  await eraseAnswers(db, integrations, ids, identifiers);
  for (const link of links) await eraseLinkTexts(db, link, identifiers, now);
}

/** Erases the reference and the URLs of a link that no shopper opened, if one names the person. */
async function eraseLinkTexts(
  db: Handle,
  link: Link,
  identifiers: Identifiers,
  cancelled_at: Timestamp | null,
): Promise<void> {
  const isNamed = (text: string | null) => text !== null && namesPerson(text, identifiers);
  const bare = (url: string | null) => url && bareUrl(url, identifiers);
  const { id, client_reference_id, notify_url, success_url, cancel_url } = link;
  if (![client_reference_id, notify_url, success_url, cancel_url].some(isNamed)) return;
  await updateErasedUnopenedLink(db, link, {
    client_reference_id: isNamed(client_reference_id) ? `erased-${id}` : client_reference_id,
    notify_url: bare(notify_url),
    success_url: bare(success_url),
    cancel_url: bare(cancel_url),
    cancelled_at,
  });
}

/**
 * Removes shoppers from links that expired before `before`. A link that was opened has a checkout,
 * whose erasure also erases the link's reference and URLs. Those of any other link are erased here.
 */
export async function eraseExpiredLinks(
  db: Handle,
  times: { before: Timestamp; now: Timestamp },
  limit: number,
): Promise<number> {
  const links = await deleteLinkCustomers(db, times, limit);
  for (const link of links) {
    if (link.checkout_id !== null || link.customer === null) continue;
    await eraseLinkTexts(db, link, identifiersOf([link.customer]), null);
  }
  return links.length;
}

/**
 * Erases finished checkouts of one shopper, which the caller has locked, and has the gateway delete
 * its records of the shopper. The shopper's names are read from the checkouts in `known`. Answers
 * that are stored for retries are gone after a day. `hasAnswers` is false if none can be left:
 * searching for them reads all answers of an integration.
 */
export async function eraseFinished(
  deps: OperatorDeps,
  db: Handle,
  finished: Checkout[],
  now: Timestamp,
  { known = finished, hasAnswers = true }: { known?: Checkout[]; hasAnswers?: boolean } = {},
): Promise<Kept[]> {
  const identifiers = identifiersOf(known.map(({ customer }) => customer));
  const pseudonym = `erased-${deps.random.bytes(8).toString('hex')}`;
  const kept: Kept[] = [];
  for (const checkout of finished) {
    const as = { identifiers, pseudonym, hasAnswers };
    kept.push(...(await eraseCheckout(deps, db, checkout, as, now)));
  }
  if (finished.length > 0) await updateErasedSearches(db, identifiers.texts, now);
  return kept;
}

async function sortOut(
  deps: OperatorDeps,
  db: Handle,
  checkouts: Checkout[],
): Promise<Pick<Erasure, 'erased' | 'refused'>> {
  const erased: string[] = [];
  const refused: Erasure['refused'] = [];
  for (const { merchant_id, id: checkout_id } of checkouts) {
    const reason = await findOpenReason(
      db,
      { merchant_id, checkout_id },
      await timesOf(deps, db, merchant_id),
    );
    if (reason === null) erased.push(checkout_id);
    else refused.push({ checkout_id, reason });
  }
  return { erased, refused };
}

/** The real time, and the merchant's time. */
export async function timesOf(deps: Pick<OperatorDeps, 'clock'>, db: Handle, merchant_id: string) {
  const now = timestamp(deps.clock.now());
  const merchant = await findMerchant(db, deps.clock, merchant_id);
  return { now, merchantNow: merchant ? timestamp(merchant.now()) : now };
}

/** Erases one finished checkout, which the caller has locked. Returns what could not be erased. */
async function eraseCheckout(
  deps: OperatorDeps,
  db: Handle,
  checkout: Checkout,
  as: { identifiers: Identifiers; pseudonym: string; hasAnswers: boolean },
  now: Timestamp,
): Promise<Kept[]> {
  const { identifiers, pseudonym, hasAnswers } = as;
  const { merchant_id, id: checkout_id, integration_id } = checkout;
  const key = { merchant_id, checkout_id };
  const changed = { ...checkout, ...pseudonymise(checkout, identifiers, pseudonym) };
  await updateErasedCheckout(db, key, changed, now);
  if (checkout.payment_link_id !== null) {
    await updateErasedLink(db, { merchant_id, id: checkout.payment_link_id }, changed, now);
  }

  const callback = await findCheckoutCallback(db, merchant_id, checkout_id);
  if (callback) {
    await updateErasedCallback(db, callback, {
      notify_url: changed.notify_url ?? callback.notify_url,
      redirect_url: callback.redirect_url && bareUrl(callback.redirect_url, identifiers),
      payload: isForm(changed) ? formPayload(changed) : callbackPayload(changed),
    });
  }
  const events = await listCheckoutEvents(db, key, eventsMax);
  for (const event of events) {
    await updateErasedCallback(db, event, {
      notify_url:
        (event.notify_url === checkout.notify_url && changed.notify_url) || event.notify_url,
      redirect_url: null,
      payload: withoutReason(event.payload, identifiers),
    });
  }
  await updateErasedCards(db, key);
  await updateErasedEvidence(db, key);
  const { merchantNow: settled_at } = await timesOf(deps, db, merchant_id);
  await updateErasedMessages(db, key, settled_at);
  await insertDeletedCustomers(db, key, settled_at);
  await deleteErasedNotes(db, key);

  const refunds = await listRefundReasons(db, key);
  for (const { id, text } of refunds) {
    const erased = text && withoutPerson(text, identifiers, 'written by people');
    if (erased === null || erased === text) continue;
    await updateRefundReason(db, merchant_id, { id, text: erased });
  }
  const link = checkout.payment_link_id;
  const ids = [checkout_id, ...(link === null ? [] : [link]), ...refunds.map(({ id }) => id)];
  const disputes = await listCheckoutDisputes(db, key);
  await deleteErasedPersonMails(
    db,
    checkout,
    disputes.map(({ id }) => id),
  );
  const sent = [...(callback ? [callback] : []), ...events];
  const subjects = [...ids, ...[...disputes, ...sent].map(({ id }) => id)];
  const alerts = await eraseAlerts(db, key, subjects, identifiers);
  const integrations = [integration_id, ...refunds.map((refund) => refund.integration_id)];
  const answers = hasAnswers ? await eraseAnswers(db, integrations, ids, identifiers) : [];
  // An operator who closed an alert gave a reason, which is also stored in the action on the alert.
  // So the texts of the actions on these alerts are erased too.
  await updateErasedTexts(db, [...subjects, ...alerts], now);
  const count = answers.filter((one) => namesPerson(one.key, identifiers)).length;
  return count === 0 ? [] : [{ table: 'idempotency_keys', checkout_id, count }];
}

/**
 * Removes the shopper from the alerts about these rows, and from others that name the shopper.
 * Returns the ids of these alerts.
 */
async function eraseAlerts(
  db: Handle,
  { merchant_id }: { merchant_id: string },
  subjects: string[],
  identifiers: Identifiers,
): Promise<string[]> {
  const erased: string[] = [];
  for (const alert of await listShopperAlerts(db, merchant_id, subjects)) {
    const text = withoutPerson(alert.text, identifiers);
    const close_reason =
      alert.close_reason && withoutPerson(alert.close_reason, identifiers, 'written by people');
    const isNamed = text !== alert.text || close_reason !== alert.close_reason;
    if (isNamed) await updateAlertTexts(db, { id: alert.id, text, close_reason });
    if (isNamed || alert.is_own) erased.push(alert.id);
  }
  return erased;
}

/**
 * Removes the shopper from the answers about these rows that are stored for retries. The keys of
 * these answers stay as they are. Returns the answers.
 */
async function eraseAnswers(
  db: Handle,
  integrations: string[],
  ids: string[],
  identifiers: Identifiers,
): Promise<{ key: string }[]> {
  const answers = await listAnswersAbout(db, integrations, ids);
  for (const answer of answers) {
    const text = withoutPerson(answer.text, identifiers);
    if (text !== answer.text) await updateKeptAnswer(db, { ...answer, text });
  }
  return answers;
}
