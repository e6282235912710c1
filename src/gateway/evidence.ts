/** Texts that support our side of a dispute. Dates are written for a bank's clerk to read. */
export type Evidence = {
  customer_name?: string;
  customer_email?: string;
  billing_address?: string;
  order?: string;
  paid_on?: string;
  carrier?: string;
  tracking_number?: string;
  shipped_on?: string;
  delivered_on?: string;
  /** The merchant's own words. */
  statement?: string;
  refund_policy?: string;
  history?: string;
};

/**
 * A dispute takes one file of each kind. `correspondence` is what the merchant and the customer
 * wrote to each other.
 */
export const evidenceFileKinds = ['delivery', 'correspondence', 'receipt', 'other'] as const;
export type EvidenceFileKind = (typeof evidenceFileKinds)[number];
