import type { Handle } from '#platform/database/database.ts';
import type { MerchantMail } from './merchant-mail.ts';

export type MerchantMailDeps = {
  /** Writes the mails in the transaction that causes them. */
  mailMerchant(db: Handle, mail: MerchantMail): Promise<void>;
};
