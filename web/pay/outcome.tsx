import type { ComponentChildren } from 'preact';
import type { PayPage } from '../../src/payments/pay-page.ts';
import { buttonWords, CancelButton } from './form.tsx';
import type { Payment, View } from './payment.ts';
import { findPlan, firstPayment, money, takenSentence } from './words.ts';

// The views besides the form: one card with a sign, what happened, and what to do.

type Sign = 'done' | 'stopped' | 'late' | 'bank';

/** Paths in a 32 by 32 box. */
const signs: Record<Sign, string> = {
  done: 'M9 16.5l5 5 9.5-11',
  stopped: 'M10 10l12 12M22 10L10 22',
  late: 'M16 9v7.5l5 3',
  bank: 'M7 13l9-5 9 5M8.5 23h15M10.5 14v8M16 14v8M21.5 14v8',
};

function Card({
  sign,
  title,
  children,
}: {
  sign: Sign;
  title: string;
  children: ComponentChildren;
}) {
  return (
    <section class="outcome">
      <svg class={`sign ${sign}`} viewBox="0 0 32 32" aria-hidden="true" focusable="false">
        <circle cx="16" cy="16" r="15" />
        <path d={signs[sign]} />
      </svg>
      <h1 id="heading" tabIndex={-1}>
        {title}
      </h1>
      {children}
    </section>
  );
}

export function UnknownLink() {
  return (
    <Card sign="stopped" title="This link leads nowhere">
      <p>
        It may be incomplete or mistyped. Nothing was charged through it. Go back to the shop and
        start the payment again.
      </p>
    </Card>
  );
}

export function Waiting({ view, page, payment }: SceneProps) {
  const lost = view.activity === 'lost';
  return (
    <section class="outcome">
      <h1 id="heading" tabIndex={-1}>
        {buttonWords(view) ?? 'Asking your bank…'}
      </h1>
      <div class="progress" role="progressbar" aria-label="Waiting for your bank" />
      <p>
        {lost
          ? 'The connection was lost. We are finding out whether your payment went through. Do not pay again elsewhere.'
          : 'A payment for this order is under way. You see here how it ends.'}
      </p>
      <p>Keep this page open{view.slow && ': it is taking longer than usual'}.</p>
      <CancelButton view={view} page={page} payment={payment} term={page.number_of_payments} />
    </section>
  );
}

export function Challenge({ view, page, payment }: SceneProps) {
  const amount = money(firstPayment(findPlan(page, page.number_of_payments), page), page);
  const leaving = view.activity === 'leaving';
  return (
    <Card sign="bank" title="Your bank wants to hear from you">
      <p>
        {leaving
          ? 'You are being taken to your bank to confirm the payment.'
          : `It asks you to confirm the payment of ${amount}. Nothing is charged until you do.`}
      </p>
      <button
        type="button"
        class="button"
        aria-disabled={payment === null || view.activity === 'cancelling'}
        onClick={() => payment?.continueAtBank()}
      >
        <span>Continue at your bank</span>
      </button>
      <button
        type="button"
        class="button plain"
        aria-disabled={payment === null || view.activity === 'cancelling'}
        onClick={() => payment?.useAnotherCard()}
      >
        <span>Use another card</span>
      </button>
      <CancelButton view={view} page={page} payment={payment} term={page.number_of_payments} />
    </Card>
  );
}

type SceneProps = { view: View; page: PayPage; payment: Payment | null };

/** The final states. Each says first what happened to the money. */
export function Outcome({ view, page }: { view: View; page: PayPage }) {
  const name = <bdi>{page.merchant_name}</bdi>;
  const taken = takenSentence(findPlan(page, page.number_of_payments), page);
  switch (page.status) {
    case 'successful':
      return (
        <Card
          sign="done"
          title={view.returning ? 'Payment approved' : 'This order is already paid'}
        >
          {view.returning && taken !== null && <p class="taken">{taken}</p>}
          <p>
            {view.returning ? (
              <>Thank you. You are being taken back to {name}.</>
            ) : (
              'Your payment was approved. There is nothing more to do here.'
            )}
          </p>
          {view.returning && <div class="progress" />}
          <ReturnLink page={page} />
        </Card>
      );
    case 'cancelled':
      return (
        <Card sign="stopped" title="Payment cancelled">
          <p>
            Nothing was charged.{' '}
            {view.returning ? (
              <>You are being taken back to {name}.</>
            ) : (
              <>To buy after all, start again at {name}.</>
            )}
          </p>
          {view.returning && <div class="progress" />}
          <ReturnLink page={page} />
        </Card>
      );
    case 'expired':
      return (
        <Card sign="late" title="This payment link can no longer be used">
          <p>
            It works for a limited time and a limited number of tries. Nothing was charged. To buy
            after all, go back to {name} and start again.
          </p>
          <ReturnLink page={page} />
        </Card>
      );
    default:
      return (
        <Card sign="stopped" title="This order cannot be paid">
          <p>
            Something in what {name} sent us about it is not right. Nothing was charged. Go back to{' '}
            {name} and start again.
          </p>
          <ReturnLink page={page} />
        </Card>
      );
  }
}

function ReturnLink({ page }: { page: PayPage }) {
  if (page.return_url === null || !/^https?:\/\//i.test(page.return_url)) return null;
  return (
    <a class="button plain" href={page.return_url}>
      <span>
        Return to <bdi>{page.merchant_name}</bdi>
      </span>
    </a>
  );
}
