import type { Timestamp } from '#platform/shared/clock.ts';

export const statementMailStatuses = ['pending', 'sent', 'refused', 'skipped'] as const;
export type StatementMailStatus = (typeof statementMailStatuses)[number];

/** A mail is about a paid payout or about a month; the other member is null. */
export type StatementSubject =
  | { payout_id: string; statement_id: null }
  | { payout_id: null; statement_id: string };

/** A statement that is being mailed to the merchant. */
export type StatementMail = {
  merchant_id: string;
  id: string;
  payout_id: string | null;
  statement_id: string | null;
  status: StatementMailStatus;
  created_at: Timestamp;
  due_at: Timestamp | null;
  settled_at: Timestamp | null;
  attempts: number;
  response: string | null;
  lease: string | null;
  leased_until: Timestamp | null;
};
