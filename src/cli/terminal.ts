/** Where a command writes: a stream of the process, or a test's buffer. */
export type Output = { write(text: string): unknown; isTTY?: boolean | undefined };

export type Terminal = {
  stdout: Output;
  stderr: Output;
  /** The one accent colour, if stdout is a terminal that shows colours. */
  accent(text: string): string;
  quiet(text: string): string;
  /** Rewrites one line on stderr in place. Does nothing in CI or a pipe. */
  progress(text: string): void;
  endProgress(): void;
};

export function createTerminal(io: {
  stdout: Output;
  stderr: Output;
  env: NodeJS.ProcessEnv;
}): Terminal {
  const { stdout, stderr, env } = io;
  const hasColours = stdout.isTTY === true && !env.NO_COLOR && env.TERM !== 'dumb';
  const showsProgress = stderr.isTTY === true && !env.CI;
  let drawn = false;
  return {
    stdout,
    stderr,
    accent: (text) => (hasColours ? `\x1b[36m${text}\x1b[39m` : text),
    quiet: (text) => (hasColours ? `\x1b[2m${text}\x1b[22m` : text),
    progress(text) {
      if (!showsProgress) return;
      stderr.write(`\r\x1b[K${text}`);
      drawn = true;
    },
    endProgress() {
      if (drawn) stderr.write('\r\x1b[K');
      drawn = false;
    },
  };
}

const pageWidth = 80;
const gap = '  ';

/** The columns that a text takes up: colour codes take none. */
function widthOf(text: string): number {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: a colour code begins with ESC.
  return text.replace(/\x1b\[\d+m/g, '').length;
}

function padTo(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - widthOf(text)));
}

function shorten(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, Math.max(1, width - 1))}…`;
}

/** Breaks a paragraph into lines that fit the page. An indented one is left as it is. */
export function fill(paragraph: string, width = pageWidth): string {
  if (/^\s/.test(paragraph)) return paragraph;
  let line = '';
  const lines: string[] = [];
  for (const word of paragraph.split(/\s+/)) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else {
      line = line === '' ? word : `${line} ${word}`;
    }
  }
  return [...lines, line].join('\n');
}

/** A table that fits the page: the column named `flexible` is shortened if necessary. */
export function table(
  terminal: Terminal,
  headings: string[],
  rows: string[][],
  flexible?: string,
): string {
  const widths = headings.map((heading, column) =>
    Math.max(heading.length, ...rows.map((row) => widthOf(row[column] ?? ''))),
  );
  const over = widths.reduce((sum, width) => sum + width, gap.length * (widths.length - 1));
  const yielding = flexible === undefined ? -1 : headings.indexOf(flexible);
  if (yielding >= 0 && over > pageWidth) {
    const least = headings[yielding]?.length ?? 0;
    widths[yielding] = Math.max(least, (widths[yielding] ?? 0) - (over - pageWidth));
  }
  const line = (cells: string[]) =>
    cells
      .map((cell, column) => {
        const width = widths[column] ?? 0;
        return padTo(column === yielding ? shorten(cell, width) : cell, width);
      })
      .join(gap)
      .trimEnd();
  return [terminal.quiet(line(headings)), ...rows.map(line)].join('\n');
}

/** Labels and values in two aligned columns. Later lines of a value are indented under its first. */
export function fields(terminal: Terminal, pairs: [label: string, value: string][]): string {
  const width = Math.max(...pairs.map(([label]) => label.length));
  return pairs
    .map(([label, value]) => {
      const lines = value.split('\n').join(`\n${' '.repeat(width + gap.length)}`);
      return `${terminal.quiet(label.padEnd(width))}${gap}${lines}`;
    })
    .join('\n');
}

const date = new Intl.DateTimeFormat('en-GB', { dateStyle: 'long', timeZone: 'UTC' });
const time = new Intl.DateTimeFormat('en-GB', { timeStyle: 'short', timeZone: 'UTC' });

/** `15 December 2026, 08:00 UTC` */
export function showTime(timestamp: string): string {
  const instant = Temporal.Instant.from(timestamp);
  return `${date.format(instant)}, ${time.format(instant)} UTC`;
}

/** `15 December 2026` */
export function showDate(day: string): string {
  return date.format(Temporal.PlainDate.from(day));
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
      const heading = date.format(instant);
      const isNew = heading !== day;
      day = heading;
      const aligned = cells.slice(0, -1).map((cell, column) => padTo(cell, widths[column] ?? 0));
      const last = fill(cells.at(-1) ?? '', pageWidth - before).split('\n');
      const line = [time.format(instant), ...aligned, last.join(`\n${' '.repeat(before)}`)];
      return [...(isNew ? [terminal.quiet(heading)] : []), `${gap}${line.join(gap).trimEnd()}`];
    })
    .join('\n');
}

/** Foreign text on one line, without the characters that a terminal would obey. */
export function printable(text: string, width = pageWidth): string {
  return shorten(text.replace(/\p{C}/gu, '\ufffd'), width);
}
