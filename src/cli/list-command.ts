import type { Static, TObject } from 'typebox';
import { BadCursor, type ListDefinition } from '#operating/operations/list.ts';
import type { Owner } from '#operating/operations/owner.sql.ts';
import { BadInput, type Viewer } from '#operating/operations/viewer.ts';
import type { Clock } from '#platform/shared/clock.ts';
import { type Command, type Context, command, UsageError } from './command.ts';
import { type Connection, viewerOf, withMigrated } from './connect.ts';
import { readInteger } from './duration.ts';
import { optionName, optionsOf, pick, readOptions, usageOf } from './schema-options.ts';
import type { Terminal } from './terminal.ts';

const rowsDefault = 50;
const rowsMax = 1_000;

const pagingHelp = `A page has ${rowsDefault} rows, or --limit (at most ${rowsMax}). If there are more, the last line
shows the command for the next page, and "next" in --json is its cursor.`;

type Shown<Query extends TObject, Row, Listed> = {
  name: string;
  /** Describes the rows and their order. */
  help: string;
  example: string;
  /** Option names that differ from the names of the filters, by filter. */
  rename?: { [Filter in keyof Static<Query>]?: string };
  /** Filters that are not options, because they have a fixed value in this command. */
  fixed?: Static<Query>;
  /** Refuses a filter before the list is read. */
  check?(viewer: Viewer, query: Static<Query>): Promise<unknown>;
  /** Reads more facts about the rows of a page, some perhaps only for --json. */
  complete?(connection: Connection, rows: Row[], isJson: boolean): Promise<Listed[]>;
  /** The members of a row in --json, or a function that makes them. */
  json: readonly (keyof NoInfer<Listed> & string)[] | ((row: NoInfer<Listed>) => object);
  empty?: string;
  /** Facts about the whole list: members of the answer in --json, and a line below the rows. */
  about?(clock: Clock, query: Static<Query>): { json: object; text: string };
  show(terminal: Terminal, rows: NoInfer<Listed>[]): string;
};

/** Makes the command for a list: the filters are its options, and it prints a page. */
export function listCommand<Query extends TObject, Row, Listed = Row>(
  list: Pick<ListDefinition<Query, Row>, 'query' | 'read'>,
  shown: Shown<Query, Row, Listed>,
): Command {
  const { name, rename = {}, fixed = {}, complete, json } = shown;
  const { after: _, limit: __, merchant, ...filters } = list.query.properties;
  const hidden = (filter: string) => !Object.hasOwn(fixed, filter);
  const own = Object.fromEntries(Object.entries(filters).filter(([filter]) => hidden(filter)));
  const options = { ...own, ...(merchant && { merchant }) };
  return command({
    name,
    usage: [[usageOf(options, rename), '[--limit N] [--after CURSOR]'].join(' ').trim()],
    help: `${shown.help}\n\n${pagingHelp}\n\n  ${shown.example}`,
    options: {
      ...optionsOf(options, rename),
      limit: { type: 'string' },
      after: { type: 'string' },
    },
    async run(context) {
      const values = context.values as Record<string, string | undefined>;
      const query = { ...readOptions(options, values, rename), ...fixed } as Static<Query>;
      const page = { after: values.after ?? null, limit: readLimit(values.limit) };
      const { data, next } = await withMigrated(context, async (connection) => {
        const viewer = viewerOf(connection);
        await shown.check?.(viewer, query);
        const { data, next } = await list.read(viewer, query, page);
        const rows = complete
          ? await complete(connection, data, context.json)
          : (data as unknown as Listed[]);
        return { data: rows, next };
      }).catch((error) => refusePage(error, rename));
      const present = typeof json === 'function' ? json : (row: Listed) => pick(row, json);
      const about = shown.about?.(context.clock, query);
      const note = about ? `\n\n${about.text}` : '';
      context.print({ ...about?.json, data: data.map(present), next }, () =>
        data.length === 0
          ? (shown.empty ?? 'There are none.')
          : `${shown.show(context.terminal, data)}${note}${nextPage(context, name, next)}`,
      );
    },
  });
}

/** Reads all rows of a list, page by page. */
export async function readWhole<Query extends TObject, Row>(
  list: Pick<ListDefinition<Query, Row>, 'read'>,
  viewer: Viewer,
  query: Static<Query>,
): Promise<Row[]> {
  const rows: Row[] = [];
  for (let after: string | null = null; ; ) {
    const { data, next } = await list.read(viewer, query, { after, limit: rowsMax });
    rows.push(...data);
    if (next === null) return rows;
    after = next;
  }
}

export function readLimit(text: string | undefined): number {
  const rows = text === undefined ? rowsDefault : readInteger(text, 'limit');
  if (rows < 1 || rows > rowsMax) throw new UsageError(`--limit must be from 1 to ${rowsMax}.`);
  return rows;
}

/** Explains a cursor that does not belong to the list, or a filter that the list cannot take. */
function refusePage(error: unknown, rename: Record<string, string | undefined>): never {
  if (error instanceof BadInput) {
    throw new UsageError(`--${optionName(error.member, rename)} ${error.message}.`);
  }
  if (!(error instanceof BadCursor)) throw error;
  throw new UsageError('--after is not a cursor of this list. Copy it from the previous page.');
}

/** The command for the next page; empty on the last one. */
function nextPage(context: Context, command: string, next: string | null): string {
  if (next === null) return '';
  const options = Object.entries(context.values)
    .filter(([name, value]) => typeof value === 'string' && name !== 'after')
    .map(([name, value]) => ` --${name} ${quoteForShell(value as string)}`);
  const line = `tranche ${command}${options.join('')} --after ${quoteForShell(next)}`;
  return `\n\nMore:\n  ${context.terminal.accent(line)}`;
}

/** Quotes a text as one word for a POSIX shell. */
const quoteForShell = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;

/** Merchant, order and shopper, for the line below a row. */
export function ownerFacts(row: Owner): string[] {
  const shopper = row.name === null ? row.email : `${row.name} <${row.email}>`;
  return [row.merchant_name, row.client_reference_id, shopper];
}
