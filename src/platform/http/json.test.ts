import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { anyCharacter } from '../../../test/support/any-character.ts';
import { MalformedJson, readJson, unfaithfulText } from './json.ts';

const runs = (count: number) => ({
  numRuns: process.env.TRANCHE_TEST_LONG ? count : Math.ceil(count / 10),
});

function refusal(body: string | Buffer): string {
  try {
    readJson(Buffer.from(body as string));
  } catch (error) {
    assert(error instanceof MalformedJson, `threw ${String(error)}`);
    return error.message;
  }
  return 'accepted';
}

const nested = (depth: number) => `${'{"a":'.repeat(depth - 1)}{}${'}'.repeat(depth - 1)}`;

const notUtf8 = 'The body is not valid UTF-8.';
const proto = 'The body has a member "__proto__", which is not accepted.';
const constructorPrototype =
  'The body has a member "constructor" with a member "prototype", which is not accepted.';

const refused: [name: string, body: string | Buffer, detail: string][] = [
  ['an empty body', '', 'The body is empty.'],
  ['only white space', ' \n', 'The body is not valid JSON: it ends before it is complete.'],
  ['an open object', '{"a":1', 'The body is not valid JSON: it ends before it is complete.'],
  ['an open string', '{"a":"b', 'The body is not valid JSON: it ends before it is complete.'],
  ['an open escape', '{"a":"\\', 'The body is not valid JSON: it ends before it is complete.'],
  ['a cut literal', '{"a":tru', 'The body is not valid JSON: it ends before it is complete.'],
  ['a comma before a brace', '{"a":1,}', unexpectedAt(7)],
  ['a comma before a bracket', '{"a":[1,]}', unexpectedAt(8)],
  ['a missing comma', '{"a":1 "b":2}', unexpectedAt(7)],
  ['a missing colon', '{"a" 1}', unexpectedAt(5)],
  ['single quotes', "{'a':1}", unexpectedAt(1)],
  ['an unquoted name', '{a:1}', unexpectedAt(1)],
  ['a comment', '{"a":1}//x', unexpectedAt(7)],
  ['two values', '{"a":1}{"b":2}', unexpectedAt(7)],
  ['NaN', '{"a":NaN}', unexpectedAt(5)],
  ['a leading zero', '{"a":01}', unexpectedAt(6)],
  ['a leading plus', '{"a":+1}', unexpectedAt(5)],
  ['a bare point', '{"a":.5}', unexpectedAt(5)],
  ['a point without digits', '{"a":1.}', unexpectedAt(7)],
  ['an exponent without digits', '{"a":1e}', unexpectedAt(7)],
  ['hexadecimal', '{"a":0x10}', unexpectedAt(6)],
  ['a line break in a string', '{"a":"b\nc"}', unexpectedAt(7)],
  ['an unknown escape', '{"a":"\\x41"}', unexpectedAt(7)],
  ['a short \\u escape', '{"a":"\\u00e"}', unexpectedAt(11)],
  ['U+0000 between tokens', '{"a":1}\u0000', unexpectedAt(7)],
  ['a no-break space between tokens', '{\u00a0"a":1}', unexpectedAt(1)],
  ['an error after characters of several bytes', '{"é€😀":x}', unexpectedAt(13)],
  ['a form body', 'checkout[amount]=1', unexpectedAt(0)],

  ['a byte that is not UTF-8', Buffer.from('{"a":"\xe9"}', 'latin1'), notUtf8],
  ['an overlong encoding', Buffer.from('{"a":"\xc0\xaf"}', 'latin1'), notUtf8],
  ['an encoded surrogate', Buffer.from('{"a":"\xed\xa0\x80"}', 'latin1'), notUtf8],
  ['a cut sequence', Buffer.from('{"a":"\xe2\x82', 'latin1'), notUtf8],
  ['UTF-16', Buffer.from('\ufeff{"a":1}', 'utf16le'), notUtf8],
  [
    'a byte order mark',
    '\ufeff{"a":1}',
    'The body begins with a byte order mark, which JSON does not allow.',
  ],

  ['an array', '[{"a":1}]', 'The body must be a JSON object.'],
  ['null', 'null', 'The body must be a JSON object.'],
  ['a string', '"{}"', 'The body must be a JSON object.'],
  ['a number', ' 1 ', 'The body must be a JSON object.'],

  ['a member twice', '{"amount":1,"amount":2}', twice('"amount"')],
  ['a member twice with one value', '{"amount":1,"amount":1}', twice('"amount"')],
  ['a member twice inside', '{"a":[{"b":1,"c":[],"b":{}}]}', twice('"b"')],
  ['a member twice, once escaped', '{"a":1,"\\u0061":2}', twice('"a"')],
  ['a pair of surrogates, once escaped', '{"😀":1,"\\ud83d\\uDE00":2}', twice('"😀"')],
  ['an integer-like member twice', '{"1":1,"2":2,"1":3}', twice('"1"')],
  ['the empty name twice', '{"":1,"":2}', twice('""')],
  ['"toString" twice', '{"toString":1,"toString":2}', twice('"toString"')],
  [
    'a long name twice',
    `{"${'n'.repeat(99)}":1,"${'n'.repeat(99)}":1}`,
    twice(`"${'n'.repeat(60)}…"`),
  ],
  ['the first of several repeats', '{"a":{"b":1,"b":1},"a":1}', twice('"b"')],

  ['__proto__', '{"__proto__":{"a":1}}', proto],
  ['__proto__ that is not an object', '{"__proto__":null}', proto],
  ['__proto__ escaped and inside', '{"a":[{"\\u005f_proto__":1}]}', proto],
  ['constructor.prototype', '{"constructor":{"prototype":{}}}', constructorPrototype],
  [
    'constructor.prototype escaped and inside',
    '{"a":[{"constructo\\u0072":{"b":1,"prototyp\\u0065":1}}]}',
    constructorPrototype,
  ],

  ['33 levels', nested(33), 'The body is nested deeper than 32 levels.'],
  [
    '33 levels of arrays',
    `{"a":${'['.repeat(32)}${']'.repeat(32)}}`,
    'The body is nested deeper than 32 levels.',
  ],
  ['a tower of brackets', '['.repeat(262144), 'The body is nested deeper than 32 levels.'],
  ['a file of members', `{"a":[${'{"":1},'.repeat(100_000)}1]}`, 'The body has too many values.'],
  ['a file of numbers', `{"a":[${'1,'.repeat(200_000)}1]}`, 'The body has too many values.'],
];

