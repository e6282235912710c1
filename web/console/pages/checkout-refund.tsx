import { TextInput } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { CheckoutDetails, RefundPreview } from '#operating/operations/checkout.schema.ts';
import type { RefundDetails } from '#operating/operations/refund.schema.ts';
import { sendChange } from '../api.ts';
import { money } from '../format.ts';
import { SingleActionDialog } from '../parts/actions.tsx';
import { parseAmount, typedAmount } from '../parts/amount.ts';
import { Notice } from '../parts/basics.tsx';
import { RefundParts } from '../parts/refund-parts.tsx';
import { outcomeOf } from '../parts/review.ts';
import { Bones } from '../parts/states.tsx';
import { useText } from '../parts/text.ts';
import { useSession } from '../session.tsx';

/**
 * Asks for an amount, shows the payments that it would be taken from, and has a button that names
 * the amount.
 */
export function RefundDialog({ of: checkout, close }: { of: CheckoutDetails; close: () => void }) {
  const { currency, locale } = checkout;
  const { scope } = useSession();
  const [typed, typedField] = useText(() => typedAmount(checkout.refundable));
  const [reason, reasonField] = useText('', 'refund');
  // Pressing twice, or repeating the request after a lost answer, makes only one refund.
  const [requestId] = useState(() => crypto.randomUUID());
  const cents = parseAmount(typed);
  const [wanted] = useDebouncedValue(cents, 200);
  const { data: preview, error } = useQuery({
    queryKey: ['refund-preview', checkout.id, wanted],
    queryFn: () =>
      sendChange<RefundPreview>('POST', `/api/checkouts/${checkout.id}/refund-preview`, {
        amount: wanted,
      }),
    enabled: wanted !== null && wanted > 0,
    retry: false,
    meta: { isPreview: true },
  });
  const isCurrent = preview !== undefined && preview.amount === cents;
  const what = cents ? `Refund ${money(cents, currency, locale)}` : 'Refund';
  return (
    <SingleActionDialog<RefundDetails>
      title={`Refund ${checkout.client_reference_id}`}
      size="lg"
      what={what}
      path={`/api/checkouts/${checkout.id}/refunds`}
      body={{
        amount: cents,
        request_id: requestId,
        ...(reason.trim() && { reason: reason.trim() }),
      }}
      said={outcomeOf}
      isFailed={({ status }) => status === 'failed'}
      danger
      disabled={!isCurrent || preview.refusal !== null}
      close={close}
    >
      <TextInput
        label="Amount"
        description={`At most ${money(checkout.refundable, currency, locale)}`}
        inputMode="decimal"
        data-autofocus
        leftSection="R"
        {...typedField}
        error={typed !== '' && !cents ? 'Enter an amount such as 600,00.' : null}
      />
      {checkout.erased_at === null && (
        <TextInput
          label="Reason"
          description={`Your colleagues and the ${scope === 'all' ? 'merchant’s people' : 'payment service'} read it beside the refund. The audit does not keep it.`}
          maxLength={500}
          {...reasonField}
        />
      )}
      {error && <Notice kind="bad">{error.message}</Notice>}
      {Boolean(cents) && !error && !isCurrent && <Bones lines={3} />}
      {isCurrent && preview.refusal !== null && <Notice kind="bad">{preview.refusal}</Notice>}
      {isCurrent && preview.refusal === null && (
        <section>
          <h3>What it will be taken from</h3>
          <RefundParts parts={preview.parts} currency={currency} locale={locale} />
        </section>
      )}
      {isCurrent &&
        preview.warnings.map((warning) => (
          <Notice key={warning} kind="warn">
            {warning}
          </Notice>
        ))}
      {isCurrent && preview.needs_second_person && (
        <Notice>
          Together with earlier refunds that one person approved alone, the amount is above the
          merchant’s threshold. Another person has to approve it before it starts.
        </Notice>
      )}
    </SingleActionDialog>
  );
}
