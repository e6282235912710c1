import type { Timestamp } from '#platform/shared/clock.ts';

// Rows that one statement writes together, sent column by column as arrays in PostgreSQL's binary
// form. The binary form is only for speed: as text, we would escape every value and the server
// would parse it. Compared with the same arrays as text, it used 13 % less of our CPU and 7 % less
// of the database's for 32 checkouts, and 11 % and 3 % less for 200.

type Values = {
  uuid: string;
  text: string;
  int: number;
  /** Each element is sent as text, because PostgreSQL would flatten an array of arrays. */
  'int[]': number[];
  bigint: number;
  bool: boolean;
  timestamptz: Timestamp;
  bytea: Buffer;
  /** Any JSON value. Its members keep their order. */
  json: unknown;
  jsonb: unknown;
};
type ColumnType = keyof Values;

type Row<Columns extends Record<string, ColumnType>> = {
  [Name in keyof Columns]: Values[Columns[Name]] | null;
};

export type RowGroup<Columns extends Record<string, ColumnType>> = {
  /** For the statement's FROM. It names the rows `i` and gives them the columns' names. */
  from: string;
  /** For the statement's SELECT: some columns of `i`. */
  select(names: (keyof Columns & string)[]): string;
  /**
   * The statement's first parameters. Throws at once for a value that its type cannot hold, so that
   * a COMMIT in the same pipeline is never sent.
   */
  values(rows: Row<Columns>[]): Buffer[];
};

export function rowGroup<const Columns extends Record<string, ColumnType>>(
  columns: Columns,
): RowGroup<Columns> {
  const names = Object.keys(columns);
  const arrays = Object.values(columns).map((type, index) => `$${index + 1}::${sentAs(type)}[]`);
  return {
    from: `unnest(${arrays.join(', ')}) as i (${names.join(', ')})`,
    select: (wanted) =>
      wanted
        .map((name) => {
          const type = columns[name] as ColumnType;
          return sentAs(type) === type ? `i.${name}` : `i.${name}::${type}`;
        })
        .join(', '),
    values: (rows) =>
      names.map((name) => {
        const type = columns[name] as ColumnType;
        return binaryArray(
          type,
          rows.map((row) => row[name] ?? null),
        );
      }),
  };
}

const sentAs = (type: ColumnType) => (type === 'int[]' ? 'text' : type);

/** How the values of a type are encoded: in a fixed number of bytes, or as text or bytes. */
type Wire =
  | { oid: number; bytes: number; write(view: DataView, at: number, value: never): void }
  | { oid: number; prefix?: string; content(value: never): string | Buffer };

const wires: Record<ColumnType, Wire> = {
  bool: { oid: 16, bytes: 1, write: (view, at, value: boolean) => view.setInt8(at, +value) },
  bytea: { oid: 17, content: (value: Buffer) => value },
  bigint: { oid: 20, bytes: 8, write: writeInt64 },
  int: { oid: 23, bytes: 4, write: writeInt32 },
  text: { oid: 25, content: (value: string) => value },
  'int[]': { oid: 25, content: (value: number[]) => `{${value.join(',')}}` },
  json: { oid: 114, content: (value: unknown) => JSON.stringify(value) },
  timestamptz: { oid: 1184, bytes: 8, write: writeTimestamp },
  uuid: { oid: 2950, bytes: 16, write: writeUuid },
  jsonb: { oid: 3802, prefix: '\u0001', content: (value: unknown) => JSON.stringify(value) },
};

const headerBytes = 20;
const lengthBytes = 4;

function binaryArray(type: ColumnType, values: unknown[]): Buffer {
  const wire = wires[type];
  return 'bytes' in wire ? fixedArray(wire, values) : variableArray(wire, values);
}

