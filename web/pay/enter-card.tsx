import type { ComponentChildren } from 'preact';
import type { CardSession } from '#gateway/gateway.ts';
import type { PayPage } from '#purchases/shoppers/pay-page.ts';
import type { PlanAttempt } from '#purchases/shoppers/plan-attempt.ts';
import type { CardUse } from '../card-forms/card-form.ts';
import { CardFields, useCard } from './card-fields.tsx';
import { buttonWords, CancelButton, Trouble } from './form.tsx';
import { Text, useI18n } from './i18n.tsx';
import type { Payment } from './payment.ts';
import { isBusy, type View } from './payment-state.ts';
import { consentSentence, findPlan, firstPayment } from './words.ts';

// A payment that has begun: the shopper enters the card in its session, and the form confirms it.

type SceneProps = { view: View; page: PayPage; payment: Payment | null };

/** The second step of a first payment, after the shopper has chosen the term. */
export function EnterCard({ view, page, payment }: SceneProps) {
  const i18n = useI18n();
  const plan = findPlan(page, page.number_of_payments);
  const amount = firstPayment(plan, page);
  const consent = consentSentence(plan, i18n);
  const busy = isBusy(view);
  return (
    <section class="enter-card needs-script">
      <div class="enter-card-title">
        <h1 id="heading" tabIndex={-1}>
          {i18n.count('payments_one', 'payments_other', plan.number_of_payments)},{' '}
          {i18n.text('price_today', { amount: i18n.money(amount) })}
        </h1>
        <button
          type="button"
          class="link"
          aria-disabled={payment === null || busy}
          onClick={() => payment?.chooseAgain()}
        >
          {i18n.text('choose_again')}
        </button>
      </div>
      <Trouble view={view} decline={null} />
      {page.card_session !== null && (
        <ConfirmForm
          key={page.card_session.client_secret}
          {...{ view, page, payment }}
          session={page.card_session}
          use={{ purpose: 'hold', amount, storeCard: plan.number_of_payments > 1 }}
          text={i18n.text('pay_now', { amount: i18n.money(amount) })}
        >
          {consent !== null && <p class="consent">{consent}</p>}
        </ConfirmForm>
      )}
      <p class="next">
        {busy ? (
          i18n.text(view.slow ? 'next_slow' : 'next_busy')
        ) : (
          <Text of="next_steps" merchant={<bdi>{page.merchant_name}</bdi>} />
        )}
      </p>
      <CancelButton view={view} page={page} payment={payment} term={plan.number_of_payments} />
    </section>
  );
}

/**
 * Enters the card for a payment on the plan page, or a new card for the plan, in the session of the
 * attempt.
 */
export function SessionCard({
  view,
  attempt,
  payment,
}: {
  view: View;
  attempt: PlanAttempt;
  payment: Payment | null;
}) {
  const i18n = useI18n();
  const { page } = view;
  const { card_session, purpose, amount } = attempt;
  if (page === null || card_session === null) return null;
  const isPayment = purpose === 'plan_payment';
  return (
    <section class="notice good" aria-labelledby="card-heading">
      <Trouble view={view} decline={null} />
      <ConfirmForm
        {...{ view, page, payment }}
        session={card_session}
        use={isPayment ? { purpose: 'charge', amount, storeCard: false } : { purpose: 'store' }}
        text={i18n.text(isPayment ? 'pay_now' : 'manage_save', { amount: i18n.money(amount) })}
      />
    </section>
  );
}

function ConfirmForm({
  view,
  page,
  payment,
  session,
  use,
  text,
  children,
}: SceneProps & {
  session: CardSession;
  use: CardUse;
  text: string;
  children?: ComponentChildren;
}) {
  const i18n = useI18n();
  const card = useCard(page, use, session);
  const busy = isBusy(view);
  const mayPay = payment !== null && card.form !== null && !busy;
  function confirm(event: Event) {
    event.preventDefault();
    if (mayPay && card.form !== null) void payment.confirm(card.form.submit);
  }
  return (
    <form class="pay-form" autocomplete="off" noValidate onSubmit={confirm}>
      <section
        class="card-details"
        aria-labelledby="card-heading"
        inert={busy && view.activity !== 'checking'}
      >
        <CardFields page={page} card={card} />
      </section>
      {children}
      <button type="submit" class={busy ? 'button busy' : 'button'} aria-disabled={!mayPay}>
        <span>{buttonWords(view, i18n) ?? text}</span>
      </button>
    </form>
  );
}
