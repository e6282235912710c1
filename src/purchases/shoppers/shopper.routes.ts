import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import Type from 'typebox';
import { findMerchant } from '#merchants/merchant.sql.ts';
import type { Merchant } from '#merchants/merchant.ts';
import { reading } from '#platform/database/transaction.ts';
import { networkOf } from '#platform/http/authentication.ts';
import { forbidden, notFound, unprocessable } from '#platform/http/errors.ts';
import type { RateLimits } from '#platform/http/rate-limits.ts';
import { jsonBodyOf } from '#platform/http/raw-body.ts';
import { refuseForeignOrigin } from '#platform/http/same-origin.ts';
import { compileSchema, type FieldError, validationFailed } from '#platform/http/validation.ts';
import { chooseLanguage } from '#platform/shared/language.ts';
import type { Logger } from '#platform/shared/logger.ts';
import { findCheckout } from '#purchases/checkouts/checkout.sql.ts';
import type { Checkout } from '#purchases/checkouts/checkout.ts';
import { usePaymentLinks } from '#purchases/checkouts/payment-link.ts';
import { checkoutOfToken } from '#purchases/checkouts/payment-token.ts';
import { writeCalendar } from './calendar.ts';
import { isPast } from './last-movement.ts';
import {
  closeSession,
  findSession,
  openSession,
  sessionMinutes,
  sessionTokenOf,
} from './open-session.ts';
import { findPayingCard } from './paying-card.sql.ts';
import { type Plan, presentPlan } from './plan.ts';
import { readPlan } from './read-plan.ts';
import { writeReceipt } from './receipt.ts';
import { problemCharactersMax, reportProblem } from './report-problem.ts';
import { type LinkDeps, sendLink } from './send-link.ts';

export type ShopperDeps = LinkDeps & {
  log: Logger;
  baseUrl: string;
  rateLimits: RateLimits;
};

const explainLink = compileSchema(
  Type.Object({ email: Type.String({ minLength: 3, maxLength: 254 }) }),
);
const explainSession = compileSchema(
  Type.Object({ token: Type.String({ minLength: 1, maxLength: 100 }) }),
);
const explainReport = compileSchema(
  Type.Object({ text: Type.String({ minLength: 1, maxLength: problemCharactersMax }) }),
);

/** Every answer to "send me a link" takes at least this long, whatever the address. */
const linkMilliseconds = 400;

type Opened = { merchant: Merchant; checkout: Checkout; plan: Plan };

/**
 * The routes for a shopper who has paid. Reading needs the payment link; acting needs a session.
 */
