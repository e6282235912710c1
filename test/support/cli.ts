import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { runCli } from '#cli/main.ts';
import { type Database, openDatabase } from '#platform/database/database.ts';
import { type Clock, systemClock } from '#platform/shared/clock.ts';

export type Outcome = { code: number; stdout: string; stderr: string };

/** The master key of the services that tests start. */
export const masterKey = Buffer.alloc(32, 7).toString('base64');

const databases = new Map<string, Database>();

/**
 * Commands on one database share its connections: to open a connection and plan a command's
 * statements on it would take longer than the command. The connections end with their database.
 */
const openShared: typeof openDatabase = (url, options) => {
  let database = databases.get(url);
  if (!database) {
    const opened = openDatabase(url, { ...options, maxConnections: 12 });
    opened.pool.on('remove', () => {
      if (opened.pool.totalCount === 0) databases.delete(url);
    });
    databases.set(url, opened);
    database = opened;
  }
  return { ...database, close: async () => {} };
};

export type Tranche = ReturnType<typeof commandLine>;

/** Runs the command line in this process, on one database. */
export function commandLine(
  env: NodeJS.ProcessEnv,
  options: { clock?: Clock; terminal?: boolean; stdin?: string; isFull?: boolean } = {},
) {
  async function run(...argv: string[]): Promise<Outcome> {
    const outcome = { code: 0, stdout: '', stderr: '' };
    const collect = (name: 'stdout' | 'stderr') => ({
      isTTY: options.terminal === true,
      write: (text: string | Uint8Array) => {
        if (options.isFull && name === 'stdout') throw new Error('The disk is full.');
        // Each byte is kept as one character.
        outcome[name] += typeof text === 'string' ? text : Buffer.from(text).toString('latin1');
      },
    });
    outcome.code = await runCli(argv, {
      stdout: collect('stdout'),
      stderr: collect('stderr'),
      env: { MASTER_KEY: masterKey, TRANCHE_OPERATOR: 'nomsa', ...env },
      openDatabase: openShared,
      ...(options.clock && { clock: options.clock }),
      ...(options.stdin !== undefined && { stdin: Readable.from([options.stdin]) }),
    });
    return outcome;
  }

  return {
    run,
    /** Runs with --json, and expects success, one object on stdout, and no other output. */
    // biome-ignore lint/suspicious/noExplicitAny: assertions read the answer.
    async json(...argv: string[]): Promise<any> {
      const { code, stdout, stderr } = await run(...argv, '--json');
      assert.equal(stderr, '');
      assert.equal(code, 0);
      assert.match(stdout, /^\{.*\}\n$/);
      return JSON.parse(stdout);
    },
    /** Expects a refusal (1) or a usage error (2): a sentence on stderr and nothing on stdout. */
    async refused(code: 1 | 2, message: RegExp, ...argv: string[]): Promise<void> {
      const outcome = await run(...argv);
      assert.match(outcome.stderr, message);
      assert.match(outcome.stderr, /^tranche: /);
      assert.doesNotMatch(outcome.stderr, / at .*\.ts:\d/);
      assert.deepEqual([outcome.code, outcome.stdout], [code, '']);
    },
  };
}

/** An id that does not exist. */
export const unknownId = '00000000-0000-7000-8000-000000000000';

/**
 * A clock on which a test can skip time, so that what a process remembers expires without waiting.
 */
export function skippingClock(): Clock & { skip(milliseconds: number): void } {
  let skipped = 0;
  return {
    ...systemClock,
    monotonic: () => systemClock.monotonic() + skipped,
    skip(milliseconds) {
      skipped += milliseconds;
    },
  };
}
