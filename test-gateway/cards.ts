/** The behaviour of a test card. It depends only on the number. */
export type CardBehaviour = {
  /** Objects store this name instead of the number. */
  name: string;
  number: string;
  brand: 'visa' | 'mastercard' | 'amex';
  does: string;
  /** Stripe's id for the same card, for use without a browser. */
  payment_method?: string;
  /** Whether the shopper must pass a challenge. */
  challenge?: 'required';
  /**
   * The result of 3-D Secure if the caller requests it. By default the bank approves without
   * asking.
   */
  three_d_secure?: 'challenge' | 'not_supported';
  /** How a payment on the page is declined, after the challenge if there is one. */
  payment?: Refusal;
  /** A card whose payments are refused can still be stored by a setup intent. */
  setup?: 'succeeds';
  /** How a later charge without the shopper is declined. */
  later?: Refusal | 'unless_authenticated';
  refund?: 'pending_then_succeeded' | 'succeeded_then_failed';
  /** Why the cardholder disputes every payment as soon as it is captured. */
  dispute?: DisputeReason;
};

/** Reasons for which the test cards, or a control request, open a dispute. */
export const disputeReasons = {
  fraudulent: { network_reason_code: '10.4', isInquiry: false },
  product_not_received: { network_reason_code: '13.1', isInquiry: false },
  /** The bank only asks before a dispute, so no money moves. */
  inquiry: { network_reason_code: '10.4', isInquiry: true },
} as const;
export type DisputeReason = keyof typeof disputeReasons;

export type Refusal = {
  code: string;
  decline_code: string;
  advice_code: string;
  message: string;
  /** The issuer's own code, as the card network passes it on. */
  network_decline_code?: string;
};

/** The codes of ISO 8583 that most card networks use, and two of Visa's own: `N7` and `1A`. */
const networkCodes: Record<string, string> = {
  generic_decline: '05',
  insufficient_funds: '51',
  lost_card: '41',
  stolen_card: '43',
  card_velocity_exceeded: '65',
  expired_card: '54',
  incorrect_cvc: 'N7',
  processing_error: '96',
  authentication_required: '1A',
};

const networkCode = (decline_code: string) => {
  const network_decline_code = networkCodes[decline_code];
  return network_decline_code === undefined ? {} : { network_decline_code };
};

function declined(decline_code: string, advice_code: string, message: string): Refusal {
  return {
    code: 'card_declined',
    decline_code,
    advice_code,
    message,
    ...networkCode(decline_code),
  };
}

function wrong(code: string, advice_code: string, message: string): Refusal {
  return { code, decline_code: code, advice_code, message, ...networkCode(code) };
}

const refusals = {
  generic: declined('generic_decline', 'try_again_later', 'Your card was declined.'),
  insufficient: declined(
    'insufficient_funds',
    'try_again_later',
    'Your card has insufficient funds.',
  ),
  lost: declined('lost_card', 'do_not_try_again', 'Your card was declined.'),
  stolen: declined('stolen_card', 'do_not_try_again', 'Your card was declined.'),
  velocity: declined(
    'card_velocity_exceeded',
    'try_again_later',
    'Your card was declined for making repeated attempts too frequently or exceeding its amount limit.',
  ),
  expired: wrong('expired_card', 'confirm_card_data', 'Your card has expired.'),
  cvc: wrong('incorrect_cvc', 'confirm_card_data', "Your card's security code is incorrect."),
  processing: wrong(
    'processing_error',
    'try_again_later',
    'An error occurred while processing your card. Try again in a little bit.',
  ),
  authentication: {
    code: 'authentication_required',
    decline_code: 'authentication_required',
    advice_code: 'try_again_later',
    message: 'Your card was declined. This transaction requires authentication.',
    ...networkCode('authentication_required'),
  },
} satisfies Record<string, Refusal>;

export const authenticationRequired: Refusal = refusals.authentication;

