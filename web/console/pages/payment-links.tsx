import { Button, Checkbox, Select, TextInput } from '@mantine/core';
import { useState } from 'react';
import { useLocation } from 'wouter';
import type {
  PaymentLinkDetails,
  PaymentLinkRow,
} from '#operating/operations/payment-link.schema.ts';
import { money } from '../format.ts';
import { SingleActionDialog } from '../parts/actions.tsx';
import { parseAmount } from '../parts/amount.ts';
import { Money, PageHead, Status, Time } from '../parts/basics.tsx';
import { MerchantFilter } from '../parts/filters.tsx';
import { type Column, List } from '../parts/list.tsx';
import { MerchantSelect, useFoundMerchants } from '../parts/merchants.tsx';
import { useText } from '../parts/text.ts';
import { useCan, useSession } from '../session.tsx';
import { useFilters } from '../url.ts';
import { merchantColumn, orderColumn } from './checkouts.tsx';

const tones = { active: 'warn', paid: 'good', cancelled: 'plain', expired: 'plain' } as const;

export function LinkStatus({ of: link }: { of: Pick<PaymentLinkRow, 'status' | 'reusable'> }) {
  if (link.reusable && link.status === 'active') return <Status of="active" name="In use" />;
  const name = link.status === 'active' ? 'Not paid yet' : undefined;
  return <Status of={link.status} tone={tones[link.status]} {...(name && { name })} />;
}

const columns: Column<PaymentLinkRow>[] = [
  orderColumn,
  {
    head: 'Amount',
    right: true,
    phone: 'end',
    cell: (row) =>
      row.amount === null ? (
        <span className="quiet">Shopper types it</span>
      ) : (
        <Money cents={row.amount} currency={row.currency} locale={row.locale} />
      ),
  },
  { head: 'Status', cell: (row) => <LinkStatus of={row} />, phone: 'end' },
  merchantColumn,
  {
    head: 'For',
    cell: (row) => (row.reusable ? 'A till' : 'One payment'),
    phone: 'sub',
  },
  { head: 'Opened', right: true, cell: (row) => row.checkouts, phone: 'hide' },
  {
    head: 'Expires',
    right: true,
    cell: (row) => (
      <Time at={row.expires_at} zone={row.time_zone} ahead={row.clock_ahead_ms} exact />
    ),
    phone: 'sub',
    named: true,
  },
  {
    head: 'Created',
    right: true,
    cell: (row) => <Time at={row.created_at} zone={row.time_zone} ahead={row.clock_ahead_ms} />,
    phone: 'hide',
  },
];

export default function PaymentLinksPage() {
  const can = useCan();
  const [making, setMaking] = useState(false);
  return (
    <>
      <PageHead
        title="Payment links"
        about="Links and QR codes that shoppers open to pay, the newest first."
      >
        {can('links.create') && <Button onClick={() => setMaking(true)}>New payment link</Button>}
      </PageHead>
      <div className="filters">
        <MerchantFilter />
      </div>
      <List
        path="/api/payment-links"
        takes={['merchant']}
        label="Payment links"
        columns={columns}
        keyOf={(row) => row.id}
        hrefOf={(row) => `/payment-links/${row.id}`}
        empty={{
          icon: 'links',
          title: 'No payment links yet',
          text: 'Make one, and send it to a shopper or print its code for a till.',
        }}
      />
      {making && <NewLink close={() => setMaking(false)} />}
    </>
  );
}

const lives = [1, 3, 7, 14, 30].map((days) => ({
  value: String(days),
  label: days === 1 ? '1 day' : `${days} days`,
}));

/** A link for a till lasts until it is cancelled, unless the person chooses an end. */
const noEnd = { value: '', label: 'Until it is cancelled' };

function NewLink({ close }: { close: () => void }) {
  const { sends_mail } = useSession();
  const [, navigate] = useLocation();
  const [filters] = useFilters();
  const { data: merchants } = useFoundMerchants('');
  const [chosen, setChosen] = useState<string | null>(filters.merchant ?? null);
  const [reference, referenceField] = useText('');
  const [typed, typedField] = useText('');
  const [email, emailField] = useText('');
  const [days, setDays] = useState('30');
  const [reusable, setReusable] = useState(false);
  const [calls, setCalls] = useState(true);
  const [mails, setMails] = useState(false);
  // Pressing twice, or repeating the request after a lost answer, makes only one link.
  const [requestId] = useState(() => crypto.randomUUID());
  const hasEmail = email.trim() !== '' && !reusable;
  const isOne = merchants?.length === 1;
  const merchant_id = isOne ? merchants[0]?.id : (chosen ?? undefined);
  const cents = parseAmount(typed);
  const mayBeTyped = reusable && typed.trim() === '';
  const what = cents ? `Make a link for ${money(cents)}` : 'Make the link';
  return (
    <SingleActionDialog<PaymentLinkDetails>
      title="New payment link"
      what={what}
      path="/api/payment-links"
      body={{
        request_id: requestId,
        merchant_id,
        client_reference_id: reference.trim(),
        ...(cents !== null && { amount: cents }),
        ...(hasEmail && { email: email.trim(), ...(mails && { mail: true }) }),
        ...(days !== '' && { days: Number(days) }),
        ...(reusable && { reusable }),
        ...(!calls && { notify_url: 'none' }),
      }}
      disabled={
        merchant_id === undefined || reference.trim() === '' || (cents === null && !mayBeTyped)
      }
      close={close}
      done={({ id }) => navigate(`/payment-links/${id}`)}
    >
      {!isOne && (
        <MerchantSelect
          name="Merchant"
          shown
          value={chosen}
          onChange={(value) => setChosen(value)}
        />
      )}
      <TextInput
        label="Amount"
        description={reusable ? 'If it is empty, each shopper types the amount.' : null}
        inputMode="decimal"
        data-autofocus
        leftSection="R"
        {...typedField}
        error={typed !== '' && cents === null ? 'Enter an amount such as 600,00.' : null}
      />
      <TextInput
        label={reusable ? 'Name of the till' : 'Order'}
        description={
          reusable
            ? 'Each order gets this name and a number.'
            : 'Your order number. The shopper reads it.'
        }
        maxLength={reusable ? 240 : 255}
        {...referenceField}
      />
      {!reusable && (
        <TextInput
          label="Shopper’s e-mail address"
          description="If it is empty, the shopper types it."
          type="email"
          maxLength={254}
          {...emailField}
        />
      )}
      {hasEmail && sends_mail && (
        <Checkbox
          label="Send the link there by e-mail"
          checked={mails}
          onChange={(event) => setMails(event.currentTarget.checked)}
        />
      )}
      <Select
        label="Can be opened for"
        data={reusable ? [noEnd, ...lives] : lives}
        value={days}
        allowDeselect={false}
        onChange={(value) => setDays(value ?? '30')}
      />
      <Checkbox
        label="Reusable, for a till: every shopper who scans it gets their own order"
        checked={reusable}
        onChange={(event) => {
          setReusable(event.currentTarget.checked);
          setDays(event.currentTarget.checked ? '' : '30');
        }}
      />
      <Checkbox
        label="Tell your shop’s server when it is paid"
        description="The callback goes where those of your newest order go. The link’s page lists who paid."
        checked={calls}
        onChange={(event) => setCalls(event.currentTarget.checked)}
      />
    </SingleActionDialog>
  );
}
