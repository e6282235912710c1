import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { testCards } from '../../test-gateway/cards.ts';
import { noBrowser } from '../support/browser.ts';
import { isLong } from '../support/service.ts';
import {
  answerBank,
  cardField,
  heading,
  landed,
  openShop,
  pay,
  payButton,
  term,
  typeCard,
} from '../support/shop.ts';

function cardNumber(name: string): string {
  return testCards.find((card) => card.name === name)?.number as string;
}

// `npm test` types a card of each kind that differs in what the shopper types or sees, and `npm run
// test:long` types every card.
const approved = [
  'amex',
  'visa',
  'later_lost',
  'mastercard',
  'refund_pending',
  'refund_fails',
  'dispute_fraudulent',
  'dispute_not_received',
  'dispute_inquiry',
  'later_insufficient_funds',
];
const challenged = ['challenge_once', 'challenge_on_request', 'challenge_always', 'challenge'];
const declinedByBank = [
  ['challenge_once', 'Decline', 'Your bank could not confirm that it was you.'],
  ['challenge_declined', 'Approve', 'Your bank declined this card.'],
  ['challenge_insufficient_funds', 'Approve', 'Your bank declined this card: not enough funds.'],
] as const;

const visa = cardNumber('visa');

describe('every test card, typed into the card frame', { skip: noBrowser }, () => {
  const { shop, scenario } = openShop();

  describe('is approved and brings the browser to success_url', () => {
    for (const name of isLong ? approved : approved.slice(0, 1)) {
      scenario(name, { ends: 'successful' }, async (visit) => {
        const { page, shopper, success_url } = visit;
        await term(page, 3).check();
        await typeCard(page, cardNumber(name), true);
        await payButton(page).click();
        await heading(page, 'Payment approved').waitFor();
        await landed(visit, page, success_url);
        const [card] = await shopper.rows('stored_cards');
        assert.equal(card.last4, cardNumber(name).slice(-4));
      });
    }
  });

  const unnamed = 'Your bank declined this card.';
  const allDeclines: [name: string, happened: string, next: string][] = [
    ['declined', unnamed, 'Try again or use another card.'],
    ['lost', unnamed, 'Use another card.'],
    [
      'insufficient_funds',
      'Your bank declined this card: not enough funds.',
      'Try again or use another card.',
    ],
    ['stolen', unnamed, 'Use another card.'],
    [
      'velocity',
      'Your bank declined this card: it has reached its limit for now.',
      'Try again later or use another card.',
    ],
    ['charges_fail', unnamed, 'Try again or use another card.'],
    ['expired', 'Your bank declined this card: it has expired.', 'Use another card.'],
    [
      'cvc',
      'Your bank declined this card: the security code is not right.',
      'Check the code or use another card.',
    ],
    ['challenge_lookup_error', unnamed, 'Try again or use another card.'],
    [
      'processing_error',
      'Your bank could not handle the payment just now.',
      'Try again in a moment or use another card.',
    ],
  ];
  // The page says the same about these cards as about others, so only `test:long` tries them.
  const repeats = ['stolen', 'charges_fail', 'challenge_lookup_error'];
  const declines = allDeclines.filter(([name]) => isLong || !repeats.includes(name));
  // Tries one card after another, like a shopper with several. No two consecutive cards show the
  // same text.
  scenario(
    'is declined in plain words; then another card pays, and the shopper types only the card again',
    { ends: 'successful' },
    async (visit) => {
      const { page, shopper, success_url } = visit;
      await term(page, 3).check();
      for (const [name, happened, next] of declines) {
        await typeCard(page, cardNumber(name));
        await page.getByRole('button', { name: 'Pay R 500,00 now' }).click();
        const words = `${happened} Nothing was charged. ${next}`;
        await page.getByRole('alert').filter({ hasText: words }).waitFor();
        assert.equal(await shopper.callback(), null);
        assert.equal(await term(page, 3).isChecked(), true);
      }
      await typeCard(page, visa);
      await page.getByRole('button', { name: 'Pay R 500,00 now' }).click();
      await landed(visit, page, success_url);
      const attempts = await shopper.attempts();
      assert.deepEqual(
        attempts.map(({ status, number_of_payments }) => `${status} ${number_of_payments}`),
        [...declines.map(() => 'declined 3'), 'authorised 3'],
      );
    },
  );

  describe('is challenged by its bank', () => {
    for (const name of isLong ? challenged : []) {
      scenario(`approved: ${name} lands at success_url`, { ends: 'successful' }, async (visit) => {
        const { page, success_url } = visit;
        await pay(page, cardNumber(name), 3);
        await answerBank(page, 'Approve');
        await heading(page, 'Payment approved').waitFor();
        await landed(visit, page, success_url);
      });
    }

    scenario(
      'declined, by the shopper or the bank: the term stays, and another card pays at its bank',
      { ends: 'successful' },
      async (visit) => {
        const { page, success_url } = visit;
        await term(page, 6).check();
        for (const [name, answer, happened] of declinedByBank) {
          await typeCard(page, cardNumber(name));
          await payButton(page).click();
          await answerBank(page, answer);
          const words = await page.getByRole('alert').textContent();
          assert.equal(words, `${happened} Nothing was charged. Try again or use another card.`);
          assert.equal(await term(page, 6).isChecked(), true);
        }
        await typeCard(page, cardNumber('challenge_on_request'));
        await page.getByRole('button', { name: 'Pay R 250,00 now' }).click();
        await answerBank(page, 'Approve');
        await heading(page, 'Payment approved').waitFor();
        await landed(visit, page, success_url);
      },
    );

    scenario(
      'closed: another card may be used, which voids the first attempt, or the bank’s page continued',
      { ends: 'successful' },
      async (visit) => {
        const { page, shopper, success_url } = visit;
        await pay(page, cardNumber('challenge'), 3);
        await answerBank(page, 'Close');
        await page.getByRole('button', { name: 'Use another card' }).click();
        assert.equal(await term(page, 3).isChecked(), true);
        await typeCard(page, cardNumber('challenge'));
        await payButton(page).click();
        await answerBank(page, 'Close');
        await heading(page, 'Your bank wants to hear from you').waitFor();
        await page.getByText('Nothing is charged until you do.').waitFor();
        assert.equal(await payButton(page).count(), 0);
        await page.getByRole('button', { name: 'Continue at your bank' }).click();
        await answerBank(page, 'Approve');
        await landed(visit, page, success_url);
        const [first, second, ...others] = await shopper.attempts();
        assert.ok(first?.status === 'voiding' || first?.status === 'voided');
        assert.deepEqual([second?.status, others.length], ['authorised', 0]);
      },
    );
  });

  describe('is refused if it is not a card', () => {
    scenario(
      'an empty, a short, a wrong and a real number are named, and nothing is requested',
      { ends: 'received', tolerates: /402/ },
      async ({ page, shopper }) => {
        for (const [number, words] of [
          ['', 'Enter the card number.'],
          ['424242424242', 'The card number is not complete.'],
          ['4242424242424241', 'This card number is not right.'],
        ] as const) {
          await pay(page, number);
          await cardField(page, 'Card number').and(page.locator(':focus')).waitFor();
          const frame = page.frameLocator('iframe[title="Card details"]');
          await frame.getByText(words).waitFor();
          await payButton(page).waitFor();
          assert.deepEqual(await shopper.attempts(), []);
        }
        await pay(page, '4111111111111111');
        const words = await page.getByRole('alert').textContent();
        assert.equal(words, 'Only test cards work here. Nothing was charged.');
        assert.deepEqual(await shopper.attempts(), []);
      },
    );
  });

  test('every test card is in a list above', () => {
    const listed = [approved, challenged, allDeclines.map(([name]) => name)].flat();
    const names = new Set([...listed, ...declinedByBank.map(([name]) => name)]);
    assert.deepEqual([...names].sort(), testCards.map(({ name }) => name).sort());
  });

  test('no card number reached the server, its database or its log', async () => {
    const { rows } = await shop().paying.service.deps.database.pool.query<{ name: string }>(
      "select quote_ident(tablename) as name from pg_tables where schemaname = 'public'",
    );
    let stored = '';
    for (const { name } of rows) {
      const found = await shop().paying.service.deps.database.pool.query<{ row: string }>(
        `select t::text as row from ${name} t`,
      );
      stored += found.rows.map(({ row }) => row).join('\n');
    }
    const received = shop().received();
    assert.match(received, /POST \/pay\/[^ ]+\/pay .*"card_token":"ctoken_/s);
    assert.match(stored, /ctoken|pi_/);
    for (const { number } of testCards) {
      const digits = new RegExp([...number].join('[ +-]?(%20)?'));
      for (const [where, text] of Object.entries({ received, stored, logged: shop().logged() })) {
        assert.doesNotMatch(text, digits, `${number} was ${where}`);
      }
    }
  });
});
