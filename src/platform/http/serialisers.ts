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
      serialise = build(schema);
      compiled.set(schema, serialise);
    }
    return serialise(data);
  };
};
