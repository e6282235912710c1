import type { CheckoutRow } from '#operating/operations/checkout.schema.ts';
import { Money, PageHead, Status, Time } from '../parts/basics.tsx';
import { AmountFilter, DayFilters, MerchantFilter, Tabs, TextFilter } from '../parts/filters.tsx';
import { type Column, List } from '../parts/list.tsx';
import { useSession } from '../session.tsx';
import { useFilters } from '../url.ts';

export const orderColumn = {
  head: 'Order',
  cell: (row: { client_reference_id: string }) => row.client_reference_id,
  phone: 'title' as const,
};
export const amountColumn = {
  head: 'Amount',
  right: true,
  cell: (row: { amount: number; currency: string; locale: string }) => (
    <Money cents={row.amount} currency={row.currency} locale={row.locale} />
  ),
  phone: 'end' as const,
};
export const shopperColumn = {
  head: 'Shopper',
  cell: (row: { name: string | null; email: string }) => (
    <span title={row.name === null ? row.email : `${row.name}\n${row.email}`}>
      {row.name ?? row.email}
    </span>
  ),
  phone: 'sub' as const,
  share: true,
};
export const merchantColumn = {
  head: 'Merchant',
  cell: (row: { merchant_name: string }) => (
    <span title={row.merchant_name}>{row.merchant_name}</span>
  ),
  phone: 'hide' as const,
  share: true,
  namesMerchant: true,
};

const columns: Column<CheckoutRow>[] = [
  orderColumn,
  amountColumn,
  shopperColumn,
  { head: 'Status', cell: (row) => <Status of={row.status} />, phone: 'end' },
  merchantColumn,
  {
    head: 'Payments',
    right: true,
    cell: (row) => row.number_of_payments ?? <span className="quiet">–</span>,
    phone: 'hide',
  },
  {
    head: 'Collected',
    right: true,
    cell: (row) => <Money cents={row.collected} currency={row.currency} locale={row.locale} />,
    phone: 'hide',
  },
  {
    head: 'Outstanding',
    right: true,
    cell: (row) => <Money cents={row.outstanding} currency={row.currency} locale={row.locale} />,
    phone: 'hide',
  },
  {
    head: 'Created',
    right: true,
    cell: (row) => <Time at={row.created_at} zone={row.time_zone} ahead={row.clock_ahead_ms} />,
    phone: 'sub',
  },
];

export default function CheckoutsPage() {
  const { scope } = useSession();
  const [{ amount, gateway }] = useFilters();
  return (
    <>
      <PageHead
        title="Checkouts"
        about={
          amount || gateway
            ? 'The newest first. An amount or a gateway finds only orders that have ended.'
            : 'Every order that a merchant sent, the newest first.'
        }
      />
      <div className="filters">
        <Tabs
          name="status"
          label="Status"
          fallback=""
          options={[
            { value: '', label: 'All' },
            { value: 'successful', label: 'Paid' },
            { value: 'received', label: 'Not paid yet' },
            { value: 'cancelled', label: 'Cancelled' },
            { value: 'invalid_payload', label: 'Invalid' },
          ]}
        />
        <MerchantFilter />
        <TextFilter name="shopper" label="Shopper" placeholder="Name or e-mail" />
        <AmountFilter />
        {scope === 'all' && <TextFilter name="gateway" label="Gateway" placeholder="Gateway" />}
        <DayFilters />
      </div>
      <List
        path="/api/checkouts"
        takes={['status', 'merchant', 'from', 'to', 'shopper', 'amount', 'gateway']}
        label="Checkouts"
        columns={columns}
        keyOf={(row) => row.id}
        hrefOf={(row) => `/checkouts/${row.id}`}
        empty={{
          icon: 'checkouts',
          title: 'No checkouts yet',
          text: 'A checkout appears here as soon as a merchant creates one.',
        }}
      />
    </>
  );
}
