import { type RawBuilder, type Selectable, sql } from 'kysely';
import type { Handle } from '#platform/database/database.ts';
import type { Tables } from '#platform/database/tables.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { Checkout } from '#purchases/checkouts/checkout.ts';
import type { PlanKey } from './plan-access.sql.ts';
import { isTheirs } from './shopper-data.sql.ts';

// All statements that erase personal data, from every table, in one file so that they can be
// reviewed together (decision 0070). Call those about a checkout only with the checkout locked and
// found to be finished.

/**
 * Whether a callback is about a checkout: the checkout's own callback, or an event. Each case has
 * an index.
 */
const isAbout = (checkout_id: RawBuilder<unknown>) =>
  sql<boolean>`(listed_id = ${checkout_id} or event is not null and checkout_id = ${checkout_id})`;

/**
 * Locks a checkout's callbacks and messages, so that no operator or worker claims them until the
 * transaction ends.
 */
export async function lockErasedRows(
  db: Handle,
  { merchant_id, checkout_id }: PlanKey,
): Promise<void> {
  await sql`
    select id from callbacks
    where merchant_id = ${merchant_id} and ${isAbout(sql`${checkout_id}::uuid`)}
    order by id for update`.execute(db);
  await sql`
    select id from messages
    where merchant_id = ${merchant_id} and checkout_id = ${checkout_id}
    order by id for update`.execute(db);
}

type Times = { now: Timestamp; merchantNow: Timestamp };

/** The reason why a checkout cannot be erased yet, or null if it is finished. */
export async function findOpenReason(
  db: Handle,
  { merchant_id, checkout_id }: PlanKey,
  times: Times,
): Promise<string | null> {
  const reasons = await listOpenReasons(db, merchant_id, [checkout_id], times);
  return reasons.get(checkout_id) ?? null;
}

/** Finds which of a merchant's checkouts are not finished, with the reasons. */
export async function listOpenReasons(
  db: Handle,
  merchant_id: string,
  checkout_ids: string[],
  { now, merchantNow }: Times,
): Promise<Map<string, string>> {
  // Finds the first reason that applies. A payment that began in time may take a few minutes longer
  // (decision 0011), but never an hour.
  const { rows } = await sql<{ id: string; reason: string | null }>`
    select c.id, case
      when exists (
        select from payment_attempts a
        where a.checkout_id = c.id and a.merchant_id = c.merchant_id and a.due_at is not null)
        then 'a payment is in progress'
      when exists (
        select from replaced_cards d
        where d.checkout_id = c.id and d.merchant_id = c.merchant_id and d.due_at is not null)
        then 'a replaced card is being removed'
      when c.status = 'received'
        and c.expires_at + interval '1 hour' > ${merchantNow}::timestamptz
        then 'it can still be paid'
      when exists (
        select from refund_requests r
        where r.checkout_id = c.id and r.merchant_id = c.merchant_id
          and r.status in ('requested', 'pending'))
        then 'a refund is in progress'
      when exists (
        select from disputes d
        where d.checkout_id = c.id and d.merchant_id = c.merchant_id
          and (d.closed_at is null or d.is_pausing))
        then 'a payment is disputed'
      when exists (
        select from instalments i
        where i.checkout_id = c.id and i.merchant_id = c.merchant_id and i.status = 'overdue')
        then 'a payment is overdue'
      when exists (
        select from instalments i
        where i.checkout_id = c.id and i.merchant_id = c.merchant_id
          and i.status not in ('collected', 'cancelled'))
        then 'payments are still to come'
      when exists (
        select from callbacks k
        where k.merchant_id = c.merchant_id and ${isAbout(sql`c.id`)}
          and (k.due_at is not null or k.leased_until > ${now}::timestamptz))
        then 'its callback is still being delivered'
      when exists (
        select from messages m
        where m.checkout_id = c.id and m.merchant_id = c.merchant_id
          and m.leased_until > ${now}::timestamptz)
        then 'a message is being sent'
      end as reason
    from checkouts c
    where c.id = any(${checkout_ids}::uuid[]) and c.merchant_id = ${merchant_id}`.execute(db);
  return new Map(rows.flatMap(({ id, reason }) => (reason === null ? [] : [[id, reason]])));
}

export async function updateErasedCheckout(
  db: Handle,
  { merchant_id, checkout_id }: PlanKey,
  to: Pick<
    Checkout,
    'client_reference_id' | 'notify_url' | 'success_url' | 'cancel_url' | 'customer' | 'line_items'
  >,
  erased_at: Timestamp,
): Promise<void> {
  await sql`
    update checkouts
    set client_reference_id = ${to.client_reference_id}, notify_url = ${to.notify_url},
      success_url = ${to.success_url}, cancel_url = ${to.cancel_url},
      customer = ${JSON.stringify(to.customer)}::jsonb,
      line_items = ${JSON.stringify(to.line_items)}::jsonb, erased_at = ${erased_at}
    where id = ${checkout_id} and merchant_id = ${merchant_id}`.execute(db);
}

