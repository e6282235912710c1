import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createIntegration } from '#merchants/integrations/create-integration.ts';
import { endpointLimits } from '#platform/http/rate-limits.ts';
import { commandLine, skippingClock, type Tranche, unknownId } from '../support/cli.ts';
import {
  checkoutBody,
  createAccount,
  createCheckout,
  createSuccessfulCheckout,
  liftLimits,
  type Service,
  send,
  startService,
} from '../support/service.ts';

const clock = skippingClock();
let service: Service;
let tranche: Tranche;
before(async () => {
  service = await startService({ clock });
  tranche = commandLine({ DATABASE_URL: service.databaseUrl });
});
after(() => service.close());

const newMerchant = async () => (await createAccount(service)).merchant.id;

async function newIntermediary(...managed: string[]) {
  const issued = await tranche.json(
    'integrations',
    'create',
    '--intermediary',
    '--manages',
    managed.join(','),
  );
  await liftLimits(service.deps, issued.id);
  return issued;
}

test('creating an integration prints its credentials, which work at once', async () => {
  const merchant = await newMerchant();
  const issued = await tranche.json('integrations', 'create', '--merchant', merchant);
  assert.deepEqual(Object.keys(issued), ['id', 'client_secret', 'signing_key']);
  assert.match(issued.client_secret, /^cs_sandbox_[\w-]{43}$/);
  assert.match(issued.signing_key, /^sig_sandbox_[\w-]{43}$/);
  const answer = await send(service, issued, 'POST', '/api/checkouts', { body: checkoutBody() });
  assert.equal(answer.status, 200);
});

test('the page says that the credentials are shown only once', async () => {
  const { code, stdout } = await tranche.run(
    'integrations',
    'create',
    '--merchant',
    await newMerchant(),
  );
  assert.equal(code, 0);
  assert.match(stdout, /^Client secret {2}cs_sandbox_/m);
  assert.match(stdout, /^Signing key {4}sig_sandbox_/m);
  assert.match(stdout, /shown only once/);
});

test('the refund mode is as given, and manual by default', async () => {
  const merchant = await newMerchant();
  for (const [asked, expected] of [
    [[], 'manual'],
    [['--refunds', 'auto'], 'auto'],
    [['--refunds', 'manual'], 'manual'],
  ] as const) {
    const { id } = await tranche.json('integrations', 'create', '--merchant', merchant, ...asked);
    assert.equal((await tranche.json('integrations', 'show', id)).refund_mode, expected);
  }
});

test('an intermediary acts for exactly the merchants that it manages', async () => {
  const [first, second, third] = [await newMerchant(), await newMerchant(), await newMerchant()];
  const issued = await newIntermediary(first, second);
  const canRead = async (merchant: string) =>
    (await send(service, issued, 'GET', `/api/merchants/${merchant}/config`)).status === 200;
  assert.deepEqual(
    [await canRead(first), await canRead(second), await canRead(third)],
    [true, true, false],
  );
  const managed = await tranche.json(
    'integrations',
    'manage',
    issued.id,
    '--add',
    third,
    '--remove',
    `${first},${second}`,
  );
  assert.deepEqual(managed, { id: issued.id, added: [third], removed: [first, second] });
  clock.skip(1_000);
  assert.ok(!(await canRead(first)) && (await canRead(third)));
  assert.equal(await canRead(second), false);
  // A repeated option equals a comma list. Adding twice adds once.
  const again = await tranche.json(
    'integrations',
    'manage',
    issued.id,
    '--add',
    first,
    '--add',
    `${second},${third}`,
  );
  assert.deepEqual(again, { id: issued.id, added: [first, second], removed: [] });
  const list = ['integrations', 'managed', '--integration', issued.id];
  const { data, next } = await tranche.json(...list, '--limit', '2');
  const rest = await tranche.json(...list, '--after', next);
  assert.deepEqual(
    [...data, ...rest.data].map(({ id }) => id),
    [first, second, third].toSorted(),
  );
  assert.equal(rest.next, null);
  await tranche.refused(1, /There is no integration/, ...list.slice(0, 3), unknownId);
});

