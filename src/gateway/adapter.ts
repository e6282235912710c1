import type { Gateway } from './gateway.ts';

/** The calls about disputes. Each adapter has them in a file of its own. */
export type DisputeCalls = Pick<
  Gateway,
  | 'readEvent'
  | 'listDisputes'
  | 'dispute'
  | 'uploadEvidence'
  | 'stageEvidence'
  | 'submitEvidence'
  | 'acceptDispute'
>;

/** Empty values of the members that only some gateway records have, for adapters to override. */
export const noMembers = {
  own_id: null,
  checkout_id: null,
  payment_ref: null,
  customer_ref: null,
  instalments: [] as number[],
  number_of_payments: null,
  request: null,
  fee: null,
};
