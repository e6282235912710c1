import { rename, writeFile } from 'node:fs/promises';

/** Replaces a file as a whole. Only the owner can read it. */
export async function writePrivately(file: string, content: object): Promise<void> {
  await writeFile(`${file}.new`, `${JSON.stringify(content, null, 2)}\n`, { mode: 0o600 });
  await rename(`${file}.new`, file);
}