test('a bad change of managed merchants changes nothing', async () => {
  const [merchant, other] = [await newMerchant(), await newMerchant()];
  const { id } = await newIntermediary(merchant);
  const manage = ['integrations', 'manage', id];
  await tranche.refused(1, /There is no merchant/, ...manage, '--add', `${other},${unknownId}`);
  await tranche.refused(1, /There is no merchant nonsense/, ...manage, '--add', 'nonsense');
  await tranche.refused(
    1,
    /does not manage the merchant/,
    ...manage,
    '--add',
    other,
    '--remove',
    unknownId,
  );
  await tranche.refused(
    1,
    /cannot be both added and removed/,
    ...manage,
    '--add',
    other,
    '--remove',
    other.toUpperCase(),
  );
  await tranche.refused(2, /Give --add ID, --remove ID, or both/, ...manage);
  assert.deepEqual((await tranche.json('integrations', 'show', id)).managed_merchant_ids, [
    merchant,
  ]);
  const own = await createAccount(service);
  await tranche.refused(
    1,
    /Only an intermediary manages merchants/,
    'integrations',
    'manage',
    own.id,
    '--add',
    other,
  );
});

test('an integration belongs to one merchant or is an intermediary, never both or neither', async () => {
  const merchant = await newMerchant();
  const create = ['integrations', 'create'];
  await tranche.refused(2, /either --merchant ID or --intermediary/, ...create);
  await tranche.refused(
    2,
    /either --merchant ID or --intermediary/,
    ...create,
    '--merchant',
    merchant,
    '--intermediary',
    '--manages',
    merchant,
  );
  await tranche.refused(2, /--manages ID,ID/, ...create, '--intermediary');
  await tranche.refused(2, /--manages ID,ID/, ...create, '--intermediary', '--manages', ' , ');
  await tranche.refused(
    2,
    /--manages is for an intermediary/,
    ...create,
    '--merchant',
    merchant,
    '--manages',
    merchant,
  );
  await tranche.refused(
    2,
    /--refunds is "never" and must be manual or auto/,
    ...create,
    '--merchant',
    merchant,
    '--refunds',
    'never',
  );
  await tranche.refused(1, /There is no merchant/, ...create, '--merchant', unknownId);
  await tranche.refused(
    1,
    /There is no merchant/,
    ...create,
    '--intermediary',
    '--manages',
    `${merchant},${unknownId}`,
  );
});

test('listing shows every integration, or those that act for one merchant', async () => {
  const own = await createAccount(service);
  const intermediary = await newIntermediary(own.merchant.id);
  const stranger = await createAccount(service);
  const ids = async (...more: string[]) =>
    (await tranche.json('integrations', 'list', ...more)).data.map((one: { id: string }) => one.id);
  assert.deepEqual(await ids('--merchant', own.merchant.id), [own.id, intermediary.id]);
  const all = await ids();
  for (const { id } of [own, intermediary, stranger]) assert.ok(all.includes(id));
  await tranche.refused(1, /There is no merchant/, 'integrations', 'list', '--merchant', unknownId);
  const { stdout } = await tranche.run('integrations', 'list');
  assert.match(stdout, new RegExp(`^${own.id} {2}Bean There +manual +optional +active$`, 'm'));
  for (const line of stdout.split('\n')) assert.ok(line.length <= 80, line);
});

test('an integration is shown with everything except its secrets', async () => {
  const merchant = await newMerchant();
  const issued = await tranche.json('integrations', 'create', '--merchant', merchant);
  await tranche.json(
    'integrations',
    'limit',
    issued.id,
    '--endpoint',
    'GET /api/checkouts',
    '--limit',
    '9',
    '--window',
    '30',
  );
  const rotated = await tranche.json(
    'integrations',
    'rotate',
    issued.id,
    '--credential',
    'signing_key',
  );
  const shown = await tranche.json('integrations', 'show', issued.id);
  assert.deepEqual(Object.keys(shown), [
    'id',
    'merchant_id',
    'intermediary',
    'refund_mode',
    'signing_required_at',
    'revoked_at',
    'created_at',
    'events',
    'events_url',
    'managed_merchant_ids',
    'manages_more',
    'limits',
    'client_secrets',
    'signing_keys',
    'v1',
  ]);
  assert.deepEqual(shown.limits, [
    { endpoint: 'GET /api/checkouts', max_requests: 9, window_seconds: 30 },
  ]);
  assert.deepEqual(Object.keys(shown.client_secrets[0]), ['created_at', 'expires_at']);
  const [newKey, oldKey] = shown.signing_keys;
  assert.deepEqual(Object.keys(newKey), ['id', 'created_at', 'expires_at', 'first_used_at']);
  assert.equal(newKey.first_used_at, null);
  assert.equal(newKey.expires_at, null);
  assert.notEqual(oldKey.expires_at, null);
  const page = (await tranche.run('integrations', 'show', issued.id)).stdout;
  assert.match(page, /^Limits +GET \/api\/checkouts: 9 per 30 seconds$/m);
  assert.match(page, /not used yet/);
  for (const line of page.split('\n')) assert.ok(line.length <= 80, line);
  for (const text of [page, JSON.stringify(shown)]) {
    for (const secret of [issued.client_secret, issued.signing_key, rotated.signing_key]) {
      assert.ok(!text.includes(secret));
    }
  }
  await tranche.refused(1, /There is no integration/, 'integrations', 'show', unknownId);
  await tranche.refused(1, /There is no integration x/, 'integrations', 'show', 'x');
});

