import type { DisputeRow } from '#operating/operations/dispute.schema.ts';
import { sentence, words } from '../format.ts';
import { Money, NthPayment, PageHead, Status, Time } from '../parts/basics.tsx';
import { MerchantFilter, Tabs, TextFilter } from '../parts/filters.tsx';
import { type Column, List } from '../parts/list.tsx';
import { useSession } from '../session.tsx';
import { useFilters } from '../url.ts';
import { merchantColumn, orderColumn, shopperColumn } from './checkouts.tsx';

/** The disputes on a checkout's page come without the members about the merchant's evidence. */
type Standing = Pick<DisputeRow, 'status'> &
  Partial<Pick<DisputeRow, 'is_answerable' | 'asked_at' | 'supplied_at'>>;

export function DisputeStatus({ of: row }: { of: Standing }) {
  if (row.is_answerable && row.asked_at) {
    const isAnswered = (row.supplied_at ?? '') > row.asked_at;
    return isAnswered ? (
      <Status of="open" name="Merchant answered" />
    ) : (
      <Status of="pending" name="Merchant asked" />
    );
  }
  if (row.status === 'needs_response') return <Status of="open" name="To answer" />;
  if (row.status === 'inquiry') return <Status of="open" name="Inquiry" />;
  if (row.status === 'under_review') return <Status of="pending" name="Under review" />;
  if (row.status === 'won') return <Status of="done" name="Won" />;
  if (row.status === 'lost') return <Status of="failed" name="Lost" />;
  return <Status of="closed" />;
}

const dayMs = 86_400_000;
/** A dispute is urgent this close to its deadline. */
const urgentDays = 3;

/** How long evidence can still be submitted. */
export function Deadline({ of: row }: { of: DisputeRow }) {
  if (row.due_by === null || !row.is_answerable) return <span className="quiet none">–</span>;
  const left = new Date(row.due_by).getTime() - (Date.now() + row.clock_ahead_ms);
  return (
    <span
      title="Evidence can be submitted until then"
      className={left < urgentDays * dayMs ? 'danger-text' : 'warning-text'}
    >
      <Time at={row.due_by} zone={row.time_zone} ahead={row.clock_ahead_ms} future />
    </span>
  );
}

const columns: Column<DisputeRow>[] = [
  orderColumn,
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
  shopperColumn,
  { head: 'Status', cell: (row) => <DisputeStatus of={row} />, phone: 'end' },
  merchantColumn,
  {
    head: 'Payment',
    cell: (row) => <NthPayment number={row.instalment} of={row.number_of_payments} />,
    phone: 'sub',
  },
  {
    head: 'Reason',
    grow: true,
    cell: (row) => <span title={row.network_reason_code ?? ''}>{sentence(words(row.reason))}</span>,
    phone: 'sub',
  },
  {
    head: 'Answer by',
    right: true,
    cell: (row) => <Deadline of={row} />,
    phone: 'sub',
    named: true,
  },
  {
    head: 'Opened',
    right: true,
    cell: (row) => <Time at={row.created_at} zone={row.time_zone} ahead={row.clock_ahead_ms} />,
    phone: 'sub',
    named: true,
  },
];

export default function DisputesPage() {
  const { scope } = useSession();
  const [{ gateway }] = useFilters();
  return (
    <>
      <PageHead
        title="Disputes"
        about="Payments that cardholders take back through their banks, the newest first."
      />
      <div className="filters">
        <Tabs
          name="status"
          label="Which disputes"
          fallback=""
          options={[
            { value: '', label: 'All' },
            { value: 'needs_response', label: 'To answer' },
            { value: 'inquiry', label: 'Inquiries' },
            { value: 'under_review', label: 'Under review' },
            { value: 'won', label: 'Won' },
            { value: 'lost', label: 'Lost' },
            { value: 'closed', label: 'Closed' },
          ]}
        />
        <MerchantFilter />
        {scope === 'all' && <TextFilter name="gateway" label="Gateway" placeholder="Gateway" />}
      </div>
      <List
        path="/api/disputes"
        takes={['status', 'merchant', 'gateway']}
        label="Disputes"
        columns={columns}
        keyOf={(row) => row.id}
        hrefOf={(row) => `/disputes/${row.id}`}
        empty={{
          icon: 'check',
          title: 'No payment is disputed',
          text: 'When a cardholder takes a payment back, the dispute appears here with its deadline.',
          filtered: gateway ? `No such dispute at ${gateway}` : 'No dispute is in this state',
        }}
      />
    </>
  );
}
