import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { OperatorError } from '#record/actions/operate.ts';
import type { Context } from './command.ts';

/** Streams the lines of a file or of standard input (`-`): a log may not fit into memory. */
export async function* readLines(file: string, stdin: Context['stdin']): AsyncIterable<string> {
  const input = file === '-' ? Readable.from(stdin) : createReadStream(file);
  try {
    yield* createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new OperatorError(`The file ${file} cannot be read (${code}).`, { cause: error });
  } finally {
    input.destroy();
  }
}
