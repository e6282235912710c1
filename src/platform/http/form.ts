import { type JsonObject, type JsonValue, shown } from './json.ts';

/** The message is a whole sentence: it becomes the `detail` of a 400. */
export class MalformedForm extends Error {
  override name = 'MalformedForm';
}

const depthMax = 32;
/** A longer form is refused. 500 complete line items have half as many fields. */
const fieldsMax = 4_000;
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Fields by name. This is a Map, because the caller chooses the names and could name a prototype.
 */
type Group = Map<string, string | Group>;

/**
 * Reads an `application/x-www-form-urlencoded` body into the object that the same JSON would give,
 * with text for every value: `purchase[order_id]=7` is `{"purchase": {"order_id": "7"}}`, and a
 * group whose names are 0, 1, 2 … is a list. As strict as `readJson` (decision 0002): it refuses
 * repeated fields, bad encoding, deep nesting and prototype names.
 */
export function readForm(bytes: Buffer): JsonObject {
  const fields: Group = new Map();
  let count = 0;
  // Latin-1 keeps one character per byte, so decoding cannot create or destroy a separator.
  for (const field of bytes.toString('latin1').split('&')) {
    if (field === '') continue;
    count += 1;
    if (count > fieldsMax) {
      throw new MalformedForm(`The body has more than ${fieldsMax} fields.`);
    }
    const equals = field.indexOf('=');
    const name = decode(equals < 0 ? field : field.slice(0, equals));
    put(fields, splitName(name), equals < 0 ? '' : decode(field.slice(equals + 1)), name);
  }
  return Object.fromEntries([...fields].map(([name, value]) => [name, toValue(value)]));
}

function decode(text: string): string {
  // Most names and values are plain ASCII, and this test costs far less than decoding.
  if (/^[\x20-\x24\x26-\x2a\x2c-\x7e]*$/.test(text)) return text;
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
  const depth = name.split('[', depthMax + 1).length;
  if (depth > depthMax) {
    throw new MalformedForm(`The body is nested deeper than ${depthMax} levels.`);
  }
  if (!/^[^[\]]+(\[[^[\]]*\])*$/.test(name)) {
    throw new MalformedForm(`The body has a field whose name ${shown(name)} is not valid.`);
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
    // `[]` appends to a list.
    const key = part === '' ? String(group.size) : part;
    const known = group.get(key);
    if (index === parts.length - 1) {
      if (known !== undefined)
        throw new MalformedForm(`The body has the field ${shown(name)} twice.`);
      group.set(key, value);
    } else if (typeof known === 'string') {
      throw new MalformedForm(
        `The body has a field ${shown(name)}, and also a value for a part of that name.`,
      );
    } else {
      const next: Group = known ?? new Map();
      group.set(key, next);
      group = next;
    }
  }
}

// Recursion is safe: `splitName` has bounded the depth.
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
