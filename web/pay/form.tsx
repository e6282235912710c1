import { useEffect, useRef, useState } from 'preact/hooks';
import type { DeclineReason } from '#gateway/gateway.ts';
import type { PageKey } from '#platform/shared/words/words.ts';
import type { PayPage, Plan } from '#purchases/shoppers/pay-page.ts';
import { CardFields, useCard } from './card-fields.tsx';
import { Text, useI18n } from './i18n.tsx';
import type { Payment } from './payment.ts';
import { isBusy, isInFlight, mayLeave, newsOf, type View } from './payment-state.ts';
import {
  consentSentence,
  declineWords,
  findPlan,
  firstPayment,
  type I18n,
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
  const i18n = useI18n();
  const plan = findPlan(page, term);
  const first = firstPayment(plan, page);
  const card = useCard(page, {
    purpose: 'hold',
    amount: first,
    storeCard: plan.number_of_payments > 1,
  });
  const consent = consentSentence(plan, i18n);
  const merchant = <bdi>{page.merchant_name}</bdi>;
  const busy = isBusy(view);
  // With some gateways the card is entered after the payment has begun, in its session.
  const isBefore = page.card_entry?.entersCard !== 'after';
  const mayPay = payment !== null && !busy && (!isBefore || card.form !== null);

  function pay(event: Event) {
    event.preventDefault();
    if (!mayPay) return;
    const request = {
      number_of_payments: plan.number_of_payments,
      consent: consent === null ? null : { version: page.consent_version, payments: plan.payments },
      language: page.language,
    };
    void payment.pay(request, card.form?.submit ?? null);
  }

  return (
    <form class="pay-form needs-script" autocomplete="off" noValidate onSubmit={pay}>
      <fieldset class="terms">
        <legend>
          <h1 id="heading" tabIndex={-1}>
            {i18n.text(page.plans.length > 1 ? 'how_to_pay' : 'how_you_pay')}
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
        {page.no_fees && <p class="promise">{i18n.text('no_fees')}</p>}
      </fieldset>

      {page.paused ? (
        <p class="notice warning" role="alert">
          {i18n.text('payments_paused')}
        </p>
      ) : (
        <Trouble view={view} decline={page.decline} />
      )}

      <section
        class="card-details"
        aria-labelledby="card-heading"
        // The section is not inert during the check, because the frame may then focus a bad field.
        inert={busy && view.activity !== 'checking'}
      >
        {isBefore ? (
          <CardFields page={page} card={card} />
        ) : (
          <p class="small" id="card-heading">
            {i18n.text('card_later')}
          </p>
        )}
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
        <span>
          {buttonWords(view, i18n) ??
            i18n.text(isBefore ? 'pay_now' : 'go_on', { amount: i18n.money(first) })}
        </span>
      </button>
      <p class="next">
        {busy ? (
          i18n.text(view.slow ? 'next_slow' : 'next_busy')
        ) : (
          <Text of="next_steps" merchant={merchant} />
        )}
      </p>
      <CancelButton view={view} page={page} payment={payment} term={plan.number_of_payments} />
    </form>
  );
}

export function buttonWords({ page, activity }: View, i18n: I18n): string | null {
  if (activity !== 'idle') return i18n.text(busyWords[activity]);
  return isInFlight(page) ? i18n.text('busy_paying') : null;
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
  const i18n = useI18n();
  const term = plan.number_of_payments;
  const price = planPrice(plan, page, i18n);
  const [wasChosenHere, setChosenHere] = useState(false);
  return (
    <div class={chosen ? 'term chosen' : 'term'}>
      <label>
        <span class="term-words">
          <span class="term-count">{i18n.count('payments_one', 'payments_other', term)}</span>{' '}
          <span class={price.length > 1 ? 'term-price parts' : 'term-price'}>
            {price.map((part) => (
              <span key={part}>{part} </span>
            ))}
          </span>
        </span>
        {/* The radio button comes after its label. If the button were painted first, it would move
            when the label arrives. */}
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
      </label>
      {chosen && <Timeline key={term} plan={plan} amount={page.amount} opens={wasChosenHere} />}
    </div>
  );
}

