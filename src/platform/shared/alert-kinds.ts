/**
 * Every kind of alert, and how an alert of that kind ends. `by itself`: the service closes it when
 * its cause has ended (`close-ended-alerts.ts`). `by a person`: only a person can judge that
 * nothing is left to do. `as a difference`: also by a person, among the gateway's differing
 * records. `at once`: it is closed from the start, and only posted to the operator's webhook and
 * logged, because nothing is left to do or the rows that it is about have their own list.
 */
export const alertKinds = {
  payment_overdue: 'by itself',
  refund_failed: 'by itself',
  callback_exhausted: 'by itself',
  destination_failing: 'by itself',
  dispute_opened: 'at once',
  dispute_deadline: 'at once',
  dispute_closed: 'by itself',
  dispute_unbooked: 'by itself',
  dispute_unknown: 'by itself',
  dispute_unrecorded: 'by itself',
  message_refused: 'by itself',
  messages_failing: 'by itself',
  bank_account_proposed: 'by itself',
  gateway_trouble: 'by itself',
  gateway_ahead: 'by itself',
  gateway_not_reconciled: 'by itself',
  gateway_currency: 'by a person',
  gateway_without_settings: 'by a person',
  gateway_other_account: 'by a person',
  gateway_unknown_to_us: 'as a difference',
  gateway_missing_there: 'as a difference',
  gateway_other_amount: 'as a difference',
  gateway_other_state: 'as a difference',
  gateway_held_too_long: 'as a difference',
  books_differ: 'by a person',
  card_testing: 'by a person',
  signature_mismatches: 'by a person',
  refund_review_lifted: 'by a person',
  person_invited: 'by a person',
  access_widened: 'by a person',
  ways_in_replaced: 'by a person',
  sign_in_method_added: 'by a person',
  person_revoked: 'by a person',
  access_ended: 'at once',
  record_end: 'at once',
} as const satisfies Record<string, 'by itself' | 'by a person' | 'as a difference' | 'at once'>;

export type AlertKind = keyof typeof alertKinds;

/** How alerts of a kind end; undefined for a kind that only another version knows. */
export const endOf = (kind: string): (typeof alertKinds)[AlertKind] | undefined =>
  alertKinds[kind as AlertKind];

/** The kinds whose cause can end without a person acting on the alert. */
export type EndingKind = {
  [Kind in AlertKind]: (typeof alertKinds)[Kind] extends 'by itself' ? Kind : never;
}[AlertKind];
