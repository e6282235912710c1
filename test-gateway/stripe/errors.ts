import type Stripe from 'stripe';

/** The members of Stripe's error object that the gateway sends. */
export type ErrorBody = {
  type: 'api_error' | 'card_error' | 'idempotency_error' | 'invalid_request_error';
  message: string;
  code?: string;
  decline_code?: string;
  advice_code?: string;
  network_decline_code?: string;
  param?: string;
  charge?: string;
  payment_intent?: Stripe.PaymentIntent;
  payment_method?: Stripe.PaymentMethod;
  setup_intent?: Stripe.SetupIntent;
};

/**
 * An error answer. `executed` says whether the operation began: only then does Stripe keep the
 * answer under its idempotency key.
 */
export class StripeAnswer extends Error {
  readonly status: number;
  readonly body: ErrorBody;
  readonly executed: boolean;

  constructor(status: number, body: ErrorBody, executed = false) {
    super(body.message);
    this.status = status;
    this.body = body;
    this.executed = executed;
  }
}

export function invalidRequest(
  message: string,
  { status = 400, ...members }: { status?: number; code?: string; param?: string } = {},
): StripeAnswer {
  return new StripeAnswer(status, { type: 'invalid_request_error', message, ...members });
}

export function missing(what: string, id: string, param = 'id'): StripeAnswer {
  // Stripe names the kind of object and repeats the caller's id.
  return invalidRequest(`No such ${what}: '${id.slice(0, 100)}'`, {
    status: param === 'id' || param === 'intent' ? 404 : 400,
    code: 'resource_missing',
    param,
  });
}