/**
 * Erases the payment link of a checkout. A link for one order gets the reference and the URLs of
 * its erased checkout. If the link was not paid, it is cancelled, because the shop could no longer
 * tell what a payment was for. If the link has a newer checkout, another shopper may be paying, and
 * only the customer is erased. A reusable link names no shopper.
 */
export async function updateErasedLink(
  db: Handle,
  link: LinkKey,
  to: Pick<
    Checkout,
    'id' | 'status' | 'client_reference_id' | 'notify_url' | 'success_url' | 'cancel_url'
  >,
  now: Timestamp,
): Promise<void> {
  const cancelled_at = to.status === 'successful' ? null : now;
  await sql`
    update payment_links
    set customer = null, client_reference_id = ${to.client_reference_id},
      notify_url = ${to.notify_url},
      success_url = case when success_url is not null then ${to.success_url} end,
      cancel_url = case when cancel_url is not null then ${to.cancel_url} end,
      cancelled_at = coalesce(cancelled_at, ${cancelled_at}::timestamptz)
    where id = ${link.id} and merchant_id = ${link.merchant_id}
      and not reusable and checkout_id = ${to.id}`.execute(db);
  await sql`
    update payment_links set customer = null
    where id = ${link.id} and merchant_id = ${link.merchant_id}
      and not reusable and customer is not null`.execute(db);
  await updateErasedLinkMails(db, [link], now);
}

type LinkKey = { merchant_id: string; id: string };
export type Link = Selectable<Tables['payment_links']>;

/**
 * Skips the pending mails about these links, and erases the answers of the mail server, which may
 * name the shopper, and the mails that a sandbox keeps. A mail that is being sent loses its lease,
 * so that its answer is not recorded. The caller has already changed the links, so that no further
 * mail about them is queued.
 */
async function updateErasedLinkMails(db: Handle, links: LinkKey[], now: Timestamp): Promise<void> {
  if (links.length === 0) return;
  const merchant_ids = [...new Set(links.map(({ merchant_id }) => merchant_id))];
  const isOfMerchant = sql<boolean>`merchant_id = any(${merchant_ids}::uuid[])`;
  const isOfLink = sql<boolean>`
    ${isOfMerchant} and payment_link_id = any(${links.map(({ id }) => id)}::uuid[])`;
  // The merchant's clock may be ahead of `now`.
  await sql`
    update messages
    set status = 'skipped', due_at = null, settled_at = greatest(created_at, ${now}::timestamptz),
      sealed_token = null, lease = null, leased_until = null
    where ${isOfLink} and status = 'pending'`.execute(db);
  const { rows } = await sql<{ id: string }>`
    select id from messages where ${isOfLink}`.execute(db);
  const ids = rows.map(({ id }) => id);
  if (ids.length === 0) return;
  await sql`
    update message_attempts set response = 'erased'
    where ${isOfMerchant} and message_id = any(${ids}::uuid[])`.execute(db);
  await sql`
    delete from mailbox where ${isOfMerchant} and id = any(${ids}::uuid[])`.execute(db);
}

/** A link that no shopper opened has no checkout, so its own reference and URLs are changed. */
export async function updateErasedUnopenedLink(
  db: Handle,
  link: LinkKey,
  to: Pick<Checkout, 'client_reference_id' | 'notify_url' | 'success_url'> & {
    cancel_url: string | null;
    cancelled_at: Timestamp | null;
  },
): Promise<void> {
  await sql`
    update payment_links
    set client_reference_id = ${to.client_reference_id}, notify_url = ${to.notify_url},
      success_url = ${to.success_url}, cancel_url = ${to.cancel_url},
      cancelled_at = coalesce(cancelled_at, ${to.cancelled_at}::timestamptz)
    where id = ${link.id} and merchant_id = ${link.merchant_id}
      and checkout_id is null`.execute(db);
}

/**
 * Removes an e-mail address from the payment links of all merchants. The next shopper types their
 * own.
 */
export async function updateErasedLinkCustomers(
  db: Handle,
  email: string,
  now: Timestamp,
): Promise<void> {
  const { rows } = await sql<LinkKey>`
    update payment_links set customer = null
    where customer is not null and ${isTheirs(email)}
    returning merchant_id, id`.execute(db);
  await updateErasedLinkMails(db, rows, now);
}

/**
 * Removes the customers of links that expired before `before`, and erases the links' mails. Returns
 * the links as they were.
 */
