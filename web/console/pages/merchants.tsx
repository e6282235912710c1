import { Button, TextInput } from '@mantine/core';
import { useState } from 'react';
import { useLocation } from 'wouter';
import type { MerchantRow } from '#operating/operations/merchant.schema.ts';
import { count, money, percent } from '../format.ts';
import { SingleActionDialog } from '../parts/actions.tsx';
import { BandsForm, readBands, typedBands } from '../parts/bands.tsx';
import { Money, PageHead, Time } from '../parts/basics.tsx';
import { type Column, List } from '../parts/list.tsx';
import { useText } from '../parts/text.ts';
import { readThreshold, ThresholdForm, typedThreshold } from '../parts/threshold.tsx';
import { useCan } from '../session.tsx';

const columns: Column<MerchantRow>[] = [
  { head: 'Name', cell: (row) => row.name },
  {
    head: 'Sold, 30 days',
    right: true,
    phone: 'sub',
    named: true,
    cell: (row) => <Money cents={row.sold} currency={row.currency} locale={row.locale} />,
  },
  {
    head: 'Collected',
    right: true,
    phone: 'hide',
    cell: (row) => <Money cents={row.collected} currency={row.currency} locale={row.locale} />,
  },
  {
    head: 'Refunded',
    right: true,
    phone: 'hide',
    cell: (row) => <Money cents={row.refunded} currency={row.currency} locale={row.locale} />,
  },
  { head: 'Refund rate', right: true, cell: (row) => percent(row.refund_rate), phone: 'hide' },
  {
    head: 'Amounts',
    phone: 'sub',
    cell: (row) => {
      const from = Math.min(...row.rules.map(({ from_amount }) => from_amount));
      const to = Math.max(...row.rules.map(({ to_amount }) => to_amount));
      return (
        <span className="num">
          {money(from, row.currency, row.locale)} to {money(to, row.currency, row.locale)}
        </span>
      );
    },
  },
  { head: 'Bands', right: true, cell: (row) => count(row.rules.length), phone: 'hide' },
  { head: 'Since', right: true, cell: (row) => <Time at={row.created_at} />, phone: 'hide' },
];

export default function MerchantsPage() {
  const can = useCan();
  const [adding, setAdding] = useState(false);
  return (
    <>
      <PageHead title="Merchants" about="Who sells through Tranche, and on which terms.">
        {can('merchants.create') && <Button onClick={() => setAdding(true)}>Add a merchant</Button>}
      </PageHead>
      <List
        path="/api/merchants"
        takes={[]}
        label="Merchants"
        columns={columns}
        keyOf={(row) => row.id}
        hrefOf={(row) => `/merchants/${row.id}`}
        empty={{
          icon: 'merchants',
          title: 'No merchants yet',
          text: 'Add the first one, then give it an integration.',
        }}
      />
      {adding && <AddMerchant close={() => setAdding(false)} />}
    </>
  );
}

function AddMerchant({ close }: { close: () => void }) {
  const [name, nameField] = useText('');
  const [threshold, setThreshold] = useState(() => typedThreshold(null));
  const [bands, setBands] = useState(() =>
    typedBands([
      { from_amount: 10_000, to_amount: 99_999, terms: [1, 3] },
      { from_amount: 100_000, to_amount: 2_000_000, terms: [1, 3, 6, 12] },
    ]),
  );
  const [, navigate] = useLocation();
  const { bands: rules } = readBands(bands);
  const own = readThreshold(threshold);
  const what = name.trim() === '' ? 'Add the merchant' : `Add ${name.trim()}`;
  return (
    <SingleActionDialog<{ id: string }>
      title="Add a merchant"
      size="lg"
      what={what}
      path="/api/merchants"
      body={{ name: name.trim(), rules, four_eyes_above: own }}
      said={() => `${name.trim()} was added.`}
      disabled={name.trim() === '' || rules === null || own === undefined}
      close={close}
      done={({ id }) => navigate(`/merchants/${id}`)}
    >
      <TextInput
        label="Name"
        description="Shoppers read it on the payment page."
        data-autofocus
        maxLength={255}
        {...nameField}
      />
      <BandsForm bands={bands} onChange={setBands} />
      <ThresholdForm
        value={threshold}
        byDefault="Above the default for all merchants"
        refusal={null}
        onChange={setThreshold}
      />
    </SingleActionDialog>
  );
}
