import type { ConversationRow } from '#operating/operations/conversation.schema.ts';
import { PageHead, Status, Time } from '../parts/basics.tsx';
import { MerchantFilter, Tabs } from '../parts/filters.tsx';
import { type Column, List } from '../parts/list.tsx';
import { useFilters } from '../url.ts';
import { merchantColumn, orderColumn, shopperColumn } from './checkouts.tsx';

const names = { open: 'To answer', answered: 'Answered', solved: 'Solved' } as const;
const tones = { open: 'warn', answered: 'plain', solved: 'good' } as const;

export function ConversationStatus({ of: row }: { of: Pick<ConversationRow, 'status'> }) {
  return <Status of={row.status} name={names[row.status]} tone={tones[row.status]} />;
}

const columns: Column<ConversationRow>[] = [
  orderColumn,
  { head: 'Status', cell: (row) => <ConversationStatus of={row} />, phone: 'end' },
  shopperColumn,
  merchantColumn,
  {
    head: 'Last message',
    grow: true,
    cell: (row) => (
      <span className="one-line" title={row.text}>
        {!row.is_asked && <span className="quiet">You: </span>}
        {row.text}
      </span>
    ),
    phone: 'full',
  },
  {
    head: 'Written',
    right: true,
    cell: (row) => <Time at={row.moved_at} zone={row.time_zone} ahead={row.clock_ahead_ms} />,
    phone: 'sub',
    named: true,
  },
];

export default function MessagesPage() {
  const [{ view = 'open' }] = useFilters();
  return (
    <>
      <PageHead
        title="Messages"
        about="What shoppers wrote on their plan pages, the latest first."
      />
      <div className="filters">
        <Tabs
          name="view"
          label="Which messages"
          fallback="open"
          options={[
            { value: 'open', label: 'To answer' },
            { value: 'answered', label: 'Answered' },
            { value: 'solved', label: 'Solved' },
            { value: 'all', label: 'All' },
          ]}
        />
        <MerchantFilter />
      </div>
      <List
        path="/api/conversations"
        query={view === 'all' ? {} : { status: view }}
        takes={['merchant']}
        label="Messages"
        columns={columns}
        keyOf={(row) => row.checkout_id}
        hrefOf={(row) => `/messages/${row.checkout_id}`}
        empty={{
          icon: 'check',
          title: view === 'open' ? 'No shopper is waiting for an answer' : 'No such message',
          text: 'When a shopper writes that something is wrong with a plan, it appears here.',
        }}
      />
    </>
  );
}
