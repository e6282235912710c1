import type { Kept } from '../store.ts';
import { type Made, newId } from './made.ts';

export function makeSetupIntent(
  { merchant, now }: Made,
  given: {
    customer: string | null;
    /** Null if the card is entered later. */
    payment_method: string | null;
    /** The caller's own id, if the API lets callers choose ids. */
    id?: string;
    description: string | null;
    metadata: Record<string, string>;
    usage: string;
    card_options: {
      setup_credential_usage?: string | undefined;
      request_three_d_secure?: string | undefined;
    };
    return_url: string | null;
  },
): Kept<'setup_intent'> {
  const id = given.id ?? newId('seti');
  const { setup_credential_usage, request_three_d_secure = 'automatic' } = given.card_options;
  return {
    object: {
      id,
      object: 'setup_intent',
      allowed_payment_method_types: ['card'],
      application: null,
      automatic_payment_methods: null,
      cancellation_reason: null,
      client_secret: `${id}_${newId('secret')}`,
      created: now,
      customer: given.customer,
      customer_account: null,
      description: given.description,
      excluded_payment_method_types: null,
      flow_directions: null,
      last_setup_error: null,
      latest_attempt: newId('setatt'),
      livemode: false,
      managed_payments: null,
      mandate: null,
      metadata: given.metadata,
      next_action: null,
      on_behalf_of: null,
      payment_method: given.payment_method,
      payment_method_configuration_details: null,
      payment_method_options: {
        card: {
          mandate_options: null,
          network: null,
          request_three_d_secure,
          ...(setup_credential_usage && { setup_credential_usage }),
        },
      },
      payment_method_types: ['card'],
      single_use_mandate: null,
      status: given.payment_method === null ? 'requires_payment_method' : 'requires_confirmation',
      usage: given.usage,
    },
    hidden: { challenge: null, return_url: given.return_url },
    merchant,
  };
}
