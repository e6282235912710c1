import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { ensureMasterKey, findMasterKeys, loadMasterKeys } from '#hosting/running/master-key.ts';
import { reencryptKeys } from '#merchants/integrations/reencrypt-keys.ts';
import { commandLine, masterKey, type Tranche } from '../support/cli.ts';
import {
  checkoutBody,
  createAccount,
  type Service,
  send,
  startService,
} from '../support/service.ts';

const newKey = Buffer.alloc(32, 9).toString('base64');

async function withService(work: (service: Service) => Promise<void>): Promise<void> {
  const service = await startService();
  try {
    await work(service);
  } finally {
    await service.close();
  }
}

async function inFolder(work: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(path.join(tmpdir(), 'keys-'));
  try {
    await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const post = async (service: Service, account: { client_secret: string; signing_key: string }) =>
  (await send(service, account, 'POST', '/api/checkouts', { body: checkoutBody() })).status;

test('every signing key and bank account is re-encrypted under a new master key, and then the old one is not needed', async () => {
  await withService(async (service) => {
    const accounts = [];
    for (let count = 0; count < 5; count += 1) accounts.push(await createAccount(service));
    const before = commandLine({ DATABASE_URL: service.databaseUrl });
    const bank = ['merchants', 'bank', String(accounts[0]?.merchant.id), '--holder', 'Karoo'];
    const where = ['--bank', 'FNB', '--branch-code', '250655', '--account-number', '62100049876'];
    await before.json(...bank, ...where);
    const changing = { MASTER_KEY: newKey, MASTER_KEY_PREVIOUS: masterKey };
    const tranche = commandLine({ DATABASE_URL: service.databaseUrl, ...changing });
    assert.deepEqual(await tranche.json('keys', 'reencrypt'), { examined: 6, reencrypted: 6 });
    assert.deepEqual(await tranche.json('keys', 'reencrypt'), { examined: 6, reencrypted: 0 });

    const { databaseUrl } = service;
    const after = await startService({ databaseUrl, env: { MASTER_KEY: newKey } });
    for (const account of accounts) assert.equal(await post(after, account), 200);
    await after.close();
    const { rows } = await service.deps.database.pool.query(
      `select details from operator_actions where action = 'keys reencrypt' order by at, id`,
    );
    assert.deepEqual(rows, [{ details: { signing_keys: 5 } }, { details: { bank_accounts: 1 } }]);
  });
});

test('after a change of the cipher, earlier secrets still open and can be re-encrypted', async () => {
  await withService(async (service) => {
    const account = await createAccount(service);
    const { databaseUrl } = service;
    const env = { SEALING_CIPHER: 'chacha20-poly1305' };
    const after = await startService({ databaseUrl, env });
    assert.equal(await post(after, account), 200, 'before it is re-encrypted');
    const tranche = commandLine({ DATABASE_URL: databaseUrl, ...env });
    assert.deepEqual(await tranche.json('keys', 'reencrypt'), { examined: 1, reencrypted: 1 });
    assert.deepEqual(await tranche.json('keys', 'reencrypt'), { examined: 1, reencrypted: 0 });
    assert.equal(await post(after, account), 200);
    await after.close();
    // A node with the previous setting still opens the secret that was re-encrypted.
    const other = await startService({ databaseUrl });
    assert.equal(await post(other, account), 200);
    await other.close();
  });
});

test('re-encryption works in batches, reports progress, and two runs re-encrypt each key once', async () => {
  await withService(async (service) => {
    for (let count = 0; count < 7; count += 1) await createAccount(service);
    const env = { MASTER_KEY: newKey, MASTER_KEY_PREVIOUS: masterKey };
    const { databaseUrl } = service;
    const changing = await startService({ databaseUrl, env });
    const examined: number[] = [];
    const runs = await Promise.all(
      [1, 2].map((run) =>
        reencryptKeys(changing.deps, `run ${run}`, {
          batchSize: 3,
          onProgress: (soFar) => {
            if (run === 1) examined.push(soFar.examined);
          },
        }),
      ),
    );
    await changing.close();
    assert.deepEqual(examined, [3, 6, 7]);
    const total = runs.reduce((sum, { reencrypted }) => sum + reencrypted, 0);
    assert.equal(total, 7);
  });
});

test('a key that no master key opens is named, and the others are re-encrypted', async () => {
  await withService(async (service) => {
    const [damaged, good] = [await createAccount(service), await createAccount(service)];
    const { rows } = await service.deps.database.pool.query(
      `update signing_keys set sealed_key = set_byte(sealed_key, 40, get_byte(sealed_key, 40) # 1)
       where integration_id = $1 returning id`,
      [damaged.id],
    );
    const tranche = commandLine({
      DATABASE_URL: service.databaseUrl,
      MASTER_KEY: newKey,
      MASTER_KEY_PREVIOUS: masterKey,
    });
    await tranche.refused(
      1,
      new RegExp(`1 of 2 signing keys and bank accounts \\(re-encrypted: 1\\).*${rows[0].id}`),
      'keys',
      'reencrypt',
    );
    const { databaseUrl } = service;
    const after = await startService({ databaseUrl, env: { MASTER_KEY: newKey } });
    assert.equal(await post(after, good), 200);
    await after.close();
  });
});

test('credentials are never sealed under a master key other than the service’s', async () => {
  await withService(async (service) => {
    const account = await createAccount(service);
    const tranche = commandLine({ DATABASE_URL: service.databaseUrl, MASTER_KEY: newKey });
    const refused = (...argv: string[]) =>
      tranche.refused(1, /sealed under another master key. Set MASTER_KEY/, ...argv);
    await refused('integrations', 'create', '--merchant', account.merchant.id);
    await refused('integrations', 'rotate', account.id, '--credential', 'signing_key');
    await refused('keys', 'reencrypt');
    // Commands that need no master key do not require one.
    await tranche.json('integrations', 'show', account.id);
  });
});

test('after the loss of the master key each integration can get a new signing key', async () => {
  await withService(async (service) => {
    const account = await createAccount(service);
    await service.deps.database.pool.query('delete from signing_keys');
    const { databaseUrl } = service;
    const tranche = commandLine({ DATABASE_URL: databaseUrl, MASTER_KEY: newKey });
    const rotated = await tranche.json(
      'integrations',
      'rotate',
      account.id,
      '--credential',
      'signing_key',
    );
    const after = await startService({ databaseUrl, env: { MASTER_KEY: newKey } });
    assert.equal(await post(after, { ...account, ...rotated }), 200);
    await after.close();
  });
});

test('after the loss of a master key, bank accounts that were replaced do not block a change of the next one', async () => {
  await withService(async (service) => {
    const { merchant } = await createAccount(service);
    const { databaseUrl } = service;
    const { pool } = service.deps.database;
    const bank = async (tranche: Tranche) => {
      const proposed = ['merchants', 'bank', merchant.id, '--holder', 'Karoo', '--bank', 'FNB'];
      const where = ['--branch-code', '250655', '--account-number', '62100049876'];
      await tranche.json(...proposed, ...where);
    };
    const confirm = async (key: string, number: string) => {
      const sipho = { DATABASE_URL: databaseUrl, MASTER_KEY: key, TRANCHE_OPERATOR: 'sipho' };
      const confirmed = ['merchants', 'bank', merchant.id, '--confirm', number];
      await commandLine(sipho).json(...confirmed, '--account-number', '62100049876');
    };
    await bank(commandLine({ DATABASE_URL: databaseUrl }));
    await confirm(masterKey, '1');
    await pool.query('delete from signing_keys');
    await pool.query('update installation set key_check = null');
    await bank(commandLine({ DATABASE_URL: databaseUrl, MASTER_KEY: newKey }));
    const third = Buffer.alloc(32, 11).toString('base64');
    const changing = { MASTER_KEY: third, MASTER_KEY_PREVIOUS: newKey };
    const tranche = commandLine({ DATABASE_URL: databaseUrl, ...changing });
    const lost = new RegExp(`1 of 2 .*\\(re-encrypted: 1\\).*bank_accounts ${merchant.id} 1$`, 'm');
    await tranche.refused(1, lost, 'keys', 'reencrypt');
    await confirm(third, '2');
    assert.deepEqual(await tranche.json('keys', 'reencrypt'), { examined: 1, reencrypted: 0 });
  });
});

test('without a master key a command says where it looked and creates none', async () => {
  await inFolder(async (folder) => {
    await withService(async (service) => {
      const account = await createAccount(service);
      const env = { DATABASE_URL: service.databaseUrl, MASTER_KEY: '', DATA_DIR: folder };
      const create = ['integrations', 'create', '--merchant', account.merchant.id];
      await commandLine(env).refused(
        1,
        /no master key: MASTER_KEY is not set, and .*master\.key does not exist/,
        ...create,
      );
      assert.deepEqual(await readdir(folder), []);
      await writeFile(path.join(folder, 'master.key'), `${masterKey}\n`);
      const issued = await commandLine(env).json(...create);
      assert.equal(await post(service, issued), 200);
    });
  });
});

test('sandboxes that start at once create one master key, readable by the owner only', async () => {
  await inFolder(async (folder) => {
    const dataDir = path.join(folder, 'deeper', 'still');
    const made = await Promise.all(Array.from({ length: 20 }, () => ensureMasterKey(dataDir)));
    const [first] = made;
    assert.ok(first);
    assert.equal(first.length, 32);
    for (const key of made) assert.deepEqual(key, first);
    const file = path.join(dataDir, 'master.key');
    assert.equal((await stat(file)).mode & 0o777, 0o600);
    assert.equal(await readFile(file, 'utf8'), `${first.toString('base64')}\n`);
    assert.deepEqual(await readdir(dataDir), ['master.key']);
    const config = { masterKeys: [], environment: 'sandbox' as const, dataDir };
    assert.deepEqual(await loadMasterKeys(config), [first]);
    assert.deepEqual(await findMasterKeys(config), [first]);
  });
});

test('a damaged master key file is never replaced', async () => {
  await inFolder(async (folder) => {
    const file = path.join(folder, 'master.key');
    await writeFile(file, 'half a ke');
    await assert.rejects(ensureMasterKey(folder), /damaged: restore it/);
    assert.equal(await readFile(file, 'utf8'), 'half a ke');
  });
});

test('production never creates a master key or reads one from the data folder', async () => {
  await inFolder(async (folder) => {
    const config = { masterKeys: [], environment: 'production' as const, dataDir: folder };
    await assert.rejects(loadMasterKeys(config), /no master key/);
    assert.deepEqual(await readdir(folder), []);
    await ensureMasterKey(folder);
    await assert.rejects(loadMasterKeys(config), /no master key/);
  });
});
