export type JsonValue = null | boolean | number | string | JsonValue[] | JsonObject;
export type JsonObject = { [name: string]: JsonValue };

/** The message is a whole sentence: it becomes the `detail` of a 400. */
export class MalformedJson extends Error {
  override name = 'MalformedJson';
}

const maxDepth = 32;

const tab = 0x09;
const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const space = 0x20;
const quote = 0x22;
const plus = 0x2b;
const comma = 0x2c;
const minus = 0x2d;
const point = 0x2e;
const zero = 0x30;
const nine = 0x39;
const colon = 0x3a;
const openBracket = 0x5b;
const backslash = 0x5c;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;

// The decoder keeps a byte order mark so that we can refuse it. RFC 8259 forbids sending one, and
// dropping it silently would leave unclear whether the signature covers it.
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Reads a request body: its value, and the compact bytes that its signature covers (decisions 0002
 * and 0005).
 *
 * `compact` is the body without insignificant white space and otherwise unchanged. It is the same
 * buffer when there was no such white space.
 *
 * Numbers in `value` are what JSON.parse makes of them: `1.0` and `1e2` are integers as in JSON
 * Schema, digits beyond a double's precision are rounded, `-0` is negative zero, `1e400` is
 * Infinity. Number.isSafeInteger is therefore the test for an integer: 9007199254740993 arrives as
 * 9007199254740992 and fails it.
 *
 * Every POST takes this path, so it must be fast. JSON.parse checks the grammar and builds the
 * value. A scan counts the members in the text (one colon outside a string each), and a walk counts
 * the members of the value. JSON.parse keeps only the last of several members with one name, so the
 * counts differ exactly when a name was repeated, however it was escaped. Only a body that we are
 * about to refuse is read a second time, to say where it is wrong.
 */
export function readJson(bytes: Buffer): { value: JsonObject; compact: Buffer } {
  const { value, compact } = readJsonValue(bytes);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new MalformedJson('The body must be a JSON object.');
  }
  return { value, compact };
}

/** Like `readJson`, but any JSON value will do. */
export function readJsonValue(bytes: Buffer): { value: JsonValue; compact: Buffer } {
  const text = decode(bytes);
  const { members, spaces } = scan(bytes);
  let value: JsonValue;
  try {
    value = JSON.parse(text);
  } catch {
    return refuse(bytes);
  }
  const isNested = typeof value === 'object' && value !== null;
  if (isNested && countMembers(value as JsonObject) !== members) return refuse(bytes);
  return { value, compact: spaces === 0 ? bytes : withoutSpaces(bytes, spaces) };
}

/** Whether a text cannot be stored as it is: U+0000 or half a surrogate pair (decision 0002). */
export function unfaithfulText(value: string): boolean {
  return value.includes('\u0000') || !value.isWellFormed();
}

function decode(bytes: Buffer): string {
  if (bytes.length === 0) throw new MalformedJson('The body is empty.');
  let text: string;
  try {
    text = utf8.decode(bytes);
  } catch {
    throw new MalformedJson('The body is not valid UTF-8.');
  }
  if (text.charCodeAt(0) === 0xfeff) {
    throw new MalformedJson('The body begins with a byte order mark, which JSON does not allow.');
  }
  return text;
}

// The counts mean something only for valid JSON. The scan still runs before JSON.parse, so that
// deep nesting is refused before a value is built from it.
function scan(bytes: Buffer): { members: number; spaces: number } {
  let members = 0;
  let spaces = 0;
  let depth = 0;
  const end = bytes.length;
  for (let i = 0; i < end; i++) {
    const byte = bytes[i] as number;
    if (byte === quote) {
      i++;
      while (i < end && bytes[i] !== quote) i += bytes[i] === backslash ? 2 : 1;
    } else if (byte <= space) {
      spaces++;
    } else if (byte === colon) {
      members++;
    } else if (byte === openBrace || byte === openBracket) {
      depth++;
      if (depth > maxDepth) {
        throw new MalformedJson(`The body is nested deeper than ${maxDepth} levels.`);
      }
    } else if (byte === closeBrace || byte === closeBracket) {
      depth--;
    }
  }
  return { members, spaces };
}

