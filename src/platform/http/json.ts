export type JsonValue = null | boolean | number | string | JsonValue[] | JsonObject;
export type JsonObject = { [name: string]: JsonValue };

/** The message is a whole sentence: it becomes the `detail` of a 400. */
export class MalformedJson extends Error {
  override name = 'MalformedJson';
}

const depthMax = 32;

/**
 * The limit for colons and commas. A valid body of 256 KiB is too short to have this many, but the
 * longer body of a file upload is not.
 */
const separatorsMax = 140_000;

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
// if we dropped it silently, it would be unclear whether the signature covers it.
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Reads a request body: its value, and the compact bytes that its signature covers (decisions 0002
 * and 0005).
 *
 * `compact` is the body without insignificant white space and otherwise unchanged. It is the same
 * buffer when there was no such white space.
 *
 * Every POST takes this path, so it must be fast. JSON.parse checks the grammar and builds the
 * value. A scan counts the members in the text (the colons outside strings), and a pass over the
 * value counts its members. JSON.parse keeps only the last of several members with one name, so the
 * counts differ exactly when a name was repeated.
 *
 * JSON.parse is not right about every body. An escaped member name can come out as another name,
 * once an earlier text has given V8 an object shape (nodejs/node#63785), and
 * `0.99999999999999999999` comes out as 1. A body with an escaped name, or with a number that has a
 * fraction or an exponent, is therefore read by `readCarefully`. So is a body that we are about to
 * refuse, to say where it is wrong.
 *
 * A number in `value` is an integer exactly when its text denotes one: `1.0` and `1e2` are
 * integers, as in JSON Schema, and a fraction that a double would round to an integer is NaN.
 * Integers beyond Number.MAX_SAFE_INTEGER are rounded and must be refused by their size. `-0` is
 * negative zero, and `1e400` is Infinity.
 */
export function readJson(bytes: Buffer): { value: JsonObject; compact: Buffer } {
  const { value, compact } = readJsonValue(bytes);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new MalformedJson('The body must be a JSON object.');
  }
  return { value, compact };
}

/** Like `readJson`, but accepts any JSON value. */
export function readJsonValue(bytes: Buffer): { value: JsonValue; compact: Buffer } {
  const text = decode(bytes);
  const { members, spaces, isPlain } = scan(bytes);
  let value = isPlain ? parse(text) : undefined;
  if (value === undefined || countMembers(value) !== members) {
    value = readCarefully(bytes);
    countMembers(value);
  }
  return { value, compact: spaces === 0 ? bytes : withoutSpaces(bytes, spaces) };
}

