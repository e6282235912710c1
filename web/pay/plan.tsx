import { useState } from 'preact/hooks';
import { brandName } from '#platform/shared/card-names.ts';
import type { PageKey } from '#platform/shared/words/words.ts';
import type { PayPage } from '#purchases/shoppers/pay-page.ts';
import type { Plan, PlanPayment } from '#purchases/shoppers/plan.ts';
import type { PayablePart } from '#purchases/shoppers/plan-attempt.ts';
import { CardLogo } from './card-logos.tsx';
import { ContactLink } from './footer.tsx';
import { Text, useI18n } from './i18n.tsx';
import { happenedWords, type I18n, localDay } from './words.ts';

// The plan of a paid order: what is paid, what comes next, what is late, and what refunds have
// changed.

type PlanProps = { page: PayPage; plan: Plan; path: string };

/** The state of the plan in one sentence. */
export function Standing({ page, plan }: { page: PayPage; plan: Plan }) {
  const i18n = useI18n();
  const pause = pauseKey(page, plan);
  const next = nextCharge(page, plan);
  const total = plan.paid + plan.outstanding;
  return (
    <div class="standing">
      <h1 id="heading" tabIndex={-1}>
        {plan.outstanding > 0
          ? i18n.text('plan_standing', { paid: i18n.money(plan.paid), total: i18n.money(total) })
          : i18n.text(endKey(plan))}
      </h1>
      {/* The notice about a dispute says what is charged. */}
      {plan.outstanding === 0 && plan.dispute === null && <p>{i18n.text('plan_nothing')}</p>}
      {next && (
        <p>
          {i18n.text('plan_next', { amount: i18n.money(next.amount), date: whole(next, i18n) })}
        </p>
      )}
      {pause !== null && <p class="notice good">{i18n.text(pause)}</p>}
    </div>
  );
}

/** Why nothing is charged at the moment; null if payments continue. */
function pauseKey(page: PayPage, plan: Plan): PageKey | null {
  if (plan.dispute !== null) return plan.dispute === 'open' ? 'plan_disputed' : 'plan_dispute_lost';
  if (plan.is_blocked || (page.paused && plan.outstanding > 0)) return 'plan_stopped';
  return plan.is_paused ? 'plan_paused' : null;
}

/** The heading of a plan that has nothing left to pay. */
function endKey(plan: Plan): PageKey {
  if (isRefunded(plan)) return 'plan_refunded';
  const isReturned = plan.payments.some(({ dispute }) => dispute === 'lost');
  return isReturned ? 'plan_lost' : 'plan_finished';
}

/**
 * The next charge without the shopper: the next payment, or late payments that are retried before
 * it.
 */
function nextCharge(page: PayPage, plan: Plan): Pick<PlanPayment, 'due_on' | 'amount'> | null {
  const isPaused = isPausedPlan(page, plan);
  const charges = plan.payments.flatMap(({ status, due_on, amount, late }) => {
    if (status === 'next') return [{ due_on, amount }];
    if (isPaused || !late?.retries_at) return [];
    return [{ due_on: localDay(late.retries_at, page.time_zone), amount }];
  });
  const [due_on] = charges.map((one) => one.due_on).sort();
  if (due_on === undefined) return null;
  return { due_on, amount: sumOf(charges.filter((one) => one.due_on === due_on)) };
}

/** The due date of a payment, without a line break inside it. */
const whole = ({ due_on }: Pick<PlanPayment, 'due_on'>, i18n: I18n) =>
  i18n.date(due_on).replaceAll(' ', '\u00a0');

function isRefunded({ payments, paid }: Plan): boolean {
  return payments.reduce((sum, { refunded }) => sum + refunded, 0) >= paid;
}

/**
 * Whether charging is stopped at the moment. A dispute counts even if `is_paused` is not set yet: a
 * payment that was in flight when the dispute opened is paused only once its outcome is known.
 */
export const isPausedPlan = (page: PayPage, { is_paused, is_blocked, dispute }: Plan) =>
  page.paused || is_paused || is_blocked || dispute !== null;

export function latePayments({ payments }: Plan): PlanPayment[] {
  return payments.filter(({ status }) => status === 'late');
}

/** The payments that an attempt covers. */
export function covered(plan: Plan, what: PayablePart): PlanPayment[] {
  if (what === 'late') return latePayments(plan);
  return plan.payments.filter(
    ({ status }) => status === 'next' || (what === 'rest' && isUnpaid(status)),
  );
}

export const isUnpaid = (status: PlanPayment['status']) =>
  status !== 'paid' && status !== 'cancelled';

