import { once } from 'node:events';
import { Writable } from 'node:stream';
import { lazily } from '#platform/shared/lazily.ts';

/** Where a command writes: a stream of the process, or a test's buffer. */
export type Output = {
  write(text: string | Uint8Array): unknown;
  isTTY?: boolean | undefined;
  columns?: number | undefined;
};

export type Terminal = {
  stdout: Output;
  stderr: Output;
  /** How many columns a line may take up: the terminal's own, or 80 in a file or pipe. */
  width: number;
  /** Colours text in the accent colour, if stdout is a terminal that shows colours. */
  accent(text: string): string;
  quiet(text: string): string;
  print(page: string): void;
  /** Writes a piece of a JSON document to stdout, and waits until the reader can take more. */
  writeJson(piece: string): Promise<void>;
  /** Prints a line on stderr. */
  warn(line: string): void;
  /** Rewrites one line on stderr in place. Does nothing in CI or a pipe. */
  progress(text: string): void;
  endProgress(): void;
};

const pageWidth = 80;
const narrowest = 40;

// Noncharacters mark colours until a page is printed. Text from merchants, shoppers and receivers
// may contain escape sequences, which must never reach the terminal.
const colours = {
  '\ufdd0': '\x1b[36m',
  '\ufdd1': '\x1b[39m',
  '\ufdd2': '\x1b[2m',
  '\ufdd3': '\x1b[22m',
} as const;
const colourPattern = /[\ufdd0-\ufdd3]/g;

/** Control, format and bidirectional characters, and the separators that some terminals obey. */
const unprintable = /[\p{C}\u2028\u2029]/gu;

/**
 * A page as it is printed: without any character that a terminal interprets, except our colours.
 */
function toPrinted(page: string, hasColours: boolean): string {
  return page.replace(unprintable, (character) => {
    if (character === '\n') return character;
    if (!Object.hasOwn(colours, character)) return '\ufffd';
    return hasColours ? colours[character as keyof typeof colours] : '';
  });
}

/** Replaces `tranche` in suggested commands with the name under which the program was called. */
export const withProgram = (page: string, program: string): string =>
  page.replace(
    /(^[\s\ufdd0]*|`|Usage: |Did you mean )tranche(?=[\s\ufdd0-\ufdd3]+\S)/gm,
    `$1${program}`,
  );

export const toPrintedJson = (answer: object): string => escapeJson(JSON.stringify(answer));

/**
 * Escapes characters that JSON.stringify leaves raw and a terminal would obey. Line breaks between
 * values stay.
 */
function escapeJson(text: string): string {
  return text.replace(unprintable, (character) =>
    character === '\n'
      ? character
      : [...Array(character.length).keys()]
          .map((index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`)
          .join(''),
  );
}

export function createTerminal(io: {
  stdout: Output;
  stderr: Output;
  env: NodeJS.ProcessEnv;
  program?: string;
}): Terminal {
  const { stdout, stderr, env, program = 'tranche' } = io;
  const hasColours = stdout.isTTY === true && !env.NO_COLOR && env.TERM !== 'dumb';
  const showsProgress = stderr.isTTY === true && !env.CI;
  let drawn = false;
  return {
    stdout,
    stderr,
    width: stdout.isTTY && stdout.columns ? Math.max(narrowest, stdout.columns) : pageWidth,
    accent: (text) => `\ufdd0${text}\ufdd1`,
    quiet: (text) => `\ufdd2${text}\ufdd3`,
    print(page) {
      stdout.write(`${toPrinted(withProgram(page, program), hasColours)}\n`);
    },
    async writeJson(piece) {
      const takesMore = stdout.write(escapeJson(piece));
      if (takesMore === false && stdout instanceof Writable) await once(stdout, 'drain');
    },
    warn(line) {
      stderr.write(`${toPrinted(withProgram(line, program), false)}\n`);
    },
    progress(text) {
      if (!showsProgress) return;
      stderr.write(`\r\x1b[K${toPrinted(text, false)}`);
      drawn = true;
    },
    endProgress() {
      if (drawn) stderr.write('\r\x1b[K');
      drawn = false;
    },
  };
}

const gap = '  ';

/** The columns that a text takes up. Colour codes take no columns. */
function widthOf(text: string): number {
  return text.replace(colourPattern, '').length;
}

function padTo(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - widthOf(text)));
}

/**
 * Cuts a text to a width, because texts of merchants and shoppers may be of any length. Do not cut
 * IDs.
 */
export function shorten(text: string, width: number): string {
  return widthOf(text) <= width ? text : `${text.slice(0, Math.max(1, width - 1))}…`;
}

/**
 * A value on one line. A line break in a text of a merchant or shopper must not look like a new
 * line of ours.
 */
function oneLine(text: string): string {
  return text.replace(/[\r\n\t]/g, '\ufffd');
}

/** Breaks a paragraph into lines of a given width. An indented paragraph is left as it is. */
export function fill(paragraph: string, width = pageWidth): string {
  if (/^\s/.test(paragraph)) return paragraph;
  let line = '';
  const lines: string[] = [];
  for (const word of paragraph.split(/\s+/)) {
    if (line !== '' && widthOf(line) + 1 + widthOf(word) > width) {
      lines.push(line);
      line = word;
    } else {
      line = line === '' ? word : `${line} ${word}`;
    }
  }
  return [...lines, line].join('\n');
}

