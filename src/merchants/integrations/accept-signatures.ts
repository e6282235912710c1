import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import { moveSigningKeyUsed } from './credential.sql.ts';
import { lockIntegrations, moveSigningRequired } from './integration.sql.ts';
import type { Caller, SigningKey } from './integration.ts';

/** A POST, and the key that it was signed with; null if it was not signed. */
export type SignedPost = {
  caller: Pick<Caller, 'id' | 'signing_required_at'>;
  key: SigningKey | null;
};

/**
 * Whether the transaction of these POSTs has to record or check anything about signing. Once an
 * integration has signed with its current key, there is nothing left to record.
 */
export function needsAcceptance(posts: SignedPost[]): boolean {
  return posts.some(
    ({ caller, key }) =>
      key === null || caller.signing_required_at === null || key.first_used_at === null,
  );
}

/**
 * Returns the integrations whose unsigned POSTs must be refused because an earlier POST was signed.
 * An unsigned POST locks its integration, so it either commits before the first signed POST or sees
 * that signing has become mandatory.
 */
export async function refuseUnsigned(db: Handle, posts: SignedPost[]): Promise<Set<string>> {
  const touched = posts
    .filter(({ caller, key }) => key === null || caller.signing_required_at === null)
    .map(({ caller }) => caller.id);
  if (touched.length === 0) return new Set();
  const locked = await lockIntegrations(db, [...new Set(touched)]);
  return new Set(locked.filter((one) => one.signing_required_at !== null).map((one) => one.id));
}

/**
 * Makes signing mandatory (decision 0005). Call it only in the transaction of POSTs that succeed.
 */
export async function acceptSignatures(
  db: Handle,
  posts: SignedPost[],
  now: Timestamp,
): Promise<void> {
  const signed = posts.filter(({ key }) => key !== null);
  const becomeMandatory = signed
    .filter(({ caller }) => caller.signing_required_at === null)
    .map(({ caller }) => caller.id);
  const firstUsed = signed.flatMap(({ key }) => (key?.first_used_at === null ? [key.id] : []));
  if (becomeMandatory.length > 0) {
    await moveSigningRequired(db, [...new Set(becomeMandatory)], now);
  }
  if (firstUsed.length > 0) await moveSigningKeyUsed(db, [...new Set(firstUsed)], now);
}
