import { Button } from '@mantine/core';
import { useState } from 'react';
import { Link } from 'wouter';
import type { AlertRow } from '#operating/operations/audit.schema.ts';
import { endOf } from '#platform/shared/alert-kinds.ts';
import { money } from '../format.ts';
import { RetryDialog } from '../pages/overdue.tsx';
import { useCan } from '../session.tsx';
import { useQuietAction } from './actions.tsx';
import { resend } from './attempts.tsx';

type Place = { label: string; href: string };

type Can = ReturnType<typeof useCan>;
const people = [
  'person_invited',
  'access_widened',
  'ways_in_replaced',
  'sign_in_method_added',
  'person_revoked',
];

/** The page on which a person can end the cause of an alert, if they may see it. */
function placeOf(row: AlertRow, can: Can): Place | null {
  const { kind, subject_id, checkout_id, merchant_id, integration_id } = row;
  if (endOf(kind) === 'as a difference' && can('differences.read')) {
    return { label: 'Compare', href: `/reconciliation?difference=${row.id}` };
  }
  if (kind === 'gateway_not_reconciled' && can('differences.read')) {
    return { label: 'See the differences', href: '/reconciliation' };
  }
  if (kind === 'refund_failed' && subject_id) {
    return { label: 'Retry the refund', href: `/refunds?view=failed&refund=${subject_id}` };
  }
  if (kind === 'dispute_closed' && subject_id) {
    return { label: 'Decide', href: `/disputes/${subject_id}` };
  }
  if ((kind === 'dispute_unknown' || kind === 'dispute_unrecorded') && can('disputes.read')) {
    return { label: 'See the disputes', href: '/disputes' };
  }
  if (kind === 'destination_failing' && merchant_id) {
    return { label: 'See the callbacks', href: `/callbacks?merchant=${merchant_id}` };
  }
  if (kind === 'bank_account_proposed' && merchant_id) {
    return { label: 'Check the account', href: `/merchants/${merchant_id}` };
  }
  if (kind === 'card_testing' && merchant_id) {
    return { label: 'See the orders', href: `/checkouts?merchant=${merchant_id}` };
  }
  if (people.includes(kind) && subject_id && can('people.read')) {
    return { label: 'See the person', href: `/people?person=${subject_id}` };
  }
  if (checkout_id) return { label: 'Open the order', href: `/checkouts/${checkout_id}` };
  if (integration_id && can('integrations.read')) {
    return { label: 'See the integration', href: `/integrations/${integration_id}` };
  }
  if (merchant_id) return { label: 'See the merchant', href: `/merchants/${merchant_id}` };
  return null;
}

/** The button that ends the cause of an alert, or opens the page where that is done. */
export function AlertButton({ of: row }: { of: AlertRow }) {
  const can = useCan();
  const [retrying, setRetrying] = useState(false);
  const { run, busy } = useQuietAction();
  const { late, subject_id } = row;
  if (row.kind === 'payment_overdue' && late && can('instalments.retry')) {
    const what = `Retry ${money(late.amount, late.currency, late.locale)}`;
    return (
      <>
        <Button size="xs" variant="light" onClick={() => setRetrying(true)}>
          {what}
        </Button>
        <RetryDialog of={retrying ? late : null} close={() => setRetrying(false)} />
      </>
    );
  }
  if (row.kind === 'callback_exhausted' && subject_id && can('callbacks.retry')) {
    return (
      <Button
        size="xs"
        variant="light"
        loading={busy}
        aria-label={`Resend the callback for ${row.client_reference_id}`}
        onClick={() =>
          void run(resend({ id: subject_id, client_reference_id: row.client_reference_id }))
        }
      >
        Resend
      </Button>
    );
  }
  // An alert about the service itself can only be read and closed.
  const place = placeOf(row, can) ?? { label: 'Read it', href: `/alerts?alert=${row.id}` };
  return (
    <Button size="xs" variant="light" component={Link} href={place.href}>
      {place.label}
    </Button>
  );
}
