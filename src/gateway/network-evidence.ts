import type { Evidence } from './evidence.ts';

// The texts of evidence, under the field names that several gateways share.

const textNames = {
  customer_name: 'customer_name',
  customer_email: 'customer_email_address',
  billing_address: 'billing_address',
  order: 'product_description',
  paid_on: 'service_date',
  carrier: 'shipping_carrier',
  tracking_number: 'shipping_tracking_number',
  shipped_on: 'shipping_date',
  refund_policy: 'refund_policy_disclosure',
} as const satisfies Partial<Record<keyof Evidence, string>>;

export const networkNames = [...Object.values(textNames), 'uncategorized_text'] as const;

/** `uncategorized_text` holds every text that has no field of its own. */
export function networkEvidence(
  evidence: Evidence,
): Partial<Record<(typeof networkNames)[number], string>> {
  const { delivered_on, statement, history } = evidence;
  const text = [
    delivered_on && `The order was delivered on ${delivered_on}.`,
    statement && `The merchant writes:\n${statement}`,
    history,
  ];
  const named = Object.entries(textNames).flatMap(([ours, theirs]) => {
    const value = evidence[ours as keyof Evidence];
    return value ? [[theirs, value]] : [];
  });
  const uncategorized_text = text.filter(Boolean).join('\n\n');
  return { ...Object.fromEntries(named), ...(uncategorized_text && { uncategorized_text }) };
}
