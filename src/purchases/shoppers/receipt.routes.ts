import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { findLogo } from '#merchants/merchant.sql.ts';
import { reading } from '#platform/database/transaction.ts';
import { networkOf } from '#platform/http/authentication.ts';
import { notFound } from '#platform/http/errors.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { usePaymentLinks } from '#purchases/checkouts/payment-link.ts';
import { writeCalendar } from './calendar.ts';
import { keyOf, languageOf } from './open-page.ts';
import { openPlan, type ShopperDeps } from './open-plan.ts';
import { findPayingCard } from './paying-card.sql.ts';
import { describeReceipt, writeReceipt } from './receipt.ts';
import { writeReceiptPdf } from './receipt-pdf.ts';

/** Files for the shopper to keep. Reading them needs the payment link. */
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

  const open = async (request: FastifyRequest) => {
    const { merchant, checkout, plan } = await openPlan(deps, request);
    const { number } = request.params as { number: string };
    const payment = plan.payments.find((one) => String(one.number) === number);
    if (payment?.status !== 'paid') throw notFound('There is no receipt for this payment.');
    const language = languageOf(request, checkout);
    const card = await findPayingCard(deps.database.db, keyOf(checkout), payment.number);
    const receipt = describeReceipt(payment, plan, { checkout, merchant, card, language });
    return { receipt, number, merchant, checkout_id: checkout.id };
  };

  app.get('/pay/:token/receipts/:number/pdf', async (request, reply) => {
    const { receipt, number, merchant, checkout_id } = await open(request);
    await deps.rateLimits.document(checkout_id, networkOf(request));
    const { logo } = merchant;
    const image = logo === null ? null : await reading(deps, (db) => findLogo(db, logo));
    return reply
      .header('content-disposition', `inline; filename="receipt-${number}.pdf"`)
      .header('referrer-policy', 'no-referrer')
      .type('application/pdf')
      .send(Readable.from(writeReceiptPdf(receipt, image, timestamp(merchant.now()))));
  });

  app.get('/pay/:token/receipts/:number', async (request, reply) => {
    const { receipt } = await open(request);
    const nonce = deps.random.bytes(16).toString('base64url');
    return reply
      .header(
        'content-security-policy',
        `default-src 'none'; img-src 'self'; style-src 'nonce-${nonce}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
      )
      .header('referrer-policy', 'no-referrer')
      .type('text/html; charset=utf-8')
      .send(writeReceipt(receipt, nonce));
  });
}
