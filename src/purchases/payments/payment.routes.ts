import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { findMerchant } from '#merchants/merchant.sql.ts';
import type { Merchant } from '#merchants/merchant.ts';
import type { Handle } from '#platform/database/database.ts';
import { reading, snapshot } from '#platform/database/transaction.ts';
import { networkOf } from '#platform/http/authentication.ts';
import { forbidden, notFound } from '#platform/http/errors.ts';
import type { RateLimits } from '#platform/http/rate-limits.ts';
import { jsonBodyOf } from '#platform/http/raw-body.ts';
import { refuseForeignOrigin } from '#platform/http/same-origin.ts';
import { type FieldError, validationFailed } from '#platform/http/validation.ts';
import { timestamp } from '#platform/shared/clock.ts';
import type { Environment } from '#platform/shared/environment.ts';
import type { HostedPageSettings } from '#platform/shared/hosted-page.ts';
import { chooseLanguage, type Language, languages } from '#platform/shared/language.ts';
import { consentVersion } from '#platform/shared/words/consent-version.ts';
import { words } from '#platform/shared/words/words.ts';
import { joinCheckout } from '#platform/tracing/trace.ts';
import { findCheckoutCallback } from '#purchases/callbacks/callback.sql.ts';
import type { Callback } from '#purchases/callbacks/callback.ts';
import { findCheckout } from '#purchases/checkouts/checkout.sql.ts';
import { type Checkout, paymentUrlMinutes } from '#purchases/checkouts/checkout.ts';
import { keepLanguage } from '#purchases/checkouts/keep-language.ts';
import { usePaymentLinks } from '#purchases/checkouts/payment-link.ts';
import { checkoutOfToken } from '#purchases/checkouts/payment-token.ts';
import { isBlocked } from '#purchases/instalments/gateway-block.sql.ts';
import { planPayments } from '#purchases/instalments/instalment.ts';
import { payPlan, replaceStoredCard, settleReturnedAct } from '#purchases/shoppers/act-on-plan.ts';
import { isPast } from '#purchases/shoppers/last-movement.ts';
import { sessionTokenOf } from '#purchases/shoppers/open-session.ts';
import { type Plan, presentPlan } from '#purchases/shoppers/plan.ts';
import {
  type ActRefusal,
  type PayPlanRequest,
  presentRefusal,
  type ReplaceCardRequest,
} from '#purchases/shoppers/plan-act.ts';
import { findPlanSession } from '#purchases/shoppers/plan-proof.sql.ts';
import { readPlan } from '#purchases/shoppers/read-plan.ts';
import { hashToken } from '#purchases/shoppers/send-link.ts';
import { findNewestAttempt, listShopperAttempts } from '#purchases/shoppers/shopper-attempt.sql.ts';
import {
  isInFlight as isActInFlight,
  type Purpose,
  type ShopperAttempt,
} from '#purchases/shoppers/shopper-attempt.ts';
import { cancelPayment } from './cancel-payment.ts';
import { countDeclines, noteDecline, refuseCardTesting } from './card-testing.ts';
import { noteOpening } from './note-opening.ts';
import { loadPayHtml } from './pay-html.ts';
import type {
  CancelRequest,
  LanguageRequest,
  PayPage,
  PayRequest,
  SpokenPage,
} from './pay-page.ts';
import {
  explainCancelRequest,
  explainLanguageRequest,
  explainPayPlanRequest,
  explainPayRequest,
  explainReplaceCardRequest,
} from './payment.schema.ts';
import { listAttempts } from './payment-attempt.sql.ts';
import { type Consent, isInFlight, type PaymentAttempt } from './payment-attempt.ts';
import { presentPage } from './present-page.ts';
import { settleReturned } from './recover-attempts.ts';
import { spacedRuns } from './spaced-runs.ts';
import { mayTryAgain, type PaymentDeps, startPayment } from './start-payment.ts';

