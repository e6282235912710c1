import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { after, before, beforeEach, describe, test } from 'node:test';
import fc from 'fast-check';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { listPictures, readGuides } from '#operating/docs/guides.ts';
import { readJson } from '#platform/http/json.ts';
import { compactJson } from '../../web/docs/diagnose.ts';
import { axeViolations } from '../support/axe.ts';
import { connectBrowser, noBrowser, painted } from '../support/browser.ts';
import { isLong, runs, type Service, startService } from '../support/service.ts';
import { until } from '../support/until.ts';

let service: Service;
let origin: string;
before(async () => {
  service = await startService();
  origin = await service.app.listen({ host: '127.0.0.1', port: 0 });
});
after(async () => {
  service.app.server.closeAllConnections();
  await service.close();
});

const guides = readGuides();
const pages = [
  '/docs/guides',
  ...guides.map(({ path }) => path),
  '/',
  '/docs',
  '/docs/intermediary',
  '/docs/signature',
];

test('every guide begins with its title and its subject, and every link has a target', async () => {
  for (const path of pages) {
    const { body, headers, statusCode } = await service.app.inject(path);
    assert.equal(statusCode, 200, path);
    assert.match(String(headers['content-security-policy']), /connect-src 'none'/);
    // A browser replaces the policy of its copy with that of a 304.
    const known = { 'if-none-match': String(headers.etag) };
    const again = await service.app.inject({ url: path, headers: known });
    assert.equal(again.statusCode, 304, path);
    assert.equal(again.headers['content-security-policy'], headers['content-security-policy']);
    assert.doesNotMatch(body, /<style|<script(?![^>]*\bsrc=)|\bstyle="|\son\w+="/, path);
    assert.doesNotMatch(body, /\]\(|```|\*\*/, `${path} shows Markdown`);
    for (const [, href = ''] of body.matchAll(/ href="([^"]+)"/g)) {
      // The changelog links to other sites.
      if (/^https:/.test(href)) continue;
      const [address = '', anchor] = href.split('#');
      const target = address === '' ? body : (await service.app.inject(address)).body;
      assert.doesNotMatch(target, /^\{"errors"/, `${path} links to ${href}`);
      if (anchor) assert.ok(target.includes(`id="${anchor}"`), `${path} links to ${href}`);
    }
  }
  // Pictures are small enough for a phone.
  for (const { path, read } of listPictures()) {
    const content = read();
    const { headers, rawPayload } = await service.app.inject(path);
    assert.equal(headers['content-type'], 'image/png');
    assert.deepEqual(rawPayload, content);
    assert.ok(content.length <= 150_000, `${path} has ${content.length} bytes`);
  }
  for (const { title, summary, file } of guides) {
    assert.ok(title !== '' && summary.endsWith('.'), file);
  }
});

/** The elements of a page, each with its class. */
const kindsOf = (html: string) =>
  new Set(
    [...html.matchAll(/<[a-z]\w*(?:[^>]* class="[^"]*")?/g)].map(([tag]) =>
      tag.replace(/ .* class/, ' class'),
    ),
  );

/** Chooses a few pages that show every kind of element: each time the one with most new kinds. */
function choosePages(bodies: Map<string, string>): string[] {
  const kinds = [...bodies].map(([path, body]) => ({ path, its: kindsOf(body) }));
  const chosen: string[] = [];
  let seen = new Set<string>();
  for (;;) {
    const [next] = kinds
      .map(({ path, its }) => ({ path, its, news: its.difference(seen).size }))
      .sort((a, b) => b.news - a.news);
    if (next === undefined || next.news === 0) return chosen;
    chosen.push(next.path);
    seen = seen.union(next.its);
  }
}

test('no text of a page breaks a rule of axe: headings, pictures, cells, links, ids', async () => {
  for (const path of pages) {
    const { body } = await service.app.inject(path);
    const levels = [...body.matchAll(/<h([1-6])\b/g)].map(([, level]) => Number(level));
    assert.deepEqual(levels.indexOf(1), levels.lastIndexOf(1), `${path} has one title`);
    for (const [index, level] of levels.entries()) {
      const before = levels[index - 1] ?? level;
      assert.ok(level <= before + 1, `${path} skips a level before heading ${index + 1}`);
    }
    assert.doesNotMatch(body, /<img\b(?![^>]* alt=)/, `${path} has a picture without words`);
    assert.doesNotMatch(body, /<th\b[^>]*>\s*<\/th>/, `${path} has a column without a name`);
    assert.doesNotMatch(body, /<a\b[^>]*>\s*<\/a>/, `${path} has a link without words`);
    const ids = [...body.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id);
    assert.equal(new Set(ids).size, ids.length, `${path} has an id twice`);
  }
});

test('the browser compacts a body exactly as the service does', () => {
  // The service refuses a member of this name anywhere.
  const values = fc.jsonValue().filter((value) => !JSON.stringify(value).includes('"__proto__":'));
  fc.assert(
    fc.property(values, fc.constantFrom(0, 1, 2, '\t'), (value, indent) => {
      const text = JSON.stringify({ value }, null, indent);
      const { compact } = readJson(Buffer.from(text));
      assert.equal(compactJson(text), compact.toString());
    }),
    { numRuns: runs(2000) },
  );
});

describe('the documentation in a browser', { skip: noBrowser }, () => {
  let browser: Browser;
  let context: BrowserContext;
  let page: Page;
  const complaints: string[] = [];
  before(async () => {
    browser = await connectBrowser();
    context = await browser.newContext({ reducedMotion: 'reduce' });
    context.on('console', (message) => complaints.push(message.text()));
    context.on('weberror', (error) => complaints.push(String(error.error())));
    context.on('request', (request) => {
      const url = request.url();
      if (url !== `${origin}/` && !url.startsWith(`${origin}/docs`)) complaints.push(url);
    });
    page = await context.newPage();
  });
  after(async () => {
    await browser?.close();
  });
  beforeEach(() => {
    complaints.length = 0;
  });

  const looks = [
    { width: 1280, colorScheme: 'dark' },
    { width: 320, colorScheme: 'light' },
  ] as const;

  /**
   * Opens a page in a tab that all tests share, because the first page of a process takes much
   * longer than the next ones.
   */
  async function open(
    path: string,
    { width, colorScheme }: (typeof looks)[number] = looks[0],
  ): Promise<void> {
    await page.setViewportSize({ width, height: 844 });
    await page.emulateMedia({ colorScheme });
    await page.goto(origin + path);
    await painted(page);
  }

  async function assertAccessible(what: string): Promise<void> {
    assert.deepEqual(await axeViolations(page), [], what);
  }

  async function assertFits(path: string): Promise<void> {
    await painted(page);
    const excess = await page.evaluate(
      'document.documentElement.scrollWidth - document.documentElement.clientWidth',
    );
    assert.equal(excess, 0, `${path} is wider than 320 px`);
  }

  test('every kind of element passes axe on a light phone and on a dark desktop, and every page fits into 320 px', async () => {
    const bodies = new Map<string, string>();
    for (const path of pages) bodies.set(path, (await service.app.inject(path)).body);
    // All pages are made of the same parts, so axe looks at pages that show them all; `test:long`
    // looks at every page.
    const examined = isLong ? pages : choosePages(bodies);
    for (const path of examined) {
      for (const look of looks) {
        // A page folds its table of contents to fit its width when it is loaded. After a change of
        // the width it does so in its next frame, and axe would see it half folded.
        await open(path, look);
        await assertAccessible(`${path} at ${look.width} px`);
        if (look === looks[1]) await assertFits(path);
      }
    }
    for (const path of pages.filter((path) => !examined.includes(path))) {
      await open(path, looks[1]);
      await assertFits(path);
    }
    assert.deepEqual(complaints, []);
  });

  test('search opens, works and closes by keyboard, and leads to the chapter', async () => {
    await open('/docs/signature');
    await page.keyboard.press('/');
    const field = page.getByRole('combobox', { name: 'Search the documentation' });
    await field.pressSequentially('callback lost');
    const results = page.getByRole('option');
    await results.first().waitFor();
    await assertAccessible('search');
    const [first] = await results.allInnerTexts();
    assert.match(first ?? '', /^When a callback is lost/);
    await page.keyboard.press('ArrowDown');
    await results.nth(1).and(page.locator('[aria-selected=true]')).waitFor();
    await page.keyboard.press('ArrowUp');
    await page.keyboard.press('Enter');
    await page.waitForURL(`${origin}/docs/guides/callbacks#when-a-callback-is-lost`);
    await painted(page);
    await page.keyboard.press('Control+k');
    await field.fill('POST /api/refunds');
    await results.first().filter({ hasText: 'Request a refund' }).waitFor();
    await field.fill('nothing of this kind');
    await page.getByText('Nothing was found.').waitFor();
    await page.keyboard.press('Escape');
    await field.waitFor({ state: 'hidden' });
    // A reader who presses the key by mistake can turn it off.
    const byKey = page.getByRole('checkbox', { name: 'Open with the key /' });
    await page.keyboard.press('/');
    // A field keeps the focus until the frame after the one in which it disappears.
    const isOpen = await page.evaluate(`{
      const dialog = document.querySelector('dialog.search');
      dialog.close();
      const key = new KeyboardEvent('keydown', { key: '/', bubbles: true });
      document.activeElement.dispatchEvent(key);
      dialog.open;
    }`);
    assert.equal(isOpen, true, 'the key opens a dialog that was just closed');
    await byKey.uncheck();
    await page.reload();
    await painted(page);
    await page.keyboard.press('/');
    assert.equal(await field.isVisible(), false);
    await page.keyboard.press('Control+k');
    await byKey.check();
    await assertAccessible('search');
  });

  test('search that could not be loaded says so, and works once it can', async () => {
    await open('/docs/signature');
    const index = await page.locator('body').getAttribute('data-search');
    await page.route(`**${index}`, (route) => route.abort(), { times: 1 });
    await page.getByRole('button', { name: 'Search' }).click();
    const status = page.getByText('The search could not be loaded. Type to try again.');
    await status.waitFor();
    await page.getByRole('combobox', { name: 'Search the documentation' }).fill('callback lost');
    await page.getByRole('option').first().waitFor();
    await status.waitFor({ state: 'detached' });
  });

  test('a button copies code, and tabs work by keyboard', async () => {
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    await open('/docs/guides/quickstart');
    await page.getByRole('button', { name: 'Copy' }).first().click();
    await page.getByRole('button', { name: 'Copied' }).waitFor();
    assert.equal(await page.evaluate('navigator.clipboard.readText()'), 'npm start');
    await open('/docs/guides/signing');
    await page.getByRole('tab', { name: 'JavaScript' }).press('ArrowRight');
    await page.getByRole('tabpanel', { name: 'PHP' }).getByText('hash_hmac').first().waitFor();
    assert.equal(await page.getByRole('tabpanel').count(), 1);
  });

  describe('the signature doctor names the mistake', () => {
    const key = 'sig_sandbox_Zk3-x_9Qw7LrT0bVn5sYcE2mHdJ8uGaPiKfOoBtRzXM';
    const secret = 'cs_sandbox_T8rW2qL5nX7vB0mZ3cK6jH9gF1dS4aPoIuYtReWqAsD';
    const value = { checkout_id: 'Zoë/1', amount: 50000 };
    const body = JSON.stringify(value);
    const sign = (text: string, encoding: 'base64' | 'base64url' | 'hex' = 'base64', by = key) =>
      createHmac('sha512', by).update(text).digest(encoding);
    const right = sign(body);
    const pretty = JSON.stringify(value, null, 2);
    const php = '{"checkout_id":"Zo\\u00eb\\/1","amount":50000}';

    type Fields = { body?: string; header: string; key?: string; secret?: string };
    const table: [about: string, fields: Fields, outcome: RegExp, bytes?: RegExp][] = [
      ['none', { header: right }, /^The signature is right/],
      ['hex', { header: sign(body, 'hex') }, /The value is hex/],
      ['URL-safe Base64', { header: sign(body, 'base64url') }, /The value is URL-safe Base64/],
      [
        'the client secret used as the key',
        { header: sign(body, 'base64', secret), secret },
        /The signature was made with the client secret/,
        /from byte 0: 63 73 5f/,
      ],
      ['the client secret entered', { header: right, key: secret }, /This is a client secret/],
      [
        'pretty-printed text signed',
        { header: sign(pretty) },
        /The signed text is pretty-printed/,
        /from byte 1: 0a 20 20 22/,
      ],
      [
        'a trailing newline',
        { header: sign(`${body}\n`) },
        /The signed text ends in a line break/,
        /from byte 39: 0a\b[\s\S]*from byte 39: the end/,
      ],
      [
        'a re-serialised body',
        { header: sign(php) },
        /another serialisation of this body/,
        /from byte 18: 5c 75 30 30[\s\S]*from byte 18: c3 ab/,
      ],
      [
        'the key of the other environment',
        { header: right, key: key.replace('sandbox', 'production') },
        /signing key for the production environment/,
      ],
      [
        'quotes in the key that was used',
        { header: sign(body, 'base64', `"${key}"`) },
        /made with the signing key in quotes/,
      ],
      [
        'quotes in the key that was entered',
        { header: right, key: `"${key}"` },
        /^The signature is right for the key as it was issued; what you pasted has quotes around it/,
      ],
      [
        'white space in the key that was entered',
        { header: right, key: ` ${key} ` },
        /^The signature is right for the key as it was issued; what you pasted has white space/,
      ],
      [
        'quotes in the key that was entered, and another body',
        { header: sign('{}'), key: `"${key}"` },
        /does not match[\s\S]*Remove the quotes around the key/,
      ],
      [
        'the client secret entered and used',
        { header: sign(body, 'base64', secret), key: secret },
        /^The signature was made with the wrong key[\s\S]*This is a client secret/,
      ],
      [
        'white space in the header',
        { header: ` ${right.slice(0, 40)} ${right.slice(40)}` },
        /without quotes, label or white space/,
      ],
      [
        'a callback that was formatted',
        { header: right, body: pretty },
        /^The signature is right[\s\S]*verify the raw bytes/,
      ],
      ['not JSON', { header: right, body: 'checkout' }, /The body is not JSON/],
      ['another body', { header: sign('{}') }, /made with another key or over another body/],
    ];

    test('for each known mistake', async () => {
      await open('/docs/signature');
      await page.getByText('Was it the client secret?').click();
      const outcome = page.locator('#outcome');
      let filled: Record<string, string> = {};
      for (const [about, fields, expected, bytes] of table) {
        const all: Record<string, string> = { body, key, secret: '', ...fields };
        for (const [name, text] of Object.entries(all)) {
          if (filled[name] !== text) await page.fill(`#${name}`, text);
        }
        filled = all;
        // Nothing else shows that the new diagnosis has replaced the old one, so poll for it.
        const text = await until(about, async () => {
          const found = (await outcome.allInnerTexts()).join('');
          return expected.test(found) && found;
        });
        if (bytes) assert.match(text, bytes, about);
        const isRight = expected.source.startsWith('^The signature is right');
        assert.equal(text.includes('The signature is right'), isRight, about);
        assert.ok(!isRight || !text.includes('does not match'), about);
      }
      await assertAccessible('an outcome');
      assert.deepEqual(complaints, []);
    });
  });
});