function unexpectedAt(byte: number): string {
  return `The body is not valid JSON: unexpected character at byte ${byte}.`;
}

function twice(name: string): string {
  return `The body has the member ${name} twice.`;
}

for (const [name, body, detail] of refused) {
  test(`a malformed body is refused in one sentence: ${name}`, () => {
    assert.equal(refusal(body), detail);
  });
}

const compacted: [name: string, body: string, compact: string][] = [
  ['nothing to remove', '{"a":[1,{"b":null}],"c":"d e"}', '{"a":[1,{"b":null}],"c":"d e"}'],
  ['all four kinds of white space', '\t{\r\n "a" :\t[ 1 ,\n2 ] }\n', '{"a":[1,2]}'],
  ['white space in strings and names', '{ " a\u2003b " : "c  d" }', '{" a\u2003b ":"c  d"}'],
  ['escaped quotes', '{ "a\\" : \\\\" : "\\\\\\" , " }', '{"a\\" : \\\\":"\\\\\\" , "}'],
  ['escaped slashes', '{ "u": "https:\\/\\/a.example\\/b" }', '{"u":"https:\\/\\/a.example\\/b"}'],
  ['escaped letters beside plain ones', '{"a": "\\u00e9é\\u00E9"}', '{"a":"\\u00e9é\\u00E9"}'],
  ['spellings of numbers', '{"a": [1.0, 1E2, -0, 1e400]}', '{"a":[1.0,1E2,-0,1e400]}'],
  [
    '64-bit integers',
    '{"a": 9223372036854775807, "b": 9007199254740993}',
    '{"a":9223372036854775807,"b":9007199254740993}',
  ],
  ['integer-like names out of order', '{"2": 1, "1": 2, "b": 3}', '{"2":1,"1":2,"b":3}'],
  ['the deepest nesting', ` ${nested(32)}`, nested(32)],
  ['a lone surrogate, escaped', '{"a": "\\ud800"}', '{"a":"\\ud800"}'],
  ['prototype without constructor', '{"prototype": {"a": 1}}', '{"prototype":{"a":1}}'],
  [
    'constructor without prototype',
    '{"constructor": ["prototype"]}',
    '{"constructor":["prototype"]}',
  ],
  ['one name in two objects', '{"a": {"a": 1}, "b": [{"a": 1}]}', '{"a":{"a":1},"b":[{"a":1}]}'],
  ['names that differ only in form', '{"é": 1, "e\u0301": 2}', '{"é":1,"e\u0301":2}'],
];

for (const [name, body, compact] of compacted) {
  test(`only white space between tokens is removed: ${name}`, () => {
    const read = readJson(Buffer.from(body));
    assert.equal(read.compact.toString(), compact);
    assert.deepEqual(read.value, JSON.parse(body));
  });
}

