import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { readConfig } from '#config.ts';
import { changePage } from '#merchants/change-page.ts';
import { changeRules } from '#merchants/change-rules.ts';
import { words } from '#platform/shared/words/words.ts';
import { assertSound, type Paying, type Shopper, startPaying } from '../support/payments.ts';

// Tests what the hosted page shows besides the order: the shopper's language, the merchant's
// preselected term, and what the operator's settings add.

let paying: Paying;
before(async () => {
  paying = await startPaying({
    env: {
      TERMS_URL: 'https://pay.example/terms',
      SUPPORT_CONTACT: '+27 21 555 0100',
      CARD_BRANDS: 'visa, amex',
    },
  });
});
after(async () => {
  await assertSound(paying);
  await paying.close();
});

async function open(shopper: Shopper, acceptLanguage?: string): Promise<string> {
  const headers = acceptLanguage === undefined ? {} : { 'accept-language': acceptLanguage };
  const { body } = await paying.service.app.inject({ url: shopper.url, headers });
  return body;
}

const speak = (shopper: Shopper, language: unknown) =>
  shopper.send('POST', 'language', { language });

describe('the language', () => {
  test('follows the browser until the shopper chooses one, and then stays', async () => {
    const shopper = await paying.shopper();
    assert.match(await open(shopper), /<html lang="en">[\s\S]*How do you want to pay\?/);
    assert.match(await open(shopper, 'zu-ZA,en;q=0.5'), /<html lang="zu">[\s\S]*Ufuna ukukhokha/);
    assert.equal((await shopper.rows('checkouts'))[0].language, null);

    const { status, body } = await speak(shopper, 'af');
    assert.equal(status, 200);
    assert.equal(body.page.language, 'af');
    assert.deepEqual(body.words, words.af.page);
    assert.match(await open(shopper, 'zu-ZA'), /<html lang="af">[\s\S]*Hoe wil u betaal\?/);
    assert.equal((await shopper.state()).language, 'af');
    assert.equal((await shopper.rows('checkouts'))[0].language, 'af');
  });

  test('in which a shopper paid is kept, and the consent names its wording', async () => {
    const shopper = await paying.shopper();
    const body = await shopper.payBody(3);
    const consent = { ...(body.consent as object), version: '2026-11-zu' };
    const paid = await shopper.send('POST', 'pay', { ...body, consent, language: 'zu' });
    assert.deepEqual([paid.status, paid.body.status], [200, 'successful']);
    assert.equal((await shopper.rows('checkouts'))[0].language, 'zu');
    assert.equal((await shopper.attempts())[0]?.consent?.version, '2026-11-zu');
    await paying.work();
    const [letter] = await shopper.rows('mailbox');
    assert.match(letter.html, /<html lang="zu">/);
    assert.match(letter.text, /Inkokhelo 2 kwezingu-3/);
  });

  test('must be one of ours', async () => {
    const shopper = await paying.shopper();
    for (const language of ['de', '', null, 7, undefined]) {
      assert.equal((await speak(shopper, language)).status, 422, String(language));
    }
    const body = await shopper.payBody(1);
    assert.equal((await shopper.send('POST', 'pay', { ...body, language: 'de' })).status, 422);
    const plan = await shopper.payBody(3);
    const consent = { ...(plan.consent as object), version: '2026-11-de' };
    assert.equal((await shopper.send('POST', 'pay', { ...plan, consent })).status, 422);
    assert.equal((await shopper.rows('checkouts'))[0].language, null);
    assert.deepEqual(await shopper.attempts(), []);
  });

  test('of a link that leads nowhere is the browser’s', async () => {
    const headers = { 'accept-language': 'af' };
    const { statusCode, body } = await paying.service.app.inject({ url: '/pay/nowhere', headers });
    assert.equal(statusCode, 404);
    assert.match(body, /<html lang="af">[\s\S]*Hierdie skakel lei nêrens heen nie/);
  });
});

test('the term that the merchant prefers is selected at first, and the shopper’s choice after that', async () => {
  const { service, account } = paying;
  const { id } = account.merchant;
  const shopper = await paying.shopper();
  assert.equal((await shopper.state()).number_of_payments, 1);
  await changeRules(service.deps, 'test', { id, preselected_term: 6 });
  assert.equal((await shopper.state()).number_of_payments, 6);
  const small = await paying.shopper({ amount: 50_000 });
  assert.equal((await small.state()).number_of_payments, 3, 'the longest that is on offer');
  await shopper.pay(3, { card: '4000000000000002' });
  assert.equal((await shopper.state()).number_of_payments, 3);
  await changeRules(service.deps, 'test', { id, preselected_term: null });
  assert.equal((await small.state()).number_of_payments, 1);
  await assert.rejects(changeRules(service.deps, 'test', { id, preselected_term: 0 }), /1 to 120/);
});

test('the page says that instalments cost nothing only if the merchant says so', async () => {
  const { service, account } = paying;
  const { id } = account.merchant;
  const shopper = await paying.shopper();
  assert.equal((await shopper.state()).no_fees, false);
  assert.doesNotMatch(await open(shopper), /class="promise"/);
  await changePage(service.deps, 'test', { id, no_fees: true });
  assert.equal((await shopper.state()).no_fees, true);
  assert.match(await open(shopper), /<p class="promise">No interest[.] No fees[.]<\/p>/);
  await changePage(service.deps, 'test', { id, no_fees: false });
});

test('the operator’s terms, contact and card logos are on the page', async () => {
  const shopper = await paying.shopper();
  const { operator, card_brands } = await shopper.state();
  assert.deepEqual(operator, {
    terms_url: 'https://pay.example/terms',
    privacy_url: null,
    contact: '+27 21 555 0100',
  });
  assert.deepEqual(card_brands, ['visa', 'amex']);
  const html = await open(shopper);
  assert.match(html, /<a href="https:\/\/pay[.]example\/terms"[^>]*>Terms<\/a>/);
  assert.match(html, /<a href="tel:[+]27215550100"[^>]*>Help: [+]27 21 555 0100<\/a>/);
  assert.doesNotMatch(html, />Privacy</);
  assert.match(html, /aria-label="Accepted: Visa, American Express"/);
});

test('settings that the page cannot use are refused', () => {
  const wrong = {
    TERMS_URL: 'http://pay.example/terms',
    PRIVACY_URL: 'javascript:alert(1)',
    SUPPORT_CONTACT: 'call me',
    CARD_BRANDS: 'visa,diners',
  };
  assert.throws(
    () => readConfig(wrong),
    (error: Error & { problems?: string[] }) => {
      const named = Object.keys(wrong).filter((name) =>
        error.problems?.some((problem) => problem.startsWith(name)),
      );
      return named.length === 4;
    },
  );
  for (const contact of ['help@pay.example', 'https://pay.example/help', '+27 (0)21 555-0100']) {
    assert.equal(readConfig({ SUPPORT_CONTACT: contact }).page.operator.contact, contact);
  }
  assert.deepEqual(readConfig({}).page.cardBrands, ['visa', 'mastercard']);
});

test('browsers find an icon at its usual address', async () => {
  const { statusCode, headers, rawPayload } = await paying.service.app.inject('/favicon.ico');
  assert.deepEqual([statusCode, headers['content-type']], [200, 'image/x-icon']);
  assert.deepEqual([...rawPayload.subarray(0, 4)], [0, 0, 1, 0]);
});
