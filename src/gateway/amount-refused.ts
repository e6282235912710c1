import type { Decline } from './gateway.ts';

/**
 * The gateway does not accept the amount of a charge. The bank was not asked, so this says nothing
 * about the card.
 */
export const amountRefused = {
  reason: 'processing_error',
  may_retry: false,
  code: 'amount_refused',
} as const satisfies Decline;
