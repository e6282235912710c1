import type { Handle } from '../database/database.ts';
import type { Timestamp } from '../shared/clock.ts';
import { moveSigningKeyUsed } from './credential.sql.ts';
import { lockIntegrations, moveSigningRequired } from './integration.sql.ts';
import type { Caller, SigningKey } from './integration.ts';

/** How a POST came: with which key it was signed, or null when it was not. */
export type SignedPost = {
  caller: Pick<Caller, 'id' | 'signing_required_at'>;
  key: SigningKey | null;
};

/**
 * Whether anything about these POSTs has to be recorded or checked in their transaction. Once an
 * integration signs every request, and that is soon, nothing has.
 */
export function needsAcceptance(posts: SignedPost[]): boolean {
  return posts.some(
    ({ caller, key }) =>
      key === null || caller.signing_required_at === null || key.first_used_at === null,
  );
}

/**
 * The integrations whose unsigned POSTs must be refused, because one of theirs was signed before.
 * An unsigned POST locks its integration, so it is either committed before the first signed one
 * or sees it.
 */
export async function refuseUnsigned(db: Handle, posts: SignedPost[]): Promise<Set<string>> {
  const touched = posts
    .filter(({ caller, key }) => key === null || caller.signing_required_at === null)
    .map(({ caller }) => caller.id);
  if (touched.length === 0) return new Set();
  const locked = await lockIntegrations(db, [...new Set(touched)]);
  return new Set(locked.filter((one) => one.signing_required_at !== null).map((one) => one.id));
}

/** Makes signing sticky (D12), in the transaction of POSTs that succeed and for those alone. */
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
