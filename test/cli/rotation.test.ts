import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ensureDemo } from '#hosting/sandbox/demo-merchant.ts';
import { sealingContext } from '#merchants/integrations/callers.ts';
import { rotateCredential } from '#merchants/integrations/rotate-credential.ts';
import { commandLine, type Tranche, unknownId } from '../support/cli.ts';
import {
  type Account,
  checkoutBody,
  createAccount,
  movableClock,
  type Service,
  send,
  startService,
} from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const clock = movableClock();
let service: Service;
let tranche: Tranche;
before(async () => {
  service = await startService({ clock });
  tranche = commandLine({ DATABASE_URL: service.databaseUrl }, { clock });
});
after(() => service.close());

/** A node caches the integration of a client secret for less than a second. */
const forASecond = () => clock.advance({ seconds: 1 });

const rotate = (account: { id: string }, credential: string, ...more: string[]) =>
  tranche.json('integrations', 'rotate', account.id, '--credential', credential, ...more);

async function reads(account: Account, client_secret: string): Promise<number> {
  return (await send(service, { ...account, client_secret }, 'GET', '/api/config')).status;
}

async function posts(
  account: Pick<Account, 'client_secret'>,
  signing_key: string,
): Promise<number> {
  const caller = { ...account, signing_key };
  return (await send(service, caller, 'POST', '/api/checkouts', { body: checkoutBody() })).status;
}

const keysOf = async ({ id }: { id: string }) =>
  (await tranche.json('integrations', 'show', id)).signing_keys;

test('an old and a new client secret both work for a day, then only the new one', async () => {
  const account = await createAccount(service);
  const rotated = await rotate(account, 'client_secret');
  assert.deepEqual(Object.keys(rotated), ['id', 'client_secret']);
  assert.equal(rotated.id, account.id);
  assert.match(rotated.client_secret, /^cs_sandbox_[\w-]{43}$/);
  const both = async () => [
    await reads(account, account.client_secret),
    await reads(account, rotated.client_secret),
  ];
  assert.deepEqual(await both(), [200, 200]);
  clock.advance({ hours: 23, minutes: 59, seconds: 58 });
  assert.deepEqual(await both(), [200, 200]);
  clock.advance({ seconds: 2 });
  assert.deepEqual(await both(), [401, 200]);
});

test('an old and a new signing key both verify for a day, then only the new one', async () => {
  const account = await createAccount(service);
  const rotated = await rotate(account, 'signing_key');
  assert.deepEqual(Object.keys(rotated), ['id', 'signing_key']);
  assert.match(rotated.signing_key, /^sig_sandbox_[\w-]{43}$/);
  const both = async () => [
    await posts(account, account.signing_key),
    await posts(account, rotated.signing_key),
  ];
  assert.deepEqual(await both(), [200, 200]);
  clock.advance({ hours: 23, minutes: 59, seconds: 58 });
  assert.deepEqual(await both(), [200, 200]);
  clock.advance({ seconds: 2 });
  assert.deepEqual(await both(), [400, 200]);
});

test('a new signing key counts as used from the first POST that was signed with it', async () => {
  const account = await createAccount(service);
  const rotated = await rotate(account, 'signing_key');
  assert.equal(await posts(account, account.signing_key), 200);
  assert.equal((await keysOf(account))[0].first_used_at, null);
  forASecond();
  assert.equal(await posts(account, rotated.signing_key), 200);
  const [newKey, oldKey] = await keysOf(account);
  assert.equal(newKey.first_used_at, clock.now().toString({ fractionalSecondDigits: 3 }));
  assert.equal(newKey.expires_at, null);
  assert.equal(oldKey.expires_at > newKey.first_used_at, true);
});

for (const credential of ['client_secret', 'signing_key'] as const) {
  test(`a second rotation of a ${credential} is refused during the overlap and allowed after it`, async () => {
    const account = await createAccount(service);
    await rotate(account, credential, '--overlap', '90m');
    const again = ['integrations', 'rotate', account.id, '--credential', credential];
    const until = clock.now().add({ minutes: 90 }).toString({ fractionalSecondDigits: 3 });
    await tranche.refused(
      1,
      new RegExp(`being rotated: the old one is valid until ${until}`),
      ...again,
    );
    clock.advance({ minutes: 89, seconds: 59 });
    await tranche.refused(1, /is being rotated/, ...again);
    clock.advance({ seconds: 1 });
    await rotate(account, credential);
  });

  test(`one of several concurrent rotations of a ${credential} succeeds`, async () => {
    const account = await createAccount(service);
    const outcomes = await Promise.allSettled(
      Array.from({ length: 4 }, () =>
        rotateCredential(service.deps, 'test', { id: account.id, credential, overlapSeconds: 60 }),
      ),
    );
    assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 1);
  });
}

test('the two credentials rotate independently', async () => {
  const account = await createAccount(service);
  await rotate(account, 'client_secret');
  await rotate(account, 'signing_key');
});

