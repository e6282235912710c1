import type { Timestamp } from '#platform/shared/clock.ts';

/** Exports that a merchant's people get mail about after each week or month, if they chose it. */
export const exportKinds = [
  'orders_week',
  'orders_month',
  'refunds_week',
  'refunds_month',
] as const;
export type ExportKind = (typeof exportKinds)[number];

/** The events that a merchant's people get mail about if they chose it. */
export const merchantAlerts = [
  'callbacks_failing',
  'dispute_opened',
  'key_ends',
  'payout_paid',
  'payout_returned',
  'link_paid',
  ...exportKinds,
] as const;
export type MerchantAlertKind = (typeof merchantAlerts)[number];

/** The facts that a mail to a merchant's people states. */
export type MerchantFacts = {
  merchant: string;
  /** The end of an account number. */
  account?: string;
  /** An amount of money, written out. */
  amount?: string;
  /** The order, or the payout. */
  reference?: string;
  /** The host that callbacks go to. */
  host?: string;
  /** The credential that expires. */
  credential?: string;
  /** The day from which a bank account can be paid. Absent if that is at once. */
  payable_from?: string;
  /** The first and the last day of an export. */
  from?: string;
  to?: string;
  /** When something is due, or expires. */
  until?: Timestamp;
};

/**
 * Mail to the people of a merchant. The room `people` implements it, because it knows these people.
 */
export type MerchantMail = {
  merchant_id: string;
  facts: MerchantFacts;
  at: Timestamp;
} & (
  | {
      kind: 'bank_proposed' | 'bank_confirmed';
      /**
       * The person who proposed or confirmed the bank account. The names of the service's staff are
       * not shown to a merchant's people.
       */
      by: string | null;
    }
  | {
      kind: MerchantAlertKind;
      /**
       * A name for the event, so that a person gets one mail about it, however often it is raised.
       */
      event: string;
    }
);
