import type { TSchema } from 'typebox';
import { compileSchema } from '#platform/http/validation.ts';
import { lazily } from '#platform/shared/lazily.ts';
import { invalid, notFound } from './errors.ts';

const idPattern = '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$';

/**
 * Checks one part of a request against its schema, and returns only the members that the schema
 * names: a route may write its whole input into the audit, which keeps it for ever. An object with
 * `additionalProperties: true` keeps all members. URLs contain only text, so integers in parameters
 * and queries are parsed. A path that does not match its schema is answered as not found.
 */
export function inputReader(
  schema: TSchema | undefined,
  part: 'params' | 'query' | 'body',
): (value: unknown) => unknown {
  if (schema === undefined) return () => undefined;
  const compiled = lazily(() => compileSchema(withIdPattern(schema)));
  const convert = part === 'body' ? (value: unknown) => value : integersOf(schema);
  return (given) => {
    const value = convert(given);
    const errors = compiled()(value).map(({ path, problem }) => ({
      path,
      problem: problem.includes(idPattern) ? 'must be an ID' : problem,
    }));
    if (errors.length === 0) return named(schema, value);
    throw part === 'params' ? notFound() : invalid(errors);
  };
}

/**
 * Refuses texts that are not UUIDs. In the public API such a text is simply an unknown ID. The
 * console would pass it to many kinds of queries, which the database would refuse.
 */
function withIdPattern(schema: TSchema): TSchema {
  return JSON.parse(JSON.stringify(schema), (_name, value) =>
    value?.format === 'uuid' ? { ...value, format: undefined, pattern: idPattern } : value,
  );
}

type SchemaParts = {
  anyOf?: SchemaParts[];
  items?: SchemaParts;
  properties?: Record<string, SchemaParts>;
  additionalProperties?: unknown;
};

/** A copy of a value without the members that its schema does not name. */
function named(schema: SchemaParts, value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const variants = schema.anyOf ?? [schema];
  if (variants.some((one) => one.additionalProperties === true)) return value;
  if (Array.isArray(value)) {
    const items = variants.find((one) => one.items)?.items ?? {};
    return value.map((one) => named(items, one));
  }
  const properties = Object.assign({}, ...variants.map((one) => one.properties));
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name]) => Object.hasOwn(properties, name))
      .map(([name, inner]) => [name, named(properties[name], inner)]),
  );
}

function integersOf(schema: TSchema): (value: unknown) => unknown {
  const { properties = {} } = schema as { properties?: Record<string, { type?: string }> };
  const names = Object.keys(properties).filter((name) => properties[name]?.type === 'integer');
  return (given) => {
    const value = { ...(given as Record<string, unknown>) };
    for (const name of names) {
      const text = value[name];
      if (typeof text === 'string' && /^-?\d{1,15}$/.test(text)) value[name] = Number(text);
    }
    return value;
  };
}