/** Every card that the gateway knows. docs/merchants/test-cards.md shows the same list. */
export const testCards: CardBehaviour[] = [
  {
    name: 'visa',
    number: '4242424242424242',
    brand: 'visa',
    does: 'Succeeds',
    payment_method: 'pm_card_visa',
  },
  {
    name: 'mastercard',
    number: '5555555555554444',
    brand: 'mastercard',
    does: 'Succeeds',
    payment_method: 'pm_card_mastercard',
  },
  {
    name: 'amex',
    number: '378282246310005',
    brand: 'amex',
    does: 'Succeeds; 3-D Secure is not supported',
    payment_method: 'pm_card_amex',
    three_d_secure: 'not_supported',
  },
  {
    name: 'declined',
    number: '4000000000000002',
    brand: 'visa',
    does: 'Declined, no reason given',
    payment_method: 'pm_card_visa_chargeDeclined',
    payment: refusals.generic,
    later: refusals.generic,
  },
  {
    name: 'insufficient_funds',
    number: '4000000000009995',
    brand: 'visa',
    does: 'Declined: insufficient funds',
    payment_method: 'pm_card_visa_chargeDeclinedInsufficientFunds',
    payment: refusals.insufficient,
    later: refusals.insufficient,
  },
  {
    name: 'lost',
    number: '4000000000009987',
    brand: 'visa',
    does: 'Declined: lost card, not to be tried again',
    payment_method: 'pm_card_visa_chargeDeclinedLostCard',
    payment: refusals.lost,
    later: refusals.lost,
  },
  {
    name: 'stolen',
    number: '4000000000009979',
    brand: 'visa',
    does: 'Declined: stolen card, not to be tried again',
    payment_method: 'pm_card_visa_chargeDeclinedStolenCard',
    payment: refusals.stolen,
    later: refusals.stolen,
  },
  {
    name: 'velocity',
    number: '4000000000006975',
    brand: 'visa',
    does: 'Declined: used too often',
    payment_method: 'pm_card_visa_chargeDeclinedVelocityLimitExceeded',
    payment: refusals.velocity,
    later: refusals.velocity,
  },
  {
    name: 'expired',
    number: '4000000000000069',
    brand: 'visa',
    does: 'Declined: expired card',
    payment_method: 'pm_card_chargeDeclinedExpiredCard',
    payment: refusals.expired,
    later: refusals.expired,
  },
  {
    name: 'cvc',
    number: '4000000000000127',
    brand: 'visa',
    does: 'Declined: wrong security code',
    payment_method: 'pm_card_chargeDeclinedIncorrectCvc',
    payment: refusals.cvc,
    later: refusals.cvc,
  },
  {
    name: 'processing_error',
    number: '4000000000000119',
    brand: 'visa',
    does: 'Declined: processing error',
    payment_method: 'pm_card_chargeDeclinedProcessingError',
    payment: refusals.processing,
    later: refusals.processing,
  },
  {
    name: 'charges_fail',
    number: '4000000000000341',
    brand: 'visa',
    does: 'Can be stored, every charge is declined',
    payment_method: 'pm_card_chargeCustomerFail',
    setup: 'succeeds',
    payment: refusals.generic,
    later: refusals.generic,
  },
  {
    name: 'challenge_once',
    number: '4000002500003155',
    brand: 'visa',
    does: 'Challenge on the page; later payments succeed',
    payment_method: 'pm_card_authenticationRequiredOnSetup',
    challenge: 'required',
    later: 'unless_authenticated',
  },
  {
    name: 'challenge_always',
    number: '4000002760003184',
    brand: 'visa',
    does: 'Challenge every time; later payments need the shopper',
    payment_method: 'pm_card_authenticationRequired',
    challenge: 'required',
    later: refusals.authentication,
  },
  {
    name: 'challenge_insufficient_funds',
    number: '4000008260003178',
    brand: 'visa',
    does: 'Challenge, then declined: insufficient funds; later payments too',
    payment_method: 'pm_card_authenticationRequiredChargeDeclinedInsufficientFunds',
    challenge: 'required',
    payment: refusals.insufficient,
    later: refusals.insufficient,
  },
  {
    name: 'challenge',
    number: '4000000000003220',
    brand: 'visa',
    does: 'Challenge, then succeeds; later payments succeed',
    payment_method: 'pm_card_threeDSecure2Required',
    challenge: 'required',
    later: 'unless_authenticated',
  },
  {
    name: 'challenge_on_request',
    number: '4000000000003055',
    brand: 'visa',
    does: 'Challenge if 3-D Secure is requested, as on the page; then succeeds',
    payment_method: 'pm_card_threeDSecureOptional',
    three_d_secure: 'challenge',
  },
  {
    name: 'challenge_declined',
    number: '4000008400001629',
    brand: 'visa',
    does: 'Challenge, then declined',
    payment_method: 'pm_card_threeDSecureRequiredChargeDeclined',
    challenge: 'required',
    payment: refusals.generic,
    later: refusals.generic,
  },
  {
    name: 'challenge_lookup_error',
    number: '4000008400001280',
    brand: 'visa',
    does: 'Declined at once: the challenge cannot be set up',
    payment_method: 'pm_card_threeDSecureRequiredProcessingError',
    payment: refusals.generic,
    later: refusals.generic,
  },
  {
    name: 'refund_pending',
    number: '4000000000007726',
    brand: 'visa',
    does: 'Succeeds; a refund is pending for an hour, then succeeds',
    payment_method: 'pm_card_pendingRefund',
    refund: 'pending_then_succeeded',
  },
  {
    name: 'refund_fails',
    number: '4000000000005126',
    brand: 'visa',
    does: 'Succeeds; a refund succeeds, then fails three days later',
    payment_method: 'pm_card_refundFail',
    refund: 'succeeded_then_failed',
  },
  {
    name: 'dispute_fraudulent',
    number: '4000000000000259',
    brand: 'visa',
    does: 'Succeeds; then the cardholder disputes it as fraudulent',
    payment_method: 'pm_card_createDispute',
    dispute: 'fraudulent',
  },
  {
    name: 'dispute_not_received',
    number: '4000000000002685',
    brand: 'visa',
    does: 'Succeeds; then the cardholder disputes it as not received',
    payment_method: 'pm_card_createDisputeProductNotReceived',
    dispute: 'product_not_received',
  },
  {
    name: 'dispute_inquiry',
    number: '4000000000001976',
    brand: 'visa',
    does: 'Succeeds; then the bank inquires about it',
    payment_method: 'pm_card_createDisputeInquiry',
    dispute: 'inquiry',
  },
  // Apart from cards whose later payments need the shopper, Stripe has no card whose first payment
  // succeeds and whose later payments are declined.
  {
    name: 'later_insufficient_funds',
    number: '4000000000777005',
    brand: 'visa',
    does: "Tranche's own: succeeds; later payments are declined: insufficient funds",
    later: refusals.insufficient,
  },
  {
    name: 'later_lost',
    number: '4000000000777104',
    brand: 'visa',
    does: "Tranche's own: succeeds; later payments are declined: lost card, not to be tried again",
    later: refusals.lost,
  },
];

