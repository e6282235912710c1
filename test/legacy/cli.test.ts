import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { commandLine, type Tranche, unknownId } from '../support/cli.ts';
import {
  createIntermediary,
  frozenClock,
  timePattern,
  uuidPattern,
} from '../support/expectations.ts';
import {
  createLegacyCheckout,
  createPlugin,
  credentialsOf,
  legacyBody,
  logIn,
  sendLegacy,
  toForm,
} from '../support/legacy.ts';
import { createAccount, type Service, send, startService } from '../support/service.ts';

const clock = frozenClock();
let service: Service;
let tranche: Tranche;
let folder: string;
before(async () => {
  service = await startService({ clock });
  tranche = commandLine({ DATABASE_URL: service.databaseUrl }, { clock });
  folder = await mkdtemp(path.join(tmpdir(), 'tranche-legacy-'));
});
after(async () => {
  await rm(folder, { recursive: true, force: true });
  await service.close();
});

function assertFits(page: string): void {
  for (const line of page.split('\n')) assert.ok(line.length <= 80, line);
}

async function auditOf(id: string) {
  return await service.deps.database.db
    .selectFrom('operator_actions')
    .select(['operator', 'action', 'details'])
    .where('subject_id', '=', id)
    .orderBy('id')
    .execute();
}

describe('tranche integrations v1', () => {
  test('issues working credentials, shows the secret once, and leaves an audit row without it', async () => {
    const { id, merchant } = await createAccount(service);
    const issued = await tranche.json('integrations', 'v1', id, '--enable');
    assert.deepEqual(Object.keys(issued), ['id', 'client_id', 'client_secret']);
    assert.equal(issued.id, id);
    assert.match(issued.client_id, uuidPattern);
    assert.match(issued.client_secret, /^v1s_sandbox_[\w-]{43}$/);
    const token = await logIn(service, { ...issued, merchant_id: merchant.id });
    await createLegacyCheckout(service, token);

    const shown = await tranche.json('integrations', 'show', id);
    assert.deepEqual(shown.v1, {
      client_id: issued.client_id,
      created_at: shown.v1.created_at,
      disabled_at: null,
    });
    assert.match(shown.v1.created_at, timePattern);
    const page = (await tranche.run('integrations', 'show', id)).stdout;
    assert.match(page, new RegExp(`client_id ${issued.client_id}$`, 'm'));
    assertFits(page);
    const audit = await auditOf(id);
    assert.deepEqual(audit.at(-1), {
      operator: 'nomsa',
      action: 'integrations v1',
      details: { enabled: true, client_id: issued.client_id },
    });
    for (const text of [page, JSON.stringify(shown), JSON.stringify(audit)]) {
      assert.ok(!text.includes(issued.client_secret.slice(12)));
    }
  });

  test('prints the same facts without --json', async () => {
    const { id } = await createAccount(service);
    const { stdout, code } = await tranche.run('integrations', 'v1', id, '--enable');
    assert.equal(code, 0);
    assert.match(stdout, /^v1 client ID +[0-9a-f-]{36}$/m);
    assert.match(stdout, /^v1 client secret +v1s_sandbox_[\w-]{43}$/m);
    assertFits(stdout);
    const off = await tranche.run('integrations', 'v1', id, '--disable');
    assert.match(off.stdout, /^v1 has been off since 15 November 2026, \d\d:\d\d UTC\.\n$/);
  });

  test('withdraws them with their tokens at once; a repeated call says since when', async () => {
    const { account, plugin } = await createPlugin(service);
    const token = await logIn(service, plugin);
    const first = await tranche.json('integrations', 'v1', account.id, '--disable');
    assert.deepEqual(Object.keys(first), ['id', 'client_id', 'disabled_at']);
    const pay = () => sendLegacy(service, '/payment/checkout', legacyBody(), { token });
    assert.equal((await pay()).status, 401);
    assert.equal((await sendLegacy(service, '/login', credentialsOf(plugin))).status, 401);
    clock.advance({ minutes: 5 });
    assert.deepEqual(await tranche.json('integrations', 'v1', account.id, '--disable'), first);
    const { v1 } = await tranche.json('integrations', 'show', account.id);
    assert.equal(v1.disabled_at, first.disabled_at);
    // The v2 credentials still work.
    assert.equal((await send(service, account, 'GET', '/api/config')).status, 200);

    const next = await tranche.json('integrations', 'v1', account.id, '--enable');
    assert.notEqual(next.client_id, plugin.client_id);
    assert.equal((await pay()).status, 401);
    const again = { ...next, merchant_id: account.merchant.id };
    assert.match(await logIn(service, again), /^v1t_/);
  });

  test('refuses wrong arguments and changes nothing', async () => {
    const { id } = await createAccount(service);
    const v1 = (...rest: string[]) => ['integrations', 'v1', ...rest];
    await tranche.refused(2, /ID is missing/, ...v1('--enable'));
    await tranche.refused(2, /either --enable or --disable/, ...v1(id));
    await tranche.refused(2, /either --enable or --disable/, ...v1(id, '--enable', '--disable'));
    await tranche.refused(1, /There is no integration/, ...v1(unknownId, '--enable'));
    await tranche.refused(1, /There is no integration/, ...v1('x', '--disable'));
    await tranche.refused(1, /v1 was never enabled for the integration/, ...v1(id, '--disable'));
    const before = await auditOf(id);
    const { client_id } = await tranche.json(...v1(id, '--enable'));
    await tranche.refused(1, new RegExp(`v1 is enabled .* ${client_id}`), ...v1(id, '--enable'));
    assert.equal((await auditOf(id)).length, before.length + 1);
    await tranche.json('integrations', 'revoke', id);
    await tranche.json(...v1(id, '--disable'));
    await tranche.refused(1, /was revoked permanently at/, ...v1(id, '--enable'));
  });
});

