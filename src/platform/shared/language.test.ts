import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chooseLanguage, type Language } from './language.ts';

test('the page speaks the language that a browser prefers, and English otherwise', () => {
  const cases: [string | undefined, Language][] = [
    [undefined, 'en'],
    ['', 'en'],
    ['af', 'af'],
    ['af-ZA,en;q=0.8', 'af'],
    ['ZU-za', 'zu'],
    ['en-ZA,af;q=0.9,zu;q=0.8', 'en'],
    ['xh-ZA,zu;q=0.7,en;q=0.6', 'zu'],
    ['en;q=0.3, zu ; q=0.9', 'zu'],
    ['de-DE,fr', 'en'],
    ['af;q=0,zu;q=0.1', 'zu'],
    ['af;q=0', 'en'],
    ['zu,af', 'zu'],
    ['*', 'en'],
    [';;;,,q=1,af;q=x', 'en'],
    [`${'x,'.repeat(100_000)}af`, 'en'],
  ];
  for (const [header, language] of cases) {
    assert.equal(chooseLanguage(header), language, String(header).slice(0, 40));
  }
});
