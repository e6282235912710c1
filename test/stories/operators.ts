import type { Deps } from '#main.ts';
import {
  acceptDispute,
  resumePlan,
  stageEvidence,
  submitEvidence,
} from '#purchases/disputes/answer-dispute.ts';
import { retryInstalment } from '#purchases/instalments/retry-instalment.ts';
import {
  approvePayout,
  confirmPayout,
  exportPayouts,
  payPayout,
  returnPayout,
} from '#purchases/payouts/review-payout.ts';
import { cancelRest } from '#purchases/refunds/cancel-rest.ts';
import { approveRefund, declineRefund, retryRefund } from '#purchases/refunds/review-refund.ts';
import { type Ordered, readOrders } from '../support/settlement.ts';
import type { Scene } from './play.ts';

export const operations = [
  ...['approve', 'decline', 'retry refund', 'retry payment'],
  ...['stage', 'submit', 'accept', 'resume plan', 'cancel rest'],
  ...['approve payout', 'export', 'note paid', 'note return', 'return payout', 'compare'],
] as const;

export type Operation = {
  does: (typeof operations)[number];
  about: string;
  run(deps: Deps, operator: string): Promise<unknown>;
};

/** For each operation, the earlier ones that lead to it if they have not happened yet. */
export const earlier: Partial<Record<string, Operation['does'][]>> = {
  'retry refund': ['approve'],
  submit: ['stage'],
  export: ['approve payout'],
  'note paid': ['approve payout', 'export'],
  'return payout': ['approve payout', 'export', 'note paid', 'note return'],
};

type Row = { kind: string; id: string; status: string; amount: number; number: number };

/** The actions for the rows as they are now. The rows may change before an operator begins. */
export async function listOperations({ paying, account, ordered }: Scene): Promise<Operation[]> {
  const { rows } = await paying.service.deps.database.pool.query<Row>({
    name: 'story operations',
    text: `select 'refund' as kind, id, status, amount::bigint, number from refund_requests
     where merchant_id = $1 and (status = 'failed' or status = 'requested' and approved_at is null)
     union all
     select 'payment', checkout_id, status, amount, number from instalments
     where merchant_id = $1 and status = 'overdue'
     union all
     select 'dispute', id,
       case when status <> 'lost' and staged_hash is not null then 'staged' else status end,
       amount, instalment from disputes
     where merchant_id = $1 and is_pausing
     union all
     select 'payout', id, case when compare_since is not null then 'to compare'
       when return_noted_by is not null then 'came back' else status end, amount, number from payouts
     where merchant_id = $1 and status <> 'returned'
     order by kind, status, number, id`,
    values: [account.merchant.id],
  });
  return rows.flatMap((row) => of[row.kind as keyof typeof of](row, ordered));
}

const of: Record<
  'refund' | 'payment' | 'dispute' | 'payout',
  (row: Row, ordered: Ordered) => Operation[]
> = {
  payment: ({ id, number }) => [
    {
      does: 'retry payment',
      about: `retries payment ${number}`,
      run: (deps, operator) => retryInstalment(deps, operator, `${id}:${number}`),
    },
  ],
  refund: ({ id, status, amount }) =>
    status === 'failed'
      ? [
          {
            does: 'retry refund',
            about: `retries the refund of ${amount}`,
            run: (deps, operator) => retryRefund(deps, operator, id),
          },
        ]
      : [
          {
            does: 'approve',
            about: `approves the refund of ${amount}`,
            run: (deps, operator) => approveRefund(deps, operator, id),
          },
          {
            does: 'decline',
            about: `declines the refund of ${amount}`,
            run: (deps, operator) => declineRefund(deps, operator, id, 'No.'),
          },
        ],
  dispute({ id, status, number }) {
    const does = (
      name: Operation['does'],
      run: (deps: Deps, operator: string, id: string) => Promise<unknown>,
    ): Operation => ({
      does: name,
      about: `acts on the dispute of payment ${number}: ${name}`,
      run: (deps, operator) => run(deps, operator, id),
    });
    if (status === 'lost')
      return [does('resume plan', resumePlan), does('cancel rest', cancelRest)];
    return [
      does('stage', stageEvidence),
      ...(status === 'staged' ? [does('submit', submitEvidence)] : []),
      does('accept', acceptDispute),
    ];
  },
  payout({ id, status, amount }, ordered) {
    const does = (name: Operation['does'], run: Operation['run']): Operation => ({
      does: name,
      about: `acts on the payout of ${amount}: ${name}`,
      run,
    });
    const returns = (name: 'note return' | 'return payout') =>
      does(name, (deps, operator) => returnPayout(deps, operator, id, 'account closed'));
    switch (status) {
      case 'to compare':
        return [
          does('compare', (deps, operator) => confirmPayout(deps, operator, id, 'not at the bank')),
        ];
      case 'draft':
        return [does('approve payout', (deps, operator) => approvePayout(deps, operator, id))];
      case 'approved':
        return [
          does('export', async (deps, operator) => {
            const { file } = await exportPayouts(deps, operator, 'csv');
            readOrders(ordered, file);
          }),
        ];
      case 'exported':
        return [
          does('note paid', (deps, operator) => payPayout(deps, operator, id, 'FT')),
          returns('note return'),
        ];
      case 'came back':
        return [returns('return payout')];
      default:
        return [returns('note return')];
    }
  },
};
