import type { FastifyInstance, FastifyRequest } from 'fastify';
import { networkOf } from '#platform/http/authentication.ts';
import { forbidden, notFound } from '#platform/http/errors.ts';
import { jsonBodyOf } from '#platform/http/raw-body.ts';
import { refuseForeignOrigin } from '#platform/http/same-origin.ts';
import { type FieldError, validationFailed } from '#platform/http/validation.ts';
import { usePaymentLinks } from '#purchases/checkouts/payment-link.ts';
import { countDeclines, refuseCardTesting } from '#purchases/payments/card-testing.ts';
import { type Consent, isOnPlan } from '#purchases/payments/payment-attempt.ts';
import { explainConsent, onlyConsent } from './consent.ts';
import { entryOf, mustOpenPage, type OpenedPage, type PageDeps, showPage } from './open-page.ts';
import { explainCard, explainPayPlanRequest, explainReplaceCardRequest } from './page.schema.ts';
import type { PayPage } from './pay-page.ts';
import { payPlan, replaceStoredCard } from './pay-plan.ts';
import type { Plan } from './plan.ts';
import {
  type PayPlanRequest,
  type PlanPanel,
  type PlanPurpose,
  type PlanRefusal,
  paysStored,
  presentRefusal,
  type ReplaceCardRequest,
} from './plan-attempt.ts';

type OpenedPlan = OpenedPage & { plan: Plan };

/**
 * Routes with which a shopper who has a session pays payments of the plan, or replaces the card.
 */
export async function planRoutes(app: FastifyInstance, deps: PageDeps): Promise<void> {
  usePaymentLinks(app, deps);

  app.post('/pay/:token/plan/pay', async (request) => {
    const opened = await openPlan(deps, request);
    const wanted = jsonBodyOf(request).value as PayPlanRequest;
    const errors = explainPayPlanRequest(wanted);
    if (errors.length === 0) refuseScope(opened, wanted.what);
    if (errors.length === 0) errors.push(...explainPaying(deps, opened, wanted));
    if (errors.length === 0) errors.push(...explainPayPlan(opened.plan, wanted));
    if (errors.length > 0) throw validationFailed(errors);
    const consent = wanted.keep_card && wanted.consent ? onlyConsent(wanted.consent) : null;
    return await attempt(deps, request, opened, 'plan_payment', (network) =>
      payPlan(deps, opened.merchant, opened.checkout, { ...wanted, consent }, network),
    );
  });

  app.post('/pay/:token/plan/card', async (request) => {
    const opened = await openPlan(deps, request);
    refuseScope(opened, 'card');
    const wanted = jsonBodyOf(request).value as ReplaceCardRequest;
    const errors = explainReplaceCardRequest(wanted);
    if (errors.length === 0) errors.push(...explainCard(entryOf(deps, opened), wanted.card_token));
    if (errors.length === 0) errors.push(...explainPlan(opened.plan, wanted.consent, []));
    if (errors.length > 0) throw validationFailed(errors);
    const { card_token } = wanted;
    const consent = onlyConsent(wanted.consent);
    return await attempt(deps, request, opened, 'new_card', (network) =>
      replaceStoredCard(deps, opened.merchant, opened.checkout, { card_token, consent }, network),
    );
  });
}

/** Opens the plan for a request from our own page, and only in a session. */
async function openPlan(deps: PageDeps, request: FastifyRequest): Promise<OpenedPlan> {
  refuseForeignOrigin(request, deps.baseUrl);
  const opened = await mustOpenPage(deps, request);
  const { plan, session } = opened;
  if (plan === null) throw notFound('This payment link has no plan.');
  if (session === null) throw forbidden('Open your payments with the link in your e-mail first.');
  return { ...opened, plan };
}

/** The link in a mail about a late payment allows only paying what is late. */
function refuseScope({ session }: OpenedPlan, panel: PlanPanel): void {
  if (session?.scope === 'plan' || panel === 'late') return;
  throw forbidden('With this link you can only pay what is late. Ask for a new link to do more.');
}

async function attempt(
  deps: PageDeps,
  request: FastifyRequest,
  { merchant, checkout, attempts }: OpenedPlan,
  purpose: PlanPurpose,
  begin: (network: string) => Promise<PlanRefusal | null>,
): Promise<PayPage> {
  const network = networkOf(request);
  await deps.rateLimits.planAttempt(checkout.id);
  await refuseCardTesting(deps, { merchant, network, declines: countDeclines(attempts) });
  const refusal = await begin(network);
  const reopened = await mustOpenPage(deps, request);
  const page = showPage(deps, reopened, request);
  if (refusal === null) return page;
  const newest = reopened.attempts.find(isOnPlan) ?? null;
  return { ...page, attempt: presentRefusal(purpose, refusal, newest) };
}

/** Checks that a card other than the stored one comes in the form that the gateway takes. */
function explainPaying(deps: PageDeps, opened: OpenedPlan, wanted: PayPlanRequest): FieldError[] {
  return paysStored(wanted) ? [] : explainCard(entryOf(deps, opened), wanted.card_token);
}

/** A card is stored only with consent to the remaining payments. */
function explainPayPlan(plan: Plan, wanted: PayPlanRequest): FieldError[] {
  const { keep_card, consent, payments } = wanted;
  if (!keep_card) return [];
  if (paysStored(wanted)) {
    return [{ path: 'keep_card', problem: 'must be false: the stored card is kept anyway' }];
  }
  if (remaining(plan, payments).length === 0) {
    return [{ path: 'keep_card', problem: 'must be false: nothing remains to be charged' }];
  }
  return explainPlan(plan, consent, payments);
}

/** The consent covers the payments to come as the page shows them, without those being paid. */
const explainPlan = (plan: Plan, consent: Consent | null, paid: number[]) =>
  explainConsent(consent, [remaining(plan, paid)], 'must be the payments to come');

function remaining(plan: Plan, paid: number[]): Consent['payments'] {
  return plan.payments
    .filter(({ status }) => status === 'late' || status === 'next' || status === 'planned')
    .filter(({ number }) => !paid.includes(number))
    .map(({ number, amount, due_on }) => ({ number, amount, due_on }));
}
