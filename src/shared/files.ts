import { rename, writeFile } from 'node:fs/promises';

/** Never half a file, and never one that others can read. */
export async function writePrivately(file: string, content: object): Promise<void> {
  await writeFile(`${file}.new`, `${JSON.stringify(content, null, 2)}\n`, { mode: 0o600 });
  await rename(`${file}.new`, file);
}