export type PaymentRouteDeps = PaymentDeps & {
  environment: Environment;
  page: HostedPageSettings;
  rateLimits: RateLimits;
  /** Why money is stopped, or null. Does not ask the gateway. */
  money: { stopReason(): Promise<string | null> };
};

/** However often a browser returns from the bank, an attempt is looked up once a second. */
const lookUpSpacingMs = 1_000;

type Opened = {
  merchant: Merchant;
  checkout: Checkout;
  attempts: PaymentAttempt[];
  callback: Callback | null;
  plan: Plan | null;
  session: PayPage['session'];
  /** The newest attempt of the shopper on the plan. */
  newest: ShopperAttempt | null;
  /** Money is stopped: no payment can begin. */
  paused: boolean;
};

/** The hosted page and its requests. The token in the address is the shopper's only credential. */
export async function paymentRoutes(app: FastifyInstance, deps: PaymentRouteDeps): Promise<void> {
  usePaymentLinks(app, deps);
  const html = await loadPayHtml();
  const spaced = spacedRuns(deps.clock, lookUpSpacingMs);

  for (const asset of html.assets) {
    app.get(`/pay/assets/${asset.name}`, async (request, reply) => {
      const accepted = String(request.headers['accept-encoding'] ?? '');
      const encoding = accepted.includes('br') ? 'br' : accepted.includes('gzip') ? 'gzip' : null;
      if (encoding) reply.header('content-encoding', encoding);
      return reply
        .header('cache-control', 'public, max-age=31536000, immutable')
        .header('vary', 'accept-encoding')
        .type(asset.type)
        .send({ br: asset.brotli, gzip: asset.gzip, none: asset.bytes }[encoding ?? 'none']);
    });
  }

  app.get('/pay/:token', async (request, reply) => {
    const opened = await open(request);
    if (opened?.checkout.status === 'received') {
      await noteOpening(deps, opened.merchant, opened.checkout);
    }
    return sendPage(reply, request, opened);
  });

  // Where the link in a message leads. Its token stays in the browser, after the `#`.
  app.get('/pay/:token/manage', async (request, reply) =>
    sendPage(reply, request, await open(request)),
  );

  app.get('/pay/:token/state', async (request) => present(await mustOpen(request), request));

  app.post('/pay/:token/pay', async (request) => {
    const { merchant, checkout, attempts } = await mustOpen(request);
    const wanted = jsonBodyOf(request).value as PayRequest;
    const errors = explainPayRequest(wanted);
    const now = merchant.now();
    if (errors.length === 0) errors.push(...explainTerm(merchant, checkout, wanted, now));
    if (errors.length > 0) throw validationFailed(errors);
    const { number_of_payments, card_token, consent, language } = wanted;
    if (language !== undefined) await keepLanguage(deps, checkout, language);
    const network = networkOf(request);
    if (mayTryAgain(attempts)) {
      await refuseCardTesting(deps, { merchant, network, declines: countDeclines(attempts) });
    }
    const began = await startPayment(deps, merchant, checkout, {
      number_of_payments,
      card_token,
      consent: number_of_payments > 1 ? consent && onlyConsent(consent) : null,
    });
    const reopened = await mustOpen(request);
    if (!began) return present({ ...reopened, paused: true }, request);
    const [newest] = reopened.attempts;
    if (newest?.status === 'declined' && attempts.every(({ id }) => id !== newest.id)) {
      const declines = countDeclines(reopened.attempts);
      await noteDecline(deps, { merchant, network, declines });
    }
    return present(reopened, request);
  });

  app.post('/pay/:token/cancel', async (request) => {
    const { merchant, checkout } = await mustOpen(request);
    const wanted = jsonBodyOf(request).value as CancelRequest;
    const errors = explainCancelRequest(wanted);
    if (errors.length === 0) errors.push(...explainOffer(checkout, wanted.number_of_payments));
    if (errors.length > 0) throw validationFailed(errors);
    await cancelPayment(deps, merchant, checkout, wanted.number_of_payments);
    return present(await mustOpen(request), request);
  });

  app.post('/pay/:token/language', async (request): Promise<SpokenPage> => {
    const { checkout } = await mustOpen(request);
    const wanted = jsonBodyOf(request).value as LanguageRequest;
    const errors = explainLanguageRequest(wanted);
    if (errors.length > 0) throw validationFailed(errors);
    await keepLanguage(deps, checkout, wanted.language);
    const page = present(await mustOpen(request), request);
    return { page, words: words[page.language].page };
  });

  app.post('/pay/:token/plan/pay', async (request) => {
    const opened = await openForActing(request);
    const wanted = jsonBodyOf(request).value as PayPlanRequest;
    const errors = explainPayPlanRequest(wanted);
    if (errors.length === 0) errors.push(...explainPayPlan(opened.plan, wanted));
    if (errors.length > 0) throw validationFailed(errors);
    const consent = wanted.keep_card && wanted.consent ? onlyConsent(wanted.consent) : null;
    return await act(request, opened, 'pay', () =>
      payPlan(deps, opened.merchant, opened.checkout, { ...wanted, consent }),
    );
  });

  app.post('/pay/:token/plan/card', async (request) => {
    const opened = await openForActing(request);
    const wanted = jsonBodyOf(request).value as ReplaceCardRequest;
    const errors = explainReplaceCardRequest(wanted);
    if (errors.length === 0) errors.push(...explainConsent(opened.plan, wanted.consent, []));
    if (errors.length > 0) throw validationFailed(errors);
    const { card_token } = wanted;
    const consent = onlyConsent(wanted.consent);
    return await act(request, opened, 'replace_card', () =>
      replaceStoredCard(deps, opened.merchant, opened.checkout, { card_token, consent }),
    );
  });

  type Acting = Opened & { plan: Plan };

  /** A shopper acts on the plan in a session, from our own page. */
  async function openForActing(request: FastifyRequest): Promise<Acting> {
    refuseForeignOrigin(request, deps.baseUrl);
    const opened = await mustOpen(request);
    const { plan, session } = opened;
    if (plan === null) throw notFound('This payment link has no plan.');
    if (session === null) throw forbidden('Open your payments with a link from your mail first.');
    return { ...opened, plan };
  }

  async function act(
    request: FastifyRequest,
    opened: Acting,
    purpose: Purpose,
    begin: () => Promise<ActRefusal | null>,
  ): Promise<PayPage> {
    const { merchant, checkout, newest } = opened;
    const network = networkOf(request);
    await deps.rateLimits.planAct(checkout.id);
    await refuseCardTesting(deps, { merchant, network, declines: await countAllDeclines(opened) });
    const refusal = await begin();
    const reopened = await mustOpen(request);
    const page = present(reopened, request);
    const isNew = reopened.newest !== null && reopened.newest.id !== newest?.id;
    if (isNew && page.act?.status === 'declined') {
      await noteDecline(deps, { merchant, network, declines: await countAllDeclines(opened) });
    }
    if (refusal === null) return page;
    return { ...page, act: presentRefusal(purpose, refusal, reopened.newest) };
  }

  /** The cards that were declined on one link: at checkout, and in later attempts on its plan. */
  async function countAllDeclines({ checkout, attempts }: Opened): Promise<number> {
    const acts = await reading(deps, (db) => listShopperAttempts(db, keyOf(checkout)));
    return countDeclines(attempts) + countDeclines(acts);
  }

  // The shopper's bank redirects here. Ignore its query and ask the gateway.
  app.get('/pay/:token/return', async (request, reply) => {
    const opened = await open(request);
    if (!opened) return sendPage(reply, request, null);
    const inFlight = opened.attempts.find(isInFlight);
    if (inFlight) {
      await deps.rateLimits.returned(opened.checkout.id);
      await spaced(inFlight.id, async () => {
        // Only the return that settled the attempt counts its decline.
        if (!(await settleReturned(deps, opened.merchant, inFlight))) return;
        const { merchant, attempts } = await mustOpen(request);
        if (attempts.some(({ id, status }) => id === inFlight.id && status === 'declined')) {
          const network = networkOf(request);
          await noteDecline(deps, { merchant, network, declines: countDeclines(attempts) });
        }
      });
    }
    const { newest } = opened;
    if (newest && isActInFlight(newest)) {
      await deps.rateLimits.returned(opened.checkout.id);
      await spaced(newest.id, async () => {
        if (!(await settleReturnedAct(deps, opened.merchant, newest))) return;
        const settled = await mustOpen(request);
        if (settled.newest?.id === newest.id && settled.newest.status === 'declined') {
          const { merchant } = settled;
          const declines = await countAllDeclines(settled);
          await noteDecline(deps, { merchant, network: networkOf(request), declines });
        }
      });
    }
    const { token } = request.params as { token: string };
    return reply.redirect(`/pay/${token}`, 303);
  });

  /** The page only shows it, so a failure to read it does not fail the page. */
  const isPaused = () =>
    deps.money.stopReason().then(
      (reason) => reason !== null,
      () => false,
    );

  async function open(request: FastifyRequest): Promise<Opened | null> {
    const { token } = request.params as { token: string };
    const key = checkoutOfToken(deps.sealing, token);
    if (!key) return null;
    joinCheckout(key.id);
    const paused = await isPaused();
    // The rows of one moment. A page with a finished act and the plan from before it asks no more.
    return await snapshot(deps, async (db) => {
      const checkout = await findCheckout(db, key.merchant_id, key.id);
      const merchant = checkout && (await findMerchant(db, deps.clock, key.merchant_id));
      if (!merchant || checkout.erased_at !== null) return null;
      const now = merchant.now();
      const isPaid = checkout.status === 'successful';
      const rows = isPaid ? await readPlan(db, keyOf(checkout)) : null;
      // The order stays private once nothing has moved for long.
      if (isPast(checkout, rows ?? unpaid, now)) return null;
      const callback =
        checkout.completed_at === null
          ? null
          : await findCheckoutCallback(db, key.merchant_id, key.id);
      const attempts = await listAttempts(db, key.merchant_id, key.id);
      if (rows === null) {
        const none = { plan: null, session: null, newest: null };
        const isHeldUp = paused || (await isBlocked(db, keyOf(checkout)));
        return { merchant, checkout, attempts, callback, ...none, paused: isHeldUp };
      }
      const session = await readSession(db, merchant, checkout, request);
      const newest = await findNewestAttempt(db, keyOf(checkout));
      const plan = presentPlan(rows);
      return { merchant, checkout, attempts, callback, plan, session, newest, paused };
    });
  }

  async function readSession(
    db: Handle,
    merchant: Merchant,
    { merchant_id, id }: Checkout,
    request: FastifyRequest,
  ): Promise<PayPage['session']> {
    const session = sessionTokenOf(request.headers.cookie);
    if (session === null) return null;
    const now = timestamp(merchant.now());
    return await findPlanSession(db, { merchant_id, checkout_id: id }, hashToken(session), now);
  }

  async function mustOpen(request: FastifyRequest): Promise<Opened> {
    const opened = await open(request);
    if (!opened) throw notFound('This payment link is not known.');
    return opened;
  }

  function present(opened: Opened, request: FastifyRequest): PayPage {
    const { merchant, checkout, attempts, callback, plan } = opened;
    const language = languageOf(request, checkout);
    return presentPage(deps, merchant, checkout, attempts, callback, plan, opened, language);
  }

  /** The shopper's choice, or the browser's. */
  function languageOf(request: FastifyRequest, checkout: Checkout | null): Language {
    return checkout?.language ?? chooseLanguage(request.headers['accept-language']);
  }

  function sendPage(reply: FastifyReply, request: FastifyRequest, opened: Opened | null) {
    const page = opened && present(opened, request);
    const { token } = request.params as { token: string };
    const nonce = deps.random.bytes(16).toString('base64url');
    const { html: text, csp } = html.render(page, {
      token,
      nonce,
      language: languageOf(request, opened?.checkout ?? null),
    });
    return reply
      .code(page ? 200 : 404)
      .header('content-security-policy', csp)
      .header('referrer-policy', 'no-referrer')
      .header('x-frame-options', 'DENY')
      .header('permissions-policy', 'payment=(self), camera=(), microphone=(), geolocation=()')
      .type('text/html; charset=utf-8')
      .send(text);
  }
}

