import { useEffect, useRef, useState } from 'preact/hooks';
import type { PayPage } from '#purchases/shoppers/pay-page.ts';
import type { Plan } from '#purchases/shoppers/plan.ts';
import type { PlanAttempt, PlanPanel } from '#purchases/shoppers/plan-attempt.ts';
import { useI18n } from './i18n.tsx';
import { AttemptNotice, ChoiceList, coversNothing, type Panel, PanelOf } from './manage.tsx';
import { NoScript } from './no-script.tsx';
import { ReturnLink } from './outcome.tsx';
import type { Payment } from './payment.ts';
import { isBusy, newsOf, type View } from './payment-state.ts';
import {
  Late,
  latePayments,
  mayProve,
  NoLinks,
  Payments,
  PlanCard,
  Refunds,
  Standing,
} from './plan.tsx';
import type { Answered } from './session.ts';

/**
 * A link in a mail: its token, which is empty if it opens no session, and the panel that the page
 * continues with. `payment` is the late payment that the mail is about.
 */
export type Arrival = { token: string; panel: PlanPanel | null; payment: number | null };

/** The state of the link that opened this page; null without a link. */
export type Proof = Answered | 'opening' | null;

type PlanPageProps = {
  view: View;
  page: PayPage;
  plan: Plan;
  path: string;
  payment: Payment | null;
  proof: Proof;
  arrival: Arrival | null;
};

/** The plan, or the panel of one choice. The browser's back button closes a panel. */
export function PlanPage({ view, page, plan, path, payment, proof, arrival }: PlanPageProps) {
  const i18n = useI18n();
  const [panel, setPanel] = usePanel();
  const busy = isBusy(view);
  const wasSignedIn = useWasSignedIn(page);

  // The focus moves to the new heading for screen readers, and the page scrolls to its top.
  const seen = useRef(panel);
  useEffect(() => {
    if (seen.current === panel) return;
    seen.current = panel;
    document.getElementById('heading')?.focus();
    scrollTo(0, 0);
  }, [panel]);

  // A panel closes when its attempt is over, and when nothing is left to pay in it, because another
  // tab paid or a refund cancelled the payments. Signing in closes the panel that asks for the
  // e-mail address.
  const attempt = newsOf(view);
  const state = page.attempt && `${page.attempt.number} ${page.attempt.status}`;
  const before = useRef({ busy, state });
  const isOver = closesPanel(attempt, state !== before.current.state, view.unfinished);
  const isEmpty = panel !== null && coversNothing(plan, panel);
  useEffect(() => {
    if (!busy && isEmpty) close();
    else if (!busy && before.current.busy && isOver) goBack();
    before.current = { busy, state: busy ? before.current.state : state };
  }, [busy, state, isOver, isEmpty]);
  useEffect(() => {
    if (panel === 'manage' && page.session?.scope === 'plan') close();
  }, [page.session?.scope]);

  // After signing in, the page continues with what the shopper asked for. It also does so for a
  // link that was used before, in a browser that still has the link's session.
  const asked = arrival?.panel ?? null;
  const isProved = proof !== null && proof !== 'opening' && page.session !== null;
  const goesOn = payment !== null && (isProved || arrival?.token === '');
  useEffect(() => {
    if (goesOn && asked !== null && !busy && !coversNothing(plan, asked)) open(asked);
  }, [goesOn]);

  function open(next: Panel) {
    payment?.dismiss();
    history.pushState({ panel: next }, '');
    setPanel(next);
  }
  function close() {
    if (panel !== null) payment?.dismiss();
    goBack();
  }
  function goBack() {
    if (panel === null) return;
    setPanel(null);
    history.back();
  }

  if (panel !== null) {
    return (
      <>
        {page.session === null && wasSignedIn && mayProve(page) && <SignedOut />}
        <PanelOf
          panel={panel}
          view={view}
          page={page}
          plan={plan}
          path={path}
          payment={payment}
          only={arrival?.payment ?? null}
          close={close}
        />
      </>
    );
  }
  // While the shopper pays, the notice about the attempt replaces the one about late payments. But
  // if the attempt waits at the bank's challenge, both are shown: the shopper may leave it and pay
  // with another card.
  const isPaying =
    page.attempt?.purpose === 'plan_payment' && ['working', 'begun'].includes(page.attempt.status);
  const mayAttempt = payment !== null && !busy;
  return (
    <div class="plan-page">
      {!(asked === 'late' && coversNothing(plan, 'late')) && (
        <ProofNotice proof={proof} isSignedIn={page.session !== null} />
      )}
      <AttemptNotice view={view} plan={plan} payment={payment} />
      <Standing page={page} plan={plan} />
      {!isPaying && (
        <Late
          page={page}
          plan={plan}
          saysWhy={attempt?.status !== 'declined'}
          pay={mayAttempt ? () => open('late') : null}
        />
      )}
      <Payments page={page} plan={plan} path={path} hasCalendar={true} />
      <PlanCard plan={plan} />
      <Refunds plan={plan} />
      {mayProve(page) && <NoScript text={i18n.text('plan_no_script')} />}
      {!mayProve(page) ? (
        latePayments(plan).length === 0 && (
          <p>
            <NoLinks page={page} />
          </p>
        )
      ) : page.session?.scope !== 'plan' ? (
        <Manage plan={plan} open={mayAttempt ? open : null} />
      ) : (
        <ChoiceList
          page={page}
          plan={plan}
          path={path}
          open={mayAttempt ? open : null}
          reload={() => void payment?.reload()}
        />
      )}
      <ReturnLink page={page} />
    </div>
  );
}