test('an operator can make signing mandatory, and it stays so', async () => {
  const account = await createAccount(service);
  const post = () =>
    send(service, account, 'POST', '/api/checkouts', { body: checkoutBody(), signed: false });
  assert.equal((await post()).status, 200);
  const first = await tranche.json('integrations', 'require-signing', account.id);
  clock.skip(1_000);
  assert.equal((await post()).status, 400);
  assert.deepEqual(await tranche.json('integrations', 'require-signing', account.id), first);
  await tranche.refused(1, /There is no integration/, 'integrations', 'require-signing', unknownId);
});

test("an operator's limit takes effect within a second", async () => {
  const account = await createAccount(service, { limits: 'spec' });
  const read = async () => (await send(service, account, 'GET', '/api/refunds')).status;
  assert.deepEqual([await read(), await read()], [200, 429]);
  const set = await tranche.json(
    'integrations',
    'limit',
    account.id,
    '--endpoint',
    'GET /api/refunds',
    '--limit',
    '1000',
    '--window',
    '60',
  );
  assert.deepEqual(set, {
    id: account.id,
    endpoint: 'GET /api/refunds',
    max_requests: 1000,
    window_seconds: 60,
  });
  clock.skip(1_000);
  assert.equal(await read(), 200);
  await tranche.json(
    'integrations',
    'limit',
    account.id,
    '--endpoint',
    'GET /api/refunds',
    '--limit',
    '0',
    '--window',
    '60',
  );
  clock.skip(1_000);
  assert.equal(await read(), 429);
});

test('a limit names one of the endpoints, a count and a window', async () => {
  const { id } = await createAccount(service, { limits: 'spec' });
  const limit = (endpoint: string, count: string, window: string) => [
    'integrations',
    'limit',
    id,
    '--endpoint',
    endpoint,
    '--limit',
    count,
    '--window',
    window,
  ];
  for (const endpoint of Object.keys(endpointLimits)) {
    await tranche.json(...limit(endpoint, '7', '86400'));
  }
  await tranche.refused(
    1,
    /no endpoint "POST \/api\/nothing"[\s\S]*GET \/api\/refunds\/\{id\}/,
    ...limit('POST /api/nothing', '1', '1'),
  );
  await tranche.refused(1, /no endpoint "constructor"/, ...limit('constructor', '1', '1'));
  await tranche.refused(1, /1 to 86400 seconds/, ...limit('GET /api/config', '1', '0'));
  await tranche.refused(1, /1 to 86400 seconds/, ...limit('GET /api/config', '1', '86401'));
  await tranche.refused(
    1,
    /whole number of requests/,
    ...limit('GET /api/config', '1000000001', '1'),
  );
  await tranche.refused(2, /--limit is "1.5"/, ...limit('GET /api/config', '1.5', '1'));
  await tranche.refused(
    2,
    /--limit needs a value. If it is "-1", write --limit=-1/,
    ...limit('GET /api/config', '-1', '1'),
  );
  await tranche.refused(2, /--window is "1h"/, ...limit('GET /api/config', '1', '1h'));
  await tranche.refused(
    2,
    /--endpoint is missing/,
    'integrations',
    'limit',
    id,
    '--limit',
    '1',
    '--window',
    '1',
  );
});

test('a revocation is in force within a second on another node of the same database', async () => {
  const other = await startService({
    clock,
    databaseUrl: service.databaseUrl,
    rateLimitStore: 'postgres',
  });
  try {
    const account = await createAccount(service);
    const read = async () => (await send(other, account, 'GET', '/api/config')).status;
    assert.equal(await read(), 200);
    const revoked = await tranche.json('integrations', 'revoke', account.id);
    assert.deepEqual(Object.keys(revoked), ['id', 'revoked_at']);
    clock.skip(1_000);
    assert.equal(await read(), 401);
    assert.deepEqual(await tranche.json('integrations', 'revoke', account.id), revoked);
  } finally {
    await other.close();
  }
});

