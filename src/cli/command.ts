import type { ParseArgsConfig, ParseArgsOptionsConfig, parseArgs } from 'node:util';
import type { openDatabase } from '#platform/database/database.ts';
import type { Clock } from '#platform/shared/clock.ts';
import type { Random } from '#platform/shared/random.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import type { Terminal } from './terminal.ts';

/** The arguments are wrong. Exit code 2. */
export class UsageError extends Error {}

type Values<O extends ParseArgsOptionsConfig> = ReturnType<
  typeof parseArgs<ParseArgsConfig & { options: O; strict: true }>
>['values'];

/** The arguments of a command's `run`. */
export type Context<O extends ParseArgsOptionsConfig = ParseArgsOptionsConfig> = {
  values: Values<O>;
  /** The positional arguments. Those that the command requires are present and not empty. */
  positionals: string[];
  env: NodeJS.ProcessEnv;
  clock: Clock;
  random: Random;
  openDatabase: typeof openDatabase | undefined;
  json: boolean;
  terminal: Terminal;
  /** Standard input, for commands that take `-` as a file. */
  stdin: AsyncIterable<Buffer | string>;
  /**
   * Prints the answer: `answer` as JSON with --json (a list is `{"data": […]}`), else `human()`.
   */
  print(answer: object, human: () => string): void;
};

/** Everything that a command needs to open the database. */
export type Surroundings = Pick<Context, 'env' | 'clock' | 'random' | 'openDatabase' | 'terminal'>;

type Definition<O extends ParseArgsOptionsConfig> = {
  /** The words after `tranche`: `merchants create`. */
  name: string;
  /** The arguments, one line for each form of the command. Absent if it takes none. */
  usage?: string[];
  /** Paragraphs of help. The last one is an example. */
  help: string;
  /** Names of the required positional arguments, for messages. */
  positionals?: string[];
  /** Names of the positional arguments that may follow. */
  optionalPositionals?: string[];
  /** Options for `parseArgs`. Every command also takes --json and --help. */
  options?: O;
  /** False for a command that runs until it is stopped and has no answer to print. */
  json?: false;
  /** Returns the exit code; undefined means 0. */
  run(context: Context<O>): Promise<number | undefined>;
};

// biome-ignore lint/suspicious/noExplicitAny: a command's options are checked where it is defined.
export type Command = Definition<any>;

/** Checks a command's `run` against its options. */
export function command<const O extends ParseArgsOptionsConfig = Record<never, never>>(
  definition: Definition<O>,
): Command {
  return definition;
}

export function required(value: string | undefined, option: string): string {
  if (value === undefined || value.trim() === '') throw new UsageError(`--${option} is missing.`);
  return value;
}

export function oneOf<T extends string>(value: string, choices: readonly T[], option: string): T {
  if (!choices.includes(value as T)) {
    throw new UsageError(`--${option} is "${value}" and must be ${choices.join(' or ')}.`);
  }
  return value as T;
}

export function mustBeId(text: string, option: string): string {
  if (!isUuid(text)) throw new UsageError(`--${option} is "${text}" and must be an ID.`);
  return text.toLowerCase();
}

/** IDs from a repeated option, a comma-separated list, or both, without duplicates. */
export function idsOf(values: string | string[] | undefined): string[] {
  const ids = [values ?? []].flat().flatMap((value) => value.split(','));
  return [...new Set(ids.map((id) => id.trim()).filter((id) => id !== ''))];
}
