import { existsSync, fstatSync, writeSync } from 'node:fs';
import { delimiter, join, relative } from 'node:path';
import { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import type { openDatabase } from '#platform/database/database.ts';
import { type Clock, systemClock } from '#platform/shared/clock.ts';
import { type Random, systemRandom } from '#platform/shared/random.ts';
import manifest from '../../package.json' with { type: 'json' };
import { catalogue, type ListedCommand, type ListedGroup } from './catalogue.ts';
import { type Command, type Context, UsageError } from './command.ts';
import { nearest } from './nearest.ts';
import { createTerminal, fill, type Output, type Terminal, toPrintedJson } from './terminal.ts';

const commands = catalogue.flatMap((entry) => ('commands' in entry ? entry.commands : [entry]));

export type Io = {
  stdout: Output;
  stderr: Output;
  stdin?: Context['stdin'];
  env: NodeJS.ProcessEnv;
  clock?: Clock;
  random?: Random;
  /** Tests pass a function whose connections several commands share. */
  openDatabase?: typeof openDatabase;
  /** The name of the program in commands that a page suggests; `tranche` by default. */
  program?: string;
};

/** Runs one command and returns its exit code: 0 done, 1 refused, 2 mistyped. */
export async function runCli(argv: string[], io: Io): Promise<number> {
  const terminal = createTerminal(io);
  try {
    return await dispatch(argv, io, terminal);
  } catch (error) {
    terminal.warn(`tranche: ${await explain(error)}`);
    return error instanceof UsageError ? 2 : 1;
  }
}

async function dispatch(argv: string[], io: Io, terminal: Terminal): Promise<number> {
  const say = (text: string) => {
    terminal.print(text);
    return 0;
  };
  // The only option that may come before the command.
  const leading = argv[0] === '--json' ? ['--json'] : [];
  const words = argv.slice(leading.length);
  const [first] = words;
  if (first === '--version' || first === '-V') return say(manifest.version);
  if (first === undefined || first === '--help' || first === '-h') return say(helpOnAll(terminal));
  if (first === 'help') {
    const topic = words.slice(1);
    if (topic.length === 0) return say(helpOnAll(terminal));
    const found = find(topic);
    if ('commands' in found) return say(helpOnGroup(terminal, found));
    return say(helpOn(terminal, await found.load()));
  }
  if (first.startsWith('-')) {
    throw new UsageError(`Options come after the command. \`tranche --help\` lists the commands.`);
  }

  const listed = find(words);
  if ('commands' in listed) {
    const asked = words.slice(1).some((word) => word === '--help' || word === '-h');
    if (asked || words.length === 1) {
      const help = helpOnGroup(terminal, listed);
      if (asked) return say(help);
      terminal.warn(help);
      return 2;
    }
    const known = listed.commands.map(({ name }) => name.slice(listed.name.length + 1));
    throw new UsageError(
      `There is no command "${words.slice(0, 2).join(' ')}".${suggest(words[1] ?? '', known, `tranche ${listed.name} `)} \`tranche ${listed.name} --help\` lists them.`,
    );
  }
  const found = await listed.load();
  const rest = [...leading, ...words.slice(found.name.split(' ').length)];
  const { values, positionals } = parse(found, rest);
  if (values.help) return say(helpOn(terminal, found));
  checkComplete(found, positionals, values);
  const json = values.json === true;
  if (json && found.json === false) {
    throw new UsageError(
      `\`tranche ${found.name}\` has no --json. It logs one JSON object per line.`,
    );
  }
  const code = await found.run({
    values,
    positionals,
    env: io.env,
    clock: io.clock ?? systemClock,
    random: io.random ?? systemRandom,
    openDatabase: io.openDatabase,
    json,
    terminal,
    stdin: io.stdin ?? Readable.from([]),
    print: (answer, human) => {
      if (json) io.stdout.write(`${toPrintedJson(answer)}\n`);
      else terminal.print(human());
    },
  });
  return code ?? 0;
}

/** The command that the first two words name, or else the group that the first word names. */
function find(words: string[]): ListedCommand | ListedGroup {
  const [first = '', second = ''] = words;
  const entry =
    commands.find(({ name }) => name === `${first} ${second}`) ??
    catalogue.find(({ name }) => name === first);
  if (entry) return entry;
  const known = catalogue.map(({ name }) => name);
  throw new UsageError(
    `There is no command "${first}".${suggest(first, known, 'tranche ')} \`tranche --help\` lists them.`,
  );
}

const everywhere = {
  json: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const;

/** `parseArgs` with messages that name the fix. */
function parse(command: Command, args: string[]) {
  const options = { ...command.options, ...everywhere };
  const { values, positionals, tokens } = parseArgs({
    args,
    options,
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const seen = new Set<string>();
  for (const token of tokens) {
    if (token.kind !== 'option') continue;
    const { name, rawName, value, inlineValue } = token;
    const option = Object.hasOwn(options, name) ? options[name] : undefined;
    if (!option) {
      const known = Object.keys(options);
      throw new UsageError(
        `\`tranche ${command.name}\` has no option ${rawName}.${suggest(name, known, '--')} \`tranche ${command.name} --help\` lists them.`,
      );
    }
    if (option.type === 'boolean' && value !== undefined) {
      throw new UsageError(`${rawName} takes no value.`);
    }
    if (option.type === 'string') {
      if (value === undefined) throw new UsageError(`${rawName} needs a value.`);
      // A value that looks like an option is probably an option whose value is missing.
      if (!inlineValue && value.startsWith('-') && value !== '-') {
        throw new UsageError(
          `${rawName} needs a value. If it is "${value}", write ${rawName}=${value}.`,
        );
      }
      if (seen.has(name) && !option.multiple) throw new UsageError(`${rawName} is given twice.`);
    }
    seen.add(name);
  }
  return { values, positionals };
}

/** Names everything that is missing in one message, or the argument that is one too many. */
function checkComplete(command: Command, given: string[], values: Record<string, unknown>): void {
  const names = command.positionals ?? [];
  const missing = names.filter((_, index) => isBlank(given[index]));
  missing.push(...missingOptions(command, values).map((option) => `--${option}`));
  if (missing.length > 0) {
    const last = missing.pop();
    const all = missing.length === 0 ? `${last} is` : `${missing.join(', ')} and ${last} are`;
    throw new UsageError(`${all} missing.\n${usageOf(command)}`);
  }
  const surplus = given[names.length + (command.optionalPositionals?.length ?? 0)];
  if (surplus !== undefined) {
    throw new UsageError(`"${surplus}" is one argument too many.\n${usageOf(command)}`);
  }
}

const isBlank = (value: unknown) =>
  value === undefined || (typeof value === 'string' && value.trim() === '');

/**
 * Returns the required options that are absent; the usage shows them outside brackets. If a command
 * has several forms, this looks at the form that matches most of the given options. If several
 * match equally, it returns only options that all of them require.
 */
function missingOptions(
  { usage = [''], options = {} }: Command,
  values: Record<string, unknown>,
): string[] {
  const named = (text: string) =>
    [...text.matchAll(/--([a-z0-9-]+)/g)].map(([, name = '']) => name);
  const isGiven = (option: string) => !isBlank(values[option]) && values[option] !== false;
  const forms = usage.map((form) => ({
    score: named(form).filter(isGiven).length,
    missing: named(withoutOptional(form)).filter(
      (option) => options[option]?.type === 'string' && !isGiven(option),
    ),
  }));
  const best = Math.max(...forms.map(({ score }) => score));
  const [first, ...others] = forms.filter(({ score }) => score === best);
  return (first?.missing ?? []).filter((option) =>
    others.every(({ missing }) => missing.includes(option)),
  );
}

/** Removes what is in brackets, which may be nested. */
function withoutOptional(form: string): string {
  const left = form.replace(/\[[^[\]]*\]/g, '');
  return left === form ? form : withoutOptional(left);
}

function suggest(word: string, known: string[], prefix: string): string {
  const near = nearest(word, known);
  return near === null ? '' : ` Did you mean ${prefix}${near}?`;
}

function usageOf({ name, usage = [''] }: Command): string {
  return usage
    .map((line, index) => `${index === 0 ? 'Usage:' : '      '} tranche ${name} ${line}`.trimEnd())
    .map(breakBeforeOptions)
    .join('\n');
}

/** Breaks a long usage line before an option, never between an option and its value. */
function breakBeforeOptions(usage: string): string {
  const [first = '', ...options] = usage.split(/ (?=\[?--)/);
  const lines = [first];
  for (const option of options) {
    const line = `${lines.at(-1)} ${option}`;
    if (line.length <= 80) lines[lines.length - 1] = line;
    else lines.push(`${' '.repeat(9)}${option}`);
  }
  return lines.join('\n');
}

function helpOn(terminal: Terminal, command: Command): string {
  const paragraphs = command.help.split('\n\n').map((text) => fill(text));
  const example = terminal.accent(paragraphs.pop() ?? '');
  return `${usageOf(command)}

${[...paragraphs, example].join('\n\n')}${
  command.json === false ? '' : '\n\n--json prints one JSON object and nothing else.'
}`;
}

function helpOnGroup(terminal: Terminal, group: ListedGroup): string {
  return `tranche ${group.name}: ${group.summary}

${listOf(terminal, group.commands)}

\`tranche ${group.commands[0]?.name} --help\` explains one command, with an example.`;
}

function helpOnAll(terminal: Terminal): string {
  return `${terminal.accent('▮▯▯')} Tranche: instalment checkout and refund service

Usage: tranche COMMAND [options]

${listOf(terminal, commands)}

Every command takes --json (one JSON object, for programs) and --help.
Commands use the sandbox that runs in DATA_DIR (.tranche), or DATABASE_URL.

${terminal.accent('  tranche merchants create --help')}`;
}

function listOf(terminal: Terminal, listed: ListedCommand[]): string {
  const width = Math.max(...listed.map(({ name }) => name.length));
  return listed
    .map(({ name, summary }) => `  ${terminal.accent(name.padEnd(width))}  ${summary}`)
    .join('\n');
}

/** A bug is printed with its stack; any other error as a sentence that says what to do. */
async function explain(error: unknown): Promise<string> {
  if (!(error instanceof Error)) return String(error);
  if (error instanceof UsageError) return error.message;
  const { FateUnknown } = await import('#platform/database/transaction.ts');
  if (error instanceof FateUnknown) {
    return 'The database connection broke during COMMIT. Check whether the change was made before you repeat it.';
  }
  const isDefect =
    error.name === 'AssertionError' ||
    [TypeError, RangeError, ReferenceError].some((kind) => error instanceof kind);
  return (isDefect && error.stack) || error.message || String(error);
}

const programFile = fileURLToPath(new URL('../../bin/tranche', import.meta.url));

const isOnPath = (path = '') =>
  path.split(delimiter).some((folder) => folder !== '' && existsSync(join(folder, 'tranche')));

/**
 * Where a command writes. Node writes to a file once and ignores how much of the output fitted, so
 * this function writes to files itself: a bank run must not be cut short without an error.
 */
function openOutput(stdout: NodeJS.WriteStream & { fd: 1 }): Output {
  const found = fstatSync(stdout.fd);
  if (stdout.isTTY || found.isFIFO() || found.isSocket()) return stdout;
  return {
    write(output) {
      const bytes = Buffer.from(output);
      try {
        for (let from = 0; from < bytes.length; ) from += writeSync(stdout.fd, bytes, from);
      } catch (error) {
        throw new Error(
          `The output could not be written (${(error as NodeJS.ErrnoException).code}), so it is not complete. Make room and print it again. What the command has changed stays changed.`,
          { cause: error },
        );
      }
    },
  };
}

if (import.meta.main) {
  // A reader such as `head` may close the pipe early.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    process.exit(error.code === 'EPIPE' ? 0 : 1);
  });
  const { stdin, stderr, env } = process;
  const stdout = openOutput(process.stdout);
  const program = isOnPath(env.PATH) ? 'tranche' : relative(process.cwd(), programFile);
  const code = await runCli(process.argv.slice(2), { stdin, stdout, stderr, env, program });
  // The process exits once the output is written, without waiting for abandoned connections.
  process.stdout.write('', () => process.exit(code));
}
