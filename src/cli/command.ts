import type { ParseArgsConfig, ParseArgsOptionsConfig, parseArgs } from 'node:util';
import type { Clock } from '../shared/clock.ts';
import type { Random } from '../shared/random.ts';
import { isUuid } from '../shared/uuid.ts';
import type { Terminal } from './terminal.ts';

/** Somebody typed something that the command does not take. Exit code 2. */
export class UsageError extends Error {}

type Values<O extends ParseArgsOptionsConfig> = ReturnType<
  typeof parseArgs<ParseArgsConfig & { options: O; strict: true }>
>['values'];

/** What a command is given when it runs. */
export type Context<O extends ParseArgsOptionsConfig = ParseArgsOptionsConfig> = {
  values: Values<O>;
  /** As many as the command names, none of them empty. */
  positionals: string[];
  env: NodeJS.ProcessEnv;
  clock: Clock;
  random: Random;
  json: boolean;
  terminal: Terminal;
  /** Everything that is on standard input. */
  readInput(): Promise<Buffer>;
  /** The answer: one object with --json (a list as `{"data": […]}`), else what `human` says. */
  print(answer: object, human: () => string): void;
};

type Definition<O extends ParseArgsOptionsConfig> = {
  /** The words after `tranche`: `merchants create`. */
  name: string;
  /** A phrase for the list of commands. */
  summary: string;
  /** What follows the name, one line per way of calling it. */
  usage: string[];
  /** What an operator should know, in sentences, ending with an example. */
  help: string;
  /** What the positional arguments are called in messages. All are required. */
  positionals?: string[];
  /** What may follow them. */
  optionalPositionals?: string[];
  /** Those of `parseArgs`; --json and --help are understood by every command. */
  options: O;
  /** False where there is no answer to print: the command runs until it is stopped. */
  json?: false;
  /** Returns an exit code other than 0 if it has one. */
  run(context: Context<O>): Promise<number | undefined>;
};

// biome-ignore lint/suspicious/noExplicitAny: each command's own options are checked where it is defined.
export type Command = Definition<any>;

/** Commands that share their first word. */
export type CommandGroup = { name: string; summary: string; commands: Command[] };

/** Checks a command's `run` against its options. */
export function command<const O extends ParseArgsOptionsConfig>(
  definition: Definition<O>,
): Command {
  return definition;
}

export function required(value: string | undefined, option: string): string {
  if (value === undefined || value.trim() === '') throw new UsageError(`--${option} is missing.`);
  return value;
}

/** An option that takes one of a few words. */
export function oneOf<T extends string>(value: string, choices: readonly T[], option: string): T {
  if (!choices.includes(value as T)) {
    throw new UsageError(`--${option} is "${value}" and must be ${choices.join(' or ')}.`);
  }
  return value as T;
}

/** An option that names something by its ID. */
export function mustBeId(text: string, option: string): string {
  if (!isUuid(text)) throw new UsageError(`--${option} is "${text}" and must be an ID.`);
  return text.toLowerCase();
}

/** Ids given one by one, as comma lists, or both. */
export function idsOf(values: string | string[] | undefined): string[] {
  const ids = [values ?? []].flat().flatMap((value) => value.split(','));
  return [...new Set(ids.map((id) => id.trim()).filter((id) => id !== ''))];
}
