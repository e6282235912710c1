import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mainGateway } from '#gateway/gateway-name.ts';
import { languages } from '#platform/shared/language.ts';
import type { Instalment } from '#purchases/instalments/instalment.ts';
import { type MessageFacts, shopperMessageKinds } from '#purchases/messages/message.ts';
import { composeMessage, type MessageSubject } from './compose-message.ts';
import { renderHtml, renderSubject, renderText } from './render-letter.ts';

const payment = (number: number, changes: Partial<Instalment> = {}): Instalment => ({
  merchant_id: '',
  checkout_id: '',
  gateway: mainGateway,
  number,
  amount: 50_000,
  currency: 'ZAR',
  due_on: `2026-0${number + 1}-15`,
  status: number === 1 ? 'collected' : 'scheduled',
  reduced: 0,
  payment_ref: null,
  collected_at: null,
  declines: 0,
  due_at: null,
  paused: false,
  shopper_attempt: null,
  attempts: 0,
  lease: null,
  leased_until: null,
  ...changes,
});

const subject: MessageSubject = {
  merchant: {
    name: 'Karoo & Sons',
    contact: 'help@karoo.example',
    address: '12 Long Street\nCape Town\n8001',
    vat_number: '4123456789',
    territory: {
      code: 'ZA',
      currency: 'ZAR',
      locale: 'en-ZA',
      time_zone: 'Africa/Johannesburg',
      payment_min: 1_000,
    },
  },
  checkout: {
    amount: 150_000,
    currency: 'ZAR',
    client_reference_id: 'KO-2041',
    number_of_payments: 3,
  },
  language: 'en',
  instalments: [payment(0), payment(1), payment(2)],
  card: { brand: 'visa', last4: '4242' },
  isForbidden: false,
  url: 'https://pay.example/pay/token',
  answer: { text: 'It is on its way.\n\nAnje', question: 'Where is it?' },
  today: '2026-12-15',
};

const facts = {
  instalment: 2,
  amount: 50_000,
  retry_on: '2026-12-16',
  card_expires: '2027-01',
};

/** Each kind, and the variants of a kind that have sentences of their own. */
const letters: [
  name: string,
  kind: (typeof shopperMessageKinds)[number],
  more?: MessageFacts,
  changes?: Partial<MessageSubject>,
][] = [
  ...shopperMessageKinds.map((kind): [string, typeof kind] => [kind, kind]),
  ['charge_soon (card forbidden)', 'charge_soon', {}, { isForbidden: true }],
  ['declined (card forbidden)', 'declined', {}, { isForbidden: true }],
  ['declined (bank not asked)', 'declined', { uncharged: 'not_asked' }],
  ['declined (hold lapsed)', 'declined', { uncharged: 'lapsed' }],
];

for (const [name, kind, more, changes] of letters) {
  test(`a ${name} message names the shop and the order in every language, and leaves nothing blank`, () => {
    const subjects = languages.map((language) => {
      const about = { kind, facts: { ...facts, ...more } };
      const letter = composeMessage(about, { ...subject, ...changes, language });
      const text = renderText(letter);
      const html = renderHtml(letter, language);
      assert.doesNotMatch(text + html, /undefined|null|NaN|Invalid/);
      assert.match(text, /https:\/\/pay\.example\/pay\/token/);
      assert.match(text, /KO-2041/);
      assert.match(renderSubject(letter) + text, /Karoo & Sons/);
      assert.match(html, /Karoo &amp; Sons/);
      if (letter.rows.length > 0) assert.match(text, /R 500,00/, 'as in the territory');
      assert.match(html, new RegExp(`<html lang="${language}">`));
      return renderSubject(letter);
    });
    assert.equal(new Set(subjects).size, languages.length, 'each language has its own words');
  });
}

test('the plan in a letter names what is paid, next, late and cancelled', () => {
  const instalments = [
    payment(1),
    payment(2, { status: 'overdue', declines: 4 }),
    payment(3, { status: 'scheduled' }),
    payment(4, { status: 'cancelled', reduced: 50_000 }),
  ];
  const { rows } = composeMessage({ kind: 'charged', facts }, { ...subject, instalments });
  assert.deepEqual(
    rows.map(({ state }) => state),
    ['paid', 'late', 'next', 'cancelled'],
  );
});

test('a subject that is too long is cut between two characters', () => {
  for (const name of ['\u{1f97e}'.repeat(250), `K${'\u{1f97e}'.repeat(250)}`]) {
    const merchant = { ...subject.merchant, name };
    const letter = composeMessage({ kind: 'receipt', facts }, { ...subject, merchant });
    const cut = renderSubject(letter);
    assert.ok(cut.isWellFormed() && [...cut].length === 200);
  }
});
