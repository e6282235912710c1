/** How gateways differ. Rules read these values and never ask which gateway it is. */
export type Capabilities = {
  /** How many days a hold lasts if the gateway does not say. */
  holdDays: number;
  /** The smallest refund, in cents. */
  refundMin: number;
  /** How many refunds a payment can have, and for how many days. Null if there is no limit. */
  refundsMax: number | null;
  refundDays: number | null;
  /** Whether it reports its fees and the movements of the balance. */
  knowsFees: boolean;
};
