import type { Webhook } from '../http/openapi.ts';
import { CallbackAnswer, CallbackBody } from './callback.schema.ts';

export const paymentResult: Webhook = {
  name: 'paymentResult',
  operationId: 'paymentResult',
  tag: 'Callback',
  summary: 'Payment result',
  description: `Sent as one POST to the checkout's \`notify_url\` when it becomes \`successful\` or \`cancelled\`. A declined card and an abandoned page send nothing.

Verify \`X-Signature\` over the raw bytes of the body, with a constant-time comparison, before you act on it.

Delivery is at least once: a second callback with the same \`client_reference_id\` and \`status\` is the same event. Answer well under 10 seconds with any 2xx status. Every other answer, and no answer, leads to a retry: up to 18, about 10 minutes apart. A \`Retry-After\` on a 429 or 503 may postpone the next retry. Redirects are not followed.

The first delivery happens while the shopper waits on the payment page. If it is answered with a \`redirect_url\`, the browser goes there; later deliveries cannot change that. If it fails, the browser goes to \`success_url\` or \`cancel_url\`.`,
  body: CallbackBody,
  answer: { description: 'Delivered.', schema: CallbackAnswer },
};
