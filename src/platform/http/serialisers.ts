import build from 'fast-json-stringify';
import type { FastifySerializerCompiler } from 'fastify';

type Serialise = (data: unknown) => string;

/** Two applications of one process share the serialiser of a schema. */
const compiled = new WeakMap<object, Serialise>();

/**
 * Compiles the serialiser of an answer when it is first sent. Fastify would compile those of all
 * routes when a process starts, and that takes longer than the rest of the start.
 */
export const compileWhenUsed: FastifySerializerCompiler<object> = ({ schema }) => {
  return (data) => {
    let serialise = compiled.get(schema);
    if (serialise === undefined) {
      serialise = build(withNullables(schema));
      compiled.set(schema, serialise);
    }
    return serialise(data);
  };
};

type Union = { anyOf?: { type?: string; const?: unknown; anyOf?: object[] }[] };

/**
 * Replaces a union with null by "nullable". For a union the compiler would generate a validator,
 * which every answer would call for every such member.
 */
function withNullables<Part>(part: Part): Part {
  if (Array.isArray(part)) return part.map(withNullables) as Part;
  if (typeof part !== 'object' || part === null) return part;
  const entries = Object.entries(part).map(([name, value]) => [name, withNullables(value)]);
  const { anyOf, ...rest }: Union = Object.fromEntries(entries);
  const some = anyOf?.find(({ type }) => type !== 'null');
  const hasNull = anyOf?.length === 2 && anyOf.some(({ type }) => type === 'null');
  // A constant stays an anyOf: as a nullable type, the compiler would write the schema's constant
  // even when the data is null.
  if (hasNull && some && !some.anyOf && some.const === undefined)
    return { ...rest, ...some, nullable: true } as Part;
  return (anyOf ? { ...rest, anyOf } : rest) as Part;
}
