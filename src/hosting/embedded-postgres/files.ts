import { randomBytes } from 'node:crypto';
import fs from 'node:fs/promises';
import type { ServerAccount } from './account.ts';

/**
 * Replaces a file in the account's folders as a whole. Does not follow links that the account made.
 */
export async function writeOwned(
  file: string,
  text: string,
  account: ServerAccount,
): Promise<void> {
  const partial = `${file}.${randomBytes(4).toString('hex')}`;
  const handle = await fs.open(partial, 'wx', 0o600);
  try {
    if (account !== null) await handle.chown(account.uid, account.gid);
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await fs.rename(partial, file);
}

export async function readIfPresent(file: string): Promise<string> {
  try {
    return await fs.readFile(file, 'utf8');
  } catch (error) {
    // The process file system answers ESRCH if the process ended during the read.
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return '';
    return nullIfAbsent(error) ?? '';
  }
}

export function nullIfAbsent(error: unknown): null {
  if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
  throw error;
}
