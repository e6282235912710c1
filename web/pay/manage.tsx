import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { PageKey } from '#platform/shared/words/words.ts';
import type { PayPage } from '#purchases/shoppers/pay-page.ts';
import type { Plan, PlanPayment } from '#purchases/shoppers/plan.ts';
import type { PayablePart, PlanPurpose } from '#purchases/shoppers/plan-attempt.ts';
import type { CardForm, CardUse } from './card-entry.ts';
import { CardFields, useCard } from './card-fields.tsx';
import { CardMark } from './card-marks.tsx';
import { buttonWords, Trouble } from './form.tsx';
import { useI18n } from './i18n.tsx';
import type { Payment } from './payment.ts';
import { isBusy, newsOf, type View } from './payment-state.ts';
import { cardName, isPausedPlan, latePayments, mayProve, NoLinks, sumOf } from './plan.tsx';
import { type Answered, closeSession, report, sendLink } from './session.ts';
import { MailboxHint } from './test-cards.tsx';
import { chargesWords, type I18n } from './words.ts';

// The choices of a shopper on a plan. Each has its own panel in place of the plan. Without a
// session, every panel first asks the shopper to prove the e-mail address.

export type Panel = PayablePart | 'card' | 'report' | 'manage';

type PanelProps = {
  view: View;
  page: PayPage;
  plan: Plan;
  path: string;
  payment: Payment | null;
  close: () => void;
};

export function PanelOf({ panel, ...props }: PanelProps & { panel: Panel }) {
  if (props.page.session === null) {
    return mayProve(props.page) ? <Prove {...props} /> : <NoProof {...props} />;
  }
  if (panel === 'report') return <Report {...props} />;
  if (panel === 'card') return <ChangeCard {...props} />;
  return panel === 'manage' ? null : <PayPlan {...props} what={panel} />;
}

/** The payments that an attempt covers. */
function covered(plan: Plan, what: PayablePart): PlanPayment[] {
  if (what === 'late') return latePayments(plan);
  return plan.payments.filter(
    ({ status }) => status === 'next' || (what === 'rest' && isUnpaid(status)),
  );
}

/** Whether the panel pays a part of the plan, and that part has no payments any more. */
export const coversNothing = (plan: Plan, panel: Panel) =>
  (panel === 'late' || panel === 'next' || panel === 'rest') && covered(plan, panel).length === 0;

const isUnpaid = (status: PlanPayment['status']) => status !== 'paid' && status !== 'cancelled';

/** The choices that the plan allows now, with what each would charge. */
export function ActList({
  page,
  plan,
  path,
  open,
  reload,
}: {
  page: PayPage;
  plan: Plan;
  path: string;
  /** Null while an attempt is in flight. */
  open: ((panel: Panel) => void) | null;
  reload: () => void;
}) {
  const i18n = useI18n();
  const unpaid = plan.payments.filter(({ status }) => isUnpaid(status));
  const late = latePayments(plan);
  const mayPay = !isPausedPlan(page, plan) && unpaid.length > 0;
  const act = (panel: Panel, key: PageKey, detail: string | null) => (
    <li key={panel}>
      <button type="button" aria-disabled={open === null} onClick={() => open?.(panel)}>
        <span class="act">
          <span>{i18n.text(key)}</span> {detail !== null && <span class="detail">{detail}</span>}
        </span>
      </button>
    </li>
  );
  return (
    <section class="acts needs-script" aria-labelledby="acts">
      <h2 id="acts">{i18n.text('manage')}</h2>
      <ul>
        {mayPay &&
          late.length === 0 &&
          act('next', 'act_next', i18n.money(sumOf(covered(plan, 'next'))))}
        {mayPay &&
          unpaid.length > Math.max(1, late.length) &&
          act('rest', 'act_rest', i18n.money(sumOf(unpaid)))}
        {unpaid.length > 0 &&
          plan.is_card_stored &&
          !page.paused &&
          act('card', 'act_card', plan.card?.last4 ? cardName(plan.card, i18n) : null)}
        {act('report', 'report', null)}
      </ul>
      {page.session !== null && (
        <p class="small">
          {i18n.text('signed_in', { time: i18n.timeOf(page.session.expires_at) })}{' '}
          <button type="button" class="link" onClick={() => closeSession(path).then(reload)}>
            {i18n.text('sign_out')}
          </button>
        </p>
      )}
    </section>
  );
}

