import assert from 'node:assert/strict';
import type { Selectable } from 'kysely';
import { OutcomeUnknown } from '#gateway/gateway.ts';
import type { Gateways } from '#gateway/gateways.ts';
import { leaseSeconds, nextRetryAt } from '#gateway/retry-times.ts';
import type { Merchant } from '#merchants/merchant.ts';
import { type MerchantDueWork, runDueWork, runMerchantDueWork } from '#merchants/run-due-work.ts';
import { releaseDue } from '#platform/database/due-work.sql.ts';
import type { Tables } from '#platform/database/tables.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { raiseGatewayAlert } from '#record/alerts/raise-gateway-alert.ts';
import type { ErasureDeps } from './erase-expired.ts';
import { dueCustomers, moveCustomerDeleted, unknownRef } from './retention.sql.ts';

type DeletionDeps = Omit<ErasureDeps, 'retentionDays'> & { gateways: Gateways };

const work: MerchantDueWork<'deleted_customers', DeletionDeps> = {
  due: dueCustomers,
  leaseSeconds,
  batchSize: 10,
  merchantsMax: 50,
  concurrency: 2,
  roundMilliseconds: 0,
  run: (deps, merchant, customers) =>
    Promise.all(customers.map((customer) => deleteCustomer(deps, merchant, customer))),
};

/**
 * Deletes the gateway's records of shoppers whose data was erased. The records are no longer
 * needed: refunds and disputes refer to the gateway's payments.
 */
export const deleteErasedCustomers = (deps: DeletionDeps) => runDueWork(deps, work);

export const deleteMerchantCustomers = (deps: DeletionDeps, merchant: Merchant) =>
  runMerchantDueWork(deps, work, merchant);

async function deleteCustomer(
  deps: DeletionDeps,
  merchant: Merchant,
  one: Selectable<Tables['deleted_customers']>,
): Promise<void> {
  const { merchant_id, checkout_id, customer_ref, lease, attempts } = one;
  assert(lease !== null);
  const now = merchant.now();
  try {
    const gateway = deps.gateways.of(one.gateway);
    const time = merchant.forGateway();
    const refs =
      customer_ref === unknownRef ? await gateway.findCustomers(time, checkout_id) : [customer_ref];
    for (const ref of refs) {
      await gateway.deleteCustomer({ merchant: time, customer_ref: ref });
    }
    await moveCustomerDeleted(deps.database.db, one, timestamp(now));
  } catch (error) {
    const about = { err: error, checkout_id };
    deps.log.warn(about, "a shopper's record at the gateway could not be deleted yet");
    try {
      const key = { merchant_id, checkout_id, customer_ref };
      const retryAt = timestamp(nextRetryAt(now, attempts));
      await releaseDue(deps.database.db, 'deleted_customers', key, lease, retryAt);
      await raiseGatewayAlert(deps, merchant, {
        what: `The deletion of the shopper’s record at the gateway`,
        subject_id: checkout_id,
        error,
        isOutcomeUnknown: error instanceof OutcomeUnknown,
        retries: attempts,
      });
    } catch (failure) {
      // If the release fails too, the lease runs out.
      deps.log.error(
        { ...about, err: failure },
        'the lease of a deletion at the gateway could not be released',
      );
    }
  }
}
