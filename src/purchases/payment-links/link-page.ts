import type { OperatorLinks } from '#platform/shared/hosted-page.ts';
import type { Language } from '#platform/shared/language.ts';
import type { PaymentLinkStatus } from './payment-link.ts';

/** Everything that the page of a payment link shows. The page has no script. */
export type LinkPage = {
  /** `unavailable`: the merchant no longer accepts this amount. */
  status: PaymentLinkStatus | 'unavailable';
  /** Always false in production. */
  test_mode: boolean;
  merchant_name: string;
  /** The SHA-256 of the merchant's logo. */
  logo: string | null;
  /** Null if the shopper types the amount, within `bands`. */
  amount: number | null;
  bands: { from_amount: number; to_amount: number }[];
  currency: string;
  locale: string;
  time_zone: string;
  language: Language;
  client_reference_id: string;
  /** Whether the link makes many checkouts, each with its own reference. */
  reusable: boolean;
  asks_email: boolean;
  /** The form as the shopper sent it, and the names of its wrong members. */
  typed: { amount: string; email: string };
  wrong: ('amount' | 'email')[];
  /**
   * Why the form did not lead to a payment page: there were too many attempts a moment ago, or
   * someone is paying with another e-mail address.
   */
  notice: 'limited' | 'busy' | null;
  operator: OperatorLinks;
};

/** The page that a shop prints for its checkout counter. */
export type LinkPrint = {
  merchant_name: string;
  logo: string | null;
  amount: number | null;
  currency: string;
  locale: string;
  qr: { size: number; path: string };
};