// Recursion is safe: the scan has bounded the depth.
function countMembers(value: JsonObject | JsonValue[]): number {
  let count = 0;
  if (Array.isArray(value)) {
    for (const item of value) {
      if (typeof item === 'object' && item !== null) count += countMembers(item);
    }
    return count;
  }
  // `for … in` is several times faster here than Object.keys, which makes an array each time.
  for (const name in value) {
    count++;
    if (name === '__proto__') {
      throw new MalformedJson('The body has a member "__proto__", which is not accepted.');
    }
    const member = value[name];
    if (typeof member === 'object' && member !== null) {
      if (name === 'constructor' && Object.hasOwn(member, 'prototype')) {
        throw new MalformedJson(
          'The body has a member "constructor" with a member "prototype", which is not accepted.',
        );
      }
      count += countMembers(member);
    }
  }
  return count;
}

function withoutSpaces(bytes: Buffer, spaces: number): Buffer {
  const compact = Buffer.allocUnsafe(bytes.length - spaces);
  let length = 0;
  let inString = false;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i] as number;
    if (!inString && byte <= space) continue;
    compact[length++] = byte;
    if (byte === quote) {
      inString = !inString;
    } else if (byte === backslash) {
      // A backslash occurs only in strings, and the character that it escapes cannot end one.
      compact[length++] = bytes[++i] as number;
    }
  }
  return compact;
}

/**
 * Reads a bad body again, to say what is wrong with it: the byte, counted from 0, at which it stops
 * being JSON, or else the first repeated member. Recursion is safe: the scan has bounded the depth.
 */
function refuse(bytes: Buffer): never {
  let at = 0;
  let repeated: string | undefined;

  function unexpected(): MalformedJson {
    const fault =
      at < bytes.length ? `unexpected character at byte ${at}` : 'it ends before it is complete';
    return new MalformedJson(`The body is not valid JSON: ${fault}.`);
  }

  function skipSpaces(): void {
    for (;;) {
      const byte = bytes[at];
      if (byte !== space && byte !== tab && byte !== lineFeed && byte !== carriageReturn) return;
      at++;
    }
  }

  function expect(byte: number): void {
    if (bytes[at] !== byte) throw unexpected();
    at++;
  }

  function word(letters: string): void {
    for (const letter of letters) expect(letter.charCodeAt(0));
  }

  function digits(): void {
    if (!isDigit(bytes[at])) throw unexpected();
    while (isDigit(bytes[at])) at++;
  }

  function number(): void {
    if (bytes[at] === minus) at++;
    if (bytes[at] === zero) at++;
    else digits();
    if (bytes[at] === point) {
      at++;
      digits();
    }
    if (bytes[at] === 0x65 || bytes[at] === 0x45) {
      at++;
      if (bytes[at] === plus || bytes[at] === minus) at++;
      digits();
    }
  }

  function string(): void {
    expect(quote);
    for (;;) {
      const byte = bytes[at];
      if (byte === undefined || byte < space) throw unexpected();
      at++;
      if (byte === quote) return;
      if (byte === backslash) escaped();
    }
  }

  function escaped(): void {
    const letter = String.fromCharCode(bytes[at] ?? 0);
    if (!'"\\/bfnrtu'.includes(letter)) throw unexpected();
    at++;
    if (letter !== 'u') return;
    for (const end = at + 4; at < end; at++) {
      if (!/[0-9a-fA-F]/.test(String.fromCharCode(bytes[at] ?? 0))) throw unexpected();
    }
  }

  function list(close: number, item: () => void): void {
    at++;
    skipSpaces();
    if (bytes[at] === close) {
      at++;
      return;
    }
    for (;;) {
      item();
      skipSpaces();
      if (bytes[at] === close) {
        at++;
        return;
      }
      expect(comma);
      skipSpaces();
    }
  }

  function object(): void {
    const names = new Set<string>();
    list(closeBrace, () => {
      const start = at;
      string();
      const spelling = bytes.toString('utf8', start, at);
      const name: string = spelling.includes('\\') ? JSON.parse(spelling) : spelling.slice(1, -1);
      if (names.has(name)) repeated ??= name;
      names.add(name);
      skipSpaces();
      expect(colon);
      value();
    });
  }

  function value(): void {
    skipSpaces();
    const byte = bytes[at];
    if (byte === openBrace) object();
    else if (byte === openBracket) list(closeBracket, value);
    else if (byte === quote) string();
    else if (byte === 0x74) word('true');
    else if (byte === 0x66) word('false');
    else if (byte === 0x6e) word('null');
    else number();
  }

  value();
  skipSpaces();
  if (at < bytes.length || repeated === undefined) throw unexpected();
  throw new MalformedJson(`The body has the member ${shown(repeated)} twice.`);
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= zero && byte <= nine;
}

// The caller chose the name: it may be long or contain control characters.
function shown(name: string): string {
  return JSON.stringify(name.length > 60 ? `${name.slice(0, 60)}…` : name);
}
