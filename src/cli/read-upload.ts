import { readFile, stat } from 'node:fs/promises';
import { OperatorError } from '#record/actions/operate.ts';

/** Reads a file to upload. Its size is checked before its content is read. */
export async function readUpload(path: string, bytesMax: number): Promise<Buffer> {
  try {
    const { size } = await stat(path);
    if (size > bytesMax) {
      const max = bytesMax < 1_000_000 ? `${bytesMax / 1_000} kB` : `${bytesMax / 1_000_000} MB`;
      throw new OperatorError(`${path} is larger than ${max}. Make it smaller.`);
    }
    return await readFile(path);
  } catch (error) {
    if (error instanceof OperatorError) throw error;
    throw new OperatorError(`${path} cannot be read: ${(error as Error).message}.`);
  }
}
