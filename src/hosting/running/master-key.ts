import { link, mkdir, open, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { readMasterKey } from '#config/storage.ts';
import type { Config } from '#config.ts';
import { findNewestSealedKey } from '#merchants/integrations/credential.sql.ts';
import type { Handle } from '#platform/database/database.ts';
import { setKeyCheck } from '#platform/database/installation.ts';
import { systemRandom } from '#platform/shared/random.ts';
import { createSealing, type Sealing } from '#platform/shared/sealing.ts';

/** A problem with the master key that only the operator can solve. */
class MasterKeyError extends Error {}

type Where = Pick<Config, 'masterKeys' | 'environment' | 'dataDir'>;

const fileIn = (dataDir: string) => join(dataDir, 'master.key');

/**
 * Returns the master keys that the service runs with, the current one first. A sandbox without a
 * key makes one and keeps it in its data folder. Production never does (decision 0015).
 */
export async function loadMasterKeys(config: Where): Promise<Buffer[]> {
  if (config.masterKeys.length > 0 || config.environment === 'production') {
    return await findMasterKeys(config);
  }
  return [await ensureMasterKey(config.dataDir)];
}

/**
 * Finds the master keys for a command that runs beside the service. It never makes a key, because
 * the service could not open what the command sealed.
 */
export async function findMasterKeys(config: Where): Promise<Buffer[]> {
  if (config.masterKeys.length > 0) return config.masterKeys;
  const found =
    config.environment === 'production' ? null : await readMasterKeyFile(config.dataDir);
  if (found === null) {
    throw new MasterKeyError(
      `There is no master key: MASTER_KEY is not set, and ${fileIn(config.dataDir)} does not exist. ` +
        'Set MASTER_KEY to the key that the service runs with.',
    );
  }
  return [found];
}

/**
 * Returns the data folder's master key, and makes one if it is missing. Two processes that do this
 * at once get the same key.
 */
export async function ensureMasterKey(dataDir: string): Promise<Buffer> {
  const found = await readMasterKeyFile(dataDir);
  if (found !== null) return found;
  await mkdir(dataDir, { recursive: true });
  // The key is first written completely under another name. Unlike a rename, a link never replaces
  // a file, so the second process reads the first one's key.
  const draft = `${fileIn(dataDir)}.${systemRandom.bytes(6).toString('hex')}`;
  const handle = await open(draft, 'wx', 0o600);
  try {
    await handle.writeFile(`${systemRandom.bytes(32).toString('base64')}\n`);
    await handle.sync();
    await link(draft, fileIn(dataDir));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    await handle.close();
    await rm(draft, { force: true });
  }
  const made = await readMasterKeyFile(dataDir);
  if (made === null) throw new MasterKeyError(`${fileIn(dataDir)} vanished while being made.`);
  return made;
}

async function readMasterKeyFile(dataDir: string): Promise<Buffer | null> {
  const file = fileIn(dataDir);
  try {
    const key = readMasterKey((await readFile(file, 'utf8')).trim());
    // Replacing it with a new key would silently make every signing key unreadable.
    if (!key) throw new MasterKeyError(`${file} is damaged: restore it from a backup.`);
    return key;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return null;
    if (code === 'EACCES') {
      throw new MasterKeyError(`Only the owner of ${file} may read it: run this as that user.`);
    }
    throw error;
  }
}

/**
 * Refuses a master key that does not open what this database contains. With such a key the service
 * would answer every signed request with a 500, and a command would seal keys that the service
 * cannot open.
 */
export async function checkMasterKeys(
  db: Handle,
  { masterKeys, sealingCipher }: Pick<Config, 'masterKeys' | 'sealingCipher'>,
): Promise<void> {
  const sealing = createSealing(masterKeys, systemRandom, sealingCipher);
  const newest = await findNewestSealedKey(db);
  if (newest === null) return await claimMasterKey(db, sealing);
  if (sealing.isKnown(newest)) return;
  throw new MasterKeyError(
    'The signing keys in this database are sealed under another master key. Set MASTER_KEY to ' +
      'that key. To change to a new key, set MASTER_KEY to the new one and MASTER_KEY_PREVIOUS to ' +
      'the old one, and then run `tranche keys reencrypt`.',
  );
}

/**
 * Even before there are signing keys, a key check in the database detects two nodes with different
 * master keys.
 */
async function claimMasterKey(db: Handle, sealing: Sealing): Promise<void> {
  const own = sealing.seal('master key', 'installation');
  const keyCheck = await setKeyCheck(db, own, null);
  if (!sealing.isKnown(keyCheck)) {
    throw new MasterKeyError(
      'This database was first used with another master key. Set MASTER_KEY to that key on every node.',
    );
  }
  // The operator is changing the master key, and this process has both keys.
  if (!sealing.isCurrent(keyCheck)) await setKeyCheck(db, own, keyCheck);
}
