import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Browser } from 'playwright-core';
import { languages } from '#platform/shared/language.ts';
import type { Instalment } from '#purchases/instalments/instalment.ts';
import { shopperMessageKinds } from '#purchases/messages/message.ts';
import { composeMessage } from '#purchases/messages/sending/compose-message.ts';
import { renderHtml } from '#purchases/messages/sending/render-letter.ts';
import { axeViolations } from '../support/axe.ts';
import { connectBrowser, noBrowser } from '../support/browser.ts';
import { isLong } from '../support/service.ts';

// Messages as a mail client shows them: one of each kind, with a payment in every state.

const payment = (
  number: number,
  status: Instalment['status'],
  changes: Partial<Instalment> = {},
): Instalment =>
  ({
    number,
    amount: 50_000,
    due_on: Temporal.PlainDate.from('2026-11-15')
      .add({ months: number - 1 })
      .toString(),
    status,
    reduced: 0,
    declines: 0,
    ...changes,
  }) as Instalment;

const instalments = [
  payment(1, 'collected'),
  payment(2, 'overdue', { declines: 4 }),
  payment(3, 'scheduled', { reduced: 20_000 }),
  payment(4, 'scheduled'),
  payment(5, 'cancelled', { reduced: 50_000 }),
];

function letterOf(
  kind: (typeof shopperMessageKinds)[number],
  language: (typeof languages)[number],
) {
  const facts = { instalment: 2, amount: 50_000, card_expires: '2026-12' };
  const letter = composeMessage(
    { kind, facts },
    {
      merchant: {
        name: 'Die Groot Karoo Koffiehandelsmaatskappy <b>&amp;</b>',
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
        amount: 250_000,
        currency: 'ZAR',
        client_reference_id: 'KO-2041',
        number_of_payments: 5,
      },
      language,
      instalments,
      card: { brand: 'amex', last4: '0005' },
      isForbidden: false,
      url: 'https://pay.example/pay/token',
      answer: {
        text: 'Your parcel left our shop on Tuesday. <b>The courier</b> brings it on Friday.\n\nAnje',
        question: 'Where is my order?\nI paid twice.',
      },
      refund: { changesPlan: true, returned: 50_000 },
      refunded: [],
      today: '2026-12-15',
    },
  );
  return renderHtml(letter, language);
}

describe('messages in a browser', { skip: noBrowser }, () => {
  let browser: Browser;
  before(async () => {
    browser = await connectBrowser();
  });
  after(async () => {
    await browser?.close();
  });

  const looks = [
    [390, 'light'],
    [1280, 'dark'],
  ] as const;

  // All messages are built from the same parts, so each is shown in one of the two looks here, and
  // in both in `npm run test:long`.
  test('every message passes axe, light on a phone or dark on a desktop', async () => {
    const page = await browser.newPage();
    for (const [index, kind] of shopperMessageKinds.entries()) {
      await page.setContent(letterOf(kind, 'en'));
      for (const [place, [width, colorScheme]] of looks.entries()) {
        if (!isLong && index % looks.length !== place) continue;
        await page.setViewportSize({ width, height: 844 });
        await page.emulateMedia({ colorScheme });
        // A mail has no landmarks, because the client around it has them.
        const violations = await axeViolations(page);
        const own = violations.filter((one) => !/^(region|landmark-one-main):/.test(one));
        assert.deepEqual(own, [], `${kind} at ${width} px, ${colorScheme}`);
      }
    }
    await page.close();
  });

  test('every message in every language fits into 320 px and loads nothing', async () => {
    const page = await browser.newPage({ viewport: { width: 320, height: 640 } });
    const requests: string[] = [];
    page.on('request', (request) => requests.push(request.url()));
    for (const language of languages) {
      for (const kind of shopperMessageKinds) {
        await page.setContent(letterOf(kind, language));
        const excess = await page.evaluate(
          'document.documentElement.scrollWidth - document.documentElement.clientWidth',
        );
        assert.equal(excess, 0, `${kind} in ${language}`);
      }
    }
    assert.deepEqual(requests, []);
    await page.close();
  });
});