test('without an overlap the old client secret stops working within a second', async () => {
  const account = await createAccount(service);
  assert.equal(await reads(account, account.client_secret), 200);
  const rotated = await rotate(account, 'client_secret', '--overlap', '0');
  forASecond();
  assert.equal(await reads(account, account.client_secret), 401);
  assert.equal(await reads(account, rotated.client_secret), 200);
});

test('without an overlap the old signing key stops working within a second', async () => {
  const account = await createAccount(service);
  assert.equal(await posts(account, account.signing_key), 200);
  const rotated = await rotate(account, 'signing_key', '--overlap', '0');
  forASecond();
  assert.equal(await posts(account, account.signing_key), 400);
  assert.equal(await posts(account, rotated.signing_key), 200);
  assert.equal((await keysOf(account)).length, 1);
});

test('a key that leaks during an overlap can be revoked at once', async () => {
  const account = await createAccount(service);
  const leaked = await rotate(account, 'signing_key', '--overlap', '7d');
  const safe = await rotate(account, 'signing_key', '--overlap', '0');
  forASecond();
  assert.equal(await posts(account, account.signing_key), 400);
  assert.equal(await posts(account, leaked.signing_key), 400);
  assert.equal(await posts(account, safe.signing_key), 200);
});

test('the key of a revoked integration can still be replaced, because it signs callbacks', async () => {
  const account = await createAccount(service);
  await tranche.json('integrations', 'revoke', account.id);
  await rotate(account, 'signing_key', '--overlap', '0');
  const keys = await keysOf(account);
  assert.deepEqual([keys.length, keys[0].first_used_at], [1, null]);
});

test('an overlap is at most seven days', async () => {
  const account = await createAccount(service);
  const asked = (overlap: string, credential = 'client_secret') => [
    'integrations',
    'rotate',
    account.id,
    '--credential',
    credential,
    '--overlap',
    overlap,
  ];
  await tranche.refused(1, /at most 7 days/, ...asked('8d'));
  await tranche.refused(1, /at most 7 days/, ...asked('604801s'));
  for (const wrong of ['24', '1w', 'h', '1.5h', '1h30m', 'never']) {
    await tranche.refused(2, /--overlap is ".*" and must be a duration such as/, ...asked(wrong));
  }
  await tranche.refused(2, /--overlap needs a value/, ...asked('-1h'));
  await tranche.refused(
    2,
    /--credential is "password" and must be client_secret or signing_key/,
    ...asked('1h', 'password'),
  );
  await tranche.refused(2, /--credential is missing/, 'integrations', 'rotate', account.id);
  await tranche.refused(
    1,
    /There is no integration/,
    'integrations',
    'rotate',
    unknownId,
    '--credential',
    'signing_key',
  );
  await tranche.json(...asked('7d'));
});

test('the page says until when the old one is valid, and that the new one is shown only once', async () => {
  const account = await createAccount(service);
  clock.set('2026-12-14T08:00:00Z');
  const { stdout } = await tranche.run(
    'integrations',
    'rotate',
    account.id,
    '--credential',
    'signing_key',
  );
  assert.match(stdout, /^Signing key {2}sig_sandbox_/m);
  assert.match(stdout, /valid until 15 December 2026, 08:00 UTC/);
  assert.match(stdout, /shown only once/);
});

test('a sandbox whose demo credentials were rotated issues new ones of the same merchant', async (t) => {
  const folder = await temporaryFolder();
  t.after(() => folder.remove());
  const start = () => ensureDemo(service.deps, folder.path);
  let demo = await start();
  const { merchant } = demo;
  assert.deepEqual(await start(), demo);
  for (const credential of ['signing_key', 'client_secret']) {
    await rotate(demo.integration, credential, '--overlap', '0');
    demo = await start();
    assert.deepEqual(demo.merchant, merchant);
    assert.equal(await posts(demo.integration, demo.integration.signing_key), 200, credential);
    assert.deepEqual(await start(), demo);
  }
});

test('a sealed key opens in its own row only', async () => {
  const [one, other] = [await createAccount(service), await createAccount(service)];
  const rotated = await rotate(one, 'signing_key');
  const rows = await service.deps.database.db
    .selectFrom('signing_keys')
    .selectAll()
    .where('integration_id', '=', one.id)
    .orderBy('id')
    .execute();
  const [oldRow, newRow] = rows;
  assert.ok(oldRow && newRow);
  const { sealing } = service.deps;
  assert.equal(sealing.open(newRow.sealed_key, sealingContext(newRow)), rotated.signing_key);
  assert.equal(sealing.open(oldRow.sealed_key, sealingContext(oldRow)), one.signing_key);
  assert.throws(() => sealing.open(newRow.sealed_key, sealingContext(oldRow)));
  assert.throws(() =>
    sealing.open(newRow.sealed_key, sealingContext({ id: newRow.id, integration_id: other.id })),
  );
});
