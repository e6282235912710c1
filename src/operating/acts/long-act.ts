import type { Timestamp } from '#platform/shared/clock.ts';

/**
 * Several actions of one person as one: resend all callbacks that match, approve many refunds. It
 * is a row with due work, so it goes on when the person has closed the browser and after a restart.
 */
export const longActKinds = ['callbacks retry', 'refunds approve'] as const;
export type LongActKind = (typeof longActKinds)[number];

/** The person who began it, as `operate` writes them into the audit. */
export type LongActActor = {
  operator: string;
  person_id: string;
  roles: string[];
  address: string;
  session_id: string;
};

/** Selects the rows that it acts on. Fixed when it begins. Null stands for any. */
export type LongActWanted =
  | { refund_ids: string[] }
  | { merchant_ids: string[] | null; host: string | null; until_id: string };

export type LongActProblem = { id: string; problem: string };

export type LongAct = {
  id: string;
  kind: LongActKind;
  actor: LongActActor;
  wanted: LongActWanted;
  created_at: Timestamp;
  finished_at: Timestamp | null;
  /** Null if there were too many to count when it began. */
  total: number | null;
  done: number;
  failed: number;
  problems: LongActProblem[];
  position: string | null;
  due_at: Timestamp | null;
  lease: string | null;
  leased_until: Timestamp | null;
};

/** So many problems are kept; the others are only counted. */
export const problemsMax = 20;
