import { useEffect } from 'preact/hooks';
import type { PayPage } from '#purchases/shoppers/pay-page.ts';
import type { PlanPayment } from '#purchases/shoppers/plan.ts';
import type { CardForm, CardUse } from '../../card-forms/card-form.ts';
import { CardFields, useCard } from '../card-fields.tsx';
import { buttonWords } from '../form.tsx';
import { useI18n } from '../i18n.tsx';
import { isBusy, newsOf, type View } from '../payment-state.ts';

// The parts shared by the two panels with an attempt: a payment on the plan, and a new card.

/** The gateway's frame, which is loaded only when the shopper wants to enter a card. */
export function OtherCard({
  view,
  page,
  use,
  give,
}: {
  view: View;
  page: PayPage;
  use: CardUse;
  give: (form: CardForm | null) => void;
}) {
  const card = useCard(page, use);
  useEffect(() => {
    give(card.form);
    return () => give(null);
  }, [card.form]);
  return (
    <section
      class="card-details"
      aria-labelledby="card-heading"
      inert={isBusy(view) && view.activity !== 'checking'}
    >
      <CardFields page={page} card={card} />
    </section>
  );
}

export function AttemptButton({
  view,
  mayAttempt,
  text,
}: {
  view: View;
  mayAttempt: boolean;
  text: string;
}) {
  const i18n = useI18n();
  const busy = isBusy(view);
  return (
    <>
      <button type="submit" class={busy ? 'button busy' : 'button'} aria-disabled={!mayAttempt}>
        <span>{buttonWords(view, i18n) ?? text}</span>
      </button>
      <p class="next">
        {i18n.text(busy ? (view.slow ? 'next_slow' : 'next_busy') : 'manage_steps')}
      </p>
    </>
  );
}

/** Explains why the server refused the attempt. */
export function Refusal({ view }: { view: View }) {
  const i18n = useI18n();
  const refusal = view.page?.attempt?.status === 'refused' ? view.page.attempt.refusal : null;
  if (refusal === null || isBusy(view)) return null;
  const key = {
    being_charged: 'refused_charging',
    refund_in_progress: 'refused_refund',
    disputed: 'refused_disputed',
    payments_paused: 'payments_paused',
    plan_changed: 'refused_changed',
    card_refused: 'refused_card',
  } as const;
  return (
    <p class="notice warning" role="alert">
      {i18n.text(key[refusal])}
    </p>
  );
}

export function declineOf(view: View): PayPage['decline'] {
  const attempt = newsOf(view);
  return attempt?.status === 'declined' ? attempt.decline : null;
}

export function consentTo(payments: PlanPayment[], page: PayPage) {
  return {
    version: page.consent_version,
    payments: payments.map(({ number, amount, due_on }) => ({ number, amount, due_on })),
  };
}
