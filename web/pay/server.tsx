import { renderToString } from 'preact-render-to-string';
import type { RenderPayPage } from '#purchases/shoppers/pay-html.ts';
import logo from '../../src/operating/docs/logo.svg?inline';
import { App, title } from './app.tsx';
import css from './pay.css?inline';
import { firstView } from './payment-state.ts';
import planCss from './plan.css?inline';
import { createI18n } from './words.ts';

/** The whole document. It contains its styles and the first view, so it paints without a script. */
export const renderPayPage: RenderPayPage = (page, { path, nonce, script, language, words }) => {
  const body = renderToString(<App page={page} path={path} words={words} />);
  const takesCard = page?.status === 'open';
  return `<!doctype html>
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
${takesCard ? `<link rel="preload" as="script" href="${asText(page.card_entry.scriptUrl)}" nonce="${nonce}">` : ''}
<style nonce="${nonce}">${css}${planCss}</style>
<noscript><style nonce="${nonce}">.needs-script,.order-toggle,.languages{display:none}.order-detail{display:block}.plan li.folded{display:grid}</style></noscript>
</head>
<body>
<div id="root">${body}</div>
${page === null ? '' : `<script type="application/json" id="pay-page">${json({ page, path, words })}</script>`}
</body>
</html>
`;
};

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
