import type { Static } from 'typebox';
import type { CardError } from '../objects/card-error.ts';
import type { payment, recommendedActions, standardisedCodes } from './payment.schema.ts';

type Answer = Static<typeof payment>;
type Members = Pick<
  Answer,
  | 'error_code'
  | 'error_message'
  | 'unified_code'
  | 'unified_message'
  | 'error_details'
  | 'issuer_error_code'
  | 'issuer_error_message'
>;

type Standard = {
  code: (typeof standardisedCodes)[number];
  action: (typeof recommendedActions)[number];
  /** Mastercard's merchant advice code. */
  advice?: string;
};

const later = 'retry_later';
const never = 'do_not_retry';
const otherData = 'retry_with_different_payment_method_data';

/** How Hyperswitch translates the acquirer's codes, if the account maps them. */
const standards: Record<string, Standard> = {
  generic_decline: { code: 'do_not_honor', action: later },
  insufficient_funds: { code: 'insufficient_funds', action: 'retry_after_24_hours', advice: '24' },
  lost_card: { code: 'card_lost_or_stolen', action: never, advice: '03' },
  stolen_card: { code: 'card_lost_or_stolen', action: never, advice: '03' },
  card_velocity_exceeded: { code: 'velocity_limit_exceeded', action: 'retry_after_4_days' },
  expired_card: { code: 'invalid_expiry_date', action: otherData, advice: '01' },
  incorrect_cvc: { code: 'invalid_cvv', action: otherData },
  processing_error: { code: 'downstream_technical_issue', action: later },
  authentication_required: { code: 'authentication_required', action: 'stop_recurring' },
  payment_intent_authentication_failure: { code: 'authentication_failed', action: later },
  setup_intent_authentication_failure: { code: 'authentication_failed', action: later },
};

const nothing: Members = {
  error_code: null,
  error_message: null,
  unified_code: null,
  unified_message: null,
  error_details: null,
  issuer_error_code: null,
  issuer_error_message: null,
};

/** The members of an answer that say why a payment failed. */
export function declineOf(
  error:
    | (Partial<Pick<CardError, 'decline_code' | 'network_decline_code' | 'message'>> & {
        code?: string;
      })
    | null,
  mapsErrors: boolean,
): Members {
  if (error === null) return nothing;
  const code = error.decline_code ?? error.code ?? 'generic_decline';
  const standard = mapsErrors ? standards[code] : undefined;
  const network = error.network_decline_code ?? null;
  const message = error.message ?? null;
  const unified = standard ? 'UE_1000' : 'UE_9000';
  return {
    error_code: code,
    error_message: message,
    unified_code: unified,
    unified_message: 'Something went wrong',
    error_details: {
      unified_details: {
        category: unified,
        message: 'Something went wrong',
        standardised_code: standard?.code ?? null,
        description: null,
        user_guidance_message: null,
        recommended_action: standard?.action ?? null,
      },
      issuer_details:
        network === null
          ? null
          : {
              code: network,
              message: null,
              network_details: {
                name: null,
                advice_code: standard?.advice ?? null,
                advice_message: null,
              },
            },
      connector_details: { code, message, reason: null },
    },
    issuer_error_code: network,
    issuer_error_message: null,
  };
}
