/**
 * The largest `refundMin` of any gateway. Every refund is split by this minimum, so that even a
 * command that does not know the gateways splits a refund in the same way.
 */
export const commonRefundMin = 100;

/** How gateways differ. Rules read these values and never ask which gateway it is. */
export type Capabilities = {
  /** How many days a hold lasts if the gateway does not say. */
  holdDays: number;
  /** The smallest refund, in cents. */
  refundMin: number;
  /** How many refunds a payment can have, and for how many days. Null if there is no limit. */
  refundsMax: number | null;
  refundDays: number | null;
  /** Whether the gateway reports its fees and the movements of the account's balance. */
  knowsFees: boolean;
  /** How often a minute the gateway asks the acquirer about a payment. Null if without limit. */
  lookUpsPerMinute: number | null;
  /** The amount that is held for a moment to verify a card, in cents. Zero if nothing is held. */
  verificationAmount: number;
  /** Whether the gateway can store evidence with a dispute without sending it to the bank. */
  stagesEvidence: boolean;
  /** Whether the gateway sends us events. The settings then have its webhook secret. */
  sendsEvents: boolean;
};
