import type { Deps } from '#main.ts';
import { retryInstalment } from '#purchases/instalments/retry-instalment.ts';
import { approveRefund, declineRefund, retryRefund } from '#purchases/refunds/review-refund.ts';
import type { Scene } from './play.ts';

export type Operation = {
  does: 'approve' | 'decline' | 'retry refund' | 'retry payment';
  about: string;
  run(deps: Deps): Promise<unknown>;
};

/** The actions for the rows as they are now. They may have changed when an operator begins. */
export async function listOperations({ paying, account }: Scene): Promise<Operation[]> {
  const { rows } = await paying.service.deps.database.pool.query<{
    id: string;
    status: string;
    amount: number;
    number: number;
  }>({
    name: 'story operations',
    text: `select id, status, amount::bigint, number from refund_requests
     where merchant_id = $1 and (status = 'failed' or status = 'requested' and approved_at is null)
     union all
     select checkout_id, status, amount, number from instalments
     where merchant_id = $1 and status = 'overdue'
     order by status, number`,
    values: [account.merchant.id],
  });
  return rows.flatMap(({ id, status, amount, number }): Operation[] => {
    switch (status) {
      case 'overdue': {
        const about = `retries payment ${number}`;
        const run = (deps: Deps) => retryInstalment(deps, 'ops', `${id}:${number}`);
        return [{ does: 'retry payment', about, run }];
      }
      case 'failed':
        return [
          {
            does: 'retry refund',
            about: `retries the refund of ${amount}`,
            run: (deps) => retryRefund(deps, 'ops', id),
          },
        ];
      default:
        return [
          {
            does: 'approve',
            about: `approves the refund of ${amount}`,
            run: (deps) => approveRefund(deps, 'ops', id),
          },
          {
            does: 'decline',
            about: `declines the refund of ${amount}`,
            run: (deps) => declineRefund(deps, 'ops', id, 'No.'),
          },
        ];
    }
  });
}
