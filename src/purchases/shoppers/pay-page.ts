import type { CardEntry, CardSession, DeclineReason } from '#gateway/gateway.ts';
import type { MerchantProfile } from '#merchants/merchant.ts';
import type { CardBrand, OperatorLinks } from '#platform/shared/hosted-page.ts';
import type { Language } from '#platform/shared/language.ts';
import type { PageWords } from '#platform/shared/words/words.ts';
import type { CheckoutStatus, LineItem } from '#purchases/checkouts/checkout.ts';
import type { PlannedPayment } from '#purchases/instalments/instalment.ts';
import type { Plan as PaidPlan } from './plan.ts';
import type { PlanAttempt, SessionScope } from './plan-attempt.ts';

// The whole document that the hosted page receives after each of its requests. The page shows
// nothing else, so that one place decides what a shopper sees.

export type Plan = { number_of_payments: number; payments: PlannedPayment[] };

/**
 * One text of the conversation. `name` is the merchant's for an answer, and null for the shopper.
 */
export type PageEntry = { name: string | null; text: string; at: string };

export type PayPage = {
  /**
   * `open` means that the shopper may pay, `paying` that an attempt, in this tab or another, or the
   * first delivery of the callback is in flight, and `begun` that the shopper enters the card in
   * `card_session`. With `challenge` the shopper's bank challenges them at `challenge_url`. With
   * `expired` no payment may begin, because the link is too old or had too many attempts. The
   * others are the checkout's final statuses.
   */
  status:
    | 'open'
    | 'paying'
    | 'begun'
    | 'challenge'
    | 'expired'
    | Exclude<CheckoutStatus, 'received'>;
  /** Always false in production. */
  test_mode: boolean;
  /** Where a sandbox shows its messages, if it has a mailbox. Always null in production. */
  mailbox_url: string | null;
  merchant_name: string;
  merchant: MerchantProfile;
  amount: number;
  currency: string;
  language: Language;
  /** How the merchant's territory writes amounts. */
  locale: string;
  /** The merchant's time zone, for the local date of a moment. */
  time_zone: string;
  client_reference_id: string;
  line_items: LineItem[];
  /**
   * One plan for each term that the checkout offers, with the dates of a purchase today or, once
   * the checkout is paid, of its purchase.
   */
  plans: Plan[];
  /** Whether the page may say that instalments cost the shopper nothing. */
  no_fees: boolean;
  /** The chosen term. Before the shopper chooses, the term that the page preselects. */
  number_of_payments: number;
  /** Why the last attempt failed, while the checkout is open. */
  decline: { reason: DeclineReason; may_retry: boolean } | null;
  /** Whether no payment can begin at the moment (decision 0097). Nothing was charged. */
  paused: boolean;
  /** The plan of a successful checkout, for its shopper; null for any other checkout. */
  plan: PaidPlan | null;
  /**
   * Whether the shopper can get a mail with a link that signs them in. Without such a link, they
   * can only read the page.
   */
  sends_links: boolean;
  /**
   * Set if the shopper signed in with a link from a mail. They may act within `scope` until it
   * expires.
   */
  session: { expires_at: string; scope: SessionScope } | null;
  /**
   * The newest questions and answers, in ascending order. Null without a session for the whole
   * plan, or if the shopper asked no question.
   */
  conversation: { entries: PageEntry[]; is_answered: boolean } | null;
  /** A message is answered within this many working days. */
  answer_days: number;
  /**
   * The shopper's attempt on the plan that is in flight. In a session also the last one, for half
   * an hour after its end. Otherwise null.
   */
  attempt: PlanAttempt | null;
  challenge_url: string | null;
  card_session: CardSession | null;
  /**
   * Where the browser goes from a final status. For `expired` and `invalid_payload` the page only
   * shows it as a link.
   */
  return_url: string | null;
  /**
   * Whether the shopper may still cancel although the status is `expired`. True if there were too
   * many attempts before `expires_at`, and false after `expires_at`.
   */
  may_cancel: boolean;
  expires_at: string;
  /** Null while the settings lack the checkout's gateway. No payment can begin then. */
  card_entry: CardEntry | null;
  /** The gateway of the card form. If it changes, the page must be loaded again. */
  gateway: string;
  card_brands: CardBrand[];
  operator: OperatorLinks;
  /** Names the wording of the consent, so that the agreed text can be shown again. */
  consent_version: string;
};

/** The body that the page sends to pay. */
export type PayRequest = {
  number_of_payments: number;
  /**
   * The gateway's token for the card that the shopper typed into its frame. Null if the card is
   * entered in the session that begins.
   */
  card_token: string | null;
  /** The consent to later charges as the page showed it; null for a single payment. */
  consent: { version: string; payments: PlannedPayment[] } | null;
  /** The language of the page, which is stored with the checkout. */
  language?: Language;
  /** The gateway whose card form the page showed. */
  gateway?: string;
};

export type CancelRequest = { number_of_payments: number };

/** The body of the page's request for another language, and the answer to it. */
export type LanguageRequest = { language: Language };
export type SpokenPage = { page: PayPage; words: PageWords };
