import { useEffect, useRef, useState } from 'preact/hooks';
import type { DeclineReason } from '#gateway/gateway.ts';
import type { PageKey } from '#platform/shared/words/words.ts';
import type { PayPage, Plan } from '#purchases/payments/pay-page.ts';
import { CardFields, useCard } from './card-fields.tsx';
import { isBusy, isInFlight, newsOf, type Payment, type View } from './payment.ts';
import { Text, useSay } from './say.tsx';
import {
  consentSentence,
  declineWords,
  findPlan,
  firstPayment,
  planPrice,
  type Say,
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
  const say = useSay();
  const plan = findPlan(page, term);
  const first = firstPayment(plan, page);
  const card = useCard(page, {
    purpose: 'hold',
    amount: first,
    storeCard: plan.number_of_payments > 1,
  });
  const consent = consentSentence(plan, say);
  const merchant = <bdi>{page.merchant_name}</bdi>;
  const busy = isBusy(view);
  const mayPay = payment !== null && card.form !== null && !busy;

  function pay(event: Event) {
    event.preventDefault();
    if (!mayPay || card.form === null) return;
    const request = {
      number_of_payments: plan.number_of_payments,
      consent: consent === null ? null : { version: page.consent_version, payments: plan.payments },
      language: page.language,
    };
    void payment.pay(request, card.form.createToken);
  }

  return (
    <form class="pay-form needs-script" autocomplete="off" noValidate onSubmit={pay}>
      <fieldset class="terms">
        <legend>
          <h1 id="heading" tabIndex={-1}>
            {say.text(page.plans.length > 1 ? 'how_to_pay' : 'how_you_pay')}
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
        {page.no_fees && <p class="promise">{say.text('no_fees')}</p>}
      </fieldset>

      {page.paused ? (
        <p class="notice warning" role="alert">
          {say.text('payments_paused')}
        </p>
      ) : (
        <Trouble view={view} decline={page.decline} />
      )}

      <section
        class="card-details"
        aria-labelledby="card-heading"
        // While it checks the card, the frame may move the focus to a field.
        inert={busy && view.activity !== 'checking'}
      >
        <CardFields page={page} card={card} />
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
        <span>{buttonWords(view, say) ?? say.text('pay_now', { amount: say.money(first) })}</span>
      </button>
      <p class="next">
        {busy ? (
          say.text(view.slow ? 'next_slow' : 'next_busy')
        ) : (
          <Text say="next_steps" merchant={merchant} />
        )}
      </p>
      <CancelButton view={view} page={page} payment={payment} term={plan.number_of_payments} />
    </form>
  );
}

export function buttonWords({ page, activity }: View, say: Say): string | null {
  if (activity !== 'idle') return say.text(busyWords[activity]);
  return isInFlight(page) ? say.text('busy_paying') : null;
}

const busyWords = {
  checking: 'busy_checking',
  paying: 'busy_paying',
  cancelling: 'busy_cancelling',
  lost: 'busy_lost',
  leaving: 'busy_leaving',
} as const;

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
  const say = useSay();
  const term = plan.number_of_payments;
  const price = planPrice(plan, page, say);
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
          <span class="term-count">{say.count('payments_one', 'payments_other', term)}</span>{' '}
          <span class={price.length > 1 ? 'term-price parts' : 'term-price'}>
            {price.map((part) => (
              <span key={part}>{part} </span>
            ))}
          </span>
        </span>
      </label>
      {chosen && <Timeline key={term} plan={plan} amount={page.amount} opens={wasChosenHere} />}
    </div>
  );
}

const shownMax = 12;
const shownFirst = 6;

/** One dot per payment: today, then each date. It opens with motion only after a choice. */
function Timeline({ plan, amount, opens }: { plan: Plan; amount: number; opens: boolean }) {
  const say = useSay();
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
              {index === 0 ? say.text('today') : say.date(payment.due_on)}
            </time>
            <span class="price">{say.money(payment.amount)}</span>
          </li>
        ))}
      </ol>
      {!all && (
        <button type="button" class="link" onClick={() => setAll(true)}>
          {say.text('payments_all', { count: plan.payments.length })}
        </button>
      )}
      {plan.payments.length > 1 && (
        <p class="sum">{say.text('payments_sum', { amount: say.money(amount) })}</p>
      )}
    </div>
  );
}

/** Says what went wrong, whether anything was charged, and what to do. */
export function Trouble({ view, decline }: { view: View; decline: PayPage['decline'] }) {
  const say = useSay();
  const place = useRef<HTMLDivElement>(null);
  // While the next attempt is in flight the notice is out of date. It keeps its place, so that the
  // button that the shopper just pressed does not move.
  const hidden = isBusy(view) && view.activity !== 'lost';
  const last = useRef<ReturnType<typeof troubleWords>>(null);
  if (!hidden) last.current = troubleWords(view, decline, say);
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

/** Declines of a payment that read otherwise when the bank was only asked about a card. */
const cardDeclines: Partial<Record<DeclineReason, PageKey>> = {
  processing_error: 'card_unhandled',
  authentication_required: 'card_unasked',
};

function troubleWords(view: View, decline: PayPage['decline'], say: Say) {
  const isAboutCard = (view.askedFor ?? view.page?.act?.purpose) === 'replace_card';
  if (view.activity === 'lost') {
    const next = say.text(isAboutCard ? 'lost_card_next' : 'lost_next');
    return { tone: 'warning', happened: say.text('lost'), next };
  }
  if (view.problem !== null) {
    const happened = 'key' in view.problem ? say.text(view.problem.key) : view.problem.text;
    return { tone: 'danger', happened, next: say.text('nothing_charged') };
  }
  if (view.unfinished) {
    const happened = say.text(isAboutCard ? 'card_unchanged' : 'unfinished');
    return { tone: 'danger', happened, next: say.text('unfinished_next') };
  }
  if (decline === null) return null;
  const { happened, next } = declineWords(decline, say);
  const key = newsOf(view)?.purpose === 'replace_card' ? cardDeclines[decline.reason] : undefined;
  return { tone: 'danger', happened: key ? say.text(key) : happened, next };
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
        <Text say="cancel" merchant={<bdi>{page.merchant_name}</bdi>} />
      </span>
    </button>
  );
}