test('a compact body is not copied', () => {
  const body = Buffer.from('{"a":"b c"}');
  assert.equal(readJson(body).compact, body);
});

test('reading does not change the bytes', () => {
  const body = Buffer.from('{ "a" : 1 }');
  readJson(body);
  assert.equal(body.toString(), '{ "a" : 1 }');
});

test('an integer that is not exact as a number is not a safe integer', () => {
  const { value } = readJson(Buffer.from('{"a":9007199254740993,"b":1.0,"c":1e2,"d":1e400}'));
  assert.deepEqual(
    Object.values(value).map((member) => Number.isSafeInteger(member)),
    [false, true, true, false],
  );
});

describe('a number is an integer exactly when its text denotes one', () => {
  const table: [text: string, value: number][] = [
    ['1', 1],
    ['-0', -0],
    ['1.0', 1],
    ['1.5', 1.5],
    ['1e2', 100],
    ['100e-2', 1],
    ['0.15e7', 1_500_000],
    ['150000.000', 150_000],
    ['0e9', 0],
    ['0.0', 0],
    ['9007199254740991.0', Number.MAX_SAFE_INTEGER],
    ['0.99999999999999999999', Number.NaN],
    ['150000.00000000000000001', Number.NaN],
    ['149999.99999999999999999', Number.NaN],
    ['-0.99999999999999999999', Number.NaN],
    ['15000000000000000000001e-17', Number.NaN],
    ['1e-400', Number.NaN],
    ['1e400', Number.POSITIVE_INFINITY],
    [`1.${'0'.repeat(1000)}`, 1],
    [`1.${'0'.repeat(1000)}1`, Number.NaN],
    [`1${'0'.repeat(1000)}e-1000`, 1],
  ];
  for (const [text, value] of table) {
    test(`${text.slice(0, 40)} is ${value}`, () => {
      assert.deepEqual(readJson(Buffer.from(`{"a":${text}}`)).value, { a: value });
    });
  }

  test('whatever its digits, and to the last of them', () => {
    const digits = fc.stringMatching(/^[0-9]{1,30}$/);
    fc.assert(
      fc.property(fc.stringMatching(/^(0|[1-9][0-9]{0,12})$/), digits, (whole, fraction) => {
        const { value } = readJson(Buffer.from(`{"a":${whole}.${fraction}}`));
        assert.equal(Number.isInteger(value.a), /^0+$/.test(fraction));
      }),
      runs(3000),
    );
  });
});

describe('an escaped member name is read right after V8 was taught a shape', () => {
  // In V8 an escaped name can take the name of an earlier object's member (nodejs/node#63785).
  test('a repeated member is refused', () => {
    JSON.parse(String.raw`{"debit":0,"\\u006":0}`);
    assert.equal(refusal(String.raw`{"debit":1,"\u0064ebit":2}`), twice('"debit"'));
  });

  test('the name is the one that was sent', () => {
    JSON.parse(String.raw`{"h":[],"\\":0}`);
    const { value } = readJson(Buffer.from(String.raw`{"h":1,"\"":2}`));
    assert.deepEqual(Object.keys(value), ['h', '"']);
  });
});

test('text that cannot be stored is recognised', () => {
  const table: [string, boolean][] = [
    ['', false],
    ['Thandi Nkosi', false],
    ['é€😀\ufffd\uffff', false],
    ['\u0001\u007f', false],
    ['a\u0000', true],
    ['\ud800', true],
    ['\udc00\ud800', true],
    ['😀\ude00', true],
  ];
  for (const [text, unfaithful] of table) assert.equal(unfaithfulText(text), unfaithful);
});

const space = fc.string({ unit: fc.constantFrom(' ', '\t', '\n', '\r'), maxLength: 3 });

const jsonObject = fc
  .dictionary(fc.string({ unit: anyCharacter }), fc.jsonValue({ stringUnit: anyCharacter }))
  .filter((value) => !/__proto__|constructor/.test(JSON.stringify(value)));