function parse(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
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

// Scans the body before JSON.parse runs, so that deep nesting is refused before a value is built
// from it. The counts mean something only for valid JSON.
function scan(bytes: Buffer): { members: number; spaces: number; isPlain: boolean } {
  let members = 0;
  let commas = 0;
  let spaces = 0;
  let depth = 0;
  // Whether no member name has an escape, and no number has a fraction or an exponent.
  let isPlain = true;
  let hasEscape = false;
  const end = bytes.length;
  for (let i = 0; i < end; i++) {
    const byte = bytes[i] as number;
    if (byte === quote) {
      hasEscape = false;
      for (i++; i < end && bytes[i] !== quote; i++) {
        if (bytes[i] === backslash) {
          hasEscape = true;
          i++;
        }
      }
    } else if (byte <= space) {
      spaces++;
    } else if (byte === colon) {
      members++;
      // The string before a colon is a member name.
      if (hasEscape) isPlain = false;
    } else if (byte === comma) {
      commas++;
    } else if (byte === openBrace || byte === openBracket) {
      depth++;
      if (depth > depthMax) {
        throw new MalformedJson(`The body is nested deeper than ${depthMax} levels.`);
      }
    } else if (byte === closeBrace || byte === closeBracket) {
      depth--;
    } else if (byte === point || (isExponent(byte) && isDigit(bytes[i - 1]))) {
      isPlain = false;
    }
  }
  if (members + commas > separatorsMax) throw new MalformedJson('The body has too many values.');
  return { members, spaces, isPlain };
}

// Counts the members of all objects, and refuses names that could change a prototype. Recursion is
// safe: the scan has bounded the depth.
function countMembers(value: JsonValue): number {
  if (typeof value !== 'object' || value === null) return 0;
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
 * Reads a body token by token, without JSON.parse. Throws an error that says what is wrong with it:
 * the byte, counted from 0, at which it stops being JSON, or else the first repeated member.
 * Recursion is safe: the scan has bounded the depth.
 */
function readCarefully(bytes: Buffer): JsonValue {
  return new CarefulReader(bytes).read();
}

class CarefulReader {
  readonly #bytes: Buffer;
  /** The next byte to read. Every method moves it past what it has read. */
  #at = 0;
  /** The first member that an object has twice. */
  #repeated: string | undefined;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  read(): JsonValue {
    const value = this.#value();
    this.#skipSpaces();
    if (this.#at < this.#bytes.length) throw this.#unexpected();
    if (this.#repeated !== undefined) {
      throw new MalformedJson(`The body has the member ${shown(this.#repeated)} twice.`);
    }
    return value;
  }

  #unexpected(): MalformedJson {
    const fault =
      this.#at < this.#bytes.length
        ? `unexpected character at byte ${this.#at}`
        : 'it ends before it is complete';
    return new MalformedJson(`The body is not valid JSON: ${fault}.`);
  }

  #skipSpaces(): void {
    for (;;) {
      const byte = this.#bytes[this.#at];
      if (byte !== space && byte !== tab && byte !== lineFeed && byte !== carriageReturn) return;
      this.#at++;
    }
  }

  #expect(byte: number): void {
    if (this.#bytes[this.#at] !== byte) throw this.#unexpected();
    this.#at++;
  }

  #word<T>(letters: string, value: T): T {
    for (let i = 0; i < letters.length; i++) this.#expect(letters.charCodeAt(i));
    return value;
  }

  #digits(): void {
    if (!isDigit(this.#bytes[this.#at])) throw this.#unexpected();
    while (isDigit(this.#bytes[this.#at])) this.#at++;
  }

  #number(): number {
    const start = this.#at;
    if (this.#bytes[this.#at] === minus) this.#at++;
    if (this.#bytes[this.#at] === zero) this.#at++;
    else this.#digits();
    if (this.#bytes[this.#at] === point) {
      this.#at++;
      this.#digits();
    }
    if (isExponent(this.#bytes[this.#at])) {
      this.#at++;
      if (this.#bytes[this.#at] === plus || this.#bytes[this.#at] === minus) this.#at++;
      this.#digits();
    }
    return exactNumber(this.#bytes.toString('latin1', start, this.#at));
  }

  #string(): string {
    const start = this.#at;
    let hasEscape = false;
    this.#expect(quote);
    for (;;) {
      const byte = this.#bytes[this.#at];
      if (byte === undefined || byte < space) throw this.#unexpected();
      this.#at++;
      if (byte === quote) break;
      if (byte === backslash) {
        hasEscape = true;
        this.#escaped();
      }
    }
    // JSON.parse is right about a single string.
    return hasEscape
      ? JSON.parse(this.#bytes.toString('utf8', start, this.#at))
      : this.#bytes.toString('utf8', start + 1, this.#at - 1);
  }

  #escaped(): void {
    const letter = String.fromCharCode(this.#bytes[this.#at] ?? 0);
    if (!'"\\/bfnrtu'.includes(letter)) throw this.#unexpected();
    this.#at++;
    if (letter !== 'u') return;
    for (const end = this.#at + 4; this.#at < end; this.#at++) {
      if (!/[0-9a-fA-F]/.test(String.fromCharCode(this.#bytes[this.#at] ?? 0)))
        throw this.#unexpected();
    }
  }

  /** The items of an object or array, up to and including its end. */
  #items(close: number, item: () => void): void {
    this.#at++;
    this.#skipSpaces();
    if (this.#bytes[this.#at] === close) {
      this.#at++;
      return;
    }
    for (;;) {
      item();
      this.#skipSpaces();
      if (this.#bytes[this.#at] === close) {
        this.#at++;
        return;
      }
      this.#expect(comma);
      this.#skipSpaces();
    }
  }

  #array(): JsonValue[] {
    const list: JsonValue[] = [];
    this.#items(closeBracket, () => list.push(this.#value()));
    return list;
  }

  #object(): JsonObject {
    const members = new Map<string, JsonValue>();
    this.#items(closeBrace, () => {
      const name = this.#string();
      if (members.has(name)) this.#repeated ??= name;
      this.#skipSpaces();
      this.#expect(colon);
      members.set(name, this.#value());
    });
    // Unlike an assignment, this also defines `__proto__`, as JSON.parse does.
    return Object.fromEntries(members);
  }

  #value(): JsonValue {
    this.#skipSpaces();
    const byte = this.#bytes[this.#at];
    if (byte === openBrace) return this.#object();
    if (byte === openBracket) return this.#array();
    if (byte === quote) return this.#string();
    if (byte === 0x74) return this.#word('true', true);
    if (byte === 0x66) return this.#word('false', false);
    if (byte === 0x6e) return this.#word('null', null);
    return this.#number();
  }
}

/** The value of a number's text; NaN when a double would round a fraction to an integer. */
function exactNumber(text: string): number {
  const value = Number(text);
  // Beyond this every double is an integer, and none of our integers is as large.
  if (!Number.isSafeInteger(value)) return value;
  const [, whole = '', fraction = '', exponent = '0'] =
    /^-?([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?$/.exec(text) ?? [];
  const all = whole + fraction;
  let end = all.length;
  while (end > 0 && all.charCodeAt(end - 1) === zero) end--;
  let start = 0;
  while (start < end && all.charCodeAt(start) === zero) start++;
  if (start === end) return value;
  // The text denotes `all` × 10 to the power of `scale`, with the trailing zeros of `all` removed.
  const scale = Number(exponent) - fraction.length + (all.length - end);
  return scale >= 0 ? value : Number.NaN;
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= zero && byte <= nine;
}

function isExponent(byte: number | undefined): boolean {
  return byte === 0x65 || byte === 0x45;
}

// The caller chose the name, so it may be long or contain control characters.
export function shown(name: string): string {
  return JSON.stringify(name.length > 60 ? `${name.slice(0, 60)}…` : name);
}
