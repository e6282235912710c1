import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { isPayable, type Merchant } from '#merchants/merchant.ts';
import { networkOf } from '#platform/http/authentication.ts';
import { badRequest, notFound, RateLimited } from '#platform/http/errors.ts';
import { MalformedForm, readForm } from '#platform/http/form.ts';
import type { RateLimits } from '#platform/http/rate-limits.ts';
import { rawBodyOf, takeRawBodies } from '#platform/http/raw-body.ts';
import { isFaithfulEmail } from '#platform/http/validation.ts';
import type { Environment } from '#platform/shared/environment.ts';
import type { HostedPageSettings } from '#platform/shared/hosted-page.ts';
import { chooseLanguage, isLanguage, type Language } from '#platform/shared/language.ts';
import { centsIn } from '#platform/shared/money.ts';
import { words } from '#platform/shared/words/words.ts';
import { keepLanguage } from '#purchases/checkouts/keep-language.ts';
import { linkOfToken, linkUrls } from '#purchases/checkouts/link-token.ts';
import { paymentToken } from '#purchases/checkouts/payment-token.ts';
import { loadPayServer, type PayServer } from '#purchases/shoppers/pay-html.ts';
import type { LinkPage } from './link-page.ts';
import { type OpenDeps, openPaymentLink, readLink, type Typed } from './open-payment-link.ts';
import { type ReadLink, statusOf } from './payment-link.ts';
import { presentLinkPage, presentLinkPrint } from './present-link.ts';
import { qrPng, qrSvg } from './qr-code.ts';

export type LinkPageDeps = OpenDeps & {
  environment: Environment;
  page: HostedPageSettings;
  rateLimits: RateLimits;
};

type Opened = { link: ReadLink; merchant: Merchant };
type Key = { merchant_id: string; id: string };

const form = 'application/x-www-form-urlencoded';
const formBytesMax = 4 * 1024;

/**
 * The page of a payment link. Mail programs and messengers follow links before people do, so a GET
 * only reads. The page's button posts its form, which makes the checkout.
 */
export async function linkRoutes(app: FastifyInstance, deps: LinkPageDeps): Promise<void> {
  const { server } = await loadPayServer();
  takeRawBodies(app, [form], formBytesMax);
  app.addHook('onRequest', async (request) => {
    await deps.rateLimits.paymentPage(networkOf(request), keyOf(deps, request)?.id ?? null, true);
  });

  app.get('/link/:token', async (request, reply) => {
    const opened = await openLink(deps, request);
    const language = languageOf(request);
    const page = opened && presentLinkPage(deps, opened, language);
    return sendPage(deps, server, request, reply, page);
  });

  app.post('/link/:token', async (request, reply) => {
    const opened = await openLink(deps, request);
    if (!opened) return sendPage(deps, server, request, reply, null);
    const answer = await continueFrom(deps, request, opened);
    if ('url' in answer) return reply.redirect(answer.url, 303);
    const page = presentLinkPage(deps, opened, languageOf(request), answer);
    return sendPage(deps, server, request, reply, page);
  });

  app.get('/link/:token/print', async (request, reply) => {
    const opened = await mustOpenLink(deps, request);
    const nonce = deps.random.bytes(16).toString('base64url');
    const language = languageOf(request);
    const html = server.renderLinkPrint(presentLinkPrint(deps, opened), {
      nonce,
      language,
      words: words[language],
    });
    return sendHtml(reply, html, policy(nonce, { 'script-src': `'nonce-${nonce}'` }));
  });

  app.get('/link/:token/qr.svg', async (request, reply) => {
    const { link } = await mustOpenLink(deps, request);
    const svg = qrSvg(linkUrls(deps, link).url);
    return reply.type('image/svg+xml').header('content-security-policy', policy('')).send(svg);
  });

  app.get('/link/:token/qr.png', async (request, reply) => {
    const { link } = await mustOpenLink(deps, request);
    return reply.type('image/png').send(qrPng(linkUrls(deps, link).url));
  });
}

function keyOf({ sealing }: LinkPageDeps, request: FastifyRequest): Key | null {
  const { token } = request.params as { token?: string };
  return token === undefined ? null : linkOfToken(sealing, token);
}

async function openLink(deps: LinkPageDeps, request: FastifyRequest): Promise<Opened | null> {
  const key = keyOf(deps, request);
  return key && (await readLink(deps, key));
}

async function mustOpenLink(deps: LinkPageDeps, request: FastifyRequest): Promise<Opened> {
  const opened = await openLink(deps, request);
  if (!opened) throw notFound('This payment link is not known.');
  return opened;
}

