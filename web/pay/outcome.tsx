import type { ComponentChildren } from 'preact';
import type { PayPage } from '#purchases/shoppers/pay-page.ts';
import { buttonWords, CancelButton, Trouble } from './form.tsx';
import { Text, useI18n } from './i18n.tsx';
import type { Payment } from './payment.ts';
import type { View } from './payment-state.ts';
import { Payments } from './plan.tsx';
import { findPlan, firstPayment, takenSentence } from './words.ts';

// All views other than the form: a card with a sign, what happened, and what to do.

type Sign = 'done' | 'stopped' | 'late' | 'bank';

/** Paths in a 32 by 32 box. */
const signs: Record<Sign, string> = {
  done: 'M9 16.5l5 5 9.5-11',
  stopped: 'M10 10l12 12M22 10L10 22',
  late: 'M16 9v7.5l5 3',
  bank: 'M7 13l9-5 9 5M8.5 23h15M10.5 14v8M16 14v8M21.5 14v8',
};

export function Card({
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
  const i18n = useI18n();
  return (
    <Card sign="stopped" title={i18n.text('unknown')}>
      <p>{i18n.text('unknown_next')}</p>
    </Card>
  );
}

export function Waiting({ view, page, payment }: SceneProps) {
  const i18n = useI18n();
  return (
    <section class="outcome needs-script">
      <h1 id="heading" tabIndex={-1}>
        {buttonWords(view, i18n) ?? i18n.text('busy_paying')}
      </h1>
      <div class="progress" role="progressbar" aria-label={i18n.text('waiting_label')} />
      <p>{i18n.text(view.activity === 'lost' ? 'waiting_lost' : 'waiting')}</p>
      <p>{i18n.text(view.slow ? 'waiting_slow' : 'waiting_keep')}</p>
      <CancelButton view={view} page={page} payment={payment} term={page.number_of_payments} />
    </section>
  );
}

export function Challenge({ view, page, payment }: SceneProps) {
  const i18n = useI18n();
  const amount = i18n.money(firstPayment(findPlan(page, page.number_of_payments), page));
  const leaving = view.activity === 'leaving';
  return (
    <Card sign="bank" title={i18n.text('bank')}>
      <Trouble view={view} decline={null} />
      <p>{leaving ? i18n.text('bank_leaving') : i18n.text('bank_next', { amount })}</p>
      <button
        type="button"
        class="button"
        aria-disabled={payment === null || view.activity === 'cancelling'}
        onClick={() => payment?.continueAtBank()}
      >
        <span>{i18n.text('bank_continue')}</span>
      </button>
      <button
        type="button"
        class="button plain"
        aria-disabled={payment === null || view.activity === 'cancelling'}
        onClick={() => payment?.chooseAgain()}
      >
        <span>{i18n.text('bank_other_card')}</span>
      </button>
      <CancelButton view={view} page={page} payment={payment} term={page.number_of_payments} />
    </Card>
  );
}

type SceneProps = { view: View; page: PayPage; payment: Payment | null };

/** The final states. Each says first what happened to the money. */
export function Outcome({ view, page, payment, path }: SceneProps & { path: string }) {
  const i18n = useI18n();
  const merchant = <bdi>{page.merchant_name}</bdi>;
  const taken = takenSentence(findPlan(page, page.number_of_payments), i18n);
  switch (page.status) {
    case 'successful':
      return (
        <>
          <Card sign="done" title={i18n.text('approved')}>
            {taken !== null && <p class="taken">{taken}</p>}
            {view.returning && (
              <>
                <p>
                  <Text of="approved_next" merchant={merchant} />
                </p>
                <div class="progress" />
              </>
            )}
            <ReturnLink page={page} />
          </Card>
          {page.plan !== null && (
            <Payments page={page} plan={page.plan} path={path} hasCalendar={false} />
          )}
        </>
      );
    case 'cancelled':
      return (
        <Card sign="stopped" title={i18n.text('cancelled')}>
          <p>
            {view.returning ? (
              <Text of="cancelled_returning" merchant={merchant} />
            ) : (
              <Text of="cancelled_next" merchant={merchant} />
            )}
          </p>
          {view.returning && <div class="progress" />}
          <ReturnLink page={page} />
        </Card>
      );
    case 'expired':
      return (
        <Card sign="late" title={i18n.text('expired')}>
          <p>
            <Text of="expired_next" merchant={merchant} />
          </p>
          {page.may_cancel && payment !== null ? (
            // The merchant learns that the shopper gave up, and releases the order.
            <CancelButton {...{ view, page, payment }} term={page.number_of_payments} isAlone />
          ) : (
            <ReturnLink page={page} />
          )}
        </Card>
      );
    default:
      return (
        <Card sign="stopped" title={i18n.text('invalid')}>
          <p>
            <Text of="invalid_next" merchant={merchant} />
          </p>
          <ReturnLink page={page} />
        </Card>
      );
  }
}

export function ReturnLink({ page }: { page: PayPage }) {
  if (page.return_url === null || !/^https?:\/\//i.test(page.return_url)) return null;
  return (
    <a class="button plain" href={page.return_url}>
      <span>
        <Text of="return" merchant={<bdi>{page.merchant_name}</bdi>} />
      </span>
    </a>
  );
}
