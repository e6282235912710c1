import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';

/**
 * Mail to the people of a merchant. The room of people implements it, because it knows who they are.
 */
export type MerchantMail = {
  merchant_id: string;
  kind: 'bank_proposed' | 'bank_confirmed';
  facts: { merchant: string; account: string };
  /** The person who did it. A merchant's people never learn the names of the service's staff. */
  by: string | null;
  at: Timestamp;
};

export type MerchantMailDeps = {
  /** Writes the mails in the transaction that causes them. */
  mailMerchant(db: Handle, mail: MerchantMail): Promise<void>;
};
