import type { FastifyInstance } from 'fastify';
import type { Merchant } from '#merchants/merchant.ts';
import { networkOf } from '#platform/http/authentication.ts';
import { jsonBodyOf } from '#platform/http/raw-body.ts';
import { type FieldError, validationFailed } from '#platform/http/validation.ts';
import { type Checkout, paymentUrlMinutes } from '#purchases/checkouts/checkout.ts';
import { usePaymentLinks } from '#purchases/checkouts/payment-link.ts';
import { planPayments } from '#purchases/instalments/instalment.ts';
import { cancelPayment } from '#purchases/payments/cancel-payment.ts';
import { countDeclines, refuseCardTesting } from '#purchases/payments/card-testing.ts';
import { mayTryAgain, startPayment } from '#purchases/payments/start-payment.ts';
import { explainConsent, onlyConsent } from './consent.ts';
import { entryOf, mustOpenPage, type PageDeps, showPage } from './open-page.ts';
import { explainCancelRequest, explainCard, explainPayRequest } from './page.schema.ts';
import type { CancelRequest, PayRequest } from './pay-page.ts';

/** Routes with which a shopper pays or cancels a checkout. */
export async function paymentRoutes(app: FastifyInstance, deps: PageDeps): Promise<void> {
  usePaymentLinks(app, deps);

  app.post('/pay/:token/pay', async (request) => {
    const opened = await mustOpenPage(deps, request);
    const { merchant, checkout, attempts } = opened;
    const wanted = jsonBodyOf(request).value as PayRequest;
    const errors = explainPayRequest(wanted);
    // The page showed the card form of a gateway that the checkout no longer uses. The shopper may
    // have entered the card in that form.
    const isMoved = wanted.gateway !== undefined && wanted.gateway !== checkout.gateway;
    if (errors.length === 0 && isMoved) return showPage(deps, opened, request);
    const now = merchant.now();
    if (errors.length === 0) errors.push(...explainCard(entryOf(deps, opened), wanted.card_token));
    if (errors.length === 0) errors.push(...explainTerm(merchant, checkout, wanted, now));
    if (errors.length > 0) throw validationFailed(errors);
    const { number_of_payments, card_token, consent, language } = wanted;
    const network = networkOf(request);
    if (mayTryAgain(attempts)) {
      await refuseCardTesting(deps, { merchant, network, declines: countDeclines(attempts) });
    }
    const began = await startPayment(deps, merchant, checkout, {
      number_of_payments,
      card_token,
      consent: number_of_payments > 1 ? consent && onlyConsent(consent) : null,
      network,
      language,
    });
    const reopened = await mustOpenPage(deps, request, began);
    return showPage(deps, began ? reopened : { ...reopened, paused: true }, request);
  });

  app.post('/pay/:token/cancel', async (request) => {
    const { merchant, checkout } = await mustOpenPage(deps, request);
    const wanted = jsonBodyOf(request).value as CancelRequest;
    const errors = explainCancelRequest(wanted);
    if (errors.length === 0) errors.push(...explainOffer(checkout, wanted.number_of_payments));
    if (errors.length > 0) throw validationFailed(errors);
    await cancelPayment(deps, merchant, checkout, wanted.number_of_payments);
    return showPage(deps, await mustOpenPage(deps, request), request);
  });
}

function explainOffer(checkout: Checkout, number_of_payments: number): FieldError[] {
  if (checkout.terms.includes(number_of_payments)) return [];
  return [{ path: 'number_of_payments', problem: `must be one of ${checkout.terms.join(', ')}` }];
}

/** Later payments need the shopper's consent to the plan that the page showed. */
function explainTerm(
  merchant: Merchant,
  checkout: Checkout,
  { number_of_payments, consent }: PayRequest,
  now: Temporal.Instant,
): FieldError[] {
  const errors = explainOffer(checkout, number_of_payments);
  if (errors.length > 0 || number_of_payments === 1) return errors;
  // A page that was opened before midnight shows the previous day's dates.
  const shownAt = [now, now.subtract({ minutes: paymentUrlMinutes })];
  const plans = shownAt.map((at) =>
    planPayments(checkout.amount, number_of_payments, merchant.localDate(at)),
  );
  return explainConsent(consent, plans, 'must be the payments of the plan');
}
