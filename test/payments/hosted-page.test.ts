import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { readConfig } from '#config.ts';
import { changePage } from '#merchants/change-page.ts';
import { changeRules } from '#merchants/change-rules.ts';
import { logoPath } from '#merchants/logo-path.ts';
import { readImage } from '#platform/shared/file-type.ts';
import { words } from '#platform/shared/words/words.ts';
import { pngFile } from '../support/files.ts';
import { assertSound, type Paying, type Shopper, startPaying } from '../support/payments.ts';

// Tests what the hosted page shows besides the order: the shopper's language, the merchant's
// preselected term, and what the operator's settings add.

let paying: Paying;
before(async () => {
  paying = await startPaying({
    env: {
      TERMS_URL: 'https://pay.example/terms',
      SUPPORT_CONTACT: '+27 21 555 0100',
      COMPLAINTS_CONTACT: 'complaints@pay.example',
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

test('page, receipt and mails show the merchant’s contact, address and VAT number, as text', async () => {
  const { service, account } = paying;
  const { id } = account.merchant;
  const shopper = await paying.shopper();
  assert.doesNotMatch(await open(shopper), /class="shop"/);
  const address = '12 <b>Long</b> Street\nCape Town';
  const profile = { contact: 'help@bean.example', address, vat_number: '4123456789' };
  await changePage(service.deps, 'test', { id, ...profile });
  const html = await open(shopper);
  assert.match(html, /<a href="mailto:help@bean[.]example"[^>]*>help@bean[.]example<\/a>/);
  assert.match(html, /12 &lt;b>Long&lt;\/b> Street\nCape Town<\/span><span>VAT number 4123456789/);
  await shopper.pay(1);
  await paying.work();
  const receipt = String((await shopper.send('GET', 'receipts/1')).body);
  assert.match(receipt, /12 &lt;b&gt;Long&lt;\/b&gt; Street, Cape Town/);
  assert.match(receipt, /4123456789/);
  const [mail] = await shopper.rows('mailbox');
  assert.match(mail.text, /12 <b>Long<\/b> Street, Cape Town · VAT number 4123456789 · help@bean/);
  assert.doesNotMatch(mail.html, /<b>/);
  await changePage(service.deps, 'test', { id, contact: null, address: null, vat_number: null });
});

test('page, receipt and mails show the merchant’s logo, and one that was replaced is gone', async () => {
  const { service, account } = paying;
  const change = async (logo: Buffer | null) =>
    await changePage(service.deps, 'test', { id: account.merchant.id, logo });
  const { logo } = await change(pngFile(100, 40));
  assert.match(logo ?? '', /^[0-9a-f]{64}$/);
  const path = logoPath(logo ?? '');
  const load = (url: string) => service.app.inject(url);
  const { headers, rawPayload } = await load(path);
  assert.deepEqual(readImage(rawPayload), { type: 'image/png', width: 100, height: 40 });
  assert.deepEqual(
    ['content-type', 'cache-control', 'content-security-policy', 'x-content-type-options'].map(
      (name) => headers[name],
    ),
    ['image/png', 'public, max-age=31536000, immutable', "default-src 'none'; sandbox", 'nosniff'],
  );
  const shopper = await paying.shopper();
  const html = await open(shopper);
  assert.ok(html.includes(`<img class="shop-logo" src="${path}" alt`));
  await shopper.pay(1);
  await paying.work();
  const receipt = String((await shopper.send('GET', 'receipts/1')).body);
  assert.ok(receipt.includes(`<img class="shop-logo" src="${path}" alt="">`));
  const pdf = await load(`${shopper.url}/receipts/1/pdf`);
  assert.match(pdf.rawPayload.toString('latin1'), /\/Subtype \/Image/);
  const [mail] = await shopper.rows('mailbox');
  assert.ok(mail.html.includes(`<img src="${service.deps.baseUrl}${path}" alt="Bean There"`));
  const { logo: next } = await change(pngFile(40, 40));
  assert.notEqual(next, logo);
  assert.deepEqual(
    [(await load(path)).statusCode, (await load(logoPath(next ?? ''))).statusCode],
    [404, 200],
  );
  assert.equal((await change(null)).logo, null);
  assert.equal((await load(logoPath(next ?? ''))).statusCode, 404);
  for (const name of ['x', 'a'.repeat(64), '%00', `${logo}.svg`]) {
    assert.equal((await load(`/pay/logos/${name}.png`)).statusCode, 404);
  }
  await assert.rejects(
    change(Buffer.from('<svg/>')),
    /The logo cannot be used. It is not a whole PNG/,
  );
});

test('the operator’s terms, contact and card logos are on the page', async () => {
  const shopper = await paying.shopper();
  const { operator, card_brands } = await shopper.state();
  assert.deepEqual(operator, {
    terms_url: 'https://pay.example/terms',
    privacy_url: null,
    contact: '+27 21 555 0100',
    complaints: 'complaints@pay.example',
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
    COMPLAINTS_CONTACT: '+27 21 555 0100',
    CARD_BRANDS: 'visa,diners',
  };
  assert.throws(
    () => readConfig(wrong),
    (error: Error & { problems?: string[] }) => {
      const named = Object.keys(wrong).filter((name) =>
        error.problems?.some((problem) => problem.startsWith(name)),
      );
      return named.length === 5;
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