function Head({
  title,
  about,
  close,
}: {
  title: string;
  about?: string;
  close: (() => void) | null;
}) {
  const i18n = useI18n();
  return (
    <div class="panel-head">
      <button
        type="button"
        class="link back"
        aria-disabled={close === null}
        onClick={() => close?.()}
      >
        {i18n.text('back')}
      </button>
      <h1 id="heading" tabIndex={-1}>
        {title}
      </h1>
      {about !== undefined && <p>{about}</p>}
    </div>
  );
}

/** No link can prove the address, so the shopper cannot act here. */
function NoProof({ page, close }: PanelProps) {
  const i18n = useI18n();
  return (
    <div class="panel">
      <Head title={i18n.text('manage')} close={close} />
      <p>
        <NoLinks page={page} />
      </p>
    </div>
  );
}

/** "Send me a link": the same answer for every address. */
function Prove({ page, path, close }: PanelProps) {
  const i18n = useI18n();
  const [state, setState] = useState<Answered | 'idle' | 'sending' | 'wrong'>('idle');
  const field = useRef<HTMLInputElement>(null);

  async function send(event: Event) {
    event.preventDefault();
    if (state === 'sending') return;
    const email = field.current?.value.trim() ?? '';
    if (!/^\S+@\S+$/.test(email)) {
      setState('wrong');
      field.current?.focus();
      return;
    }
    setState('sending');
    setState(await sendLink(path, email));
  }

  const trouble = state === 'wrong' || state === 'refused' ? 'prove_wrong' : troubles[state];
  return (
    <form class="panel" noValidate onSubmit={send}>
      <Head title={i18n.text('prove')} about={i18n.text('prove_why')} close={close} />
      <Result isGood={state === 'done'}>
        {state === 'done' ? (
          <>
            <strong>{i18n.text('prove_sent')}</strong> {i18n.text('prove_sent_next')}
          </>
        ) : (
          trouble && i18n.text(trouble)
        )}
      </Result>
      <label class="field">
        <span>{i18n.text('prove_email')}</span>
        <input
          ref={field}
          type="email"
          name="email"
          autocomplete="email"
          maxLength={254}
          aria-invalid={state === 'wrong'}
        />
      </label>
      <button
        type="submit"
        class={state === 'sending' ? 'button busy' : 'button'}
        aria-disabled={state === 'sending'}
      >
        <span>{i18n.text(state === 'sending' ? 'prove_sending' : 'prove_send')}</span>
      </button>
      {page.test_mode && <MailboxHint url={page.mailbox_url} />}
    </form>
  );
}

const troubles: Partial<Record<string, PageKey>> = {
  limited: 'prove_limited',
  failed: 'no_connection',
};

/** The place for what became of a request. It is there from the start, so that it is read out. */
function Result({ isGood, children }: { isGood: boolean; children: ComponentChildren }) {
  return (
    <div role="status">
      {children && <p class={isGood ? 'notice good' : 'notice danger'}>{children}</p>}
    </div>
  );
}

/** "Something is wrong": the text goes to the operators. */
function Report({ path, payment, close }: PanelProps) {
  const i18n = useI18n();
  const [state, setState] = useState<Answered | 'idle' | 'sending' | 'empty'>('idle');
  const field = useRef<HTMLTextAreaElement>(null);

  async function send(event: Event) {
    event.preventDefault();
    if (state === 'sending') return;
    const text = field.current?.value.trim() ?? '';
    if (text === '') {
      setState('empty');
      field.current?.focus();
      return;
    }
    setState('sending');
    const answer = await report(path, text);
    setState(answer);
    if (answer === 'refused') void payment?.reload();
  }

  const trouble = state === 'empty' ? 'report_empty' : troubles[state];
  return (
    <form class="panel" noValidate onSubmit={send}>
      <Head title={i18n.text('report')} close={close} />
      <Result isGood={state === 'done'}>
        {state === 'done' ? i18n.text('report_sent') : trouble && i18n.text(trouble)}
      </Result>
      {state !== 'done' && (
        <>
          <label class="field">
            <span>{i18n.text('report_label')}</span>
            <textarea
              ref={field}
              rows={5}
              maxLength={1000}
              aria-invalid={state === 'empty'}
              aria-describedby="report-hint"
            />
          </label>
          <p class="small" id="report-hint">
            {i18n.text('report_hint')}
          </p>
          <button
            type="submit"
            class={state === 'sending' ? 'button busy' : 'button'}
            aria-disabled={state === 'sending'}
          >
            <span>{i18n.text(state === 'sending' ? 'prove_sending' : 'report_send')}</span>
          </button>
        </>
      )}
    </form>
  );
}