export type Row = {
  cells: string[];
  /** Values that do not fit into cells, on lines below them. Empty values are left out. */
  below?: (string | null | undefined)[];
};

/** A table. The column named `flexible` is shortened if the terminal is too narrow. */
export function table(
  terminal: Terminal,
  headings: string[],
  rows: (string[] | Row)[],
  flexible?: string,
): string {
  const lines = rows.map((row) => (Array.isArray(row) ? { cells: row } : row));
  const printed = lines.map(({ cells }) => cells.map(oneLine));
  const widths = headings.map((heading, column) =>
    Math.max(heading.length, ...printed.map((cells) => widthOf(cells[column] ?? ''))),
  );
  const over = widths.reduce((sum, width) => sum + width, gap.length * (widths.length - 1));
  const yielding = flexible === undefined ? -1 : headings.indexOf(flexible);
  if (yielding >= 0 && over > terminal.width) {
    const least = headings[yielding]?.length ?? 0;
    widths[yielding] = Math.max(least, (widths[yielding] ?? 0) - (over - terminal.width));
  }
  const line = (cells: string[]) =>
    cells
      .map((cell, column) => {
        const width = widths[column] ?? 0;
        return padTo(column === yielding ? shorten(cell, width) : cell, width);
      })
      .join(gap)
      .trimEnd();
  return [
    terminal.quiet(line(headings)),
    ...printed.flatMap((cells, index) => [
      line(cells),
      ...belowLines(terminal, lines[index]?.below),
    ]),
  ].join('\n');
}

function belowLines(terminal: Terminal, below: Row['below'] = []): string[] {
  const facts = below.filter((fact) => fact !== null && fact !== undefined && fact !== '');
  if (facts.length === 0) return [];
  const text = (facts as string[]).map(oneLine).join(' · ');
  return fill(text, terminal.width - gap.length)
    .split('\n')
    .map((line) => `${gap}${terminal.quiet(line)}`);
}

/**
 * Labels and values in two aligned columns. A value is one line, or an array of lines, which are
 * indented under the first. A label without a value is left out.
 */
export function fields(
  terminal: Terminal,
  pairs: [label: string, value: string | string[] | null | undefined][],
): string {
  const shown = pairs.filter(([, value]) => value !== null && value !== undefined);
  const width = Math.max(...shown.map(([label]) => label.length));
  return shown
    .map(([label, value]) => {
      const lines = [value as string | string[]]
        .flat()
        .map(oneLine)
        .join(`\n${' '.repeat(width + gap.length)}`);
      return `${terminal.quiet(label.padEnd(width))}${gap}${lines}`;
    })
    .join('\n');
}

// Loading a format takes longer than most commands take to start, so only commands that show a time
// load one.
const formatOf = (options: Intl.DateTimeFormatOptions) =>
  lazily(() => new Intl.DateTimeFormat('en-GB', { ...options, timeZone: 'UTC' }));
const date = formatOf({ dateStyle: 'long' });
const shortDate = formatOf({ dateStyle: 'medium' });
const time = formatOf({ timeStyle: 'short' });

/** `15 December 2026, 08:00 UTC` */
export function showTime(timestamp: string): string;
export function showTime(timestamp: string | null): string | null;
export function showTime(timestamp: string | null): string | null {
  if (timestamp === null) return null;
  const instant = Temporal.Instant.from(timestamp);
  return `${date().format(instant)}, ${time().format(instant)} UTC`;
}

/** `15 Dec 2026, 08:00`, for tables. The help of their commands says that times are in UTC. */
export function showShortTime(timestamp: string): string {
  const instant = Temporal.Instant.from(timestamp);
  return `${shortDate().format(instant)}, ${time().format(instant)}`;
}

/** `15 December 2026` */
export function showDate(day: string): string {
  return date().format(Temporal.PlainDate.from(day));
}

/** Events under a heading for each day (UTC). Cells line up, and the last cell is wrapped. */
export function byDay(terminal: Terminal, rows: { at: string; cells: string[] }[]): string {
  const widths: number[] = [];
  for (const { cells } of rows) {
    for (const [column, cell] of cells.slice(0, -1).entries()) {
      widths[column] = Math.max(widths[column] ?? 0, widthOf(cell));
    }
  }
  const indent = gap.length + 'hh:mm'.length + gap.length;
  const before = widths.reduce((sum, width) => sum + width + gap.length, indent);
  let day = '';
  return rows
    .flatMap(({ at, cells }) => {
      const instant = Temporal.Instant.from(at);
      const heading = date().format(instant);
      const isNew = heading !== day;
      day = heading;
      const aligned = cells
        .slice(0, -1)
        .map((cell, column) => padTo(oneLine(cell), widths[column] ?? 0));
      const last = fill(oneLine(cells.at(-1) ?? ''), terminal.width - before).split('\n');
      const line = [time().format(instant), ...aligned, last.join(`\n${' '.repeat(before)}`)];
      return [...(isNew ? [terminal.quiet(heading)] : []), `${gap}${line.join(gap).trimEnd()}`];
    })
    .join('\n');
}