/** The language that the shopper chose on the page, or else the browser's. */
function languageOf(request: FastifyRequest): Language {
  const { lang } = request.query as { lang?: unknown };
  return isLanguage(lang) ? lang : chooseLanguage(request.headers['accept-language']);
}

type Refusal = Partial<Pick<LinkPage, 'status' | 'typed' | 'wrong' | 'notice'>>;

/**
 * Creates or finds the shopper's checkout. Returns the URL of its page, or what the link's page
 * shows instead.
 */
async function continueFrom(
  deps: LinkPageDeps,
  request: FastifyRequest,
  { link, merchant }: Opened,
): Promise<{ url: string } | Refusal> {
  const typed = readTyped(request);
  const { values, wrong } = checkTyped(typed, link, merchant);
  if (wrong.length > 0) return { typed, wrong };
  const needsNew =
    statusOf(link, merchant.now()) === 'active' && (link.reusable || link.checkout_id === null);
  const open = (mayMake: boolean) => openPaymentLink(deps, merchant, link, values, mayMake);
  let made = needsNew ? null : await open(false);
  if (made === null) {
    // Only new checkouts count towards the limit: strangers who know the link must not lock its
    // shopper out of the checkout that exists already.
    try {
      await deps.rateLimits.linkCheckout(link.id, networkOf(request));
    } catch (error) {
      if (!(error instanceof RateLimited)) throw error;
      return { typed, notice: 'limited' };
    }
    made = await open(true);
  }
  if (made === 'busy') return { typed, notice: 'busy' };
  if (made === null || typeof made === 'string') return { status: made ?? 'unavailable' };
  const { lang } = request.query as { lang?: unknown };
  if (isLanguage(lang)) await keepLanguage(deps, { ...made, language: null }, lang);
  return { url: `/pay/${paymentToken(deps.sealing, made)}` };
}

function readTyped(request: FastifyRequest): LinkPage['typed'] {
  const { raw } = rawBodyOf(request, [form]);
  try {
    const { amount, email } = readForm(raw);
    const text = (value: unknown) => (typeof value === 'string' ? value.trim().slice(0, 300) : '');
    return { amount: text(amount), email: text(email) };
  } catch (error) {
    if (error instanceof MalformedForm) throw badRequest(error.message);
    throw error;
  }
}

/** Checks the form. The form's value for a member that the link itself sets is ignored. */
function checkTyped(
  typed: LinkPage['typed'],
  link: ReadLink,
  merchant: Merchant,
): { values: Typed; wrong: LinkPage['wrong'] } {
  const wrong: LinkPage['wrong'] = [];
  const amount = link.amount === null ? centsIn(typed.amount) : null;
  if (link.amount === null && (amount === null || !isPayable(merchant, amount)))
    wrong.push('amount');
  const email = link.customer === null ? typed.email : null;
  if (email !== null && !isFaithfulEmail(email)) wrong.push('email');
  return { values: { amount, email }, wrong };
}

const codes = { none: 200, busy: 409, limited: 429 };

function sendPage(
  deps: LinkPageDeps,
  server: PayServer,
  request: FastifyRequest,
  reply: FastifyReply,
  page: LinkPage | null,
) {
  const nonce = deps.random.bytes(16).toString('base64url');
  const { token } = request.params as { token: string };
  const language = page?.language ?? languageOf(request);
  const html = server.renderLinkPage(page, {
    path: `/link/${token}`,
    nonce,
    language,
    words: words[language],
  });
  reply.code(page === null ? 404 : page.wrong.length > 0 ? 422 : codes[page.notice ?? 'none']);
  return sendHtml(reply, html, policy(nonce, { 'form-action': "'self'" }));
}

const sendHtml = (reply: FastifyReply, html: string, csp: string) =>
  reply
    .header('content-security-policy', csp)
    .header('referrer-policy', 'no-referrer')
    .header('x-frame-options', 'DENY')
    .type('text/html; charset=utf-8')
    .send(html);

/** Allows the page its own styles and images, and otherwise only what `more` names. */
const policy = (nonce: string, more: Record<string, string> = {}) =>
  Object.entries({
    'default-src': "'none'",
    'style-src': `'nonce-${nonce}'`,
    'img-src': "'self' data:",
    'form-action': "'none'",
    'base-uri': "'none'",
    'frame-ancestors': "'none'",
    ...more,
  })
    .map(([name, value]) => `${name} ${value}`)
    .join('; ');
