import { useEffect, useRef, useState } from 'preact/hooks';
import type { PayPage, Plan } from '../../src/payments/pay-page.ts';
import { type CardForm, mountCard } from './card-entry.ts';
import { isBusy, type Payment, type View } from './payment.ts';
import {
  consentSentence,
  date,
  declineWords,
  findPlan,
  firstPayment,
  money,
  paymentCount,
  planPrice,
} from './words.ts';

type FormProps = {
  view: View;
  page: PayPage;
  payment: Payment | null;
  term: number;
  choose: (term: number) => void;
};

/** The shopper chooses a term, enters a card and pays. The form keeps its shape while paying. */
export function PayForm({ view, page, payment, term, choose }: FormProps) {
  const plan = findPlan(page, term);
  const first = firstPayment(plan, page);
  const charge = { amount: first, storeCard: plan.number_of_payments > 1 };
  const card = useCard(page, charge);
  const consent = consentSentence(plan, page);
  const busy = isBusy(view);
  const mayPay = payment !== null && card.form !== null && !busy;

  function pay(event: Event) {
    event.preventDefault();
    if (!mayPay || card.form === null) return;
    const request = {
      number_of_payments: plan.number_of_payments,
      consent: consent === null ? null : { version: page.consent_version, payments: plan.payments },
    };
    void payment.pay(request, card.form.createToken);
  }

  return (
    <form class="pay-form" autocomplete="off" noValidate onSubmit={pay}>
      <fieldset class="terms">
        <legend>
          <h1 id="heading" tabIndex={-1}>
            {page.plans.length > 1 ? 'How do you want to pay?' : 'How you pay'}
          </h1>
        </legend>
        <div class="term-rows" inert={busy}>
          {page.plans.map((each) => (
            <Term
              key={each.number_of_payments}
              plan={each}
              page={page}
              chosen={each.number_of_payments === plan.number_of_payments}
              choose={choose}
            />
          ))}
        </div>
      </fieldset>

      <Trouble view={view} page={page} />

      <section
        class="card-details"
        aria-labelledby="card-heading"
        // While it checks the card, the frame may move the focus to a field.
        inert={busy && view.activity !== 'checking'}
      >
        <h2 id="card-heading">Card details</h2>
        <div class="card-frame" aria-busy={card.state === 'loading'}>
          {card.state === 'loading' && (
            <div class="card-loading">
              <span />
              <span />
              <span />
              <p class="unseen">The card form is loading.</p>
            </div>
          )}
          <div ref={card.place} hidden={card.state === 'failed'} />
          {card.state === 'failed' && (
            <div class="notice danger" role="alert">
              <p>
                <strong>The card form did not load.</strong> Nothing was charged. Check your
                connection, and that nothing in your browser blocks it.
              </p>
              <button type="button" class="link" onClick={card.retry}>
                Load it again
              </button>
            </div>
          )}
        </div>
        <p class="small">
          <svg class="lock" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
            <path d="M4.5 7V5a3.5 3.5 0 0 1 7 0v2M3 7.5h10v6.5H3z" />
          </svg>
          <span>
            Your card details go straight to the card processor, not to{' '}
            <bdi>{page.merchant_name}</bdi>.
          </span>
        </p>
      </section>

      {consent !== null && (
        <p class="consent" id="consent">
          {consent}
        </p>
      )}
      <button
        type="submit"
        class={busy ? 'button busy' : 'button'}
        aria-disabled={!mayPay}
        {...(consent !== null && { 'aria-describedby': 'consent' })}
      >
        <span>{buttonWords(view) ?? `Pay ${money(first, page)} now`}</span>
      </button>
      <p class="next">
        {busy ? (
          view.slow ? (
            'This is taking longer than usual. Keep this page open: your bank may still answer.'
          ) : (
            'Keep this page open until it is done.'
          )
        ) : (
          <>
            Next, your bank may ask you to confirm. Then you return to{' '}
            <bdi>{page.merchant_name}</bdi>.
          </>
        )}
      </p>
      <CancelButton view={view} page={page} payment={payment} term={plan.number_of_payments} />
    </form>
  );
}

export function buttonWords({ page, activity }: View): string | null {
  switch (activity) {
    case 'checking':
      return 'Checking the card…';
    case 'paying':
      return 'Asking your bank…';
    case 'cancelling':
      return 'Cancelling…';
    case 'lost':
      return 'Finding out what happened…';
    case 'leaving':
      return 'Taking you to your bank…';
    case 'idle':
      return page?.status === 'paying' ? 'Asking your bank…' : null;
  }
}

function Term({
  plan,
  page,
  chosen,
  choose,
}: {
  plan: Plan;
  page: PayPage;
  chosen: boolean;
  choose: (term: number) => void;
}) {
  const term = plan.number_of_payments;
  const price = planPrice(plan, page);
  const [wasChosenHere, setChosenHere] = useState(false);
  return (
    <div class={chosen ? 'term chosen' : 'term'}>
      <label>
        <input
          type="radio"
          name="term"
          value={term}
          checked={chosen}
          onChange={() => {
            setChosenHere(true);
            choose(term);
          }}
        />
        <span class="term-words">
          <span class="term-count">{paymentCount(term)}</span>{' '}
          <span class={price.length > 24 ? 'term-price long' : 'term-price'}>{price}</span>
        </span>
      </label>
      {chosen && <Timeline key={term} plan={plan} page={page} opens={wasChosenHere} />}
    </div>
  );
}

