import type { Timestamp } from '#platform/shared/clock.ts';
import { type MerchantFacts, merchantAlerts } from '#purchases/messages/merchant-mail.ts';

/**
 * One mail to a person at the console. The transaction that causes it writes the row, `pending`.
 * The worker sends it and makes it `sent`, or `refused` if the mail server will never accept it. An
 * invitation whose link no longer works when the mail is sent is `skipped`, and so is mail about a
 * merchant to a person who should no longer get it.
 */
export const personMailKinds = [
  'invitation',
  'invitation_requested',
  'invited_again',
  'registered',
  'passkey_added',
  'passkey_removed',
  'issuer_tied',
  'access_widened',
  'revoked',
  'confirmed',
  'invited_elsewhere',
  'bank_proposed',
  'bank_confirmed',
  ...merchantAlerts,
] as const;
export type PersonMailKind = (typeof personMailKinds)[number];
export type PersonMailStatus = 'pending' | 'sent' | 'refused' | 'skipped';

/** Facts that the mail states and that are not in the person's row. */
export type PersonMailFacts = Partial<MerchantFacts> & {
  merchant_id?: string;
  /**
   * The operator who acted, as far as the person may see that: a merchant's people do not get the
   * names of the service's staff. Absent if the person acted.
   */
  by?: string;
  /** The network address that the action came from. */
  address?: string;
  passkey?: string;
  issuer?: string;
  expires_at?: Timestamp;
  /** How the new link reaches the person. */
  link?: 'mail' | 'command line';
};

export type PersonMail = {
  id: string;
  person_id: string;
  kind: PersonMailKind;
  facts: PersonMailFacts;
  sealed_token: Buffer | null;
  status: PersonMailStatus;
  created_at: Timestamp;
  due_at: Timestamp | null;
  settled_at: Timestamp | null;
  attempts: number;
  response: string | null;
  /** The merchant's event that the mail is about. A person gets one mail about each event. */
  event: string | null;
};

/** The context that an invitation's token is sealed with, so that no other mail can open it. */
export const personMailContext = (mail: { id: string }) => `person mails ${mail.id}`;
