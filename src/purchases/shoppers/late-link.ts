import { timingSafeEqual } from 'node:crypto';
import type { Handle } from '#platform/database/database.ts';
import { type Timestamp, timestamp } from '#platform/shared/clock.ts';
import type { Sealing } from '#platform/shared/sealing.ts';
import { findLastSent } from '#purchases/messages/message.sql.ts';
import { findLateLink, insertLateLinks, type PlanKey } from './plan-access.sql.ts';
import { hashToken } from './send-link.ts';

/**
 * The link in the first mail about a late payment must outlive the retries of the payment. There
 * are three (`retryDays`), and the card network may put off each of them by ten days.
 */
export const lateLinkDays = 31;

/**
 * The token in a mail about a late payment. A mail that is sent again has the same token, because a
 * mail program may keep either copy.
 */
export const lateToken = (sealing: Sealing, { id }: { id: string }) =>
  sealing.tokenFor(
    Buffer.concat([Buffer.from('late'), Buffer.from(id.replaceAll('-', ''), 'hex')]),
  );

/**
 * Makes the links in mails that are about to be sent valid. Only the last of these links of each
 * plan counts.
 */
export async function renewLateLinks(
  deps: { sealing: Sealing },
  db: Handle,
  mails: (PlanKey & { id: string })[],
  now: Temporal.Instant,
): Promise<void> {
  const created_at: Timestamp = timestamp(now);
  const expires_at = timestamp(now.add({ hours: 24 * lateLinkDays }));
  const links = mails.map(({ merchant_id, checkout_id, ...mail }) => {
    const token_hash = hashToken(lateToken(deps.sealing, mail));
    return { merchant_id, checkout_id, token_hash, created_at, expires_at };
  });
  const newest = [...new Map(links.map((link) => [link.checkout_id, link])).values()];
  if (newest.length > 0) await insertLateLinks(db, newest);
}

/**
 * Whether this is the newest link of the plan and has not expired. Its mail may not have been sent
 * yet, so the link in the last mail that was sent works as well.
 */
export async function isLateLink(
  { sealing }: { sealing: Sealing },
  db: Handle,
  key: PlanKey,
  token_hash: Buffer,
  now: Temporal.Instant,
): Promise<boolean> {
  const newest = await findLateLink(db, key, timestamp(now));
  if (newest === null) return false;
  if (timingSafeEqual(newest, token_hash)) return true;
  const since = timestamp(now.subtract({ hours: 24 * lateLinkDays }));
  const sent = await findLastSent(db, key, 'declined', since);
  return sent !== null && timingSafeEqual(hashToken(lateToken(sealing, sent)), token_hash);
}
