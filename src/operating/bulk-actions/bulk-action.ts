import type { Timestamp } from '#platform/shared/clock.ts';

/**
 * Many actions by one person, begun as one: resend all callbacks that match, approve many refunds
 * or payouts, record many payouts as paid, retry many payments. It is a row with due work, so it
 * continues after the person closes the browser, and after a restart. It ends with the session that
 * began it: when the person signs out, is revoked or is invited again, when the session is ended,
 * and when the session's passkey is removed. It also ends when the access loses a merchant.
 */
export const bulkActionKinds = [
  'callbacks retry',
  'refunds approve',
  'payouts approve',
  'payouts paid',
  'instalments retry',
] as const;
export type BulkActionKind = (typeof bulkActionKinds)[number];

/** The person who began a bulk action, with the members that `operate` writes into the audit. */
export type BulkActionActor = {
  operator: string;
  person_id: string;
  access_id: string;
  /** The merchants of the person's access when the action began. Null or absent means all. */
  merchant_ids?: string[] | null;
  roles: string[];
  address: string;
  session_id: string;
};

/**
 * Selects the rows that the bulk action acts on. The selection is fixed at the start. A null filter
 * matches any row.
 */
export type BulkActionWanted =
  | { ids: string[]; bank_reference?: string }
  | { merchant_ids: string[] | null; host: string | null; until_id: string };

export type BulkActionProblem = { id: string; problem: string };

export type BulkAction = {
  id: string;
  kind: BulkActionKind;
  actor: BulkActionActor;
  wanted: BulkActionWanted;
  created_at: Timestamp;
  finished_at: Timestamp | null;
  /** Null if the bulk action began with too many items to count. */
  total: number | null;
  done: number;
  failed: number;
  problems: BulkActionProblem[];
  /**
   * Why the bulk action ended before its last item: an operator stopped it, its session ended, or
   * its access lost a merchant. Null if it did not.
   */
  stopped: string | null;
  position: string | null;
  due_at: Timestamp | null;
  lease: string | null;
  leased_until: Timestamp | null;
};

/**
 * Reads an item of `payouts approve`: a payout's id, and the number of the bank account that the
 * person saw when they approved it.
 */
export function readApproval(item: string): { id: string; account: number | null } {
  const [id = '', account] = item.split(':');
  return { id, account: account === 'none' ? null : Number(account) };
}

/**
 * Reads an item of `refunds approve`. `asFirst` is true if the person read that theirs is the first
 * of two approvals.
 */
export function readReview(item: string): { id: string; asFirst: boolean } {
  const [id = '', first] = item.split(':');
  return { id, asFirst: first === 'first' };
}

/** This many problems are kept. Further ones are only counted. */
export const problemsMax = 20;
