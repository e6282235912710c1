import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';

/** Mail to the people of a merchant. The slice of people brings it: it knows who they are. */
export type MerchantMail = {
  merchant_id: string;
  kind: 'bank_proposed' | 'bank_confirmed';
  facts: { merchant: string; account: string };
  /** The person who did it. A merchant's people are told no name of the service's staff. */
  by: string | null;
  at: Timestamp;
};

export type MerchantMailDeps = {
  /** Writes the mails in the transaction that causes them. */
  mailMerchant(db: Handle, mail: MerchantMail): Promise<void>;
};
