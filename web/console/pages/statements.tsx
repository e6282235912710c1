import type { StatementRow } from '#operating/operations/statement.schema.ts';
import { count, monthName } from '../format.ts';
import { Money, PageHead, Status, Time } from '../parts/basics.tsx';
import { MerchantFilter } from '../parts/filters.tsx';
import { type Column, List } from '../parts/list.tsx';
import { merchantColumn } from './checkouts.tsx';

const amount = (cents: (row: StatementRow) => number) => (row: StatementRow) => (
  <Money cents={cents(row)} currency={row.currency} locale={row.locale} />
);

const columns: Column<StatementRow>[] = [
  { head: 'Month', cell: (row) => monthName(row.month.slice(0, 7)) },
  {
    head: 'Number',
    cell: (row) => (
      <span className="row-of">
        <span className="mono">{row.reference}</span>
        {row.corrected_by && <Status of="cancelled" tone="plain" name="Replaced" />}
      </span>
    ),
    phone: 'sub',
  },
  { ...merchantColumn, phone: 'sub' },
  {
    head: 'Sales',
    right: true,
    cell: amount((row) => row.sales),
    phone: 'end',
    named: true,
  },
  {
    head: 'Fees including VAT',
    right: true,
    cell: amount((row) => -row.fees - row.vat),
    phone: 'full',
    named: true,
  },
  {
    head: 'Balance after',
    right: true,
    phone: 'full',
    named: true,
    cell: (row) => <strong>{amount((one) => one.closing)(row)}</strong>,
  },
  { head: 'Lines', right: true, cell: (row) => count(row.line_count), phone: 'hide' },
  {
    head: 'Made',
    right: true,
    cell: (row) => <Time at={row.created_at} zone={row.time_zone} ahead={row.clock_ahead_ms} />,
    phone: 'hide',
  },
];

export default function StatementsPage() {
  return (
    <>
      <PageHead
        title="Statements"
        about="A statement and tax invoice for each month, made on the first business day after it. They stay here for ever."
      />
      <div className="filters">
        <MerchantFilter />
      </div>
      <List
        path="/api/statements"
        takes={['merchant']}
        label="Statements"
        columns={columns}
        keyOf={(row) => row.id}
        hrefOf={(row) => `/statements/${row.id}`}
        empty={{
          icon: 'statements',
          title: 'No statements yet',
          text: 'The first one is made on the first business day after a month with sales, for a merchant that has terms.',
          filtered: 'This merchant has no statement yet',
        }}
      />
    </>
  );
}
