import type { ComponentChildren } from 'preact';
import { useRef, useState } from 'preact/hooks';
import type { PlanPayment } from '#purchases/shoppers/plan.ts';
import type { PayablePart } from '#purchases/shoppers/plan-attempt.ts';
import type { CardForm } from '../../card-forms/card-form.ts';
import { CardLogo } from '../card-logos.tsx';
import { Trouble } from '../form.tsx';
import { useI18n } from '../i18n.tsx';
import { isBusy, type View } from '../payment-state.ts';
import { cardName, covered, isUnpaid, sumOf } from '../plan.tsx';
import { chargesWords, type I18n } from '../words.ts';
import { AttemptButton, consentTo, declineOf, OtherCard, Refusal } from './attempt.tsx';
import { Head, type PanelProps } from './panel.tsx';

/** Pays the late payments, the next one or the rest, with the stored card or another one. */
export function PayPlan({
  view,
  page,
  plan,
  payment,
  only,
  close,
  what,
}: PanelProps & { what: PayablePart }) {
  const i18n = useI18n();
  const [chosen, setChosen] = useState(only);
  const all = useAtOpening(view, covered(plan, what));
  const one = what === 'late' ? all.find(({ number }) => number === chosen) : undefined;
  const asked = one ? [one] : all;
  const amount = sumOf(asked);
  // A card that is not stored cannot be charged again.
  const card = plan.is_card_stored ? plan.card : null;
  const isDead = deadReasons.includes(asked[0]?.late?.reason ?? '');
  const [other, setOther] = useState(!card?.last4 || isDead);
  const [keep, setKeep] = useState(false);
  const [form, setForm] = useState<CardForm | null>(null);
  const busy = isBusy(view);
  const isBefore = page.card_entry?.entersCard !== 'after';
  const hasCard = !other || !isBefore || form !== null;
  const mayPay = payment !== null && !busy && asked.length > 0 && hasCard;
  const rest = plan.payments.filter(
    ({ number, status }) => isUnpaid(status) && asked.every((one) => one.number !== number),
  );
  const charges = plan.is_card_stored ? chargesWords(rest, i18n, 'consent_monthly') : null;
  const keeps = other && keep && charges !== null;

  function pay(event: Event) {
    event.preventDefault();
    if (!mayPay) return;
    void payment.attempt(
      {
        step: 'plan/pay',
        what,
        payments: asked.map(({ number }) => number),
        amount,
        ...(other && !isBefore && { enters_card: true }),
        keep_card: keeps,
        consent: keeps ? consentTo(rest, page) : null,
      },
      other && form !== null ? form.submit : null,
    );
  }

  return (
    <form class="panel pay-form" autocomplete="off" noValidate onSubmit={pay}>
      <Head
        title={i18n.text('manage_pay', { amount: i18n.money(amount) })}
        about={datesWords(asked, i18n)}
        close={busy ? null : close}
      />
      <Trouble view={view} decline={declineOf(view)} />
      <Refusal view={view} />
      {what === 'late' && all.length > 1 && (
        <LateChoice late={all} chosen={one?.number ?? null} choose={setChosen} busy={busy} />
      )}
      {card?.last4 && (
        <fieldset class="terms" inert={busy}>
          <legend>
            <h2>{i18n.text('manage_which')}</h2>
          </legend>
          <div class="term-rows">
            <Choice
              group="card"
              name={cardName(card, i18n)}
              chosen={!other}
              choose={() => setOther(false)}
            >
              <CardLogo brand={card.brand} />
            </Choice>
            <Choice
              group="card"
              name={i18n.text('manage_other')}
              chosen={other}
              choose={() => setOther(true)}
            />
          </div>
        </fieldset>
      )}
      {other && (
        <>
          {isBefore && (
            <OtherCard
              view={view}
              page={page}
              use={{ purpose: 'charge', amount, storeCard: keeps }}
              give={setForm}
            />
          )}
          {charges !== null && (
            <label class="keep">
              <input
                type="checkbox"
                checked={keep}
                disabled={busy}
                onChange={(event) => setKeep(event.currentTarget.checked)}
              />
              <span>{i18n.text('consent_keep', { charges })}</span>
            </label>
          )}
        </>
      )}
      <AttemptButton
        view={view}
        mayAttempt={mayPay}
        text={i18n.text(other && !isBefore ? 'go_on' : 'pay_now', { amount: i18n.money(amount) })}
      />
    </form>
  );
}

/** All late payments, or one of them. */
function LateChoice({
  late,
  chosen,
  choose,
  busy,
}: {
  late: PlanPayment[];
  /** Null means all of them. */
  chosen: number | null;
  choose: (number: number | null) => void;
  busy: boolean;
}) {
  const i18n = useI18n();
  const row = (number: number | null, name: string, payments: PlanPayment[]) => (
    <Choice
      key={number}
      group="late"
      name={name}
      chosen={chosen === number}
      choose={() => choose(number)}
    >
      <span class="term-price">{i18n.money(sumOf(payments))}</span>
    </Choice>
  );
  return (
    <fieldset class="terms" inert={busy}>
      <legend>
        <h2>{i18n.text('manage_late')}</h2>
      </legend>
      <div class="term-rows">
        {row(null, i18n.text('manage_late_all', { count: late.length }), late)}
        {late.map((one) => row(one.number, i18n.date(one.due_on), [one]))}
      </div>
    </fieldset>
  );
}

function Choice({
  group,
  name,
  chosen,
  choose,
  children,
}: {
  group: string;
  name: string;
  chosen: boolean;
  choose: () => void;
  children?: ComponentChildren;
}) {
  return (
    <div class={chosen ? 'term chosen' : 'term'}>
      <label>
        <input type="radio" name={group} checked={chosen} onChange={choose} />
        <span class="term-words">
          <span class="term-count">{name}</span>
          {children}
        </span>
      </label>
    </div>
  );
}

/** Which payments an attempt is for. */
function datesWords(payments: PlanPayment[], i18n: I18n): string {
  const [first] = payments;
  const last = payments.at(-1);
  if (first === undefined || last === undefined) return '';
  if (first === last) return i18n.text('manage_dates_one', { date: i18n.date(first.due_on) });
  return i18n.text('manage_dates_other', {
    count: payments.length,
    first: i18n.date(first.due_on),
    last: i18n.date(last.due_on),
  });
}

/** Charging one of these cards will never succeed, so the panel suggests another card. */
const deadReasons = ['expired_card', 'lost_card', 'stolen_card', 'incorrect_number'];

/**
 * The payments that the panel was opened for. While an attempt is in flight the plan may change,
 * but the button must not.
 */
function useAtOpening(view: View, now: PlanPayment[]): PlanPayment[] {
  const kept = useRef(now);
  if (!isBusy(view)) kept.current = now;
  return kept.current;
}