function explainOffer(checkout: Checkout, number_of_payments: number): FieldError[] {
  if (checkout.terms.includes(number_of_payments)) return [];
  return [{ path: 'number_of_payments', problem: `must be one of ${checkout.terms.join(', ')}` }];
}

/** Later payments need the shopper's consent: our wording, and the plan as the page showed it. */
function explainTerm(
  merchant: Merchant,
  checkout: Checkout,
  { number_of_payments, consent }: PayRequest,
  now: Temporal.Instant,
): FieldError[] {
  const errors = explainOffer(checkout, number_of_payments);
  if (errors.length > 0 || number_of_payments === 1) return errors;
  const versions = languages.map(consentVersion);
  if (!consent || !versions.includes(consent.version)) {
    return [{ path: 'consent', problem: `must be given in the version ${versions.join(' or ')}` }];
  }
  // A page that was opened before midnight shows the previous day's dates.
  const shownAt = [now, now.subtract({ minutes: paymentUrlMinutes })];
  const agreed = JSON.stringify(onlyConsent(consent).payments);
  const isPlan = shownAt.some((at) => {
    const plan = planPayments(checkout.amount, number_of_payments, merchant.localDate(at));
    return JSON.stringify(plan) === agreed;
  });
  return isPlan ? [] : [{ path: 'consent.payments', problem: 'must be the payments of the plan' }];
}