export async function shopperRoutes(app: FastifyInstance, deps: ShopperDeps): Promise<void> {
  usePaymentLinks(app, deps);
  app.addHook('onRequest', async (request) => {
    if (request.method !== 'GET' && request.method !== 'HEAD')
      refuseForeignOrigin(request, deps.baseUrl);
  });

  app.post('/pay/:token/link', async (request, reply) => {
    const { merchant, checkout } = await open(request);
    const { email } = readBody<{ email: string }>(request, explainLink);
    await deps.rateLimits.planLink(checkout.id, networkOf(request));
    const evened = deps.clock.sleep(linkMilliseconds);
    await sendLink(deps, merchant, checkout, email);
    await evened;
    return reply.code(202).send({ sent_if_known: true });
  });

  app.post('/pay/:token/session', async (request, reply) => {
    const { merchant, checkout } = await open(request);
    const { token } = readBody<{ token: string }>(request, explainSession);
    await deps.rateLimits.planSession(checkout.id, networkOf(request));
    const session = await openSession(deps, merchant, keyOf(checkout), token);
    if (session === null) {
      throw unprocessable('This link has been used or has ended. Ask for a new one.');
    }
    setCookie(reply, request, session, sessionMinutes * 60);
    return { ...(await findSession(deps, merchant, keyOf(checkout), session)) };
  });

  app.delete('/pay/:token/session', async (request, reply) => {
    const { checkout } = await open(request);
    const session = sessionOf(request);
    if (session !== null) await closeSession(deps, keyOf(checkout), session);
    setCookie(reply, request, '', 0);
    return reply.code(204).send();
  });

  app.post('/pay/:token/report', async (request, reply) => {
    const { checkout } = await openForActing(request);
    const { text } = readBody<{ text: string }>(request, explainReport);
    await deps.rateLimits.planReport(checkout.id);
    await reportProblem(deps, checkout, text);
    return reply.code(202).send({ received: true });
  });

  app.get('/pay/:token/payments.ics', async (request, reply) => {
    const { merchant, checkout, plan } = await open(request);
    const text = writeCalendar(plan, {
      checkout_id: checkout.id,
      merchant,
      order: checkout.client_reference_id,
      url: `${deps.baseUrl}/pay/${(request.params as { token: string }).token}`,
      language: languageOf(checkout, request),
      now: merchant.now(),
    });
    return reply
      .header('content-disposition', 'attachment; filename="payments.ics"')
      .type('text/calendar; charset=utf-8')
      .send(text);
  });

  app.get('/pay/:token/receipts/:number', async (request, reply) => {
    const { merchant, checkout, plan } = await open(request);
    const { number } = request.params as { number: string };
    const payment = plan.payments.find((one) => String(one.number) === number);
    if (payment?.status !== 'paid') throw notFound('There is no receipt for this payment.');
    const nonce = deps.random.bytes(16).toString('base64url');
    const order = checkout.client_reference_id;
    const language = languageOf(checkout, request);
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

  async function open(request: FastifyRequest): Promise<Opened> {
    const { token } = request.params as { token: string };
    const key = checkoutOfToken(deps.sealing, token);
    const opened = key && (await reading(deps, (db) => read(db, key)));
    if (!opened) throw notFound('This payment link is not known, or it has no plan.');
    return opened;
  }

  async function read(
    db: Parameters<typeof findCheckout>[0],
    key: { merchant_id: string; id: string },
  ): Promise<Opened | null> {
    const checkout = await findCheckout(db, key.merchant_id, key.id);
    const merchant = checkout && (await findMerchant(db, deps.clock, key.merchant_id));
    if (!merchant || checkout.status !== 'successful' || checkout.erased_at !== null) return null;
    const rows = await readPlan(db, keyOf(checkout));
    if (isPast(checkout, rows, merchant.now())) return null;
    return { merchant, checkout, plan: presentPlan(rows) };
  }

  async function openForActing(request: FastifyRequest): Promise<Opened> {
    const opened = await open(request);
    const session = sessionOf(request);
    const found =
      session && (await findSession(deps, opened.merchant, keyOf(opened.checkout), session));
    if (!found) {
      throw forbidden('Open your payments with a link from your mail first.');
    }
    return opened;
  }

  function setCookie(
    reply: FastifyReply,
    request: FastifyRequest,
    value: string,
    seconds: number,
  ): void {
    const { token } = request.params as { token: string };
    const secure = deps.baseUrl.startsWith('https:') ? '; Secure' : '';
    reply.header(
      'set-cookie',
      `plan=${value}; Path=/pay/${token}; Max-Age=${seconds}; HttpOnly; SameSite=Lax${secure}`,
    );
  }
}

/** The shopper's choice, or the browser's. */
const languageOf = (checkout: Checkout, request: FastifyRequest) =>
  checkout.language ?? chooseLanguage(request.headers['accept-language']);

const keyOf = ({ merchant_id, id }: Checkout) => ({ merchant_id, checkout_id: id });

const sessionOf = (request: FastifyRequest) => sessionTokenOf(request.headers.cookie);

function readBody<Body>(request: FastifyRequest, explain: (body: unknown) => FieldError[]): Body {
  const body = jsonBodyOf(request).value;
  const errors = explain(body);
  if (errors.length > 0) throw validationFailed(errors);
  return body as Body;
}