function tokens(json: string): string[] {
  return json.match(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^"{}[\],:]+/g) ?? [];
}

function withSpaces(json: string, spaces: string[]): string {
  return ['', ...tokens(json), ''].join('\n').replaceAll('\n', () => {
    const next = spaces.shift() ?? '';
    spaces.push(next);
    return next;
  });
}

test('white space between tokens changes neither the value nor the compact text', () => {
  fc.assert(
    fc.property(jsonObject, fc.array(space, { minLength: 1 }), (object, spaces) => {
      const json = JSON.stringify(object);
      const read = readJson(Buffer.from(withSpaces(json, spaces)));
      assert.equal(read.compact.toString(), json);
      assert.deepEqual(read.value, JSON.parse(json));
    }),
    runs(3000),
  );
});

test('a repeated member is refused wherever it is and however it is escaped', () => {
  const escapeAll = (name: string) =>
    `"${Array.from({ length: name.length }, (_, i) => `\\u${name.charCodeAt(i).toString(16).padStart(4, '0')}`).join('')}"`;
  fc.assert(
    fc.property(
      jsonObject,
      fc.string({ unit: anyCharacter }).filter((name) => name !== '__proto__'),
      fc.jsonValue({ maxDepth: 1 }),
      fc.boolean(),
      fc.nat(),
      (object, name, value, escaped, position) => {
        const once = JSON.stringify(value);
        const repeat = `,${escaped ? escapeAll(name) : JSON.stringify(name)}:${once}`;
        // Add the member twice to one object of the body.
        const parts = tokens(JSON.stringify({ ...object, '': {} }));
        const braces = parts.flatMap((token, index) => (token === '{' ? [index] : []));
        const at = braces[position % braces.length] ?? 0;
        const rest = parts[at + 1] === '}' ? '' : ',';
        parts[at] = `{${JSON.stringify(name)}:${once}${repeat}${rest}`;
        assert.match(refusal(parts.join('')), /twice\.$|__proto__|constructor/);
      },
    ),
    runs(3000),
  );
});

function agreesWithJsonParse(body: Buffer): void {
  let expected: unknown;
  let valid = true;
  try {
    expected = JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body));
  } catch {
    valid = false;
  }
  const detail = refusal(body);
  if (detail === 'accepted') {
    assert(valid);
    assert.deepEqual(readJson(body).value, expected);
  } else if (valid) {
    assert.match(detail, /must be a JSON object|twice|nested deeper|not accepted/);
  } else {
    assert.match(detail, /empty|not valid|nested deeper|byte order mark/);
  }
}

const jsonLike = fc
  .array(
    fc.constantFrom(
      ...'{}[],:"\\/ \n0123456789-+.eEu',
      'true',
      'null',
      '"a"',
      '"a":',
      '\\u00e9',
      'é',
    ),
  )
  .map((parts) => Buffer.from(parts.join('')));

const damaged = fc
  .tuple(jsonObject, fc.nat(), fc.nat(3), fc.uint8Array({ maxLength: 3 }))
  .map(([object, position, removed, inserted]) => {
    const bytes = Buffer.from(JSON.stringify(object));
    const at = position % (bytes.length + 1);
    return Buffer.concat([bytes.subarray(0, at), inserted, bytes.subarray(at + removed)]);
  });

for (const [name, bodies] of Object.entries({
  'random bytes': fc.uint8Array().map((bytes) => Buffer.from(bytes)),
  'JSON-like text': jsonLike,
  'JSON-like text in an object': jsonLike.map((text) =>
    Buffer.concat([Buffer.from('{"a":'), text, Buffer.from('}')]),
  ),
  'damaged JSON': damaged,
})) {
  test(`every body is read as JSON.parse reads it or refused as malformed: ${name}`, () => {
    fc.assert(fc.property(bodies, agreesWithJsonParse), runs(5000));
  });
}

test('hostile bodies of 256 KiB are read or refused without exhausting anything', () => {
  const size = 256 * 1024;
  const filled = (start: string, unit: (index: number) => string, end: string) => {
    const parts = [start];
    for (let index = 0, length = start.length; length < size; index++) {
      parts.push(unit(index));
      length += unit(index).length;
    }
    return parts.join('') + end;
  };
  const table: [body: string, outcome: string][] = [
    [filled('', () => '[', ''), 'The body is nested deeper than 32 levels.'],
    [filled('', () => '{"a":', ''), 'The body is nested deeper than 32 levels.'],
    [filled('{', (i) => `"${i}":1,`, '"a":1}'), 'accepted'],
    [filled('{', (i) => `"${4294967294 - i * 1024}":1,`, '"a":1}'), 'accepted'],
    [filled('{', (i) => `"m${i}":1,`, '"m1":1}'), twice('"m1"')],
    [filled('{', () => '"a":1,', '"a":1}'), twice('"a"')],
    [filled('{"a":[', (i) => `{"m${i}":{}},`, '1]}'), 'accepted'],
    [filled('{"a":"', () => '\\u0061', '"}'), 'accepted'],
    [filled('{"a":"', () => '\\\\', '"}'), 'accepted'],
    [
      filled('{"a":"', () => '\\"', ''),
      'The body is not valid JSON: it ends before it is complete.',
    ],
    [filled('{', () => ' ', '}'), 'accepted'],
    [filled('{"a":', () => '9', '}'), 'accepted'],
  ];
  for (const [body, outcome] of table) assert.equal(refusal(body), outcome);
});
