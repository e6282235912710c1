import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import type { CardEntry } from '#gateway/gateway.ts';
import { words } from '#platform/shared/words/words.ts';
import { loadPayHtml, type PayServer } from '#purchases/shoppers/pay-html.ts';
import type { PayPage } from '#purchases/shoppers/pay-page.ts';
import { galleryStates } from '../../web/pay/gallery/states.ts';

const budgetBytes = 40 * 1024;
const entry: CardEntry = {
  form: 'stripe',
  entersCard: 'before',
  scriptUrl: 'https://gateway.example/v1/card.js',
  publicKey: 'pk_test',
  scriptOrigins: ['https://gateway.example'],
  frameOrigins: ['https://frames.gateway.example'],
  connectOrigins: ['https://api.gateway.example'],
};
const states = galleryStates(entry, 'https://shop.example/');
const { render, assets } = await loadPayHtml();

for (const [name, { page }] of Object.entries(states)) {
  test(`the first view of "${name}" loads at most 40 kB compressed`, async (t) => {
    const language = page?.language ?? 'en';
    const { html } = render(page, { token: 'token', nonce: 'nonce', language });
    const used = assets.filter((asset) => html.includes(`/pay/assets/${asset.name}`));
    const document = gzipSync(html).length;
    const compressed = await Promise.all(used.map((asset) => asset.gzip()));
    const bytes = compressed.reduce((sum, { length }) => sum + length, document);
    t.diagnostic(`${bytes} bytes, ${document} of them the document with its styles`);
    assert.ok(bytes <= budgetBytes, `${bytes} bytes`);
  });
}

test('a page is the same whichever pages the process rendered before it', async () => {
  const [first] = Object.values(states).flatMap(({ page }) => page ?? []);
  assert.ok(first);
  const operator = { terms_url: 'https://o.example', privacy_url: null, contact: null };
  const pages = [
    first,
    { ...first, language: 'zu' as const },
    { ...first, merchant_name: 'Another shop' },
    { ...first, card_brands: ['amex' as const] },
    { ...first, operator: { ...operator, complaints: null } },
    { ...first, mailbox_url: 'http://localhost:3004' },
  ];
  const script = { path: '/pay/script.js', integrity: 'sha384-x' };
  const renderIn = async (process: string) => {
    const built = new URL(`../../web/dist/pay/server.js?${process}`, import.meta.url);
    const { renderPayPage } = (await import(built.href)) as PayServer;
    return (page: PayPage | null) => {
      const language = page?.language ?? 'en';
      const options = { path: '/pay/t', nonce: 'n', script, language };
      return String(renderPayPage(page, { ...options, words: words[language].page }));
    };
  };
  const render = await renderIn('all');
  for (const { page } of Object.values(states)) render(page);
  const rendered = pages.map(render);
  for (const [index, page] of pages.entries()) {
    const alone = await renderIn(`only-${index}`);
    assert.equal(rendered[index], alone(page));
  }
});

test('the page names no origin but the gateway', () => {
  const { html, csp } = render(states.open?.page ?? null, {
    token: 'token',
    nonce: 'nonce',
    language: 'en',
  });
  const hosts = [...`${html} ${csp}`.matchAll(/\bhttps?:\/\/([^/\s"'\\;]+)/g)].map(
    ([, host]) => host,
  );
  // The icon contains the name of SVG's namespace, which no browser fetches.
  const others = new Set(hosts.filter((host) => host !== 'www.w3.org'));
  // The operator's own links are there to be followed, not to be loaded.
  others.delete('pay.example');
  assert.deepEqual([...others].sort(), [
    'api.gateway.example',
    'frames.gateway.example',
    'gateway.example',
  ]);
});

test('scripts run only with this response’s nonce or from the gateway, and ours only if unchanged', () => {
  const { html, csp } = render(states.open?.page ?? null, {
    token: 'token',
    nonce: 'n0nce',
    language: 'en',
  });
  assert.match(csp, /script-src 'nonce-n0nce' https:\/\/gateway\.example;/);
  assert.match(csp, /default-src 'none'/);
  assert.match(csp, /frame-ancestors 'none'/);
  assert.match(csp, /base-uri 'none'/);
  assert.doesNotMatch(csp, /unsafe/);
  const scripts = String(html).match(/<script(?! type="application\/json")[^>]*>/g) ?? [];
  assert.equal(scripts.length, 1);
  assert.match(scripts[0] ?? '', /integrity="sha384-[A-Za-z0-9+/=]{64}" nonce="n0nce"/);
});

test("a merchant's text cannot become markup, neither in the page nor in its data", () => {
  const page = states.open?.page;
  assert.ok(page);
  const name = '</script><script>alert(1)</script><!--" onload="x';
  const { html } = render(
    { ...page, merchant_name: name, line_items: [{ name, amount: 1, quantity: 1 }] },
    { token: 'token', nonce: 'nonce', language: 'en' },
  );
  assert.equal(html.includes('<script>'), false);
  assert.equal(String(html).match(/<\/script>/g)?.length, 2);
  assert.equal(html.includes('<!--"'), false);
});
