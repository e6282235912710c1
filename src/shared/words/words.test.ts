import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { languages } from '../language.ts';
import { en } from './en.ts';
import { fillIn } from './fill-in.ts';
import { words } from './words.ts';

const keys = Object.keys(en.page) as (keyof typeof en.page)[];
const valuesIn = (text: string) => [...text.matchAll(/\{(\w+)\}/g)].map(([, name]) => name).sort();
const sources = globSync('web/pay/*.{ts,tsx}').map((file) => ({
  file,
  text: readFileSync(file, 'utf8'),
}));

for (const language of languages) {
  test(`every text exists in ${language}, with the values of the English one`, () => {
    assert.deepEqual(Object.keys(words[language].page).sort(), [...keys].sort());
    for (const key of keys) {
      const text = words[language].page[key];
      assert.ok(text.trim() === text && text !== '', key);
      assert.deepEqual(valuesIn(text), valuesIn(en.page[key]), key);
      assert.doesNotMatch(text, /<|&|!/, key);
    }
    assert.equal(words[language].page.months.split(',').length, 12);
  });
}

test('no language repeats the English text by mistake', () => {
  const same = ['date', 'items_one', 'items_other'];
  for (const language of ['af', 'zu'] as const) {
    for (const key of keys) {
      if (same.includes(key)) continue;
      assert.notEqual(words[language].page[key], en.page[key], `${language}: ${key}`);
    }
  }
});

test('the page uses every text', () => {
  const used = sources.map(({ text }) => text).join('\n');
  const isUsed = (key: string) => new RegExp(`['"]${key}['"]|words[.]${key}\\b`).test(used);
  assert.deepEqual(
    keys.filter((key) => !isUsed(key)),
    [],
  );
});

test('the page has no text of its own', () => {
  // The ribbon of the sandbox is for developers; the gallery is not part of the page.
  const others = /(test-cards[.]tsx|gallery[.]ts)$/;
  for (const { file, text } of sources) {
    if (others.test(file)) continue;
    const code = text.replaceAll(/^\s*(?:\/\/|\/?\*).*$/gm, '');
    const written = code
      .split('\n')
      .filter((line) => /^\s*[A-Z][\w’,]* [a-z][^=;(){}]*$|>[A-Z][a-z]+ [a-z]/.test(line))
      .filter((line) => !/=>|Promise</.test(line));
    assert.deepEqual(written, [], file);
  }
});

test('values are filled in, and an unknown one leaves nothing behind', () => {
  assert.equal(fillIn('Pay {amount} now', { amount: 'R 5,00' }), 'Pay R 5,00 now');
  assert.equal(fillIn('{a}{a} {b}', { a: '{b}', b: 1 }), '{b}{b} 1');
  assert.equal(fillIn('{missing}.'), '.');
});
