import type { JsonObject, JsonValue } from './json.ts';

/** The message is one plain sentence, ready to be the `detail` of a 400. */
export class MalformedForm extends Error {
  override name = 'MalformedForm';
}

const maxDepth = 32;
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** A group of fields by their names. Not an object: the names are a stranger's. */
type Group = Map<string, string | Group>;

/**
 * Reads an `application/x-www-form-urlencoded` body into what JSON would have said, all values being
 * text: `purchase[order_id]=7` is `{"purchase": {"order_id": "7"}}`, and a group whose names are 0, 1,
 * 2 … is a list. As strict as for JSON (D4): what is said twice, cannot be decoded, is nested too
 * deep or names a prototype is no form.
 */
export function readForm(bytes: Buffer): JsonObject {
  const fields: Group = new Map();
  // One character per byte until a field is decoded: nothing that separates fields is lost or made.
  for (const field of bytes.toString('latin1').split('&')) {
    if (field === '') continue;
    const equals = field.indexOf('=');
    const name = decode(equals < 0 ? field : field.slice(0, equals));
    put(fields, splitName(name), equals < 0 ? '' : decode(field.slice(equals + 1)), name);
  }
  return Object.fromEntries([...fields].map(([name, value]) => [name, toValue(value)]));
}

function decode(text: string): string {
  if (/%(?![0-9a-f]{2})/i.test(text)) {
    throw new MalformedForm('The body has a % that is not followed by two hexadecimal digits.');
  }
  const bytes = text
    .replaceAll('+', ' ')
    .replace(/%(..)/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)));
  try {
    return utf8.decode(Buffer.from(bytes, 'latin1'));
  } catch {
    throw new MalformedForm('The body is not valid UTF-8.');
  }
}

/** `purchase[items][0]` → `purchase`, `items`, `0` */
function splitName(name: string): string[] {
  const depth = name.split('[', maxDepth + 1).length;
  if (depth > maxDepth) {
    throw new MalformedForm(`The body is nested deeper than ${maxDepth} levels.`);
  }
  if (!/^[^[\]]+(\[[^[\]]*\])*$/.test(name)) {
    throw new MalformedForm(`The body has a field with the name ${shown(name)}, which is none.`);
  }
  const parts = name.replaceAll(']', '').split('[');
  const isPrototype = parts.some(
    (part, index) =>
      part === '__proto__' || (part === 'prototype' && parts[index - 1] === 'constructor'),
  );
  if (isPrototype) {
    throw new MalformedForm(`The body has a field ${shown(name)}, which is not accepted.`);
  }
  return parts;
}

function put(fields: Group, parts: string[], value: string, name: string): void {
  let group = fields;
  for (const [index, part] of parts.entries()) {
    // `[]` is the next of a list.
    const key = part === '' ? String(group.size) : part;
    const known = group.get(key);
    if (index === parts.length - 1) {
      if (known !== undefined)
        throw new MalformedForm(`The body has the field ${shown(name)} twice.`);
      group.set(key, value);
    } else if (typeof known === 'string') {
      throw new MalformedForm(
        `The body has a field ${shown(name)}, and a value where that belongs.`,
      );
    } else {
      const next: Group = known ?? new Map();
      group.set(key, next);
      group = next;
    }
  }
}

// Recursion is safe because the depth of names is bounded.
function toValue(value: string | Group): JsonValue {
  if (typeof value === 'string') return value;
  const isList = Array.from({ length: value.size }, (_, index) => String(index)).every((index) =>
    value.has(index),
  );
  if (isList) {
    return Array.from({ length: value.size }, (_, index) =>
      toValue(value.get(String(index)) as string | Group),
    );
  }
  return Object.fromEntries([...value].map(([name, one]) => [name, toValue(one)]));
}

// A name comes from the caller and may be long or hold control characters.
function shown(name: string): string {
  return JSON.stringify(name.length > 60 ? `${name.slice(0, 60)}…` : name);
}