export const sumOf = (payments: Pick<PlanPayment, 'amount'>[]) =>
  payments.reduce((sum, { amount }) => sum + amount, 0);

/** Whether the shopper may act, or can get a link by mail to do so. */
export const mayProve = ({ session, sends_links }: PayPage) => session !== null || sends_links;

/** The next step for a shopper who can do nothing here. */
export const NoLinks = ({ page }: { page: PayPage }) => <AskMerchant page={page} of="no_links" />;

/** A text that sends the shopper to the merchant, with the merchant's contact. */
export function AskMerchant({ page, of }: { page: PayPage; of: 'no_links' | 'report_limited' }) {
  const { contact } = page.merchant;
  return (
    <>
      <Text of={of} merchant={<bdi>{page.merchant_name}</bdi>} />{' '}
      {contact !== null && <ContactLink contact={contact} />}
    </>
  );
}

/** Says what happened and that it costs nothing, with one button. */
export function Late({
  page,
  plan,
  saysWhy,
  pay,
}: {
  page: PayPage;
  plan: Plan;
  /** False if a notice above has already said why. */
  saysWhy: boolean;
  pay: (() => void) | null;
}) {
  const i18n = useI18n();
  const late = latePayments(plan);
  const [first] = late;
  if (first === undefined) return null;
  const amount = i18n.money(sumOf(late));
  // The plan above says why nothing is charged.
  const isPaused = isPausedPlan(page, plan);
  const mayPay = !isPaused && mayProve(page);
  return (
    <section class="late-card" aria-labelledby="late">
      <h2 id="late">
        <WarningSign />
        {late.length === 1
          ? i18n.text('plan_late_one', { amount })
          : i18n.text('plan_late_other', { count: late.length, amount })}
      </h2>
      <p>
        {saysWhy && `${happenedWords(first.late?.reason ?? 'generic', i18n)} `}
        {i18n.text('plan_late_free')} {mayPay && retryWords(late, i18n)}
        {!isPaused && !mayPay && <NoLinks page={page} />}
      </p>
      {mayPay && (
        <button
          type="button"
          class="button needs-script"
          aria-disabled={pay === null}
          onClick={() => pay?.()}
        >
          <span>{i18n.text('pay_now', { amount })}</span>
        </button>
      )}
    </section>
  );
}

/** A retry is promised only if the service retries every late payment. */
function retryWords(late: PlanPayment[], i18n: I18n): string {
  const retries = late.flatMap((one) => one.late?.retries_at ?? []).sort();
  const [next] = retries;
  const isOne = late.length === 1;
  if (next === undefined) {
    return i18n.text(isOne ? 'plan_late_stopped_one' : 'plan_late_stopped_other');
  }
  if (retries.length < late.length) return i18n.text('plan_late_some');
  const date = i18n.dateOf(next).replaceAll(' ', '\u00a0');
  return i18n.text(isOne ? 'plan_late_retry_one' : 'plan_late_retry_other', { date });
}

function WarningSign() {
  return (
    <svg class="warning-sign" viewBox="0 0 20 20" aria-hidden="true" focusable="false">
      <path d="M10 2.5 18.5 17h-17z" />
      <path class="stroke" d="M10 8v4M10 14.3v.2" />
    </svg>
  );
}

const shownMax = 12;
const states: Record<PlanPayment['status'], PageKey> = {
  paid: 'plan_paid',
  next: 'plan_is_next',
  planned: 'plan_planned',
  late: 'plan_late',
  cancelled: 'plan_cancelled',
};

/**
 * One dot per payment. A long plan shows those near the next payment and the last one, and folds
 * the others.
 */
export function Payments({ page, plan, path, hasCalendar }: PlanProps & { hasCalendar: boolean }) {
  const i18n = useI18n();
  const { payments } = plan;
  const [all, setAll] = useState(payments.length <= shownMax);
  const next = payments.findIndex(({ status }) => status === 'next' || status === 'late');
  const isFolded = (index: number) =>
    !all && index !== payments.length - 1 && (next < 0 ? index > 2 : Math.abs(index - next) > 3);
  return (
    <section class="plan" aria-labelledby="plan">
      <h2 id="plan">{i18n.text('plan')}</h2>
      <ol>
        {payments.map((payment, index) => (
          <Row
            key={payment.number}
            payment={payment}
            page={page}
            path={path}
            isFolded={isFolded(index)}
          />
        ))}
      </ol>
      {!all && (
        <button type="button" class="link needs-script" onClick={() => setAll(true)}>
          {i18n.text('payments_all', { count: payments.length })}
        </button>
      )}
      {hasCalendar && <CalendarLink plan={plan} path={path} />}
    </section>
  );
}

