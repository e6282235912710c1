import type { PageKey } from '#platform/shared/words/words.ts';
import type { PayPage } from '#purchases/shoppers/pay-page.ts';
import type { Plan } from '#purchases/shoppers/plan.ts';
import type { PlanPanel, PlanPurpose } from '#purchases/shoppers/plan-attempt.ts';
import { SessionCard } from './enter-card.tsx';
import { Trouble } from './form.tsx';
import { useI18n } from './i18n.tsx';
import { Refusal } from './panels/attempt.tsx';
import { ChangeCard } from './panels/change-card.tsx';
import type { PanelProps } from './panels/panel.tsx';
import { PayPlan } from './panels/pay-plan.tsx';
import { NoProof, Prove } from './panels/prove.tsx';
import { Report } from './panels/report.tsx';
import type { Payment } from './payment.ts';
import { newsOf, type View } from './payment-state.ts';
import {
  cardName,
  covered,
  isPausedPlan,
  isUnpaid,
  latePayments,
  mayProve,
  sumOf,
} from './plan.tsx';
import { closeSession } from './session.ts';
import type { I18n } from './words.ts';

// A shopper's choices on the plan page. Each has a panel that replaces the plan (`panels/`).
// Without a session, every panel first asks the shopper to sign in by e-mail.

export type Panel = PlanPanel | 'manage';

export function PanelOf({ panel, ...props }: PanelProps & { panel: Panel }) {
  const { session } = props.page;
  // The link in a mail about a late payment only allows paying it.
  if (session === null || (session.scope === 'late' && panel !== 'late')) {
    return mayProve(props.page) ? <Prove {...props} panel={panel} /> : <NoProof {...props} />;
  }
  if (panel === 'report') return <Report {...props} />;
  if (panel === 'card') return <ChangeCard {...props} />;
  return panel === 'manage' ? null : <PayPlan {...props} what={panel} />;
}

/** Whether the panel pays a part of the plan that has no payments left. */
export const coversNothing = (plan: Plan, panel: Panel) =>
  (panel === 'late' || panel === 'next' || panel === 'rest') && covered(plan, panel).length === 0;

/** The choices that the plan allows now, with the amount that each would charge. */
export function ChoiceList({
  page,
  plan,
  path,
  open,
  reload,
}: {
  page: PayPage;
  plan: Plan;
  path: string;
  /** Null while the outcome of an attempt is awaited. */
  open: ((panel: Panel) => void) | null;
  reload: () => void;
}) {
  const i18n = useI18n();
  const unpaid = plan.payments.filter(({ status }) => isUnpaid(status));
  const late = latePayments(plan);
  const mayPay = !isPausedPlan(page, plan) && unpaid.length > 0;
  const choice = (panel: Panel, key: PageKey, detail: string | null) => (
    <li key={panel}>
      <button type="button" aria-disabled={open === null} onClick={() => open?.(panel)}>
        <span class="choice">
          <span>{i18n.text(key)}</span> {detail !== null && <span class="detail">{detail}</span>}
        </span>
      </button>
    </li>
  );
  return (
    <section class="choices needs-script" aria-labelledby="choices">
      <h2 id="choices">{i18n.text('manage')}</h2>
      <ul>
        {mayPay &&
          late.length === 0 &&
          choice('next', 'manage_next', i18n.money(sumOf(covered(plan, 'next'))))}
        {mayPay &&
          unpaid.length > Math.max(1, late.length) &&
          choice('rest', 'manage_rest', i18n.money(sumOf(unpaid)))}
        {unpaid.length > 0 &&
          plan.is_card_stored &&
          !page.paused &&
          choice('card', 'manage_card', plan.card?.last4 ? cardName(plan.card, i18n) : null)}
        {choice(
          'report',
          'report',
          page.conversation?.is_answered ? i18n.text('report_answered') : null,
        )}
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

/** Shows the outcome of the last attempt, above the plan. */
export function AttemptNotice({
  view,
  plan,
  payment,
}: {
  view: View;
  plan: Plan;
  payment: Payment | null;
}) {
  const i18n = useI18n();
  const attempt = newsOf(view);
  if (view.activity === 'lost') return <Trouble view={view} decline={null} />;
  if (attempt === null) return view.unfinished ? <Trouble view={view} decline={null} /> : null;
  switch (attempt.status) {
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
    case 'begun':
      return <SessionCard key={attempt.number} view={view} attempt={attempt} payment={payment} />;
    case 'challenge':
      return (
        <section class="notice good" aria-labelledby="bank">
          <Trouble view={view} decline={null} />
          <h2 id="bank">{i18n.text('bank')}</h2>
          <p>{bankWords(attempt.purpose, attempt.amount, i18n)}</p>
          {attempt.challenge_url !== null && (
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
      return <Trouble view={view} decline={attempt.decline} />;
    case 'refused':
      return <Refusal view={view} />;
    case 'done':
      return (
        <p class="notice good" role="status">
          <strong>
            {attempt.purpose === 'plan_payment'
              ? i18n.text('manage_paid', { amount: i18n.money(attempt.amount) })
              : replacedWords(view.page, plan, i18n)}
          </strong>
        </p>
      );
  }
}

function bankWords(purpose: PlanPurpose, amount: number, i18n: I18n): string {
  return purpose === 'plan_payment'
    ? i18n.text('bank_next', { amount: i18n.money(amount) })
    : i18n.text('manage_bank_card');
}

/**
 * A payment that we no longer retry does not fall due again when the card changes, so the text also
 * says that it is still late.
 */
function replacedWords(page: PayPage | null, plan: Plan, i18n: I18n): string {
  const card = plan.card ? cardName(plan.card, i18n) : '';
  const late = latePayments(plan).filter((one) => one.late?.retries_at === null);
  // While the plan is paused, the shopper cannot pay, so the text does not ask for late payments.
  return late.length === 0 || page === null || isPausedPlan(page, plan)
    ? i18n.text('manage_replaced', { card })
    : i18n.text('manage_replaced_late', { card, amount: i18n.money(sumOf(late)) });
}
