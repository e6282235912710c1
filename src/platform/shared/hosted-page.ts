// The operator's settings for the pages of shoppers.

export const cardBrands = ['visa', 'mastercard', 'amex'] as const;
export type CardBrand = (typeof cardBrands)[number];

export type OperatorLinks = {
  terms_url: string | null;
  privacy_url: string | null;
  /** An e-mail address, a phone number or an https address. */
  contact: string | null;
  /** Where a shopper complains about the operator: an e-mail address or an https address. */
  complaints: string | null;
};

export type HostedPageSettings = {
  cardBrands: CardBrand[];
  operator: OperatorLinks;
  /** A shopper's message is answered within this many working days, as the plan page promises. */
  answerDays: number;
  /** The mailbox page of a sandbox on this machine; null elsewhere. */
  mailboxUrl: string | null;
  /** The addresses of a sandbox's demo shop and console, for its front page. */
  sandbox: { shop: string; console: string } | null;
};