describe('tranche legacy preview', () => {
  const whole = {
    checkout: {
      customer: {
        first_name: 'Thandi',
        last_name: 'Dlamini',
        email: 'thandi@example.com',
        phone_number: '+27821234567',
        billing_address: '1 Long Street, Cape Town',
      },
      amount: 150_000,
      currency: 'ZAR',
      client_reference_id: 'order-1001',
      notify_url: 'https://shop.example/v1/callback',
      success_url: 'https://shop.example/order/1001',
      line_items: [
        { name: 'Boots', amount: 140_000, quantity: 1 },
        { name: 'Socks', amount: 5_000, quantity: 2 },
      ],
    },
  };
  // This command needs no database.
  const offline = (stdin?: string) =>
    commandLine({ DATA_DIR: '/nowhere' }, stdin === undefined ? {} : { stdin });
  const written = async (name: string, text: string) => {
    const file = path.join(folder, name);
    await writeFile(file, text);
    return file;
  };

  test('prints the v2 request, from a file or standard input, as JSON or as a form', async () => {
    const json = JSON.stringify(legacyBody(), null, 2);
    const form = toForm(legacyBody()).toString();
    const expected = {
      request: { method: 'POST', path: '/api/checkouts', body: whole },
      missing: ['checkout.cancel_url'],
      problems: [],
      ignored: ['merchant.merchantReference', 'merchant.mode', 'purchase.purchaseDate'],
    };
    for (const [name, text] of [
      ['request.json', json],
      ['request.form', form],
      ['request-with-newline.form', `${form}\n`],
    ] as const) {
      const file = await written(name, text);
      assert.deepEqual(await offline().json('legacy', 'preview', '--file', file), expected);
      assert.deepEqual(await offline(text).json('legacy', 'preview', '--file', '-'), expected);
      assert.deepEqual(await offline(text).json('legacy', 'preview', '--file=-'), expected);
    }
  });

  test('v2 accepts the printed request once the missing fields are added', async () => {
    const account = await createAccount(service);
    const text = JSON.stringify(legacyBody());
    const { request } = await offline(text).json('legacy', 'preview', '--file', '-');
    request.body.checkout.cancel_url = 'https://shop.example/cart';
    const answer = await send(service, account, 'POST', request.path, { body: request.body });
    assert.equal(answer.status, 200);
  });

  test('lists what is missing and what would be refused', async () => {
    const { emailAddress, ...customer } = legacyBody().customer;
    const body = {
      ...legacyBody({ purchaseAmount: '1500.00', sandbox: true }),
      customer: { ...customer, telephoneNumber: '082 1' },
      purchase: { order_id: 'x', items: 'boots' },
    };
    const text = JSON.stringify(body);
    const previewed = await offline(text).json('legacy', 'preview', '--file', '-');
    assert.deepEqual(previewed.missing, ['checkout.cancel_url', 'checkout.customer.email']);
    assert.deepEqual(previewed.problems, [
      'purchase.items must be a JSON array, as text or as it is',
      'checkout.amount must be an integer',
      'checkout.customer.phone_number must match ^[+0-9][0-9.()/-]{7,25}$',
    ]);
    assert.deepEqual(previewed.ignored, ['sandbox', 'merchant.merchantReference', 'merchant.mode']);
    const { stdout } = await offline(text).run('legacy', 'preview', '--file', '-');
    assert.match(stdout, /^POST \/api\/checkouts$/m);
    assert.match(
      stdout,
      /^Missing +checkout\.cancel_url: new in v2; v1 returned to merchant\.return_url$/m,
    );
    assert.match(stdout, /^ +checkout\.customer\.email: v1 calls it customer\.emailAddress$/m);
  });

  test('--merchant also checks bands, currency and notify_url', async () => {
    const { merchant } = await createAccount(service);
    const body = legacyBody({
      purchaseAmount: 5,
      currency: 'USD',
      merchant: { notify_url: 'http://shop.example/' },
    });
    const file = await written('bad.json', JSON.stringify(body));
    const ask = (...rest: string[]) => tranche.json('legacy', 'preview', '--file', file, ...rest);
    assert.deepEqual((await ask()).problems, []);
    assert.deepEqual((await ask('--merchant', merchant.id)).problems, [
      'Amount has to be between 10000 and 2000000 cents',
      'checkout.currency must match merchant territory currency (ZAR)',
      'checkout.notify_url must be an https URL',
    ]);
    const refused = ['legacy', 'preview', '--file', file, '--merchant', unknownId];
    await tranche.refused(1, /There is no merchant/, ...refused);
  });

  test('says why a file cannot be read', async () => {
    const refuse = (code: 1 | 2, message: RegExp, stdin: string, ...rest: string[]) =>
      offline(stdin).refused(code, message, 'legacy', 'preview', ...rest);
    await refuse(2, /--file is missing/, '');
    await refuse(2, /--file needs a value/, '', '--file');
    await refuse(
      1,
      /nowhere\.json cannot be read/,
      '',
      '--file',
      path.join(folder, 'nowhere.json'),
    );
    await refuse(1, /is not valid JSON/, '{"a":', '--file', '-');
    await refuse(1, /has the field "a" twice/, 'a=1&a=2', '--file', '-');
    await refuse(1, /is not valid/, '[]', '--file', '-');
  });
});