function Row({
  payment,
  page,
  path,
  isFolded,
}: {
  payment: PlanPayment;
  page: PayPage;
  path: string;
  isFolded: boolean;
}) {
  const i18n = useI18n();
  const { number, status, due_on, amount, reduced, refunded, paid_at, dispute } = payment;
  const paidOn = status === 'paid' && paid_at ? localDay(paid_at, page.time_zone) : due_on;
  const isGone = status === 'cancelled';
  return (
    <li class={isFolded ? `is-${status} folded` : `is-${status}`}>
      {status === 'late' ? <WarningSign /> : <span class="dot" />}
      <time dateTime={due_on}>{i18n.date(due_on)}</time>
      <span class="price">{isGone ? <s>{i18n.money(reduced)}</s> : i18n.money(amount)}</span>
      <span class="state">
        {paidOn === due_on
          ? i18n.text(states[status])
          : i18n.text('plan_paid_on', { date: i18n.date(paidOn) })}
        {status === 'paid' && (
          <>
            {' · '}
            <a
              href={`${path}/receipts/${number}`}
              target="_blank"
              rel="noopener noreferrer"
              aria-label={i18n.text('plan_receipt_of', { number })}
            >
              {i18n.text('plan_receipt')}
            </a>
            {' · '}
            <a
              href={`${path}/receipts/${number}/pdf`}
              target="_blank"
              rel="noopener noreferrer"
              aria-label={`${i18n.text('plan_receipt_of', { number })}, PDF`}
            >
              PDF
            </a>
          </>
        )}
      </span>
      {dispute !== null && (
        <span class="state">
          {i18n.text(dispute === 'open' ? 'plan_row_disputed' : 'plan_row_returned')}
        </span>
      )}
      {reduced > 0 && !isGone && (
        <span class="state">{i18n.text('plan_reduced', { amount: i18n.money(reduced) })}</span>
      )}
      {refunded > 0 && (
        <span class="state">{i18n.text('plan_returned', { amount: i18n.money(refunded) })}</span>
      )}
    </li>
  );
}

export function cardName(card: NonNullable<Plan['card']>, i18n: I18n): string {
  return i18n.text('plan_card', { brand: brandName(card.brand), last4: card.last4 ?? '' }).trim();
}

export function PlanCard({ plan }: { plan: Plan }) {
  const i18n = useI18n();
  const { card } = plan;
  const isToPay = plan.outstanding > 0;
  // If a payment is due and no card is stored, the hold on the card has lapsed. That card was not
  // charged and cannot be charged any more, so it is not shown.
  if (!card?.last4 || (isToPay && !plan.is_card_stored)) return null;
  return (
    <section class="facts" aria-labelledby="card">
      <h2 id="card">{i18n.text(isToPay ? 'plan_card_next' : 'plan_card_paid')}</h2>
      <p class="card-line">
        <CardLogo brand={card.brand} />
        {cardName(card, i18n)}
      </p>
    </section>
  );
}

const refundStates = {
  requested: 'refund_requested',
  pending: 'refund_pending',
  complete: 'refund_complete',
  failed: 'refund_failed',
} as const;

export function Refunds({ plan }: { plan: Plan }) {
  const i18n = useI18n();
  if (plan.refunds.length === 0) return null;
  return (
    <section class="facts" aria-labelledby="refunds">
      <h2 id="refunds">{i18n.text('plan_refunds')}</h2>
      <ul>
        {plan.refunds.map(({ amount, status, created_at }, index) => (
          <li key={index}>
            <time dateTime={created_at}>{i18n.dateOf(created_at)}</time>
            <span class="price">{i18n.money(amount)}</span>
            <span class="state">{i18n.text(refundStates[status])}</span>
          </li>
        ))}
      </ul>
      {plan.refunds_before > 0 && (
        <p>{i18n.text('plan_refunds_before', { count: plan.refunds_before })}</p>
      )}
    </section>
  );
}

/** The dates to come as a calendar file. It works without a script. */
function CalendarLink({ plan, path }: Pick<PlanProps, 'plan' | 'path'>) {
  const i18n = useI18n();
  const isToCome = plan.payments.some(({ status }) => status === 'next' || status === 'planned');
  if (!isToCome) return null;
  return (
    <a class="calendar" href={`${path}/payments.ics`} download="payments.ics">
      <svg viewBox="0 0 16 16" aria-hidden="true" focusable="false">
        <path d="M2 3.5h12V14H2zM2 7h12M5 1.5V5M11 1.5V5" />
      </svg>
      {i18n.text('plan_calendar')}
    </a>
  );
}
