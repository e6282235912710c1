import type { Timestamp } from '#platform/shared/clock.ts';

export const statementMailStatuses = ['pending', 'sent', 'refused', 'skipped'] as const;
export type StatementMailStatus = (typeof statementMailStatuses)[number];

/** The statement of a payout on its way to the merchant. */
export type StatementMail = {
  merchant_id: string;
  id: string;
  payout_id: string;
  status: StatementMailStatus;
  created_at: Timestamp;
  due_at: Timestamp | null;
  settled_at: Timestamp | null;
  attempts: number;
  response: string | null;
  lease: string | null;
  leased_until: Timestamp | null;
};
