import type { FastifyInstance } from 'fastify';
import { notFound } from '#platform/http/errors.ts';
import { usePaymentLinks } from '#purchases/checkouts/payment-link.ts';
import { writeCalendar } from './calendar.ts';
import { keyOf, languageOf } from './open-page.ts';
import { openPlan, type ShopperDeps } from './open-plan.ts';
import { findPayingCard } from './paying-card.sql.ts';
import { writeReceipt } from './receipt.ts';

/** Files that a shopper keeps. Reading them needs the payment link. */
export async function receiptRoutes(app: FastifyInstance, deps: ShopperDeps): Promise<void> {
  usePaymentLinks(app, deps);

  app.get('/pay/:token/payments.ics', async (request, reply) => {
    const { merchant, checkout, plan } = await openPlan(deps, request);
    const text = writeCalendar(plan, {
      checkout_id: checkout.id,
      merchant,
      order: checkout.client_reference_id,
      url: `${deps.baseUrl}/pay/${(request.params as { token: string }).token}`,
      language: languageOf(request, checkout),
      now: merchant.now(),
    });
    return reply
      .header('content-disposition', 'attachment; filename="payments.ics"')
      .type('text/calendar; charset=utf-8')
      .send(text);
  });

  app.get('/pay/:token/receipts/:number', async (request, reply) => {
    const { merchant, checkout, plan } = await openPlan(deps, request);
    const { number } = request.params as { number: string };
    const payment = plan.payments.find((one) => String(one.number) === number);
    if (payment?.status !== 'paid') throw notFound('There is no receipt for this payment.');
    const nonce = deps.random.bytes(16).toString('base64url');
    const order = checkout.client_reference_id;
    const language = languageOf(request, checkout);
    const card = await findPayingCard(deps.database.db, keyOf(checkout), payment.number);
    const about = { checkout_id: checkout.id, merchant, order, card, language, nonce };
    return reply
      .header(
        'content-security-policy',
        `default-src 'none'; style-src 'nonce-${nonce}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
      )
      .header('referrer-policy', 'no-referrer')
      .type('text/html; charset=utf-8')
      .send(writeReceipt(payment, plan, about));
  });
}