const byNumber = new Map(testCards.map((card) => [card.number, card]));
const byName = new Map(testCards.map((card) => [card.name, card]));
const byPaymentMethod = new Map(
  testCards.flatMap((card) => (card.payment_method ? [[card.payment_method, card] as const] : [])),
);

export function cardNumbered(number: string): CardBehaviour | null {
  return byNumber.get(number) ?? null;
}

export function cardNamed(name: string): CardBehaviour {
  const card = byName.get(name);
  if (card === undefined) throw new Error(`there is no test card ${name}`);
  return card;
}

export function cardOfPaymentMethod(id: string): CardBehaviour | null {
  return byPaymentMethod.get(id) ?? null;
}

/** The refusal with this decline code. An unknown code makes an ordinary decline. */
export function refusalNamed(decline_code: string): Refusal {
  const known = Object.values(refusals).find((refusal) => refusal.decline_code === decline_code);
  return known ?? declined(decline_code, 'try_again_later', 'Your card was declined.');
}

export function passesLuhn(number: string): boolean {
  let sum = 0;
  for (let i = 0; i < number.length; i += 1) {
    const digit = Number(number[number.length - 1 - i]);
    const doubled = i % 2 === 1 ? digit * 2 : digit;
    sum += doubled > 9 ? doubled - 9 : doubled;
  }
  return number.length >= 12 && sum % 10 === 0;
}
