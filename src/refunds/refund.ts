import type { Timestamp } from '../shared/clock.ts';

/**
 * A refund request is `requested` until it is reviewed, `pending` while it is processed, and ends
 * `complete` or `failed`. Requests that are not `failed` never sum to more than the checkout.
 */
export const refundStatuses = ['requested', 'pending', 'complete', 'failed'] as const;
export type RefundStatus = (typeof refundStatuses)[number];

export type RefundRequest = {
  merchant_id: string;
  id: string;
  number: number;
  checkout_id: string;
  integration_id: string;
  status: RefundStatus;
  amount: number;
  currency: string;
  signed: boolean;
  created_at: Timestamp;
};

/** The purchase date is day 0; day 100 is the last one (spec, Limits). */
const refundWindowDays = 100;

/** On an auto-refund integration the day after the purchase opens at this local time (D28). */
const autoRefundOpens = Temporal.PlainTime.from('10:00');

/** Why a refund may not be asked for now, or null. The sentences are the spec's. */
export function explainClosedWindow(
  purchase: { completed_at: Timestamp; refund_mode: 'manual' | 'auto'; time_zone: string },
  now: Temporal.Instant,
): string | null {
  const purchaseDate = Temporal.Instant.from(purchase.completed_at)
    .toZonedDateTimeISO(purchase.time_zone)
    .toPlainDate();
  const local = now.toZonedDateTimeISO(purchase.time_zone);
  const lastDate = purchaseDate.add({ days: refundWindowDays });
  if (Temporal.PlainDate.compare(local.toPlainDate(), lastDate) > 0) {
    return 'Orders can only be refunded within 100 days of the purchase date.';
  }
  if (purchase.refund_mode === 'auto') {
    const opens = purchaseDate
      .add({ days: 1 })
      .toZonedDateTime({ timeZone: purchase.time_zone, plainTime: autoRefundOpens });
    if (Temporal.ZonedDateTime.compare(local, opens) < 0) {
      return "Order can't be refunded on the day of purchase.";
    }
  }
  return null;
}