function fixedArray(
  { oid, bytes, write }: Extract<Wire, { bytes: number }>,
  values: unknown[],
): Buffer {
  const buffer = Buffer.allocUnsafe(headerBytes + values.length * (lengthBytes + bytes));
  const view = viewOf(buffer);
  writeHeader(view, oid, values);
  let end = headerBytes;
  for (const value of values) {
    view.setInt32(end, value === null ? -1 : bytes);
    end += lengthBytes;
    if (value === null) continue;
    write(view, end, value as never);
    end += bytes;
  }
  return buffer.subarray(0, end);
}

function variableArray(
  { oid, prefix = '', content }: Exclude<Wire, { bytes: number }>,
  values: unknown[],
): Buffer {
  const contents = values.map((value) => (value === null ? null : content(value as never)));
  const lengths = contents.map((one) =>
    one === null ? 0 : prefix.length + Buffer.byteLength(one),
  );
  const sum = lengths.reduce((total, length) => total + length, 0);
  const buffer = Buffer.allocUnsafe(headerBytes + values.length * lengthBytes + sum);
  const view = viewOf(buffer);
  writeHeader(view, oid, values);
  let end = headerBytes;
  for (const [index, one] of contents.entries()) {
    view.setInt32(end, one === null ? -1 : (lengths[index] ?? 0));
    end += lengthBytes;
    if (one === null) continue;
    if (prefix) end += buffer.write(prefix, end, 'latin1');
    end += typeof one === 'string' ? buffer.write(one, end) : one.copy(buffer, end);
  }
  return buffer;
}

const viewOf = ({ buffer, byteOffset, length }: Buffer) => new DataView(buffer, byteOffset, length);

/**
 * Writes the header: one dimension, whether there are nulls, the type, the number of elements, the
 * first index.
 */
function writeHeader(view: DataView, oid: number, values: unknown[]): void {
  [1, values.includes(null) ? 1 : 0, oid, values.length, 1].forEach((field, index) => {
    view.setInt32(4 * index, field);
  });
}

function writeInt32(view: DataView, at: number, value: number): void {
  if (value !== (value | 0)) throw new RangeError(`${value} is not a whole number of 32 bits`);
  view.setInt32(at, value);
}

function writeInt64(view: DataView, at: number, value: number): void {
  if (!Number.isSafeInteger(value)) throw new RangeError(`${value} is not a whole number`);
  view.setInt32(at, Math.floor(value / 2 ** 32));
  view.setUint32(at + 4, value >>> 0);
}

const millenniumMilliseconds = Temporal.Instant.from('2000-01-01T00:00:00Z').epochMilliseconds;

/** Caches the last time, because most rows of a group have the same one. */
let lastTime: { text: Timestamp | null; microseconds: bigint } = { text: null, microseconds: 0n };

function writeTimestamp(view: DataView, at: number, value: Timestamp): void {
  if (lastTime.text !== value) {
    const milliseconds = Temporal.Instant.from(value).epochMilliseconds - millenniumMilliseconds;
    lastTime = { text: value, microseconds: BigInt(milliseconds) * 1000n };
  }
  view.setBigInt64(at, lastTime.microseconds);
}

const notADigit = 0xff;
const digitOf = new Uint8Array(128).fill(notADigit);
for (const [value, digit] of [...'0123456789abcdef'].entries()) {
  for (const one of [digit, digit.toUpperCase()]) digitOf[one.charCodeAt(0)] = value;
}
/** Where the two hex digits of each byte start in the text. */
const digitsAt = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];

function writeUuid(view: DataView, at: number, value: string): void {
  let all = value.length === 36 ? 0 : notADigit;
  for (let index = 0; index < 16; index += 1) {
    const digits = digitsAt[index] as number;
    const high = digitOf[value.charCodeAt(digits)] ?? notADigit;
    const low = digitOf[value.charCodeAt(digits + 1)] ?? notADigit;
    all |= high | low;
    view.setUint8(at + index, (high << 4) | low);
  }
  if (all > 0x0f) throw new RangeError(`${value} is not a UUID`);
}