export async function deleteLinkCustomers(
  db: Handle,
  { before, now }: { before: Timestamp; now: Timestamp },
  limit: number,
): Promise<Link[]> {
  const { rows } = await sql<{ row: Link }>`
    update payment_links as l set customer = null
    from (
      select merchant_id, id, customer from payment_links
      where customer is not null and expires_at < ${before}::timestamptz
      order by expires_at limit ${limit}
    ) o
    where l.merchant_id = o.merchant_id and l.id = o.id and l.customer is not null
    returning to_jsonb(l) || jsonb_build_object('customer', o.customer) as row`.execute(db);
  const links = rows.map(({ row }) => row);
  await updateErasedLinkMails(db, links, now);
  return links;
}

/**
 * Removes the receivers' answers too, which may contain anything. The database allows this change
 * only for erased checkouts.
 */
export async function updateErasedCallback(
  db: Handle,
  { merchant_id, id }: { merchant_id: string; id: string },
  to: { notify_url: string; redirect_url: string | null; payload: Buffer },
): Promise<void> {
  await sql`
    update callbacks
    set notify_url = ${to.notify_url}, redirect_url = ${to.redirect_url}, payload = ${to.payload}
    where id = ${id} and merchant_id = ${merchant_id}`.execute(db);
  await sql`
    update callback_attempts set response_headers = null, response_body = null
    where merchant_id = ${merchant_id} and callback_id = ${id} and finished_at is not null
      and (response_headers is not null or response_body is not null)`.execute(db);
}

/** The payments' references stay, because refunds need them. */
export async function updateErasedCards(
  db: Handle,
  { merchant_id, checkout_id }: PlanKey,
): Promise<void> {
  await sql`
    update payment_attempts
    set card_last4 = null, card_expires = null, card_key = null, challenge_url = null,
      sealed_card_token = null
    where merchant_id = ${merchant_id} and checkout_id = ${checkout_id}`.execute(db);
  for (const table of ['stored_cards', 'replaced_cards']) {
    await sql`
      update ${sql.table(table)} set last4 = null, expires = null, card_key = null
      where merchant_id = ${merchant_id} and checkout_id = ${checkout_id}`.execute(db);
  }
  await sql`
    update collections set card_key = null
    where merchant_id = ${merchant_id} and checkout_id = ${checkout_id}
      and card_key is not null`.execute(db);
}

/**
 * The evidence of a dispute names the shopper. The evidence's hash stays, because the audit refers
 * to that hash.
 */
export async function updateErasedEvidence(
  db: Handle,
  { merchant_id, checkout_id }: PlanKey,
): Promise<void> {
  await sql`
    update disputes set staged_evidence = null, staged_files = null, supplied = null
    where merchant_id = ${merchant_id} and checkout_id = ${checkout_id}
      and (staged_evidence is not null or supplied is not null)`.execute(db);
  await sql`
    delete from dispute_files
    where merchant_id = ${merchant_id} and checkout_id = ${checkout_id}`.execute(db);
}

/**
 * Skips messages that have not been sent yet, because their recipient is gone. Erases the answers
 * of mail servers, and deletes links, sessions and the mails that a sandbox keeps.
 */
export async function updateErasedMessages(
  db: Handle,
  { merchant_id, checkout_id }: PlanKey,
  settled_at: Timestamp,
): Promise<void> {
  await sql`
    update messages
    set status = 'skipped', due_at = null, settled_at = ${settled_at}, sealed_token = null,
      lease = null, leased_until = null
    where merchant_id = ${merchant_id} and checkout_id = ${checkout_id}
      and status = 'pending'`.execute(db);
  await sql`
    update message_attempts set response = 'erased'
    where merchant_id = ${merchant_id} and message_id in (
      select id from messages
      where merchant_id = ${merchant_id} and checkout_id = ${checkout_id})`.execute(db);
  await sql`
    update archived_messages
    set attempts = (
      select coalesce(jsonb_agg(a || '{"response": "erased"}'), '[]')
      from jsonb_array_elements(attempts) a)
    where merchant_id = ${merchant_id} and checkout_id = ${checkout_id}`.execute(db);
  for (const table of ['mailbox', 'plan_links', 'late_links', 'plan_sessions']) {
    await sql`
      delete from ${sql.table(table)}
      where merchant_id = ${merchant_id} and checkout_id = ${checkout_id}`.execute(db);
  }
}

/**
 * Deletes refused requests that name the shopper. They are kept for a few days, with their bodies.
 */
export async function deleteErasedRequests(db: Handle, ids: string[]): Promise<void> {
  await sql`delete from refused_requests where id = any(${ids}::uuid[])`.execute(db);
}

/**
 * Deletes mails to the merchant's people about the order, also from a sandbox's mailbox: they state
 * the order's reference, which may name the shopper.
 */
