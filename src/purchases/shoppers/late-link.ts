import type { Handle } from '#platform/database/database.ts';
import { type Timestamp, timestamp } from '#platform/shared/clock.ts';
import type { Sealing } from '#platform/shared/sealing.ts';
import { insertLateLinks, type PlanKey } from './plan-access.sql.ts';
import { hashToken } from './send-link.ts';

/** The retries of a payment take seven days. The link in the first mail must outlive them. */
export const lateLinkDays = 14;

/**
 * The token in a mail about a late payment. A mail that is sent again has the same token, because a
 * mail program may keep either copy.
 */
export const lateToken = (sealing: Sealing, { id }: { id: string }) =>
  sealing.tokenFor(
    Buffer.concat([Buffer.from('late'), Buffer.from(id.replaceAll('-', ''), 'hex')]),
  );

/** Makes the links in mails that are about to be sent valid, in order. */
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
