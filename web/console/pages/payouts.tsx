import { Button } from '@mantine/core';
import { type ReactNode, useState } from 'react';
import { Link } from 'wouter';
import type { PayoutExport, PayoutRow } from '#operating/operations/payout.schema.ts';
import { count, longDate, plural, shortDate } from '../format.ts';
import { SingleActionDialog } from '../parts/actions.tsx';
import { BankFileButtons } from '../parts/bank-file.tsx';
import { AccountEnd, Money, Notice, PageHead, Status, Time } from '../parts/basics.tsx';
import { MerchantFilter, Tabs } from '../parts/filters.tsx';
import { type Column, List } from '../parts/list.tsx';
import { usePicked } from '../parts/selected.tsx';
import { SelectedAtBank, SelectedDrafts } from '../parts/selected-payouts.tsx';
import { useCan, useIsStaff } from '../session.tsx';
import { useFilters } from '../url.ts';
import { merchantColumn } from './checkouts.tsx';

type PayoutState = Pick<PayoutRow, 'status' | 'approvals' | 'approved_account' | 'compare_since'>;

/** Whether the payout's approvals are for an account that is no longer in use. */
export const mustApproveAgain = (row: PayoutState) =>
  row.approvals === 0 && (row.status === 'approved' || row.approved_account !== null);

export function PayoutStatus({ of: row }: { of: PayoutState }) {
  if (row.status === 'draft' && row.approvals === null) {
    return <Status of="pending" name="Being approved" />;
  }
  if (mustApproveAgain(row)) return <Status of="requested" name="Approve again" />;
  if (row.status === 'draft') {
    return <Status of="requested" name={row.approvals === 0 ? 'To approve' : 'Second approval'} />;
  }
  if (row.status === 'returned') return <Status of="failed" name="Returned" />;
  if (row.status === 'paid') return <Status of="done" name="Paid" />;
  if (row.compare_since !== null) return <Status of="requested" name="To compare" />;
  return <Status of="pending" name={row.status === 'approved' ? 'Approved' : 'At the bank'} />;
}

/** When the payout reached its present state. */
const movedAt = (row: PayoutRow) =>
  row.returned_at ?? row.paid_at ?? row.exported_at ?? row.approved_at ?? row.created_at;

/** A person approves a payout for the account that this column shows. */
const accountColumn: Column<PayoutRow> = {
  head: 'Account',
  grow: true,
  cell: ({ account }) =>
    account ? <AccountEnd of={account} /> : <span className="quiet">none confirmed</span>,
  phone: 'sub',
  named: true,
};

const answerColumn: Column<PayoutRow> = {
  head: 'Bank’s answer',
  grow: true,
  cell: (row) => (
    <span title={row.return_reason ?? row.bank_reference ?? ''}>
      {row.return_reason ?? row.bank_reference ?? <span className="quiet">–</span>}
    </span>
  ),
  phone: 'hide',
};

