import type { CheckoutStatus, LineItem } from '../checkouts/checkout.ts';
import type { CardEntry, DeclineReason } from '../gateway/gateway.ts';
import type { PlannedPayment } from '../instalments/instalment.ts';

// What the hosted page is told, whole, after everything that it does. The page shows this and
// nothing else: there is one place that decides what a shopper sees.

export type Plan = { number_of_payments: number; payments: PlannedPayment[] };

export type PayPage = {
  /**
   * `open`: a shopper may pay. `paying`: an attempt is under way, here or in another tab.
   * `challenge`: the shopper's bank wants to hear from them at `challenge_url`. `expired`: nobody may
   * begin to pay any more, for its age or after too many tries. Otherwise the checkout's final
   * status.
   */
  status: 'open' | 'paying' | 'challenge' | 'expired' | Exclude<CheckoutStatus, 'received'>;
  /** Never in production. */
  test_mode: boolean;
  merchant_name: string;
  amount: number;
  currency: string;
  locale: string;
  client_reference_id: string;
  line_items: LineItem[];
  /** One per term that the checkout offers, as it would be if it were paid today. */
  plans: Plan[];
  /** The term that is, or was, chosen; the first one at the start. */
  number_of_payments: number;
  /** Why the last attempt did not work, while the checkout is still open. */
  decline: { reason: DeclineReason; may_retry: boolean } | null;
  challenge_url: string | null;
  /** Where the browser goes from a final status; from `expired` and `invalid_payload`, a link. */
  return_url: string | null;
  expires_at: string;
  card_entry: CardEntry;
  /** Names the wording of the consent, so that what was agreed to can be shown again. */
  consent_version: string;
};

/** What the page sends to pay. */
export type PayRequest = {
  number_of_payments: number;
  /** The gateway's token for what was typed into its frame. */
  card_token: string;
  /** The consent to later charges as it was shown; null for a single payment. */
  consent: { version: string; payments: PlannedPayment[] } | null;
};

export type CancelRequest = { number_of_payments: number };