/** Pay what is late, the next one or the rest, with the stored card or another one. */
function PayPlan({ view, page, plan, payment, close, what }: PanelProps & { what: PayablePart }) {
  const i18n = useI18n();
  const asked = useAtOpening(view, covered(plan, what));
  const amount = sumOf(asked);
  // A card that is not stored cannot be charged again.
  const card = plan.is_card_stored ? plan.card : null;
  const reason = asked[0]?.late?.reason;
  const isDead = reason !== undefined && reason !== null && deadReasons.includes(reason);
  const [other, setOther] = useState(!card?.last4 || isDead);
  const [keep, setKeep] = useState(false);
  const [form, setForm] = useState<CardForm | null>(null);
  const busy = isBusy(view);
  const mayPay = payment !== null && !busy && asked.length > 0 && (!other || form !== null);
  const rest = plan.payments.filter(
    ({ number, status }) => isUnpaid(status) && asked.every((one) => one.number !== number),
  );
  const charges = plan.is_card_stored ? chargesWords(rest, i18n, 'consent_monthly') : null;
  const keeps = other && keep && charges !== null;

  function pay(event: Event) {
    event.preventDefault();
    if (!mayPay) return;
    void payment.act(
      {
        step: 'plan/pay',
        what,
        payments: asked.map(({ number }) => number),
        amount,
        keep_card: keeps,
        consent: keeps ? consentTo(rest, page) : null,
      },
      other && form !== null ? form.createToken : null,
    );
  }

  return (
    <form class="panel pay-form" autocomplete="off" noValidate onSubmit={pay}>
      <Head
        title={i18n.text('act_pay', { amount: i18n.money(amount) })}
        about={datesWords(asked, i18n)}
        close={busy ? null : close}
      />
      <Trouble view={view} decline={declineOf(view)} />
      <Refusal view={view} />
      {card?.last4 && (
        <fieldset class="terms" inert={busy}>
          <legend>
            <h2>{i18n.text('act_which')}</h2>
          </legend>
          <div class="term-rows">
            <CardChoice name={cardName(card, i18n)} chosen={!other} choose={() => setOther(false)}>
              <CardMark brand={card.brand} />
            </CardChoice>
            <CardChoice
              name={i18n.text('act_other')}
              chosen={other}
              choose={() => setOther(true)}
            />
          </div>
        </fieldset>
      )}
      {other && (
        <>
          <OtherCard
            view={view}
            page={page}
            use={{ purpose: 'charge', amount, storeCard: keeps }}
            give={setForm}
          />
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
      <ActButton
        view={view}
        mayAct={mayPay}
        text={i18n.text('pay_now', { amount: i18n.money(amount) })}
      />
    </form>
  );
}

/** Which payments an attempt is for. */
function datesWords(payments: PlanPayment[], i18n: I18n): string {
  const [first] = payments;
  const last = payments.at(-1);
  if (first === undefined || last === undefined) return '';
  if (first === last) return i18n.text('act_dates_one', { date: i18n.date(first.due_on) });
  return i18n.text('act_dates_other', {
    count: payments.length,
    first: i18n.date(first.due_on),
    last: i18n.date(last.due_on),
  });
}

/** No charge of these cards will ever succeed, so the panel proposes another card. */
const deadReasons = ['expired_card', 'lost_card', 'stolen_card', 'incorrect_number'];

/** Changes the card for the payments to come. The bank confirms it; nothing is charged. */
function ChangeCard({ view, page, plan, payment, close }: PanelProps) {
  const i18n = useI18n();
  const [form, setForm] = useState<CardForm | null>(null);
  const busy = isBusy(view);
  const mayAct = payment !== null && !busy && form !== null;
  const rest = plan.payments.filter(({ status }) => isUnpaid(status));
  const charges = chargesWords(rest, i18n, 'consent_monthly');

  function save(event: Event) {
    event.preventDefault();
    if (!mayAct) return;
    void payment.act({ step: 'plan/card', consent: consentTo(rest, page) }, form.createToken);
  }

  return (
    <form class="panel pay-form" autocomplete="off" noValidate onSubmit={save}>
      <Head
        title={i18n.text('act_card')}
        about={i18n.text('act_card_note')}
        close={busy ? null : close}
      />
      <Trouble view={view} decline={declineOf(view)} />
      <Refusal view={view} />
      <OtherCard view={view} page={page} use={{ purpose: 'store' }} give={setForm} />
      {charges !== null && <p class="consent">{i18n.text('consent_card', { charges })}</p>}
      <ActButton view={view} mayAct={mayAct} text={i18n.text('act_save')} />
    </form>
  );
}

function ActButton({ view, mayAct, text }: { view: View; mayAct: boolean; text: string }) {
  const i18n = useI18n();
  const busy = isBusy(view);
  return (
    <>
      <button type="submit" class={busy ? 'button busy' : 'button'} aria-disabled={!mayAct}>
        <span>{buttonWords(view, i18n) ?? text}</span>
      </button>
      <p class="next">{i18n.text(busy ? (view.slow ? 'next_slow' : 'next_busy') : 'act_steps')}</p>
    </>
  );
}

function CardChoice({
  name,
  chosen,
  choose,
  children,
}: {
  name: string;
  chosen: boolean;
  choose: () => void;
  children?: ComponentChildren;
}) {
  return (
    <div class={chosen ? 'term chosen' : 'term'}>
      <label>
        <input type="radio" name="card" checked={chosen} onChange={choose} />
        <span class="term-words">
          <span class="term-count">{name}</span>
          {children}
        </span>
      </label>
    </div>
  );
}

/** The gateway's frame, loaded only now that the shopper wants to type a card. */
function OtherCard({
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

/** Says why the server began nothing. */
export function Refusal({ view }: { view: View }) {
  const i18n = useI18n();
  const refusal = view.page?.act?.status === 'refused' ? view.page.act.refusal : null;
  if (refusal === null || isBusy(view)) return null;
  const key = {
    being_charged: 'refused_charging',
    refund_in_progress: 'refused_refund',
    disputed: 'refused_disputed',
    payments_paused: 'payments_paused',
    plan_changed: 'refused_changed',
  } as const;
  return (
    <p class="notice warning" role="alert">
      {i18n.text(key[refusal])}
    </p>
  );
}

export function declineOf(view: View): PayPage['decline'] {
  const act = newsOf(view);
  return act?.status === 'declined' ? act.decline : null;
}

/**
 * The payment that the panel was opened for. While the payment is in flight the plan may change
 * under it, and the button must not.
 */
function useAtOpening(view: View, now: PlanPayment[]): PlanPayment[] {
  const kept = useRef(now);
  if (!isBusy(view)) kept.current = now;
  return kept.current;
}

function consentTo(payments: PlanPayment[], page: PayPage) {
  return {
    version: page.consent_version,
    payments: payments.map(({ number, amount, due_on }) => ({ number, amount, due_on })),
  };
}

/** The outcome of the last attempt, above the plan. */
export function ActNotice({
  view,
  plan,
  payment,
}: {
  view: View;
  plan: Plan;
  payment: Payment | null;
}) {
  const i18n = useI18n();
  const act = newsOf(view);
  if (view.activity === 'lost') return <Trouble view={view} decline={null} />;
  if (act === null) return view.unfinished ? <Trouble view={view} decline={null} /> : null;
  switch (act.status) {
    case 'working':
      return (
        <div class="notice good">
          <p>
            <strong>{i18n.text('busy_paying')}</strong>{' '}
            {i18n.text(view.slow ? 'waiting_slow' : 'waiting_keep')}
          </p>
          <div class="progress" role="progressbar" aria-label={i18n.text('waiting_label')} />
        </div>
      );
    case 'challenge':
      return (
        <section class="notice good" aria-labelledby="bank">
          <h2 id="bank">{i18n.text('bank')}</h2>
          <p>{bankWords(act.purpose, act.amount, i18n)}</p>
          {act.challenge_url !== null && (
            <button
              type="button"
              class="button"
              aria-disabled={payment === null}
              onClick={() => payment?.continueAtBank()}
            >
              <span>{i18n.text('bank_continue')}</span>
            </button>
          )}
        </section>
      );
    case 'declined':
      return <Trouble view={view} decline={act.decline} />;
    case 'refused':
      return <Refusal view={view} />;
    case 'done':
      return (
        <p class="notice good" role="status">
          <strong>
            {act.purpose === 'plan_payment'
              ? i18n.text('act_paid', { amount: i18n.money(act.amount) })
              : i18n.text('act_replaced', { card: plan.card ? cardName(plan.card, i18n) : '' })}
          </strong>
        </p>
      );
  }
}

function bankWords(purpose: PlanPurpose, amount: number, i18n: I18n): string {
  return purpose === 'plan_payment'
    ? i18n.text('bank_next', { amount: i18n.money(amount) })
    : i18n.text('act_bank_card');
}