const shownMax = 12;
const shownFirst = 6;

/** One dot per payment: today's, then one for each date. It is animated only after a choice. */
function Timeline({ plan, amount, opens }: { plan: Plan; amount: number; opens: boolean }) {
  const i18n = useI18n();
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
              {index === 0 ? i18n.text('today') : i18n.date(payment.due_on)}
            </time>
            <span class="price">{i18n.money(payment.amount)}</span>
          </li>
        ))}
      </ol>
      {!all && (
        <button type="button" class="link" onClick={() => setAll(true)}>
          {i18n.text('payments_all', { count: plan.payments.length })}
        </button>
      )}
      {plan.payments.length > 1 && (
        <p class="sum">{i18n.text('payments_sum', { amount: i18n.money(amount) })}</p>
      )}
    </div>
  );
}

/** Says what went wrong, whether anything was charged, and what to do. */
export function Trouble({ view, decline }: { view: View; decline: PayPage['decline'] }) {
  const i18n = useI18n();
  const place = useRef<HTMLDivElement>(null);
  // While the next attempt is in flight the notice is out of date. It keeps its place, so that the
  // button that the shopper just pressed does not move.
  const hidden = isBusy(view) && view.activity !== 'lost';
  const last = useRef<ReturnType<typeof troubleWords>>(null);
  if (!hidden) last.current = troubleWords(view, decline, i18n);
  const words = last.current;
  const happened = hidden ? null : (words?.happened ?? null);
  // The focus moves to the notice, for screen readers and for shoppers who have scrolled away. It
  // does not move on the first view, which is read from the top, or away from a field that the
  // frame has focused.
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

/** These declines have a different text if the bank was only asked about a card. */
const cardDeclines: Partial<Record<DeclineReason, PageKey>> = {
  processing_error: 'card_unhandled',
  authentication_required: 'card_unasked',
};

function troubleWords(view: View, decline: PayPage['decline'], i18n: I18n) {
  const isAboutCard = (view.askedFor ?? view.page?.attempt?.purpose) === 'new_card';
  if (view.activity === 'lost') {
    const next = i18n.text(isAboutCard ? 'lost_card_next' : 'lost_next');
    return { tone: 'warning', happened: i18n.text('lost'), next };
  }
  if (view.problem !== null) {
    const happened = 'key' in view.problem ? i18n.text(view.problem.key) : view.problem.text;
    return { tone: 'danger', happened, next: i18n.text('nothing_charged') };
  }
  if (view.unfinished) {
    const happened = i18n.text(isAboutCard ? 'card_unchanged' : 'unfinished');
    return { tone: 'danger', happened, next: i18n.text('unfinished_next') };
  }
  if (decline === null) return null;
  const { happened, next } = declineWords(decline, i18n);
  const key = newsOf(view)?.purpose === 'new_card' ? cardDeclines[decline.reason] : undefined;
  return { tone: 'danger', happened: key ? i18n.text(key) : happened, next };
}

export function CancelButton({
  view,
  page,
  payment,
  term,
  isAlone = false,
}: {
  view: View;
  page: PayPage;
  payment: Payment | null;
  term: number;
  /** Whether the page has no other button. */
  isAlone?: boolean;
}) {
  const i18n = useI18n();
  const mayCancel = payment !== null && mayLeave(view);
  const busy = isAlone ? buttonWords(view, i18n) : null;
  return (
    <button
      type="button"
      class={isAlone ? 'button plain' : 'button quiet'}
      aria-disabled={!mayCancel}
      onClick={() => mayCancel && payment.cancel({ number_of_payments: term })}
    >
      <span>{busy ?? <Text of="cancel" merchant={<bdi>{page.merchant_name}</bdi>} />}</span>
    </button>
  );
}
