import { parseArgs } from 'node:util';
import { FateUnknown } from '#platform/database/transaction.ts';
import { type Clock, systemClock } from '#platform/shared/clock.ts';
import { type Random, systemRandom } from '#platform/shared/random.ts';
import manifest from '../../package.json' with { type: 'json' };
import { alerts } from './alerts.ts';
import { audit } from './audit.ts';
import { bulkActions } from './bulk-actions.ts';
import { callbacks } from './callbacks.ts';
import { checkouts } from './checkouts.ts';
import { clock } from './clock.ts';
import { type Command, type CommandGroup, UsageError } from './command.ts';
import { database } from './database.ts';
import { disputes } from './disputes.ts';
import { find as findCommand } from './find.ts';
import { gateway } from './gateway.ts';
import { instalments } from './instalments.ts';
import { integrations } from './integrations.ts';
import { keys } from './keys.ts';
import { ledger } from './ledger.ts';
import { legacy } from './legacy.ts';
import { merchants } from './merchants.ts';
import { money } from './money-day.ts';
import { nearest } from './nearest.ts';
import { consoleCommands, operators } from './operators.ts';
import { payouts } from './payouts.ts';
import { refunds } from './refunds.ts';
import { sandbox } from './sandbox.ts';
import { sandboxGateway } from './sandbox-disputes.ts';
import { sandboxDrill } from './sandbox-drill.ts';
import { sandboxCancel, sandboxPay } from './sandbox-pay.ts';
import { serve } from './serve.ts';
import { shoppers } from './shoppers.ts';
import { createTerminal, fill, type Output, type Terminal, toPrintedJson } from './terminal.ts';

const entries: (Command | CommandGroup)[] = [
  sandbox,
  sandboxPay,
  sandboxCancel,
  sandboxDrill,
  sandboxGateway,
  clock,
  serve,
  merchants,
  integrations,
  findCommand,
  checkouts,
  refunds,
  instalments,
  gateway,
  disputes,
  payouts,
  money,
  ledger,
  legacy,
  shoppers,
  callbacks,
  alerts,
  operators,
  consoleCommands,
  bulkActions,
  audit,
  keys,
  database,
];
const commands = entries.flatMap((entry) => ('commands' in entry ? entry.commands : [entry]));

export type Io = {
  stdout: Output;
  stderr: Output;
  /** Read only by commands that take `-` as a file. */
  stdin?: AsyncIterable<Buffer | string>;
  env: NodeJS.ProcessEnv;
  clock?: Clock;
  random?: Random;
};

/** Runs one command and returns its exit code: 0 done, 1 refused, 2 mistyped. */
export async function runCli(argv: string[], io: Io): Promise<number> {
  const terminal = createTerminal(io);
  try {
    return await dispatch(argv, io, terminal);
  } catch (error) {
    terminal.warn(`tranche: ${explain(error)}`);
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
    return say('commands' in found ? helpOnGroup(terminal, found) : helpOn(terminal, found));
  }
  if (first.startsWith('-')) {
    throw new UsageError(`Options come after the command. \`tranche --help\` lists the commands.`);
  }

  const found = find(words);
  if ('commands' in found) {
    const asked = words.slice(1).some((word) => word === '--help' || word === '-h');
    if (asked || words.length === 1) {
      const help = helpOnGroup(terminal, found);
      if (asked) return say(help);
      terminal.warn(help);
      return 2;
    }
    const known = found.commands.map(({ name }) => name.slice(found.name.length + 1));
    throw new UsageError(
      `There is no command "${words.slice(0, 2).join(' ')}".${suggest(words[1] ?? '', known, `tranche ${found.name} `)} \`tranche ${found.name} --help\` lists them.`,
    );
  }
  const rest = [...leading, ...words.slice(found.name.split(' ').length)];
  const { values, positionals } = parse(found, rest);
  if (values.help) return say(helpOn(terminal, found));
  checkPositionals(found, positionals);
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
    json,
    terminal,
    readInput: async () => {
      const chunks: Buffer[] = [];
      for await (const chunk of io.stdin ?? []) chunks.push(Buffer.from(chunk));
      return Buffer.concat(chunks);
    },
    print: (answer, human) => {
      if (json) io.stdout.write(`${toPrintedJson(answer)}\n`);
      else terminal.print(human());
    },
  });
  return code ?? 0;
}

/** The command that the first two words name, or else the group that the first word names. */
function find(words: string[]): Command | CommandGroup {
  const [first = '', second = ''] = words;
  const entry =
    commands.find(({ name }) => name === `${first} ${second}`) ??
    entries.find(({ name }) => name === first);
  if (entry) return entry;
  const known = entries.map(({ name }) => name);
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

function checkPositionals(command: Command, given: string[]): void {
  const names = command.positionals ?? [];
  const missing = names.findIndex((_, index) => (given[index] ?? '').trim() === '');
  if (missing >= 0) {
    throw new UsageError(`${names[missing]} is missing.\n${usageOf(command)}`);
  }
  const surplus = given[names.length + (command.optionalPositionals?.length ?? 0)];
  if (surplus !== undefined) {
    throw new UsageError(`"${surplus}" is one argument too many.\n${usageOf(command)}`);
  }
}

function suggest(word: string, known: string[], prefix: string): string {
  const near = nearest(word, known);
  return near === null ? '' : ` Did you mean ${prefix}${near}?`;
}

function usageOf({ name, usage }: Command): string {
  return usage
    .map((line, index) => `${index === 0 ? 'Usage:' : '      '} tranche ${name} ${line}`.trimEnd())
    .map(breakBeforeOptions)
    .join('\n');
}

/** Breaks a usage line that is too long, before an option and not between an option and its value. */
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

function helpOnGroup(terminal: Terminal, group: CommandGroup): string {
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

function listOf(terminal: Terminal, listed: Command[]): string {
  const width = Math.max(...listed.map(({ name }) => name.length));
  return listed
    .map(({ name, summary }) => `  ${terminal.accent(name.padEnd(width))}  ${summary}`)
    .join('\n');
}

/** A bug is printed with its stack; any other error is a sentence that says what to do. */
function explain(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error instanceof FateUnknown) {
    return 'The database connection broke during COMMIT. Check whether the change was made before you repeat it.';
  }
  const isDefect =
    error.name === 'AssertionError' ||
    [TypeError, RangeError, ReferenceError].some((kind) => error instanceof kind);
  return (isDefect && error.stack) || error.message || String(error);
}

if (import.meta.main) {
  // A reader such as `head` may close the pipe early.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    process.exit(error.code === 'EPIPE' ? 0 : 1);
  });
  const code = await runCli(process.argv.slice(2), process);
  // Exit once the output is written. Do not wait for connections that were abandoned.
  process.stdout.write('', () => process.exit(code));
}
