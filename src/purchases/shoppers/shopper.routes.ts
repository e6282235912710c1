import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import Type from 'typebox';
import { networkOf } from '#platform/http/authentication.ts';
import { forbidden, unprocessable } from '#platform/http/errors.ts';
import { jsonBodyOf } from '#platform/http/raw-body.ts';
import { refuseForeignOrigin } from '#platform/http/same-origin.ts';
import { compileSchema, type FieldError, validationFailed } from '#platform/http/validation.ts';
import { usePaymentLinks } from '#purchases/checkouts/payment-link.ts';
import { askMerchant } from '#purchases/conversations/ask-merchant.ts';
import { cleanText, questionCharactersMax } from '#purchases/conversations/conversation.ts';
import { keyOf } from './open-page.ts';
import { openPlan, type ShopperDeps } from './open-plan.ts';
import { closeSession, findSession, openSession, sessionMinutes } from './open-session.ts';
import { type PlanPanel, planPanels } from './plan-attempt.ts';
import { sendLink } from './send-link.ts';
import { sessionCookie, sessionTokenOf } from './session-cookie.ts';

const explainLink = compileSchema(
  Type.Object({
    email: Type.String({ minLength: 3, maxLength: 254 }),
    panel: Type.Optional(Type.Union(planPanels.map((panel) => Type.Literal(panel)))),
  }),
);
const explainSession = compileSchema(
  Type.Object({ token: Type.String({ minLength: 1, maxLength: 100 }) }),
);
const explainReport = compileSchema(
  Type.Object({ text: Type.String({ minLength: 1, maxLength: questionCharactersMax }) }),
);

/** Every answer to "send me a link" takes at least this long, whatever the e-mail address. */
const linkMilliseconds = 400;

/**
 * Routes with which a shopper signs in with a link from a mail, and reports a problem in that
 * session.
 */
export async function shopperRoutes(app: FastifyInstance, deps: ShopperDeps): Promise<void> {
  usePaymentLinks(app, deps);
  app.addHook('onRequest', async (request) => refuseForeignOrigin(request, deps.baseUrl));

  app.post('/pay/:token/link', async (request, reply) => {
    const { merchant, checkout } = await openPlan(deps, request);
    const { email, panel } = readBody<{ email: string; panel?: PlanPanel }>(request, explainLink);
    await deps.rateLimits.planLink(checkout.id, networkOf(request));
    const evened = deps.clock.sleep(linkMilliseconds);
    await sendLink(deps, merchant, checkout, { email, panel }, () =>
      deps.rateLimits.mayMailPlanLink(checkout.id),
    );
    await evened;
    return reply.code(202).send({ sent_if_known: true });
  });

  app.post('/pay/:token/session', async (request, reply) => {
    const { merchant, checkout, plan } = await openPlan(deps, request);
    const { token } = readBody<{ token: string }>(request, explainSession);
    const isLate = plan.payments.some(({ status }) => status === 'late');
    const session = await openSession(deps, merchant, keyOf(checkout), token, isLate);
    if (session === null) {
      await deps.rateLimits.unknownPlanLink(networkOf(request));
      throw unprocessable('This link has been used or has ended. Ask for a new one.');
    }
    setCookie(deps, reply, checkout.id, session, sessionMinutes * 60);
    return { ...(await findSession(deps, merchant, keyOf(checkout), session)) };
  });

  app.delete('/pay/:token/session', async (request, reply) => {
    const { checkout } = await openPlan(deps, request);
    const session = sessionTokenOf(request.headers.cookie, deps.baseUrl, checkout.id);
    if (session !== null) await closeSession(deps, keyOf(checkout), session);
    setCookie(deps, reply, checkout.id, '', 0);
    return reply.code(204).send();
  });

  app.post('/pay/:token/report', async (request, reply) => {
    const { merchant, checkout } = await openPlan(deps, request);
    const session = sessionTokenOf(request.headers.cookie, deps.baseUrl, checkout.id);
    const found = session ? await findSession(deps, merchant, keyOf(checkout), session) : null;
    if (found?.scope !== 'plan')
      throw forbidden('Open your payments with the link in your e-mail first.');
    const { text } = readBody<{ text: string }>(request, explainReport);
    await deps.rateLimits.planReport(checkout.id);
    if (cleanText(text) === '') {
      throw validationFailed([{ path: 'text', problem: 'must not be empty' }]);
    }
    if (!(await askMerchant(deps, merchant, checkout, text))) {
      throw unprocessable(
        'There are too many messages about this plan. Contact the shop in another way.',
      );
    }
    return reply.code(202).send({ received: true });
  });
}

function setCookie(
  deps: ShopperDeps,
  reply: FastifyReply,
  checkoutId: string,
  value: string,
  seconds: number,
): void {
  reply.header('set-cookie', sessionCookie(deps.baseUrl, checkoutId, { value, seconds }));
}

function readBody<Body>(request: FastifyRequest, explain: (body: unknown) => FieldError[]): Body {
  const body = jsonBodyOf(request).value;
  const errors = explain(body);
  if (errors.length > 0) throw validationFailed(errors);
  return body as Body;
}
