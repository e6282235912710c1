import type { Static, TObject, TSchema } from 'typebox';
import { idsOf, mustBeId, oneOf, required, UsageError } from './command.ts';
import { readInteger } from './duration.ts';

// Makes the options of a command from the schema of its input.

type Properties = Record<string, TSchema>;
type Rename = Record<string, string | undefined>;
type Property = {
  type?: string;
  format?: string;
  pattern?: string;
  enum?: string[];
  items?: Property;
  /** A member that may be null. */
  anyOf?: [Property, Property];
};

export const optionName = (member: string, rename: Rename): string =>
  rename[member] ?? member.replaceAll('_', '-');

export function optionsOf(properties: Properties, rename: Rename) {
  return Object.fromEntries(
    Object.entries(properties).map(([member, schema]) => [
      optionName(member, rename),
      { type: 'string' as const, multiple: (schema as Property).type === 'array' },
    ]),
  );
}

const choicesMax = 5;

/** `[--status a|b|c] [--merchant ID]` */
export function usageOf(properties: Properties, rename: Rename): string {
  return Object.entries(properties)
    .map(([member, schema]) => {
      const option = `--${optionName(member, rename)} ${placeholderOf(schema as Property)}`;
      return isOptional(schema) ? `[${option}]` : option;
    })
    .join(' ');
}

function placeholderOf({ type, format, enum: choices, items }: Property): string {
  if (choices) {
    if (choices.length <= choicesMax) return choices.join('|');
    return `${choices.slice(0, 3).join('|')}|…`;
  }
  if (type === 'array') {
    return items?.enum?.join(',') ?? `${items?.format === 'uuid' ? 'ID,ID' : 'TEXT,TEXT'}`;
  }
  if (format === 'uuid') return 'ID';
  return type === 'integer' ? 'N' : 'TEXT';
}

const isOptional = (schema: TSchema) => '~optional' in schema;

/** Reads the members that options give. A required member that is absent is a usage error. */
export function readOptions<Own extends Properties>(
  properties: Own,
  values: Record<string, string | string[] | undefined>,
  rename: Rename,
): Static<TObject<Own>> {
  const members: Record<string, unknown> = {};
  for (const [member, schema] of Object.entries(properties)) {
    const option = optionName(member, rename);
    const given = values[option];
    if (given === undefined && isOptional(schema)) continue;
    const { type, items = {} } = schema as Property;
    if (type === 'array') {
      members[member] = idsOf(given).map((text) => readValue(items, text, option));
      continue;
    }
    const text = required(given as string | undefined, option);
    members[member] = readValue(schema as Property, text, option);
  }
  return members as Static<TObject<Own>>;
}

/**
 * Converts the text of an option to the member's type. For a member that may be null, `none` means
 * null.
 */
function readValue(
  { type, format, pattern, enum: choices, anyOf }: Property,
  text: string,
  option: string,
): unknown {
  if (anyOf) return text === 'none' ? null : readValue(anyOf[0], text, option);
  if (type === 'boolean') {
    if (text !== 'yes' && text !== 'no')
      throw new UsageError(`--${option} is "${text}" and must be yes or no.`);
    return text === 'yes';
  }
  if (choices) return oneOf(text, choices, option);
  if (format === 'uuid') return mustBeId(text, option);
  if (pattern !== undefined && !new RegExp(pattern, 'u').test(text)) {
    throw new UsageError(`--${option} is "${text}", which is not in the right form.`);
  }
  return type === 'integer' ? readInteger(text, option) : text;
}

/** Some members of an object, in this order. */
export function pick<T>(from: T, members: readonly (keyof T & string)[]): object {
  return Object.fromEntries(members.map((member) => [member, from[member]]));
}