/**
 * Whether the panel closes, so that the plan can show the outcome of the attempt. After a decline
 * the panel stays open and shows it. The shopper may leave an attempt that waits for them and ask
 * for another. If the other one did not begin, the panel closes and the plan shows the first again.
 */
function closesPanel(attempt: PlanAttempt | null, isNew: boolean, unfinished: boolean): boolean {
  if (attempt?.status === 'done') return isNew && !unfinished;
  const waits = attempt?.status === 'begun' || attempt?.status === 'challenge';
  return waits && (isNew || unfinished);
}

/** Leads a shopper without a session to the choices. A plan that is over has only one choice. */
function Manage({ plan, open }: { plan: Plan; open: ((panel: Panel) => void) | null }) {
  const i18n = useI18n();
  const isOver = plan.outstanding === 0;
  return (
    <section class="choices needs-script" aria-label={i18n.text('manage')}>
      <ul>
        <li>
          <button
            type="button"
            aria-disabled={open === null}
            onClick={() => open?.(isOver ? 'report' : 'manage')}
          >
            <span>
              {i18n.text(isOver ? 'report' : 'manage')}
              {!isOver && <span class="hint">{i18n.text('manage_hint')}</span>}
            </span>
          </button>
        </li>
      </ul>
    </section>
  );
}

function ProofNotice({ proof, isSignedIn }: { proof: Proof; isSignedIn: boolean }) {
  const i18n = useI18n();
  if (proof === null || proof === 'done' || isSignedIn) return null;
  if (proof === 'opening') {
    return (
      <div class="notice good">
        <p>{i18n.text('prove_opening')}</p>
        <div class="progress" />
      </div>
    );
  }
  return (
    <p class="notice warning" role="alert">
      {proof === 'refused' ? (
        <>
          <strong>{i18n.text('prove_ended')}</strong> {i18n.text('prove_ended_next')}
        </>
      ) : (
        i18n.text(proof === 'limited' ? 'prove_limited' : 'no_connection')
      )}
    </p>
  );
}

function SignedOut() {
  const i18n = useI18n();
  return (
    <p class="notice warning" role="alert">
      {i18n.text('signed_out')}
    </p>
  );
}

/** The panel that is open. The browser's back and forward buttons change it. */
function usePanel(): [Panel | null, (panel: Panel | null) => void] {
  const [panel, setPanel] = useState<Panel | null>(null);
  useEffect(() => {
    const follow = (event: PopStateEvent) => {
      const { panel } = (event.state ?? {}) as { panel?: Panel };
      setPanel(panel ?? null);
    };
    addEventListener('popstate', follow);
    return () => removeEventListener('popstate', follow);
  }, []);
  return [panel, setPanel];
}

function useWasSignedIn(page: PayPage): boolean {
  const was = useRef(false);
  if (page.session !== null) was.current = true;
  return was.current;
}
