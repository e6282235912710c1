import { renderToString } from 'preact-render-to-string';
import type { PageWords } from '#platform/shared/words/words.ts';
import type { PayServer, RenderPayPage } from '#purchases/shoppers/pay-html.ts';
import logo from '../../src/operating/docs/logo.svg?inline';
import { App, title } from './app.tsx';
import linkCss from './link.css?inline';
import { LinkApp, linkTitle, PrintedLink } from './link-page.tsx';
import css from './pay.css?inline';
import { firstView } from './payment-state.ts';
import planCss from './plan.css?inline';
import { createI18n } from './words.ts';

// Most of the page is the same for every shopper: the styles and the texts. They are encoded only
// once, for speed: encoding them for each page took 28 % of the page's processor time.
const styles = Buffer.from(`${css}${planCss}`);
const encodedWords = new WeakMap<PageWords, Buffer>();

function encodeWords(words: PageWords): Buffer {
  const known = encodedWords.get(words) ?? Buffer.from(json(words));
  encodedWords.set(words, known);
  return known;
}

/**
 * The whole document. It contains its styles and the first view, so it is shown without a script.
 */
export const renderPayPage: RenderPayPage = (page, { path, nonce, script, language, words }) => {
  const body = renderToString(<App page={page} path={path} words={words} />);
  const entry = page?.status === 'open' ? page.card_entry : null;
  const head = `<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<title>${asText(title(firstView(page), createI18n(words, page)))}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex, nofollow">
<meta name="referrer" content="no-referrer">
<meta name="format-detection" content="telephone=no">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="/favicon.ico" sizes="32x32">
<link rel="icon" href="${logo}" type="image/svg+xml">
${page === null ? '' : `<script type="module" src="${script.path}" integrity="${script.integrity}" nonce="${nonce}"></script>`}
${entry ? `<link rel="preload" as="script" href="${asText(entry.scriptUrl)}" nonce="${nonce}">` : ''}
<style nonce="${nonce}">`;
  const view = `</style>
<noscript><style nonce="${nonce}">.needs-script,.order-toggle,.languages{display:none}.order-detail{display:block}.plan li.folded{display:grid}</style></noscript>
</head>
<body>
<div id="root">${body}</div>
`;
  const end = '</body>\n</html>\n';
  if (page === null) return Buffer.concat([Buffer.from(head), styles, Buffer.from(view + end)]);
  const data = json({ page, path }).slice(0, -1);
  return Buffer.concat([
    Buffer.from(head),
    styles,
    Buffer.from(`${view}<script type="application/json" id="pay-page">${data},"words":`),
    encodeWords(words),
    Buffer.from(`}</script>\n${end}`),
  ]);
};

/** The page of a payment link has no script. */
export const renderLinkPage: PayServer['renderLinkPage'] = (page, options) => {
  const { path, nonce, language, words } = options;
  const body = renderToString(<LinkApp page={page} path={path} words={words} />);
  return `<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<title>${asText(linkTitle(page, words))}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex, nofollow">
<meta name="format-detection" content="telephone=no">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="/favicon.ico" sizes="32x32">
<link rel="icon" href="${logo}" type="image/svg+xml">
<style nonce="${nonce}">${css}${planCss}${linkCss}</style>
</head>
<body>
<div id="root">${body}</div>
</body>
</html>
`;
};

/** An A5 sheet for a till. The browser opens its print dialog at once. */
export const renderLinkPrint: PayServer['renderLinkPrint'] = (
  page,
  { nonce, language, words },
) => `<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<title>${asText(page.merchant_name)}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex, nofollow">
<link rel="icon" href="${logo}" type="image/svg+xml">
<style nonce="${nonce}">${linkCss}</style>
</head>
<body class="sheet">
${renderToString(<PrintedLink page={page} words={words} />)}
<script nonce="${nonce}">addEventListener('load', () => print());</script>
</body>
</html>
`;

function asText(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}

/** JSON that cannot close the script element around it. */
function json(value: unknown): string {
  return JSON.stringify(value).replaceAll('<', '\\u003c');
}
