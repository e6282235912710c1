import { BadCursor, type PageRequest, type Whose } from '#operating/operations/lists.ts';
import type { Scope } from '#operating/search/scope.sql.ts';
import { type Context, mustBeId, UsageError } from './command.ts';
import { readInteger } from './duration.ts';

const rowsDefault = 50;
const rowsMax = 1_000;

/** The options of every list that has pages. */
export const pagingOptions = {
  merchant: { type: 'string' },
  limit: { type: 'string' },
  after: { type: 'string' },
} as const;

export const pagingUsage = '[--merchant ID] [--limit N] [--after CURSOR]';

export const pagingHelp = `A page has ${rowsDefault} rows, or --limit (at most ${rowsMax}). If there are more, the last line
shows the command for the next page, and "next" in --json is its cursor.`;

type Values = { merchant?: string | undefined; limit?: string; after?: string };

export function readPage({ limit, after }: Values): PageRequest {
  const rows = limit === undefined ? rowsDefault : readInteger(limit, 'limit');
  if (rows < 1 || rows > rowsMax) throw new UsageError(`--limit must be from 1 to ${rowsMax}.`);
  return { after: after ?? null, limit: rows };
}

/** The command line acts for the operator of the service, who may see all merchants. */
export function readScope({ merchant }: Values): Scope {
  if (merchant === undefined) return 'all merchants';
  return { merchant_ids: [mustBeId(merchant, 'merchant')] };
}

/** Explains a cursor that does not belong to the list. */
export function refuseBadCursor(error: unknown): never {
  if (!(error instanceof BadCursor)) throw error;
  throw new UsageError('--after is not a cursor of this list. Copy it from the page before.');
}

/** The command for the next page, or nothing on the last one. */
export function nextPage(context: Context, command: string, next: string | null): string {
  if (next === null) return '';
  const options = Object.entries(context.values)
    .filter(([name, value]) => typeof value === 'string' && name !== 'after')
    .map(([name, value]) => ` --${name} ${quoteForShell(value as string)}`);
  const line = `tranche ${command}${options.join('')} --after ${quoteForShell(next)}`;
  return `\n\nMore:\n  ${context.terminal.accent(line)}`;
}

/** One word for a POSIX shell. A cursor may be an address that a person chose. */
const quoteForShell = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;

/** Merchant, order and shopper, for the line below a row. */
export function whoseOf(row: Whose): string[] {
  const shopper = row.name === null ? row.email : `${row.name} <${row.email}>`;
  return [row.merchant_name, row.client_reference_id, shopper];
}
