import { openSync, write, writeSync } from 'node:fs';
import { systemClock, within } from '#platform/shared/clock.ts';

/** How much may wait while the reader stalls. Lines beyond that are dropped. */
const waitingCharactersMax = 4_000_000;

/** Short lines are written together. */
const batchCharactersMax = 16_000;

/** The pause before another attempt at a pipe that is full. */
const pauseMilliseconds = 100;

/** How long the end of the process may wait for a reader. */
const endMilliseconds = 2_000;

const pause = new Int32Array(new SharedArrayBuffer(4));

/**
 * Writes lines to a file or to standard output, in the background. Whatever goes wrong there, a
 * full disk or a reader that is gone or stalls, the service goes on: lines that cannot be written
 * are dropped and reported, and later lines are attempted.
 */
export function openLines(
  file: string | undefined,
  dropped: (lines: number) => void,
): { write(line: string): void; settled(): Promise<void> } {
  const fd = file === undefined ? process.stdout.fd : openSync(file, 'a', 0o600);
  const batches: string[] = [];
  let waitingCharacters = 0;
  /** The rest of the batch that is being written. Null if everything is written. */
  let current: Buffer | null = null;
  let isInFlight = false;
  /** Whether the last line that was written is cut short. */
  let isTorn = false;
  let idle = Promise.withResolvers<void>();
  idle.resolve();

  function next() {
    const batch = batches.shift();
    if (batch === undefined) {
      current = null;
      return idle.resolve();
    }
    waitingCharacters -= batch.length;
    attempt(Buffer.from(isTorn ? `\n${batch}` : batch));
  }

  function attempt(rest: Buffer) {
    current = rest;
    isInFlight = true;
    unblock(fd);
    write(fd, rest, (error, written) => {
      isInFlight = false;
      if (error === null && written > 0) isTorn = rest[written - 1] !== newline;
      if (error === null && written < rest.length) {
        attempt(rest.subarray(written));
      } else if (error !== null && isFull(error)) {
        systemClock.after(pauseMilliseconds, () => attempt(rest));
      } else {
        if (error !== null) dropped(rest.filter((byte) => byte === newline).length);
        next();
      }
    });
  }

  // A process that ends has no more events, so it writes the rest at once.
  process.on('exit', () => {
    const rest = Buffer.from(batches.join(''));
    writeAtOnce(fd, current === null || isInFlight ? rest : Buffer.concat([current, rest]));
  });

  return {
    write(line) {
      if (waitingCharacters + line.length > waitingCharactersMax) {
        dropped(1);
        return;
      }
      waitingCharacters += line.length;
      const last = batches.at(-1);
      if (last !== undefined && last.length + line.length <= batchCharactersMax) {
        batches[batches.length - 1] += line;
      } else {
        batches.push(line);
      }
      if (current !== null) return;
      idle = Promise.withResolvers();
      next();
    },
    settled: () => within(systemClock, endMilliseconds, idle.promise),
  };
}

const newline = 10;

/** The reader has not emptied the pipe yet. */
const isFull = ({ code }: NodeJS.ErrnoException) => code === 'EAGAIN';

/**
 * Makes a pipe at standard output non-blocking. Otherwise a write to a full pipe would hold a
 * thread, and the process could not end. The processes of a service share the pipe and its mode,
 * and Node makes it blocking for all of them when one begins or ends. So this is repeated before
 * each write. On Windows each process has a mode of its own.
 */
function unblock(fd: number): void {
  const isOutput = fd === standardOutput && !process.stdout.isTTY;
  if (!isOutput || process.platform === 'win32') return;
  (process.stdout as unknown as Pipe)._handle?.setBlocking?.(false);
}

const standardOutput = 1;
/** Files have no handle. */
type Pipe = { _handle?: { setBlocking?(isBlocking: boolean): void } | null };

/** Waits for a reader, but gives up at any other error. */
function writeAtOnce(fd: number, bytes: Buffer): void {
  const start = systemClock.monotonic();
  for (let from = 0; from < bytes.length; ) {
    try {
      unblock(fd);
      from += writeSync(fd, bytes, from);
    } catch (error) {
      const hasTime = systemClock.monotonic() - start < endMilliseconds;
      if (!isFull(error as NodeJS.ErrnoException) || !hasTime) return;
      Atomics.wait(pause, 0, 0, pauseMilliseconds);
    }
  }
}