describe('tranche legacy usage', () => {
  const ofOne = async (id: string, ...rest: string[]) => {
    const { data } = await tranche.json('legacy', 'usage', '--integration', id, ...rest);
    assert.equal(data.length, 1);
    return data[0];
  };

  test('counts logins and checkouts per integration and day, and no refused request', async () => {
    const { account, plugin } = await createPlugin(service);
    const none = await ofOne(account.id);
    assert.deepEqual(none, {
      logins: 0,
      checkouts: 0,
      last_used_on: null,
      integration_id: account.id,
      merchant_id: account.merchant.id,
      enabled_at: none.enabled_at,
    });
    const token = await logIn(service, plugin);
    await logIn(service, plugin);
    for (let count = 0; count < 3; count += 1) await createLegacyCheckout(service, token);
    await sendLegacy(service, '/payment/checkout', {}, { token });
    await sendLegacy(service, '/payment/checkout', {}, { token: 'unknownId' });
    await sendLegacy(service, '/login', { ...credentialsOf(plugin), client_secret: 'no' });
    const today = clock.now().toString().slice(0, 10);
    const { logins, checkouts, last_used_on } = await ofOne(account.id);
    assert.deepEqual([logins, checkouts, last_used_on], [2, 4, today]);
  });

  test('counts the last days including today, and keeps the day of the last use', async () => {
    const { account, plugin } = await createPlugin(service);
    await logIn(service, plugin);
    const first = clock.now().toString().slice(0, 10);
    clock.advance({ hours: 29 * 24 });
    assert.equal((await ofOne(account.id)).logins, 1);
    assert.equal((await ofOne(account.id, '--days', '1')).logins, 0);
    clock.advance({ hours: 24 });
    const later = await ofOne(account.id);
    assert.deepEqual([later.logins, later.last_used_on], [0, first]);
    assert.equal((await ofOne(account.id, '--days', '31')).logins, 1);
  });

  test('--merchant includes intermediaries; withdrawn credentials are shown as off', async () => {
    const { account, plugin } = await createPlugin(service);
    const { id } = await createIntermediary(service, [account.merchant.id]);
    await tranche.json('integrations', 'v1', id, '--enable');
    await logIn(service, plugin);
    await tranche.json('integrations', 'v1', account.id, '--disable');
    const ask = ['legacy', 'usage', '--merchant', account.merchant.id];
    const { data } = await tranche.json(...ask);
    assert.deepEqual(
      data.map((one: { integration_id: string; enabled_at: string | null }) => [
        one.integration_id,
        one.enabled_at === null,
      ]),
      [
        [account.id, true],
        [id, false],
      ],
    );
    const { stdout } = await tranche.run(...ask);
    assert.match(stdout, new RegExp(`^${account.id} .* off +1 +0 +\\d{4}-\\d\\d-\\d\\d$`, 'm'));
    assert.match(stdout, new RegExp(`^${id} +inter.* on +0 +0 +never$`, 'm'));
    assertFits(stdout);
  });

  test('has pages, with each integration on exactly one of them', async () => {
    for (let count = 0; count < 3; count += 1) await createPlugin(service);
    const { data: all, next: none } = await tranche.json('legacy', 'usage', '--limit', '1000');
    assert.equal(none, null);
    const paged: object[] = [];
    let after: string[] = [];
    for (let pages = 0; ; pages += 1) {
      assert.ok(pages <= all.length, 'the pages end');
      const page = await tranche.json('legacy', 'usage', '--limit', '2', ...after);
      paged.push(...page.data);
      if (page.next === null) break;
      after = ['--after', page.next];
    }
    assert.deepEqual(paged, all);
    const { stdout } = await tranche.run('legacy', 'usage', '--limit', '2');
    assert.match(stdout, /More:\n {2}tranche legacy usage .*--limit 2 .*--after \w+/);
    for (const cursor of ['x', Buffer.from('["x","y"]').toString('base64url')]) {
      await tranche.refused(2, /--after is not a cursor/, 'legacy', 'usage', '--after', cursor);
    }
  });

  test('refuses unknown merchants and integrations', async () => {
    const usage = (...rest: string[]) => ['legacy', 'usage', ...rest];
    await tranche.refused(1, /There is no merchant/, ...usage('--merchant', unknownId));
    await tranche.refused(2, /--integration .* must be an ID/, ...usage('--integration', 'x'));
    await tranche.refused(2, /--days/, ...usage('--days', '0'));
    assert.deepEqual((await tranche.json(...usage('--integration', unknownId))).data, []);
  });

  test('counts concurrent requests exactly', async () => {
    const { account, plugin } = await createPlugin(service);
    const token = await logIn(service, plugin);
    await Promise.all(Array.from({ length: 30 }, () => createLegacyCheckout(service, token)));
    assert.equal((await ofOne(account.id)).checkouts, 30);
  });
});
