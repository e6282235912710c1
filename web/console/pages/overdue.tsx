import { Button } from '@mantine/core';
import { useState } from 'react';
import type { OverdueRow, RetriedInstalment } from '#operating/operations/callback.schema.ts';
import { longDate, money, plural, sentence, shortDate, words } from '../format.ts';
import { ActionDialog, useAction } from '../parts/actions.tsx';
import { Facts, Notice, NthPayment, PageHead } from '../parts/basics.tsx';
import { MerchantFilter } from '../parts/filters.tsx';
import { type Column, List } from '../parts/list.tsx';
import { SelectedBar, sumOf, useBulkAction } from '../parts/selected.tsx';
import { useCan } from '../session.tsx';
import { amountColumn, merchantColumn, orderColumn, shopperColumn } from './checkouts.tsx';

export type Retry = {
  checkout_id: string;
  number: number;
  number_of_payments: number;
  amount: number;
  currency: string;
  locale: string;
  client_reference_id: string;
  name: string | null;
  email: string;
  due_on: string;
  reason: string | null;
  advice: string | null;
  is_retry_sensible: boolean;
};

/** Charges the card again for one payment. */
export function RetryDialog(props: { of: Retry | null; close: () => void; done?: () => void }) {
  const { of: row, close, done } = props;
  const { run, busy, problem, clear } = useAction();
  const amount = row ? money(row.amount, row.currency, row.locale) : '';
  const what = `Charge ${amount} now`;
  const leave = () => {
    clear();
    close();
  };
  return (
    <ActionDialog
      title={row ? `Payment ${row.number} of ${row.number_of_payments}` : ''}
      opened={row !== null}
      close={leave}
      what={what}
      busy={busy}
      problem={problem}
      onAction={() => {
        if (!row) return;
        void run<RetriedInstalment>({
          path: `/api/instalments/${row.checkout_id}/${row.number}/retry`,
          what,
          said: ({ status, reason }) =>
            status === 'collected'
              ? `${amount} was collected.`
              : `The payment is ${status}${reason ? `: ${words(reason)}` : ''}.`,
          isFailed: ({ status }) => status !== 'collected',
        }).then((answer) => {
          if (!answer) return;
          done?.();
          leave();
        });
      }}
    >
      {row && (
        <>
          <Facts
            rows={[
              ['Order', row.client_reference_id],
              ['Shopper', row.name ?? row.email],
              ['Due', longDate(row.due_on)],
              ['Last answer', row.reason && sentence(words(row.reason))],
            ]}
          />
          {row.advice && (
            <Notice kind={row.is_retry_sensible ? undefined : 'warn'}>{row.advice}</Notice>
          )}
          <p className="quiet">
            The shopper’s stored card is charged at once. If the bank declines it again, nothing is
            charged.
          </p>
        </>
      )}
    </ActionDialog>
  );
}

const pauses: Record<NonNullable<OverdueRow['paused_by']>, string> = {
  dispute: 'Disputed: wait',
  difference: 'Records differ: wait',
  refund: 'Refund in progress: wait',
  shopper: 'The shopper is paying',
};

function chanceOf({ paused_by, waits, is_retry_sensible }: OverdueRow): string {
  if (paused_by !== null) return pauses[paused_by];
  if (waits) return 'Declined: wait';
  return is_retry_sensible ? 'May work' : 'Ask the shopper';
}

const keyOf = ({ checkout_id, number }: OverdueRow) => `${checkout_id}:${number}`;

function Selected({ rows, clear }: { rows: OverdueRow[]; clear: () => void }) {
  const { begin, ...bulk } = useBulkAction(clear);
  const what = `Charge ${plural(rows.length, 'payment')}${sumOf(rows)}`;
  return (
    <SelectedBar
      label="Selected payments"
      what={what}
      clear={clear}
      {...bulk}
      onAction={() => begin('/api/instalments/retry', { ids: rows.map(keyOf) }, what)}
    >
      <strong>{plural(rows.length, 'payment')}</strong> selected. The stored cards are charged at
      once.
    </SelectedBar>
  );
}

export default function OverduePage() {
  const can = useCan();
  const [retrying, setRetrying] = useState<OverdueRow | null>(null);
  const [picked, setPicked] = useState(new Set<string>());
  const [rows, setRows] = useState<OverdueRow[]>([]);
  const [version, setVersion] = useState(0);
  const mayPick = (row: OverdueRow) => row.is_retry_sensible;
  const chosen = rows.filter((row) => picked.has(keyOf(row)) && mayPick(row));
  const columns: Column<OverdueRow>[] = [
    orderColumn,
    amountColumn,
    shopperColumn,
    merchantColumn,
    {
      head: 'Payment',
      cell: (row) => <NthPayment number={row.number} of={row.number_of_payments} />,
      phone: 'sub',
    },
    {
      head: 'Late',
      right: true,
      phone: 'end',
      cell: (row) => (
        <span
          className={row.days_late > 14 ? 'danger-text' : 'warning-text'}
          title={`Due on ${shortDate(row.due_on)}`}
        >
          {row.days_late === 0 ? 'Due today' : plural(row.days_late, 'day')}
        </span>
      ),
    },
    {
      head: 'Bank’s answer',
      grow: true,
      cell: (row) => (row.reason ? sentence(words(row.reason)) : '–'),
      phone: 'sub',
    },
    {
      head: 'Retry',
      phone: 'full',
      actions: true,
      cell: (row) => (
        <span className="row-of" style={{ flexWrap: 'nowrap' }} title={row.advice}>
          {can('instalments.retry') && row.is_retry_sensible && (
            <Button
              size="xs"
              variant="light"
              aria-label={`Retry payment ${row.number} of ${row.client_reference_id}`}
              onClick={() => setRetrying(row)}
            >
              Retry
            </Button>
          )}
          <span className="small quiet">{chanceOf(row)}</span>
        </span>
      ),
    },
  ];
  return (
    <>
      <PageHead
        title="Overdue"
        about="Payments that were not collected after every planned retry, the longest overdue first."
      />
      <div className="filters">
        <MerchantFilter />
      </div>
      <List
        path="/api/overdue"
        takes={['merchant']}
        label="Overdue payments"
        columns={columns}
        keyOf={keyOf}
        onRows={setRows}
        version={version}
        {...(can('instalments.retry') && {
          picking: { picked, set: setPicked, can: mayPick },
        })}
        hrefOf={(row) => `/checkouts/${row.checkout_id}`}
        empty={{
          icon: 'check',
          title: 'No payment is overdue',
          text: 'Every payment that was due has been collected or is still being retried.',
        }}
      />
      {chosen.length > 0 && <Selected rows={chosen} clear={() => setPicked(new Set())} />}
      <RetryDialog
        of={retrying}
        close={() => setRetrying(null)}
        done={() => setVersion((value) => value + 1)}
      />
    </>
  );
}
