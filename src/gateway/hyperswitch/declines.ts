import { cardKeyOf, type Decline, type DeclineReason } from '#gateway/gateway.ts';
import { waitOf } from '#gateway/network-advice.ts';
import type { Payment } from './answers.ts';
import { cardOf } from './card.ts';

// Why a bank or the gateway declined a card, and whether a retry may help. Hyperswitch translates
// the acquirers' codes that its operator has mapped; we read the others.

const standardised: Record<string, DeclineReason> = {
  insufficient_funds: 'insufficient_funds',
  credit_limit_exceeded: 'insufficient_funds',
  card_lost_or_stolen: 'lost_card',
  velocity_limit_exceeded: 'velocity_exceeded',
  invalid_expiry_date: 'expired_card',
  invalid_cvv: 'incorrect_cvc',
  invalid_card_number: 'incorrect_number',
  issuer_unavailable: 'processing_error',
  downstream_technical_issue: 'processing_error',
  psp_acquirer_error: 'processing_error',
  transaction_timed_out: 'processing_error',
  rate_limit: 'processing_error',
  authentication_required: 'authentication_required',
  authentication_failed: 'authentication_failed',
  incorrect_authentication_code: 'authentication_failed',
  payment_cancelled_by_user: 'authentication_failed',
  three_ds_authentication_service_issue: 'authentication_failed',
};

/** The issuer's own codes (ISO 8583), which most networks use. */
const issuer: Record<string, DeclineReason> = {
  '51': 'insufficient_funds',
  '41': 'lost_card',
  '43': 'stolen_card',
  '61': 'velocity_exceeded',
  '65': 'velocity_exceeded',
  '54': 'expired_card',
  '14': 'incorrect_number',
  N7: 'incorrect_cvc',
  '82': 'incorrect_cvc',
  '91': 'processing_error',
  '96': 'processing_error',
  '1A': 'authentication_required',
};

/** Patterns in the acquirers' own codes. */
const raw: [pattern: RegExp, reason: DeclineReason][] = [
  [/insufficient/i, 'insufficient_funds'],
  [/stolen/i, 'stolen_card'],
  [/lost/i, 'lost_card'],
  [/velocity|limit_exceeded/i, 'velocity_exceeded'],
  [/expired/i, 'expired_card'],
  [/cvc|cvv/i, 'incorrect_cvc'],
  [/authentication_required/i, 'authentication_required'],
  [/authentication/i, 'authentication_failed'],
  [/processing/i, 'processing_error'],
];

/** After these reasons a retry with the same card is pointless, whatever the network advises. */
const final: ReadonlySet<DeclineReason> = new Set<DeclineReason>([
  'lost_card',
  'stolen_card',
  'expired_card',
  'incorrect_number',
  'authentication_required',
]);

const forbidding = new Set(['do_not_retry', 'stop_recurring']);
/** Mastercard's advice codes: the account is closed, or the cardholder forbids the charge. */
const forbiddingAdvice = new Set(['03', '21']);
/** Hyperswitch's codes that mean that the same card will not work. */
const forbiddingCodes = new Set([
  'account_closed_or_invalid',
  'authorization_missing_or_revoked',
  'card_not_supported_restricted',
  'psp_fraud_engine_decline',
  'suspected_fraud',
  'transaction_not_permitted',
]);

/** Acquirers' codes that mean that the issuer forbids a retry. */
const forbiddingRaw =
  /blacklist|fraud|invalid_account|pick.?up|restricted|revocation|security_violation|stop_payment/i;

function reasonOf(standard: string, network: string, code: string): DeclineReason {
  // The issuer distinguishes a stolen card from a lost one, and Hyperswitch does not.
  if (standard === 'card_lost_or_stolen' && network === '43') return 'stolen_card';
  return (
    standardised[standard] ??
    issuer[network] ??
    raw.find(([pattern]) => pattern.test(code))?.[1] ??
    'generic'
  );
}

/** The gateway may put the card network's advice in its own words: `retry_after_4_days`. */
function adviceOf(action: string, adviceCode: string | null | undefined): { wait_hours?: number } {
  const [, count, unit] = /^retry_after_(\d{1,3})_(hour|day)s?$/.exec(action) ?? [];
  if (count === undefined) return waitOf(adviceCode);
  return { wait_hours: Number(count) * (unit === 'day' ? 24 : 1) };
}

export function declineOf(payment: Payment): Decline {
  const { unified_details, issuer_details, connector_details } = payment.error_details ?? {};
  const standard = unified_details?.standardised_code ?? '';
  const network = payment.issuer_error_code ?? issuer_details?.code ?? null;
  const code = payment.error_code ?? connector_details?.code ?? null;
  const reason = reasonOf(standard, network ?? '', code ?? '');
  const action = unified_details?.recommended_action ?? '';
  const adviceCode = issuer_details?.network_details?.advice_code;
  const isForbidden =
    forbidding.has(action) ||
    forbiddingAdvice.has(adviceCode ?? '') ||
    forbiddingCodes.has(standard) ||
    (standard === '' && forbiddingRaw.test(code ?? ''));
  const card = cardOf(payment);
  return {
    reason,
    may_retry: !isForbidden && !final.has(reason),
    code,
    network_code: network,
    ...adviceOf(action, adviceCode),
    ...(card.last4 !== null && { card_key: cardKeyOf(card) }),
  };
}
