import { Button } from '@mantine/core';
import { useState } from 'react';
import { Link } from 'wouter';
import type { PayoutExport, PayoutRow } from '#operating/operations/payout.schema.ts';
import { count, longDate, plural, shortDate } from '../format.ts';
import { ActionDialog, useAction } from '../parts/actions.tsx';
import { Money, Notice, PageHead, Status, Time } from '../parts/basics.tsx';
import { MerchantFilter, Tabs } from '../parts/filters.tsx';
import { type Column, List } from '../parts/list.tsx';
import { saveFile } from '../parts/save-file.ts';
import { useCan } from '../session.tsx';
import { merchantColumn } from './checkouts.tsx';

export function PayoutStatus({ of: row }: { of: PayoutRow }) {
  if (row.status === 'draft') {
    return <Status of="requested" name={row.approvals === 0 ? 'To approve' : 'Second person'} />;
  }
  if (row.status === 'returned') return <Status of="failed" name="Returned" />;
  if (row.status === 'paid') return <Status of="done" name="Paid" />;
  if (row.compare_since !== null) return <Status of="requested" name="To compare" />;
  return <Status of="pending" name={row.status === 'approved' ? 'Approved' : 'At the bank'} />;
}

/** When the payout reached its present state. */
const movedAt = (row: PayoutRow) =>
  row.returned_at ?? row.paid_at ?? row.exported_at ?? row.approved_at ?? row.created_at;

const columns: Column<PayoutRow>[] = [
  { head: 'Reference', cell: (row) => <span className="mono">{row.reference}</span> },
  {
    head: 'Amount',
    right: true,
    phone: 'end',
    cell: (row) => (
      <strong>
        <Money cents={row.amount} currency={row.currency} locale={row.locale} />
      </strong>
    ),
  },
  { ...merchantColumn, phone: 'sub' },
  { head: 'Status', cell: (row) => <PayoutStatus of={row} />, phone: 'end' },
  {
    head: 'Business day',
    cell: (row) => <span title={longDate(row.business_on)}>{shortDate(row.business_on)}</span>,
    phone: 'sub',
    named: true,
  },
  { head: 'Lines', right: true, cell: (row) => count(row.line_count), phone: 'hide' },
  {
    head: 'Bank’s answer',
    grow: true,
    cell: (row) => (
      <span title={row.return_reason ?? row.bank_reference ?? ''}>
        {row.return_reason ?? row.bank_reference ?? <span className="quiet">–</span>}
      </span>
    ),
    phone: 'hide',
  },
  {
    head: 'Since',
    right: true,
    cell: (row) => <Time at={movedAt(row)} zone={row.time_zone} />,
    phone: 'hide',
  },
];

const views = [
  { value: 'draft', label: 'To approve' },
  { value: 'approved', label: 'Approved' },
  { value: 'exported', label: 'At the bank' },
  { value: 'paid', label: 'Paid' },
  { value: 'returned', label: 'Returned' },
  { value: '', label: 'All' },
];

export default function PayoutsPage() {
  const can = useCan();
  const [exporting, setExporting] = useState(false);
  return (
    <>
      <PageHead
        title="Payouts"
        about="What merchants are paid for each business day, the newest first. Two people approve each one."
      >
        {can('payouts.settle') && (
          <Button variant="default" onClick={() => setExporting(true)}>
            Export for the bank…
          </Button>
        )}
      </PageHead>
      <div className="filters">
        <Tabs name="status" label="Which payouts" fallback="" options={views} />
        <MerchantFilter />
      </div>
      <List
        path="/api/payouts"
        takes={['status', 'merchant']}
        label="Payouts"
        columns={columns}
        keyOf={(row) => row.id}
        hrefOf={(row) => `/payouts/${row.id}`}
        empty={{
          icon: 'payouts',
          title: 'No payouts yet',
          text: 'A payout is made on each business day for a merchant that has terms and is owed money.',
          filtered: 'No payout is in this state',
        }}
      />
      {exporting && <Export close={() => setExporting(false)} />}
    </>
  );
}

function Export({ close }: { close: () => void }) {
  const { run, busy, problem } = useAction();
  const [made, setMade] = useState<PayoutExport | null>(null);
  const what = 'Export all approved payouts';
  return (
    <ActionDialog
      title={made ? 'The bank run' : 'Export for the bank'}
      opened
      close={close}
      what={what}
      hideAction={made !== null}
      busy={busy}
      problem={problem}
      onAction={() => void run<PayoutExport>({ path: '/api/payouts/export', what }).then(setMade)}
    >
      {made === null ? (
        <p>
          Every approved payout goes into one file for the bank and is then marked as exported. Each
          payout is in one file only. The file can be saved again from the payout’s page.
        </p>
      ) : (
        <>
          {made.export_id === null ? (
            <p>No payout was exported.</p>
          ) : (
            <p>
              {plural(made.payouts, 'payout')} {made.payouts === 1 ? 'is' : 'are'} in the file. It
              has whole account numbers: keep it where the bank run is kept. When the bank has paid,
              note its reference on the page of each payout.
            </p>
          )}
          {made.without_account.length > 0 && (
            <Notice kind="warn">
              Not exported, because the merchant has no confirmed bank account:{' '}
              {made.without_account.map(({ id, reference, merchant_id }, index) => (
                <span key={id}>
                  {index > 0 && ', '}
                  <Link href={`/merchants/${merchant_id}`}>{reference}</Link>
                </span>
              ))}
            </Notice>
          )}
          {made.to_approve_again.length > 0 && (
            <Notice kind="warn">
              Not exported, because the merchant’s bank account has changed since they were
              approved. Two people must approve them again:{' '}
              {made.to_approve_again.map(({ id, reference }, index) => (
                <span key={id}>
                  {index > 0 && ', '}
                  <Link href={`/payouts/${id}`}>{reference}</Link>
                </span>
              ))}
            </Notice>
          )}
          {made.new_account.length > 0 && (
            <Notice kind="warn">
              Not exported, because the bank account was confirmed too recently:{' '}
              {made.new_account.map(({ id, reference, payable_from }, index) => (
                <span key={id}>
                  {index > 0 && ', '}
                  <Link href={`/payouts/${id}`}>{reference}</Link> is paid from{' '}
                  <Time at={payable_from} exact /> on
                </span>
              ))}
            </Notice>
          )}
          {made.to_compare.length > 0 && (
            <Notice kind="warn">
              Not exported, because they must be compared with the bank after the restore:{' '}
              {made.to_compare.map(({ id, reference }, index) => (
                <span key={id}>
                  {index > 0 && ', '}
                  <Link href={`/payouts/${id}`}>{reference}</Link>
                </span>
              ))}
            </Notice>
          )}
          {made.export_id !== null && (
            <span>
              <Button onClick={() => saveFile(`bank-run-${made.export_id}.csv`, made.file)}>
                Save the file
              </Button>
            </span>
          )}
        </>
      )}
    </ActionDialog>
  );
}
