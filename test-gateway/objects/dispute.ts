import type Stripe from 'stripe';
import { type DisputeReason, disputeReasons } from '../cards.ts';
import type { Kept } from '../store.ts';
import { daySeconds, type Made, newId } from './made.ts';

export const responseSeconds = 10 * daySeconds;

/** The members of the evidence that contain ids of files. */
export const evidenceFiles = [
  'cancellation_policy',
  'customer_communication',
  'customer_signature',
  'duplicate_charge_documentation',
  'receipt',
  'refund_policy',
  'service_documentation',
  'shipping_documentation',
  'uncategorized_file',
] as const;

/** The members of the evidence that contain texts. */
export const evidenceTexts = [
  'access_activity_log',
  'billing_address',
  'cancellation_policy_disclosure',
  'cancellation_rebuttal',
  'customer_email_address',
  'customer_name',
  'customer_purchase_ip',
  'duplicate_charge_explanation',
  'duplicate_charge_id',
  'product_description',
  'refund_policy_disclosure',
  'refund_refusal_explanation',
  'service_date',
  'shipping_address',
  'shipping_carrier',
  'shipping_date',
  'shipping_tracking_number',
  'uncategorized_text',
] as const;

const noEvidence: Stripe.Dispute.Evidence = {
  access_activity_log: null,
  billing_address: null,
  cancellation_policy: null,
  cancellation_policy_disclosure: null,
  cancellation_rebuttal: null,
  customer_communication: null,
  customer_email_address: null,
  customer_name: null,
  customer_purchase_ip: null,
  customer_signature: null,
  duplicate_charge_documentation: null,
  duplicate_charge_explanation: null,
  duplicate_charge_id: null,
  enhanced_evidence: {},
  product_description: null,
  receipt: null,
  refund_policy: null,
  refund_policy_disclosure: null,
  refund_refusal_explanation: null,
  service_date: null,
  service_documentation: null,
  shipping_address: null,
  shipping_carrier: null,
  shipping_date: null,
  shipping_documentation: null,
  shipping_tracking_number: null,
  uncategorized_file: null,
  uncategorized_text: null,
};

export function makeDispute(
  { merchant, now }: Made,
  charge: Stripe.Charge,
  given: { reason: DisputeReason; amount: number },
): Kept<'dispute'> {
  const { network_reason_code, isInquiry } = disputeReasons[given.reason];
  const brand = charge.payment_method_details?.card?.brand ?? 'visa';
  return {
    object: {
      id: newId('du'),
      object: 'dispute',
      amount: given.amount,
      balance_transactions: [],
      charge: charge.id,
      created: now,
      currency: charge.currency,
      enhanced_eligibility_types: [],
      evidence: noEvidence,
      evidence_details: {
        due_by: now + responseSeconds,
        enhanced_eligibility: {},
        has_evidence: false,
        past_due: false,
        submission_count: 0,
        submission_method: 'not_submitted',
      },
      intended_submission_method: null,
      is_charge_refundable: isInquiry,
      livemode: false,
      metadata: {},
      network_reason_code,
      payment_intent: charge.payment_intent,
      payment_method_details: {
        card: {
          brand,
          case_type: isInquiry ? 'inquiry' : 'chargeback',
          network: brand,
          network_reason_code,
        },
        type: 'card',
      },
      reason: given.reason === 'inquiry' ? 'fraudulent' : given.reason,
      status: isInquiry ? 'warning_needs_response' : 'needs_response',
    },
    hidden: {},
    merchant,
  };
}

export const isInquiry = ({ status }: Stripe.Dispute) => status.startsWith('warning_');

/** A dispute that the merchant did not answer in time is lost, and an inquiry is closed. */
export function agedDispute(kept: Kept<'dispute'>, now: number): Kept<'dispute'> {
  const { object } = kept;
  const { due_by } = object.evidence_details;
  const isOpen = object.status === 'needs_response' || object.status === 'warning_needs_response';
  if (!isOpen || due_by === null || now <= due_by) return kept;
  return {
    ...kept,
    object: {
      ...object,
      evidence_details: { ...object.evidence_details, past_due: true },
      status: isInquiry(object) ? 'warning_closed' : 'lost',
    },
  };
}