test('a revoked integration keeps its keys for callbacks and does not change otherwise', async () => {
  const account = await createAccount(service);
  await tranche.json('integrations', 'revoke', account.id);
  const shown = await tranche.json('integrations', 'show', account.id);
  assert.equal(shown.signing_keys.length, 1);
  assert.notEqual(shown.revoked_at, null);
  const refused = (...argv: string[]) =>
    tranche.refused(1, /was revoked permanently at .* Create a new one/, 'integrations', ...argv);
  await refused('require-signing', account.id);
  await refused(
    'limit',
    account.id,
    '--endpoint',
    'GET /api/config',
    '--limit',
    '1',
    '--window',
    '1',
  );
  await refused('rotate', account.id, '--credential', 'client_secret');
  const intermediary = await newIntermediary(account.merchant.id);
  await tranche.json('integrations', 'revoke', intermediary.id);
  await refused('manage', intermediary.id, '--remove', account.merchant.id);
  await tranche.refused(1, /There is no integration/, 'integrations', 'revoke', unknownId);
});

test("every change by an operator leaves an audit row with the operator's name, in order", async () => {
  const rules = '[{"from_amount":1000,"to_amount":2000,"terms":[1]}]';
  const { id: merchant } = await tranche.json(
    'merchants',
    'create',
    '--name',
    'A',
    '--rules',
    rules,
  );
  await tranche.json('merchants', 'rules', merchant, '--rules', rules);
  const { id } = await tranche.json(
    'integrations',
    'create',
    '--intermediary',
    '--manages',
    merchant,
  );
  const changes = [
    ['manage', id, '--remove', merchant],
    ['require-signing', id],
    ['limit', id, '--endpoint', 'GET /api/config', '--limit', '1', '--window', '1'],
    ['rotate', id, '--credential', 'client_secret'],
    ['rotate', id, '--credential', 'signing_key'],
    ['v1', id, '--enable'],
    ['v1', id, '--disable'],
    ['revoke', id],
  ];
  for (const change of changes) await tranche.json('integrations', ...change);
  const rows = await service.deps.database.db
    .selectFrom('operator_actions')
    .select(['operator', 'action', 'subject_id'])
    .where('subject_id', 'in', [merchant, id])
    .orderBy('id')
    .execute();
  assert.deepEqual(rows, [
    { operator: 'nomsa', action: 'merchants create', subject_id: merchant },
    { operator: 'nomsa', action: 'merchants rules', subject_id: merchant },
    { operator: 'nomsa', action: 'integrations create', subject_id: id },
    ...changes.map(([name]) => ({
      operator: 'nomsa',
      action: `integrations ${name}`,
      subject_id: id,
    })),
  ]);
});

test('a refused change leaves no audit row', async () => {
  const count = async () =>
    (await service.deps.database.pool.query('select count(*) from operator_actions')).rows[0].count;
  const before = await count();
  await tranche.run('integrations', 'revoke', unknownId);
  await tranche.run('integrations', 'create', '--merchant', unknownId);
  assert.equal(await count(), before);
});

test('no client secret, no signing key and no master key is anywhere in the database', async () => {
  const account = await createAccount(service);
  const secrets = [account.client_secret, account.signing_key];
  for (const credential of ['client_secret', 'signing_key']) {
    const rotated = await tranche.json(
      'integrations',
      'rotate',
      account.id,
      '--credential',
      credential,
    );
    secrets.push(rotated[credential]);
  }
  await createSuccessfulCheckout(service, account);
  await createCheckout(service, account);
  const issued = await createIntegration(service.deps, 'test', {
    merchant_id: account.merchant.id,
    refund_mode: 'auto',
  });
  secrets.push(issued.client_secret, issued.signing_key);

  const { pool } = service.deps.database;
  const tables = await pool.query<{ name: string }>(
    `select table_name as name from information_schema.tables where table_schema = 'public'`,
  );
  let dump = '';
  for (const { name } of tables.rows) {
    const { rows } = await pool.query(`select t::text as line from ${name} t`);
    dump += rows.map(({ line }) => `${line}\n`).join('');
  }
  assert.ok(dump.includes(account.id));
  for (const secret of secrets) {
    // Bytes are dumped as hex, and the random part may have been stored alone.
    const random = secret.slice(-43);
    for (const form of [
      random,
      Buffer.from(random).toString('hex'),
      Buffer.from(random, 'base64url').toString('hex'),
    ]) {
      assert.ok(!dump.includes(form), `a ${secret.slice(0, 4)}… is in the database`);
    }
  }
  assert.ok(!dump.includes(Buffer.alloc(32, 7).toString('hex')));
});
