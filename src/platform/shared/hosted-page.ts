// Links and texts that the operator's settings add to the pages of shoppers.

export const cardBrands = ['visa', 'mastercard', 'amex'] as const;
export type CardBrand = (typeof cardBrands)[number];

export type OperatorLinks = {
  terms_url: string | null;
  privacy_url: string | null;
  /** An e-mail address, a phone number or an https address. */
  contact: string | null;
};

export type HostedPageSettings = {
  cardBrands: CardBrand[];
  operator: OperatorLinks;
  /** The mailbox page of a sandbox on this machine; null elsewhere. */
  mailboxUrl: string | null;
};