const shownMax = 12;
const shownFirst = 6;

/** One dot per payment: today, then each date. It opens with motion only after a choice. */
function Timeline({ plan, page, opens }: { plan: Plan; page: PayPage; opens: boolean }) {
  const [all, setAll] = useState(plan.payments.length <= shownMax);
  const shown = all
    ? plan.payments
    : [...plan.payments.slice(0, shownFirst), ...plan.payments.slice(-1)];
  return (
    <div class={opens ? 'timeline opens' : 'timeline'}>
      <ol>
        {shown.map((payment, index) => (
          <li key={payment.number} class={!all && index === shownFirst ? 'after-gap' : ''}>
            <time dateTime={payment.due_on}>
              {index === 0 ? 'Today' : date(payment.due_on, page)}
            </time>
            <span class="price">{money(payment.amount, page)}</span>
          </li>
        ))}
      </ol>
      {!all && (
        <button type="button" class="link" onClick={() => setAll(true)}>
          Show all {plan.payments.length} payments
        </button>
      )}
      {plan.payments.length > 1 && (
        <p class="sum">The payments add up to {money(page.amount, page)}.</p>
      )}
    </div>
  );
}

/** Says what went wrong, whether anything was charged, and what to do. */
function Trouble({ view, page }: { view: View; page: PayPage }) {
  const place = useRef<HTMLDivElement>(null);
  // While the next attempt is in flight the notice is out of date. It keeps its place, so that the
  // button that the shopper just pressed does not move.
  const hidden = isBusy(view) && view.activity !== 'lost';
  const last = useRef<ReturnType<typeof troubleWords>>(null);
  if (!hidden) last.current = troubleWords(view, page);
  const words = last.current;
  const happened = hidden ? null : (words?.happened ?? null);
  // Move the focus to the notice for screen readers and for shoppers who have scrolled away. Not on
  // the first view, which is read from the top, and not away from a field that the frame focused.
  const before = useRef<View['activity'] | null>(null);
  useEffect(() => {
    const inField = before.current === 'checking' && view.problem === null;
    if (before.current !== null && happened !== null && !inField) place.current?.focus();
  }, [happened]);
  useEffect(() => {
    before.current = view.activity;
  }, [view.activity]);
  if (words === null) return null;
  return (
    <div
      class={hidden ? `notice ${words.tone} hidden` : `notice ${words.tone}`}
      role="alert"
      tabIndex={-1}
      ref={place}
    >
      <p>
        <strong>{words.happened}</strong> {words.next}
      </p>
    </div>
  );
}

function troubleWords(view: View, page: PayPage) {
  if (view.activity === 'lost') {
    return {
      tone: 'warning',
      happened: 'The connection was lost.',
      next: 'We are finding out whether your payment went through. Keep this page open, and do not pay again elsewhere.',
    };
  }
  if (view.problem !== null) {
    return { tone: 'danger', happened: view.problem, next: 'Nothing was charged.' };
  }
  if (view.unfinished) {
    return {
      tone: 'danger',
      happened: 'Your payment did not go through.',
      next: 'Nothing was charged. You can try again.',
    };
  }
  return page.decline === null ? null : { tone: 'danger', ...declineWords(page.decline) };
}

export function CancelButton({
  view,
  page,
  payment,
  term,
}: {
  view: View;
  page: PayPage;
  payment: Payment | null;
  term: number;
}) {
  const mayCancel = payment !== null && view.activity === 'idle';
  return (
    <button
      type="button"
      class="button quiet"
      aria-disabled={!mayCancel}
      onClick={() => mayCancel && payment.cancel({ number_of_payments: term })}
    >
      <span>
        Cancel and return to <bdi>{page.merchant_name}</bdi>
      </span>
    </button>
  );
}

type CardState = 'loading' | 'ready' | 'failed';

function useCard(page: PayPage, charge: { amount: number; storeCard: boolean }) {
  const place = useRef<HTMLDivElement>(null);
  const [state, setState] = useState<CardState>('loading');
  const [form, setForm] = useState<CardForm | null>(null);
  const [retries, setRetries] = useState(0);

  useEffect(() => {
    let gone = false;
    let mounted: CardForm | null = null;
    if (place.current === null) return;
    mountCard(page, place.current, charge).then(
      (made) => {
        mounted = made;
        if (gone) return made.destroy();
        setForm(made);
        setState('ready');
      },
      () => {
        if (!gone) setState('failed');
      },
    );
    return () => {
      gone = true;
      mounted?.destroy();
    };
    // Mount the frame once, because it holds the input. The effect below tells it a new charge.
  }, [retries]);

  useEffect(() => form?.update(charge), [form, charge.amount, charge.storeCard]);

  return {
    place,
    state,
    form,
    retry() {
      setState('loading');
      setRetries(retries + 1);
    },
  };
}
