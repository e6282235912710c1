import assert from 'node:assert/strict';
import { test } from 'node:test';
import { identifiersOf, namesAddress, namesPerson, withoutPerson } from './pseudonyms.ts';

const email = 'nd@example.com';
const apart = identifiersOf([{ email, first_name: 'Nomvula', last_name: 'van Wyk' }]);
const inOneField = identifiersOf([{ email, first_name: 'Nomvula van Wyk' }]);

test('a name is found however its parts are sent', () => {
  for (const identifiers of [apart, inOneField]) {
    for (const text of [
      'for Nomvula van Wyk',
      'van Wyk Nomvula',
      'NOMVULA.VAN%20WYK',
      'Nomvula_van Wyk',
    ]) {
      assert.ok(namesPerson(text, identifiers), text);
    }
    assert.ok(!namesPerson('order 17', identifiers));
  }
});

test('a name and an address are found in both normal forms of Unicode', () => {
  const [email, first_name] = ['zo\u00e9@example.com', 'Zo\u00e9'];
  for (const [stored, written] of [
    ['NFC', 'NFD'],
    ['NFD', 'NFC'],
  ] as const) {
    const names = { first_name: first_name.normalize(stored), last_name: 'Nkosi' };
    const identifiers = identifiersOf([{ email: email.normalize(stored), ...names }]);
    for (const text of [`${first_name} Nkosi`, encodeURIComponent(email.normalize(written))]) {
      assert.ok(namesPerson(text.normalize(written), identifiers), `${stored} ${text}`);
    }
    const note = `${first_name} phoned`.normalize(written);
    assert.equal(withoutPerson(note, identifiers, 'written by people'), '[erased] phoned');
  }
});

for (const [body, isTheirs] of [
  ['{"email":"an@example.com"}', true],
  ['{"email": "AN@Example.com"}', true],
  ["{'email': 'an@example.com'}", true],
  ['email=an%40example.com&name=An', true],
  ['{"cancel_url":"https:\\/\\/shop.example\\/an%40example.com\\/cart"}', true],
  ['{"name":"An \\u003can@example.com\\u003e"}', true],
  ['{"note":"Write to:\\nan@example.com. Thanks"}', true],
  ['for%20an%40example.com%2E', true],
  ['an@example.com', true],
  ['{"email":"jan@example.com"}', false],
  ['{"email":"j.an@example.com"}', false],
  ['{"email":"j+an@example.com"}', false],
  ["{'email': 'j'an@example.com'}", false],
  ['{"email":"\\u00e9an@example.com"}', false],
  ['{"email":"e\u0301an@example.com"}', false],
  ['{"email":"an@example.com.au"}', false],
  ['{"email":"an@example.community"}', false],
  ['email=j%2Ban%40example.com', false],
  ['email=%C3%A9an%40example.com', false],
  ['email=an%40example.com%2Eau', false],
] as const) {
  test(`${isTheirs ? 'an address' : 'no longer address'} is taken for a shopper’s: ${body}`, () => {
    assert.equal(namesAddress(body, 'an@example.com'), isTheirs);
  });
}

test('an address is found in a body however its letters are written', () => {
  const email = 'zo\u00e9+1@example.com';
  const spellings = [
    email,
    email.normalize('NFD'),
    'ZO\u00c9+1@example.com',
    'zo\\u00e9+1@example.com',
    'ZO\\u00C9+1@example.com',
    'zoe\\u0301+1@example.com',
    encodeURIComponent(email),
    encodeURIComponent(email.normalize('NFD')),
  ];
  for (const spelling of spellings) {
    assert.ok(namesAddress(`{"email":"${spelling}"}`, email), spelling);
  }
});

test('one word of a name is erased in what people wrote, only as a whole word', () => {
  const text = 'nomvula phoned; Wyk asked. Wykham did not.';
  for (const identifiers of [apart, inOneField]) {
    assert.equal(
      withoutPerson(text, identifiers, 'written by people'),
      '[erased] phoned; [erased] asked. Wykham did not.',
    );
    assert.equal(withoutPerson(text, identifiers), text);
  }
});