export async function deleteErasedPersonMails(
  db: Handle,
  { merchant_id, id, payment_link_id }: Checkout,
  dispute_ids: string[],
): Promise<void> {
  // A dispute has an event for each stage. All of them begin like this pattern.
  const events = [
    ...(payment_link_id === null ? [] : [`link_paid ${merchant_id} ${id}`]),
    ...dispute_ids.map((dispute) => `dispute_opened ${merchant_id} ${dispute}%`),
  ];
  if (events.length === 0) return;
  const { rows } = await sql<{ id: string }>`
    delete from person_mails where event like any(${events}::text[]) returning id`.execute(db);
  const ids = rows.map(({ id }) => id);
  if (ids.length > 0) await sql`delete from mailbox where id = any(${ids}::uuid[])`.execute(db);
}

/**
 * Deletes people's notes on the checkout and its refunds, the reasons with which people requested
 * refunds, and the conversation with the shopper.
 */
export async function deleteErasedNotes(
  db: Handle,
  { merchant_id, checkout_id }: PlanKey,
): Promise<void> {
  for (const table of ['notes', 'conversation_entries', 'conversations']) {
    await sql`
      delete from ${sql.table(table)}
      where merchant_id = ${merchant_id} and checkout_id = ${checkout_id}`.execute(db);
  }
  await sql`
    update refund_requests set request_reason = null
    where merchant_id = ${merchant_id} and checkout_id = ${checkout_id}
      and request_reason is not null`.execute(db);
}

/**
 * Erases what operators wrote in actions on these rows. The actions stay, with the digests of those
 * texts.
 */
export async function updateErasedTexts(
  db: Handle,
  subject_ids: string[],
  erased_at: Timestamp,
): Promise<void> {
  await sql`
    update action_texts set salt = null, text = null, erased_at = ${erased_at}
    where text is not null and action_id in (
      select id from operator_actions where subject_id = any(${subject_ids}::uuid[]))`.execute(db);
}

/** Erases operators' search terms that equal one of these texts. */
export async function updateErasedSearches(
  db: Handle,
  texts: string[],
  erased_at: Timestamp,
): Promise<void> {
  await sql`
    update action_texts set salt = null, text = null, erased_at = ${erased_at}
    where lower(text) = any(array(select lower(t) from unnest(${texts}::text[]) t))`.execute(db);
}

type Text = { id: string; text: string };

/** Why refunds were declined or failed, in an operator's words or our own. */
export async function listRefundReasons(
  db: Handle,
  { merchant_id, checkout_id }: PlanKey,
): Promise<{ id: string; integration_id: string; text: string | null }[]> {
  return await db
    .selectFrom('refund_requests')
    .select(['id', 'integration_id', 'reason as text'])
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id)
    .execute();
}

export async function updateRefundReason(
  db: Handle,
  merchant_id: string,
  { id, text }: Text,
): Promise<void> {
  await sql`
    update refund_requests set reason = ${text}
    where merchant_id = ${merchant_id} and id = ${id}`.execute(db);
}

/**
 * Alerts about these rows (`is_own`), and alerts of the merchant about mail, which quote mail
 * servers.
 */
export async function listShopperAlerts(
  db: Handle,
  merchant_id: string,
  subject_ids: string[],
): Promise<(Text & { close_reason: string | null; is_own: boolean })[]> {
  const { rows } = await sql<Text & { close_reason: string | null; is_own: boolean }>`
    select id, detail as text, close_reason,
      coalesce(subject_id = any(${subject_ids}::uuid[]), false) as is_own
    from alerts
    where subject_id = any(${subject_ids}::uuid[])
      or merchant_id = ${merchant_id} and kind = 'messages_failing'`.execute(db);
  return rows;
}

export async function updateAlertTexts(
  db: Handle,
  { id, text, close_reason }: Text & { close_reason: string | null },
): Promise<void> {
  await sql`
    update alerts set detail = ${text}, close_reason = ${close_reason}
    where id = ${id}`.execute(db);
}

type KeptAnswer = { integration_id: string; key: string; text: string };

/** Stored answers to requests about these rows. They expire a day after the last request. */
export async function listAnswersAbout(
  db: Handle,
  integration_ids: string[],
  ids: string[],
): Promise<KeptAnswer[]> {
  const { rows } = await sql<KeptAnswer>`
    select integration_id, key, answer::text as text from idempotency_keys
    where integration_id = any(${integration_ids}::uuid[])
      and answer ->> 'id' = any(${ids}::text[])`.execute(db);
  return rows;
}

/** The row itself stays: without it a retry would create a second checkout or refund. */
export async function updateKeptAnswer(db: Handle, answer: KeptAnswer): Promise<void> {
  await sql`
    update idempotency_keys set answer = ${answer.text}::jsonb
    where integration_id = ${answer.integration_id} and key = ${answer.key}`.execute(db);
}
