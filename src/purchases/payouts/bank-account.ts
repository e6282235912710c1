import type { Timestamp } from '#platform/shared/clock.ts';
import { explainInvisible } from '#platform/shared/plain-text.ts';

/**
 * The account that a merchant is paid to. One person proposes it, and another person, an operator
 * of the service, confirms it. Until then the previous account stays in use. Rows are kept, so that
 * every payout names the account that it went to.
 */
export type BankAccount = {
  merchant_id: string;
  number: number;
  holder: string;
  bank: string;
  branch_code: string;
  /** The account number, encrypted. */
  sealed_account: Buffer;
  last4: string;
  created_at: Timestamp;
  /**
   * The names of the two people. If there is a person's id, the console identified the person.
   * Otherwise the name was only stated at the command line.
   */
  proposed_by: string;
  proposed_person_id: string | null;
  confirmed_by: string | null;
  confirmed_person_id: string | null;
  confirmed_at: Timestamp | null;
  /** How many wrong account numbers were typed in attempts to confirm the account. */
  wrong_numbers: number;
};

/** The context that an account number is sealed with, so that it opens in no other row. */
export const bankAccountContext = ({
  merchant_id,
  number,
}: {
  merchant_id: string;
  number: number;
}) => `bank_accounts ${merchant_id} ${number}`;

export type WantedAccount = {
  holder: string;
  bank: string;
  branch_code: string;
  account_number: string;
};

const nameCharactersMax = 100;

/** Returns what is wrong with an account, or null. Never repeats the account number. */
export function explainBadAccount(wanted: WantedAccount, territory: string): string | null {
  for (const [name, text] of [
    ['holder', wanted.holder],
    ['bank', wanted.bank],
  ] as const) {
    if (text.trim() === '' || text.length > nameCharactersMax) {
      return `The ${name} must have 1 to ${nameCharactersMax} characters.`;
    }
    if (/\p{C}/u.test(text)) return explainInvisible(`The ${name}`);
  }
  if (territory === 'ZA' && !/^\d{6}$/.test(wanted.branch_code)) {
    return 'The branch code must have six digits.';
  }
  if (!/^[0-9A-Za-z-]{1,20}$/.test(wanted.branch_code)) {
    return 'The branch code must have 1 to 20 letters, digits or hyphens.';
  }
  if (!/^\d{5,20}$/.test(wanted.account_number)) {
    return 'The account number must have 5 to 20 digits, without spaces.';
  }
  return null;
}

/**
 * Whether this is an e-mail address of the form `name@host.example`, no longer than mail servers
 * accept.
 */
export function isAddress(text: string): boolean {
  return text.length <= 254 && /^[^\s@<>,;:"'\\]+@[^\s@<>,;:"'\\]+\.[^\s@<>,;:"'\\]+$/.test(text);
}
