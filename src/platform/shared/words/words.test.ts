import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { languages } from '../language.ts';
import { en } from './en.ts';
import { fillIn } from './fill-in.ts';
import { words } from './words.ts';

type Section = keyof typeof en;

const sections = Object.keys(en) as Section[];
/** Every text by its key, such as `page.date`. */
const keys = sections.flatMap((section) =>
  Object.keys(en[section]).map((key) => `${section}.${key}`),
);
const textOf = (language: (typeof languages)[number], name: string): string => {
  const [section, key = ''] = name.split('.');
  return (words[language][section as Section] as Record<string, string>)[key] ?? '';
};
const valuesIn = (text: string) => [...text.matchAll(/\{(\w+)\}/g)].map(([, name]) => name).sort();
const read = (pattern: string) =>
  globSync(pattern)
    // The gallery shows the page's states to developers.
    .filter((file) => !file.endsWith('gallery.ts'))
    .map((file) => ({ file, text: readFileSync(file, 'utf8') }));
/** Where the texts of each section are used. */
const users: Record<Section, { file: string; text: string }[]> = {
  page: [
    ...read('web/pay/{,panels/}*.{ts,tsx}'),
    ...read('src/platform/shared/words/write-{date,charges}.ts'),
    // The receipt names the shop as the page does.
    ...read('src/purchases/shoppers/receipt.ts'),
  ],
  receipt: read('src/purchases/shoppers/receipt.ts'),
  calendar: read('src/purchases/shoppers/calendar.ts'),
  link: [
    ...read('web/pay/link-page.tsx'),
    ...read('src/purchases/messages/sending/compose-link-mail.ts'),
  ],
  statement: read('src/purchases/payouts/{line-names,*statement*,*monthly-mail}.ts'),
  letter: read('src/purchases/messages/sending/{letters,compose-message}.ts'),
};

for (const language of languages) {
  test(`every text exists in ${language}, with the values of the English one`, () => {
    for (const section of sections) {
      const of = (one: (typeof languages)[number]) => Object.keys(words[one][section]).sort();
      assert.deepEqual(of(language), of('en'));
    }
    for (const key of keys) {
      const text = textOf(language, key);
      assert.ok(text.trim() === text && text !== '', key);
      assert.deepEqual(valuesIn(text), valuesIn(textOf('en', key)), key);
      assert.doesNotMatch(text, /<|&|!/, key);
    }
    assert.equal(words[language].page.months.split(',').length, 12);
  });
}

test('no language repeats the English text by mistake', () => {
  const same = ['page.date', 'page.items_one', 'page.items_other'];
  for (const language of ['af', 'zu'] as const) {
    for (const key of keys) {
      if (same.includes(key)) continue;
      assert.notEqual(textOf(language, key), textOf('en', key), `${language}: ${key}`);
    }
  }
});

test('pages and messages use every text', () => {
  const isUsed = (section: Section, key: string) => {
    const use = new RegExp(`['"]${key}['"]|(?:words|texts|${section})[.]${key}\\b`);
    return users[section].some(({ text }) => use.test(text));
  };
  const unused = sections.flatMap((section) =>
    Object.keys(en[section])
      .filter((key) => !isUsed(section, key))
      .map((key) => `${section}.${key}`),
  );
  assert.deepEqual(unused, []);
});

test('pages and messages have no text of their own', () => {
  // The sandbox's list of test cards is for developers, and the words in a calendar file belong to
  // its format.
  const others = /(test-cards[.]tsx|calendar[.]ts)$/;
  for (const { file, text } of Object.values(users).flat()) {
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

test('a text has no number that the English one lacks', () => {
  const numbersIn = (text: string): string[] => text.match(/\d+/g) ?? [];
  for (const language of languages) {
    for (const key of keys) {
      const english = numbersIn(textOf('en', key));
      const others = numbersIn(textOf(language, key)).filter((one) => !english.includes(one));
      assert.deepEqual(others, [], `${key} in ${language}`);
    }
  }
});
