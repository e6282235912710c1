import assert from 'node:assert/strict';
import fs from 'node:fs';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';

// The bytes sent until the console's first page is shown: each file is compressed separately.
const budgetBytes = 225 * 1024;
const dist = new URL('../../web/dist/console/', import.meta.url);
const read = (name: string) => fs.readFileSync(new URL(name, dist));
const html = read('index.html').toString('utf8');

/** A script with all scripts that it imports before it runs, directly or through others. */
function staticImports(name: string, found = new Set<string>()): Set<string> {
  if (found.has(name)) return found;
  found.add(name);
  const code = read(`assets/${name}`).toString('utf8');
  for (const [, file = ''] of code.matchAll(/(?:from|import)\s?["']\.\/([^"']+\.js)["']/g)) {
    staticImports(file, found);
  }
  return found;
}

const assetOf = (page: string) => {
  const name = fs.readdirSync(new URL('assets/', dist)).find((file) => file.startsWith(`${page}-`));
  assert.ok(name, `there is a chunk of the page ${page}`);
  return name;
};

test('the first load of the console is at most 225 kB compressed, on every page', (t) => {
  const inDocument = [...html.matchAll(/\/assets\/([^"']+)/g)].map(([, name = '']) => name);
  assert.ok(inDocument.some((name) => name.endsWith('.css')));
  for (const page of [
    'overview',
    'checkouts',
    'checkout',
    'refunds',
    'callbacks',
    'integrations',
  ]) {
    const files = new Set(inDocument);
    for (const name of [...files].filter((file) => file.endsWith('.js')).concat(assetOf(page))) {
      for (const file of staticImports(name)) files.add(file);
    }
    const bytes = [...files].reduce(
      (sum, name) => sum + gzipSync(read(`assets/${name}`), { level: 9 }).length,
      gzipSync(html).length,
    );
    t.diagnostic(`${page}: ${bytes} bytes in ${files.size} files`);
    assert.ok(bytes <= budgetBytes, `${page}: ${bytes} bytes`);
  }
});

test('the charts are not part of the first load', () => {
  const plot = assetOf('plot');
  assert.ok(plot.endsWith('.js') || plot.endsWith('.css'));
  const first = staticImports(assetOf('overview'));
  assert.ok(![...first].some((name) => name.startsWith('plot-')));
});

test('the page loads nothing from elsewhere and has neither inline script nor inline style', () => {
  assert.doesNotMatch(html, /https?:/);
  assert.doesNotMatch(html, /<style|style=|<script(?![^>]*\bsrc=)/);
});