/** An order that was not paid moves only by its own status. */
const unpaid = { instalments: [], refunds: [], disputes: [] };

const keyOf = ({ merchant_id, id }: Checkout) => ({ merchant_id, checkout_id: id });

/** A card is kept with the consent to the payments that remain. */
function explainPayPlan(
  plan: Plan,
  { keep_card, card_token, consent, payments }: PayPlanRequest,
): FieldError[] {
  if (!keep_card) return [];
  if (card_token === null) {
    return [{ path: 'keep_card', problem: 'must be false: the stored card is kept anyway' }];
  }
  if (remaining(plan, payments).length === 0) {
    return [{ path: 'keep_card', problem: 'must be false: nothing remains to be charged' }];
  }
  return explainConsent(plan, consent, payments);
}

/** Our wording, and the payments to come as the page shows them, without those paid now. */
function explainConsent(plan: Plan, consent: Consent | null, paid: number[]): FieldError[] {
  const versions = languages.map(consentVersion);
  if (!consent || !versions.includes(consent.version)) {
    return [{ path: 'consent', problem: `must be given in the version ${versions.join(' or ')}` }];
  }
  const agreed = JSON.stringify(onlyConsent(consent).payments);
  const isPlan = agreed === JSON.stringify(remaining(plan, paid));
  return isPlan ? [] : [{ path: 'consent.payments', problem: 'must be the payments to come' }];
}

function remaining(plan: Plan, paid: number[]): Consent['payments'] {
  return plan.payments
    .filter(({ status }) => status === 'late' || status === 'next' || status === 'planned')
    .filter(({ number }) => !paid.includes(number))
    .map(({ number, amount, due_on }) => ({ number, amount, due_on }));
}

/** Our members in our order. Other members that a page sends are not stored. */
function onlyConsent({ version, payments }: Consent): Consent {
  return {
    version,
    payments: payments.map(({ number, amount, due_on }) => ({ number, amount, due_on })),
  };
}
