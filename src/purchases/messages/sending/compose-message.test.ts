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
  refund: { changesPlan: true, returned: 20_000 },
  refunded: [],
  today: '2026-02-15',
};

const facts = {
  instalment: 2,
  amount: 50_000,
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

test('the plan in a letter names what is paid, refunded, next, late and cancelled', () => {
  const instalments = [
    payment(1),
    payment(2, { status: 'overdue', declines: 4 }),
    payment(3, { status: 'scheduled' }),
    payment(4, { status: 'cancelled', reduced: 50_000 }),
    payment(5, { status: 'collected' }),
  ];
  const refunded = [{ instalment: 5, sum: 20_000 }];
  const { rows } = composeMessage(
    { kind: 'charged', facts },
    { ...subject, instalments, refunded },
  );
  assert.deepEqual(
    rows.map(({ state }) => state),
    ['paid', 'late', 'next', 'cancelled', 'R\u00a0200,00 refunded'],
  );
});

const textOf = (
  kind: (typeof shopperMessageKinds)[number],
  changes: Partial<MessageSubject>,
  more: MessageFacts = {},
) => renderText(composeMessage({ kind, facts: { ...facts, ...more } }, { ...subject, ...changes }));

for (const [changesPlan, returned] of [
  [true, 0],
  [true, 20_000],
  [false, 20_000],
] as const) {
  test(`a refund that ${changesPlan ? 'changes' : 'does not change'} the plan and returns ${returned} says so`, () => {
    const text = textOf('refunded', { refund: { changesPlan, returned } });
    assert.equal(/The table shows what it changed\./.test(text), changesPlan);
    assert.equal(/R 500,00 of R 1 500,00 is paid\./.test(text), changesPlan);
    assert.equal(/Back to your card: R 200,00\./.test(text), returned > 0);
  });
}

test('after a refund that leaves nothing to pay, the letter does not say what is paid of the plan', () => {
  const cancelled = payment(2, { status: 'cancelled', reduced: 50_000 });
  const text = textOf('refunded', { instalments: [payment(1), cancelled] });
  assert.match(text, /The table shows what it changed\./);
  assert.doesNotMatch(text, /is paid\./);
});

const shoppersAttempt = { paused: true, shopper_attempt: 'an attempt' };
for (const [what, changes, isAnnounced] of [
  ['is due today', {}, true],
  ['was due yesterday', { due_on: '2026-02-14' }, false],
  ['is paused', { paused: true }, false],
  ['is being paid by the shopper', shoppersAttempt, true],
] as const) {
  test(`a letter ${isAnnounced ? 'announces' : 'does not announce'} a next payment that ${what}`, () => {
    const next = payment(2, { due_on: '2026-02-15', ...changes });
    const text = textOf('receipt', { instalments: [payment(1), next] });
    assert.equal(/Next: R 500,00 on/.test(text), isAnnounced);
    assert.equal(/We will charge the later payments/.test(text), isAnnounced);
  });
}

const retries: [what: string, changes: Partial<Instalment>, date: string | null, more: boolean][] =
  [
    ['tomorrow, after the first decline', { due_at: '2026-02-16T06:00:00.000Z' }, '16', true],
    ['today in the territory', { due_at: '2026-02-14T22:30:00.000Z' }, '15', true],
    ['in ten days, as the card network asks', { due_at: '2026-02-25T06:00:00.000Z' }, '25', false],
    ['after the second decline', { due_at: '2026-02-16T06:00:00.000Z', declines: 2 }, '16', false],
    ['on a day that has passed', { due_at: '2026-02-14T06:00:00.000Z' }, null, false],
    ['never', { due_at: null, status: 'overdue' }, null, false],
    ['when the pause ends', { due_at: '2026-02-16T06:00:00.000Z', paused: true }, null, false],
  ];
for (const [what, changes, date, more] of retries) {
  test(`a retry ${what} is announced as it is`, () => {
    const late = payment(2, { declines: 1, due_on: '2026-02-01', ...changes });
    const text = textOf('declined', { instalments: [payment(1), late] });
    const announced = /We will try again on (\d+) February 2026\./.exec(text)?.[1] ?? null;
    assert.equal(announced, date);
    assert.equal(/we will try twice more within a week\./.test(text), more);
  });
}

test('a subject that is too long is cut between two characters', () => {
  for (const name of ['\u{1f97e}'.repeat(250), `K${'\u{1f97e}'.repeat(250)}`]) {
    const merchant = { ...subject.merchant, name };
    const letter = composeMessage({ kind: 'receipt', facts }, { ...subject, merchant });
    const cut = renderSubject(letter);
    assert.ok(cut.isWellFormed() && [...cut].length === 200);
  }
});
