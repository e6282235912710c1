import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { hostname, tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { commandLine, skippingClock, type Tranche, unknownId } from '../support/cli.ts';
import { pngFile } from '../support/files.ts';
import { createAccount, rules, type Service, send, startService } from '../support/service.ts';

const clock = skippingClock();
let service: Service;
let tranche: Tranche;
before(async () => {
  service = await startService({ clock });
  tranche = commandLine({ DATABASE_URL: service.databaseUrl });
});
after(() => service.close());

const create = (...more: string[]) =>
  tranche.json(
    'merchants',
    'create',
    '--name',
    'Bean There',
    '--rules',
    JSON.stringify(rules),
    ...more,
  );

test('a gateway that is closed for new checkouts cannot be chosen for them', async () => {
  const { id } = await create();
  const keys = { STRIPE_SECRET_KEY: 'sk_test_1', STRIPE_PUBLISHABLE_KEY: 'pk_test_1' };
  const operator = commandLine({
    ...{ DATABASE_URL: service.databaseUrl, GATEWAYS: 'main,old', ...keys },
    ...{ GATEWAY_OLD_STRIPE_SECRET_KEY: 'sk_test_2', GATEWAY_OLD_CLOSED: 'true' },
  });
  const choose = ['merchants', 'gateway', id];
  for (const wrong of [['old'], ['main', '--second', 'old']]) {
    await operator.refused(1, /gateway old is closed for new checkouts/, ...choose, ...wrong);
  }
  assert.equal((await operator.json(...choose, 'main')).gateway, 'main');
});

test('a merchant that an operator creates can be listed and shown', async () => {
  const created = await create();
  assert.deepEqual(
    { ...created, id: '', created_at: '' },
    {
      id: '',
      name: 'Bean There',
      short_name: null,
      language: 'en',
      territory: 'ZA',
      currency: 'ZAR',
      rules,
      preselected_term: null,
      no_fees: false,
      contact: null,
      address: null,
      vat_number: null,
      logo: null,
      four_eyes_above: null,
      four_eyes_default: 1_000_000,
      gateway: null,
      second_gateway: null,
      created_at: '',
    },
  );
  assert.match(created.created_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  assert.deepEqual(await tranche.json('merchants', 'show', created.id), created);
  const { data } = await tranche.json('merchants', 'list');
  assert.deepEqual(
    data.find((one: { id: string }) => one.id === created.id),
    created,
  );
});

test("without --json a page of 80 columns shows amounts in the merchant's locale", async () => {
  const { id } = await create();
  await tranche.json(
    'merchants',
    'create',
    '--name',
    'N'.repeat(255),
    '--rules',
    JSON.stringify(rules),
  );
  const shown = await tranche.run('merchants', 'show', id);
  assert.equal(shown.code, 0);
  assert.match(shown.stdout, /^Name +Bean There$/m);
  assert.match(shown.stdout, /R\s1\s000,00 to R\s20\s000,00 {2}once-off, 3, 6, 12 months$/m);
  const listed = await tranche.run('merchants', 'list');
  assert.match(
    listed.stdout,
    new RegExp(`^${id} {2}Bean There +R\\s100,00 to R\\s20\\s000,00$`, 'm'),
  );
  for (const line of listed.stdout.split('\n')) assert.ok(line.length <= 80, line);
});

test('an operator sets, changes and removes the preselected term', async () => {
  const { id, preselected_term } = await create('--preselect', '3');
  assert.equal(preselected_term, 3);
  const shown = await tranche.run('merchants', 'show', id);
  assert.match(shown.stdout, /^Preselected term +3 payments$/m);
  const changed = await tranche.json('merchants', 'rules', id, '--preselect', '6');
  assert.deepEqual([changed.preselected_term, changed.rules], [6, rules]);
  const taken = await tranche.json('merchants', 'rules', id, '--preselect', 'none');
  assert.equal(taken.preselected_term, null);
  for (const [term, code] of [
    ['0', 1],
    ['121', 1],
    ['three', 2],
    ['', 2],
  ] as const) {
    assert.equal((await tranche.run('merchants', 'rules', id, '--preselect', term)).code, code);
  }
  assert.equal((await tranche.run('merchants', 'rules', id)).code, 2, 'nothing to change');
});

test('an alert names the system user who removes the threshold for a second approver', async () => {
  const { id } = await create('--four-eyes-above', '50000');
  await tranche.json('merchants', 'rules', id, '--four-eyes-above', '40000');
  const removed = await tranche.json('merchants', 'rules', id, '--four-eyes-above', 'none');
  assert.equal(removed.four_eyes_above, 'none');
  const { data } = await tranche.json('alerts', 'list', '--limit', '1000');
  const raised = data.filter((one: { merchant_id: string }) => one.merchant_id === id);
  const said = `nomsa [${userInfo().username}@${hostname()}] removed the amount`;
  assert.equal(raised.length, 1);
  assert.ok(raised[0].detail.startsWith(said), raised[0].detail);
});

test('a merchant has the default threshold until it gets its own, and a looser one raises an alert', async () => {
  const shown = async (id: string) => {
    const { stdout } = await tranche.run('merchants', 'show', id);
    return /^Second approver +(.*)$/m.exec(stdout)?.[1]?.replaceAll(/\s/g, ' ');
  };
  const alerts = async (id: string) => {
    const { data } = await tranche.json('alerts', 'list', '--limit', '1000');
    return data.filter((one: { merchant_id: string }) => one.merchant_id === id).length;
  };
  const { id } = await create();
  assert.equal(await shown(id), 'for refunds above R 10 000,00, the default for all merchants');
  for (const [above, words, raised] of [
    ['50000', 'for refunds above R 500,00, set for this merchant', 0],
    ['default', 'for refunds above R 10 000,00, the default for all merchants', 1],
    ['none', 'for no refunds, set for this merchant', 2],
    ['default', 'for refunds above R 10 000,00, the default for all merchants', 2],
    ['1000001', 'for refunds above R 10 000,01, set for this merchant', 3],
  ] as const) {
    await tranche.json('merchants', 'rules', id, '--four-eyes-above', above);
    assert.deepEqual([await shown(id), await alerts(id)], [words, raised], above);
  }
  assert.equal(await alerts((await create('--four-eyes-above', '1000000')).id), 0);
  assert.equal(await alerts((await create('--four-eyes-above', 'none')).id), 1);
});

test('an operator sets and removes what shoppers read about a merchant', async () => {
  const { id } = await create();
  const page = (...options: string[]) => tranche.json('merchants', 'page', id, ...options);
  const named = await page('--short-name', 'BEAN', '--no-fees', 'yes');
  assert.deepEqual([named.short_name, named.no_fees], ['BEAN', true]);
  const shown = await tranche.run('merchants', 'show', id);
  assert.match(shown.stdout, /^On statements +BEAN$/m);
  assert.match(shown.stdout, /^Page says +No interest\. No fees\.$/m);
  const unnamed = await page('--short-name', 'none');
  assert.deepEqual([unnamed.short_name, unnamed.no_fees], [null, true]);
  assert.equal((await page('--no-fees', 'no')).no_fees, false);
  const texts = ['--contact', 'help@bean.example', '--vat-number', '4123456789'];
  const placed = await page(...texts, '--address', '12 Long Street\nCape Town');
  assert.deepEqual(
    [placed.contact, placed.address, placed.vat_number],
    ['help@bean.example', '12 Long Street\nCape Town', '4123456789'],
  );
  assert.equal((await page('--contact', 'none')).contact, null);
  for (const bad of ['javascript:alert(1)', 'http://bean.example', 'a@b', 'x\u202e@bean.example']) {
    await tranche.refused(1, /The contact must be/, 'merchants', 'page', id, '--contact', bad);
  }
  const long = '1\n2\n3\n4\n5\n6\n7';
  await tranche.refused(1, /1 to 6 lines/, 'merchants', 'page', id, '--address', long);
  for (const bad of ['B', 'X'.repeat(21), "BEAN'S", 'BEAN*', '123', 'Kännchen', ' BEAN']) {
    await tranche.refused(
      1,
      /2 to 20 ASCII characters/,
      'merchants',
      'page',
      id,
      '--short-name',
      bad,
    );
  }
  const file = join(await mkdtemp(join(tmpdir(), 'tranche-logo-')), 'logo.png');
  await writeFile(file, pngFile(60, 30));
  assert.match((await page('--logo', file)).logo, /^[0-9a-f]{64}$/);
  assert.equal((await page('--logo', 'none')).logo, null);
  await writeFile(file, pngFile(481, 30));
  await tranche.refused(1, /It has 481 × 30 pixels/, 'merchants', 'page', id, '--logo', file);
  await rm(file);
  await tranche.refused(1, /cannot be read/, 'merchants', 'page', id, '--logo', file);
  await tranche.refused(
    2,
    /--no-fees is "x" and must be yes or no/,
    'merchants',
    'page',
    id,
    '--no-fees',
    'x',
  );
  await tranche.refused(2, /Give --short-name/, 'merchants', 'page', id);
  await tranche.refused(1, /no merchant/, 'merchants', 'page', unknownId, '--no-fees', 'no');
});

test('the merchant reads changed rules within a second', async () => {
  const account = await createAccount(service);
  const read = async () => {
    const { body } = await send(service, account, 'GET', '/api/config');
    return body.data.attributes.rules;
  };
  assert.deepEqual(await read(), rules);
  const changed = [{ from_amount: 5_000, to_amount: 9_000, terms: [2] }];
  const json = JSON.stringify(changed);
  const answer = await tranche.json('merchants', 'rules', account.merchant.id, '--rules', json);
  assert.deepEqual(answer.rules, changed);
  clock.skip(1_000);
  assert.deepEqual(await read(), changed);
});

test('a refusal is one sentence', async () => {
  const json = JSON.stringify(rules);
  await tranche.refused(
    1,
    /There is no territory XX/,
    'merchants',
    'create',
    '--name',
    'A',
    '--rules',
    json,
    '--territory',
    'XX',
  );
  await tranche.refused(
    1,
    /1 to 255 characters/,
    'merchants',
    'create',
    '--name',
    'x'.repeat(256),
    '--rules',
    json,
  );
  const turned = ['--name', 'Bean \u202ethere', '--rules', json];
  await tranche.refused(1, /change the direction of text/, 'merchants', 'create', ...turned);
  await tranche.refused(1, /There is no merchant/, 'merchants', 'show', unknownId);
  await tranche.refused(1, /There is no merchant nonsense/, 'merchants', 'show', 'nonsense');
  await tranche.refused(
    1,
    /There is no merchant/,
    'merchants',
    'rules',
    unknownId,
    '--rules',
    json,
  );
  await tranche.refused(
    1,
    /There is no merchant/,
    'merchants',
    'rules',
    'nonsense',
    '--rules',
    json,
  );
});

test('a mistyped option is a usage error that names it', async () => {
  await tranche.refused(2, /--name is missing/, 'merchants', 'create', '--rules', '[]');
  await tranche.refused(
    2,
    /--name is missing/,
    'merchants',
    'create',
    '--name',
    ' ',
    '--rules',
    '[]',
  );
  await tranche.refused(2, /--rules is missing/, 'merchants', 'create', '--name', 'A');
  await tranche.refused(
    2,
    /--rules is not JSON/,
    'merchants',
    'create',
    '--name',
    'A',
    '--rules',
    '{from',
  );
  await tranche.refused(
    2,
    /ID is missing\.\nUsage: tranche merchants rules ID/,
    'merchants',
    'rules',
  );
});

const band = (from_amount: unknown, to_amount: unknown, terms: unknown = [1]) => ({
  from_amount,
  to_amount,
  terms,
});
const badRules: [about: string, rules: unknown, message: RegExp][] = [
  ['no bands', [], /at least one band/],
  ['no list', { from_amount: 1, to_amount: 2, terms: [1] }, /must be a list/],
  ['null', null, /must be a list/],
  ['a band that is not an object', [5], /Band 1 must be an object/],
  ['a band that is null', [null], /Band 1 must be an object/],
  ['a band that is a list', [[1, 2, [1]]], /Band 1/],
  ['overlapping bands', [band(1, 10), band(10, 20)], /Band 2 must begin above 10/],
  ['a band inside another', [band(1, 100), band(20, 30)], /Band 2 must begin above 100/],
  ['descending bands', [band(100, 200), band(1, 50)], /Band 2 must begin above 200/],
  ['the same band twice', [band(1, 10), band(1, 10)], /Band 2 must begin above 10/],
  ['a band that ends before it begins', [band(10, 9)], /to_amount is below from_amount/],
  ['an amount of zero', [band(0, 10)], /from_amount must be a positive integer/],
  ['a negative amount', [band(-5, 10)], /from_amount must be a positive integer/],
  ['a fraction', [band(1.5, 10)], /from_amount must be a positive integer/],
  ['a string', [band('1', 10)], /from_amount must be a positive integer/],
  ['a missing amount', [{ from_amount: 1, terms: [1] }], /to_amount must be a positive integer/],
  ['an amount beyond all reason', [band(1, 1e15)], /to_amount must be a positive integer/],
  ['no terms', [band(1, 10, [])], /terms must be a list of at least one/],
  ['missing terms', [{ from_amount: 1, to_amount: 2 }], /terms must be a list/],
  ['terms that are not a list', [band(1, 10, 3)], /terms must be a list/],
  ['unsorted terms', [band(100, 200, [3, 1])], /distinct integers from 1 to 120, ascending/],
  ['a term twice', [band(100, 200, [1, 3, 3])], /distinct integers/],
  ['a term of zero', [band(100, 200, [0, 1])], /distinct integers/],
  ['a negative term', [band(100, 200, [-1])], /distinct integers/],
  ['a fraction of a month', [band(100, 200, [1.5])], /distinct integers/],
  ['a term as a string', [band(100, 200, ['3'])], /distinct integers/],
  ['a term of eleven years', [band(1000, 2000, [132])], /distinct integers/],
  [
    'payments that the gateway does not accept',
    [band(1000, 2000), band(5999, 9000, [6])],
    /Band 2: 5999 cents cannot be split into 6 payments of at least 1000 cents/,
  ],
  ['an unknown member', [{ ...band(1, 2), fee: 3 }], /unknown member fee/],
];
for (const [about, given, message] of badRules) {
  test(`rules with ${about} are refused, and nothing is created or changed`, async () => {
    const { id } = await create();
    const { data: before } = await tranche.json('merchants', 'list');
    const json = JSON.stringify(given);
    await tranche.refused(1, message, 'merchants', 'create', '--name', 'A', '--rules', json);
    await tranche.refused(1, message, 'merchants', 'rules', id, '--rules', json);
    assert.deepEqual((await tranche.json('merchants', 'list')).data, before);
  });
}

test('adjoining bands, one-cent bands and long terms are allowed', async () => {
  const given = [band(1_000, 1_000, [1, 120]), band(1_001, 10_000_000_000_000, [1, 2, 3])];
  const answer = await tranche.json(
    'merchants',
    'create',
    '--name',
    'A',
    '--rules',
    JSON.stringify(given),
  );
  assert.deepEqual(answer.rules, given);
});