/** A draft has no answer from the bank yet. */
const columnsOf = (areDrafts: boolean): Column<PayoutRow>[] => [
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
    // Beside a long status, the date would be cut off.
    phone: 'full',
    named: true,
  },
  { head: 'Lines', right: true, cell: (row) => count(row.line_count), phone: 'hide' },
  areDrafts ? accountColumn : answerColumn,
  {
    head: 'Since',
    right: true,
    cell: (row) => <Time at={movedAt(row)} zone={row.time_zone} ahead={row.clock_ahead_ms} />,
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
  const isStaff = useIsStaff();
  const [exporting, setExporting] = useState(false);
  const [{ status }] = useFilters();
  const [picked, setPicked] = usePicked(status ?? '');
  const [rows, setRows] = useState<PayoutRow[]>([]);
  const approves = status === 'draft' && can('payouts.approve');
  const settles = status === 'exported' && can('payouts.settle');
  const mayPick = (row: PayoutRow) =>
    approves ? row.may_approve : settles && row.status === 'exported';
  const chosen = rows.filter((row) => picked.has(row.id) && mayPick(row));
  const clear = () => setPicked(new Set());
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
        <Tabs
          name="status"
          label="Which payouts"
          fallback=""
          options={isStaff ? views : views.with(0, { value: 'draft', label: 'Being approved' })}
        />
        <MerchantFilter />
      </div>
      <List
        path="/api/payouts"
        takes={['status', 'merchant']}
        label="Payouts"
        columns={columnsOf(approves)}
        keyOf={(row) => row.id}
        hrefOf={(row) => `/payouts/${row.id}`}
        onRows={setRows}
        {...((approves || settles) && { picking: { picked, set: setPicked, can: mayPick } })}
        empty={{
          icon: 'payouts',
          title: 'No payouts yet',
          text: 'A payout is made on each business day for a merchant that has terms and is owed money.',
          filtered: 'No payout is in this state',
        }}
      />
      {approves && chosen.length > 0 && (
        <SelectedDrafts rows={chosen} clear={clear} keep={(ids) => setPicked(new Set(ids))} />
      )}
      {settles && chosen.length > 0 && <SelectedAtBank rows={chosen} clear={clear} />}
      {exporting && <Export close={() => setExporting(false)} />}
    </>
  );
}

function Export({ close }: { close: () => void }) {
  return (
    <SingleActionDialog<PayoutExport>
      title="Export for the bank"
      what="Export all approved payouts"
      path="/api/payouts/export"
      close={close}
      result={{ title: 'The bank run', show: (made) => <Exported of={made} /> }}
    >
      <p>
        Every approved payout goes into a file for the bank and is then marked as exported. Each
        payout is in one file only, and a file has at most 1,000 payouts. You can save the file
        again from a payout’s page.
      </p>
    </SingleActionDialog>
  );
}

function Exported({ of: made }: { of: PayoutExport }) {
  return (
    <>
      {made.export_id === null ? (
        <p>No payout was exported.</p>
      ) : (
        <p>
          {plural(made.payouts, 'payout')} {made.payouts === 1 ? 'is' : 'are'} in the file. Most
          banks read the ISO 20022 message pain.001. Both files contain whole account numbers: keep
          them where the bank run is kept. When the bank has paid, select the payouts under “At the
          bank” and record its reference.
        </p>
      )}
      {made.is_full && (
        <Notice kind="warn">
          The file is full, and more payouts are approved. Save it, then export again.
        </Notice>
      )}
      <NotExported
        why="the merchant has no confirmed bank account"
        of={made.without_account}
        hrefOf={({ merchant_id }) => `/merchants/${merchant_id}`}
      />
      <NotExported
        why="the merchant’s bank account has changed since they were approved. Two people must approve them again"
        of={made.to_approve_again}
      />
      <NotExported
        why="the bank account was confirmed too recently"
        of={made.new_account}
        after={({ payable_from }) => (
          <>
            {' '}
            is paid from <Time at={payable_from} exact /> on
          </>
        )}
      />
      <NotExported
        why="they must be compared with the bank after the restore"
        of={made.to_compare}
      />
      {made.export_id !== null && <BankFileButtons of={made.export_id} />}
    </>
  );
}

type Named = PayoutExport['to_compare'][number];

/** Approved payouts that are not exported, and why. Shows nothing if there are none. */
function NotExported<Row extends Named>(props: {
  why: string;
  of: Row[];
  hrefOf?: (row: Row) => string;
  after?: (row: Row) => ReactNode;
}) {
  const { hrefOf = ({ id }: Row) => `/payouts/${id}` } = props;
  if (props.of.length === 0) return null;
  return (
    <Notice kind="warn">
      Not exported, because {props.why}:{' '}
      {props.of.map((row, index) => (
        <span key={row.id}>
          {index > 0 && ', '}
          <Link href={hrefOf(row)}>{row.reference}</Link>
          {props.after?.(row)}
        </span>
      ))}
    </Notice>
  );
}
