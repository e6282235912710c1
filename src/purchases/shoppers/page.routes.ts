import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { findLogo } from '#merchants/merchant.sql.ts';
import { reading } from '#platform/database/transaction.ts';
import { networkOf } from '#platform/http/authentication.ts';
import { notFound } from '#platform/http/errors.ts';
import { jsonBodyOf } from '#platform/http/raw-body.ts';
import { validationFailed } from '#platform/http/validation.ts';
import { words } from '#platform/shared/words/words.ts';
import { keepLanguage } from '#purchases/checkouts/keep-language.ts';
import { usePaymentLinks } from '#purchases/checkouts/payment-link.ts';
import { isInFlight } from '#purchases/payments/payment-attempt.ts';
import { routeCheckout } from '#purchases/payments/route-checkout.ts';
import { settleReturned } from '#purchases/payments/settle-attempt.ts';
import { openingNotes } from './note-opening.ts';
import {
  languageOf,
  mustOpenPage,
  type OpenedPage,
  openPage,
  type PageDeps,
  showPage,
} from './open-page.ts';
import { explainLanguageRequest } from './page.schema.ts';
import { loadPayHtml, type PayHtml } from './pay-html.ts';
import type { LanguageRequest, PayPage, SpokenPage } from './pay-page.ts';
import { spacedRuns } from './spaced-runs.ts';

/** However often a browser returns, an attempt is looked up at most once a second. */
const lookUpSpacingMs = 1_000;

/** The routes of the hosted page. The token in the URL is the only credential that they need. */
export async function pageRoutes(app: FastifyInstance, deps: PageDeps): Promise<void> {
  usePaymentLinks(app, deps);
  const html = await loadPayHtml();
  serveAssets(app, html);

  // The file's name changes with its content, so a browser may cache it for ever.
  app.get('/pay/logos/:logo.png', async (request, reply) => {
    const { logo } = request.params as { logo: string };
    const content = /^[0-9a-f]{64}$/.test(logo)
      ? await reading(deps, (db) => findLogo(db, logo))
      : null;
    if (content === null) throw notFound('There is no such logo.');
    return reply
      .header('cache-control', 'public, max-age=31536000, immutable')
      .header('content-security-policy', "default-src 'none'; sandbox")
      .header('cross-origin-resource-policy', 'cross-origin')
      .type('image/png')
      .send(content);
  });

  const noteOpening = openingNotes(deps);
  app.get('/pay/:token', async (request, reply) => {
    let opened = await openPage(deps, request);
    if (opened?.checkout.status === 'received') {
      await noteOpening(opened.merchant, opened.checkout);
      const mayMove = opened.attempts.length === 0;
      if (mayMove && (await routeCheckout(deps, opened.merchant, opened.checkout))) {
        opened = await openPage(deps, request);
      }
    }
    return sendPage(deps, html, reply, request, opened);
  });

  // The page that the link in a message opens. That link's token stays in the browser, after `#`.
  app.get('/pay/:token/manage', async (request, reply) =>
    sendPage(deps, html, reply, request, await openPage(deps, request)),
  );

  app.get('/pay/:token/state', async (request) =>
    showPage(deps, await mustOpenPage(deps, request), request),
  );

  app.post('/pay/:token/language', async (request): Promise<SpokenPage> => {
    const { checkout } = await mustOpenPage(deps, request);
    const wanted = jsonBodyOf(request).value as LanguageRequest;
    const errors = explainLanguageRequest(wanted);
    if (errors.length > 0) throw validationFailed(errors);
    await keepLanguage(deps, checkout, wanted.language);
    const page = showPage(deps, await mustOpenPage(deps, request), request);
    return { page, words: words[page.language].page };
  });

  const settle = settler(deps);
  // The shopper's bank redirects here. The query of the URL is ignored, and the gateway is asked.
  app.get('/pay/:token/return', async (request, reply) => {
    const opened = await openPage(deps, request);
    if (!opened) return sendPage(deps, html, reply, request, null);
    await settle(request, opened);
    const { token } = request.params as { token: string };
    return reply.redirect(`/pay/${token}`, 303);
  });

  // The page's card form reports that it has confirmed a payment. The report is not trusted: the
  // gateway is asked.
  app.post('/pay/:token/confirm', async (request) => {
    const isKnown = await settle(request, await mustOpenPage(deps, request));
    const page = showPage(deps, await mustOpenPage(deps, request, true), request);
    return isKnown ? page : asUnknown(page);
  });
}

/**
 * The page for a payment that the card form may have confirmed and whose outcome the gateway did
 * not report.
 */
const asUnknown = (page: PayPage): PayPage => ({
  ...page,
  ...(page.status === 'begun' && { status: 'paying' }),
  attempt: page.attempt?.status === 'begun' ? { ...page.attempt, status: 'working' } : page.attempt,
});

/**
 * Settles the attempt in flight, if any, when a shopper returns from the gateway or their bank.
 * Returns false if the outcome of the attempt may still be unknown.
 */
function settler(deps: PageDeps) {
  const spaced = spacedRuns<boolean>(deps.clock, lookUpSpacingMs);
  return async (
    request: FastifyRequest,
    { merchant, checkout, attempts: known }: OpenedPage,
  ): Promise<boolean> => {
    const inFlight = known.find(isInFlight);
    if (!inFlight) return true;
    await deps.rateLimits.returned(checkout.id, networkOf(request));
    return await spaced(inFlight.id, () => settleReturned(deps, merchant, inFlight));
  };
}

function serveAssets(app: FastifyInstance, html: PayHtml): void {
  for (const asset of html.assets) {
    app.get(`/pay/assets/${asset.name}`, async (request, reply) => {
      const accepted = String(request.headers['accept-encoding'] ?? '');
      const encoding = accepted.includes('br') ? 'br' : accepted.includes('gzip') ? 'gzip' : null;
      if (encoding) reply.header('content-encoding', encoding);
      return reply
        .header('cache-control', 'public, max-age=31536000, immutable')
        .header('vary', 'accept-encoding')
        .type(asset.type)
        .send(encoding === null ? asset.bytes : await asset[encoding]());
    });
  }
}

function sendPage(
  deps: PageDeps,
  html: PayHtml,
  reply: FastifyReply,
  request: FastifyRequest,
  opened: OpenedPage | null,
) {
  const page = opened && showPage(deps, opened, request);
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
