import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { anyCharacter } from '../../../test/support/any-character.ts';
import { MalformedForm, readForm } from './form.ts';

const read = (text: string | Buffer) => readForm(Buffer.from(text as string));

describe('a form reads like the same JSON, with text for every value', () => {
  const cases: [form: string, value: object][] = [
    ['', {}],
    ['a=1', { a: '1' }],
    ['a=1&b=2', { a: '1', b: '2' }],
    ['&a=1&&b=2&', { a: '1', b: '2' }],
    ['a', { a: '' }],
    ['a=', { a: '' }],
    ['a=b=c', { a: 'b=c' }],
    ['a+b=c+d%2B', { 'a b': 'c d+' }],
    ['a=%E2%82%AC', { a: '€' }],
    ['a=€', { a: '€' }],
    ['a=%00', { a: '\u0000' }],
    ['a=%26b%3D1', { a: '&b=1' }],
    ['purchase[order_id]=7', { purchase: { order_id: '7' } }],
    ['purchase%5Border_id%5D=7', { purchase: { order_id: '7' } }],
    ['a[b]=1&c=2&a[d]=3', { a: { b: '1', d: '3' }, c: '2' }],
    ['a[0]=x&a[1]=y', { a: ['x', 'y'] }],
    ['a[1]=y&a[0]=x', { a: ['x', 'y'] }],
    ['a[]=x&a[]=y', { a: ['x', 'y'] }],
    ['a[0][p]=1&a[0][q]=2&a[1][p]=3', { a: [{ p: '1', q: '2' }, { p: '3' }] }],
    ['a[1]=y', { a: { '1': 'y' } }],
    ['a[4294967295]=x', { a: { '4294967295': 'x' } }],
    ['a[00]=x', { a: { '00': 'x' } }],
    [
      'constructor=1&prototype=2&toString[valueOf]=3',
      { constructor: '1', prototype: '2', toString: { valueOf: '3' } },
    ],
  ];
  for (const [form, value] of cases) {
    test(JSON.stringify(form), () => assert.deepEqual(read(form), value));
  }
});

describe('a malformed form is refused in one sentence', () => {
  const deep = `a${'[b]'.repeat(32)}=1`;
  for (const [form, message] of [
    ['a=1&a=2', 'The body has the field "a" twice.'],
    ['a[b]=1&a[b]=2', 'The body has the field "a[b]" twice.'],
    ['a=1&%61=2', 'The body has the field "a" twice.'],
    ['a[0]=1&a[]=2&a[1]=3', 'The body has the field "a[1]" twice.'],
    ['a=1&a[b]=2', 'The body has a field "a[b]", and also a value for a part of that name.'],
    ['a[b]=2&a=1', 'The body has the field "a" twice.'],
    ['a=%', 'The body has a % that is not followed by two hexadecimal digits.'],
    ['a=%1', 'The body has a % that is not followed by two hexadecimal digits.'],
    ['a=%zz', 'The body has a % that is not followed by two hexadecimal digits.'],
    ['%f=1', 'The body has a % that is not followed by two hexadecimal digits.'],
    ['a=%ff', 'The body is not valid UTF-8.'],
    ['a=%ed%a0%80', 'The body is not valid UTF-8.'],
    ['%c3=1', 'The body is not valid UTF-8.'],
    ['__proto__=1', 'The body has a field "__proto__", which is not accepted.'],
    ['__proto__[a]=1', 'The body has a field "__proto__[a]", which is not accepted.'],
    ['a[__proto__][b]=1', 'The body has a field "a[__proto__][b]", which is not accepted.'],
    ['%5F_proto__[a]=1', 'The body has a field "__proto__[a]", which is not accepted.'],
    [
      'constructor[prototype][a]=1',
      'The body has a field "constructor[prototype][a]", which is not accepted.',
    ],
    ['=1', 'The body has a field whose name "" is not valid.'],
    ['[a]=1', 'The body has a field whose name "[a]" is not valid.'],
    ['a[b=1', 'The body has a field whose name "a[b" is not valid.'],
    ['a]b=1', 'The body has a field whose name "a]b" is not valid.'],
    ['a[b]c=1', 'The body has a field whose name "a[b]c" is not valid.'],
    ['a[[b]]=1', 'The body has a field whose name "a[[b]]" is not valid.'],
    [deep, 'The body is nested deeper than 32 levels.'],
    [
      `${'a'.repeat(100)}=1&${'a'.repeat(100)}=2`,
      `The body has the field "${'a'.repeat(60)}…" twice.`,
    ],
  ] as const) {
    test(JSON.stringify(form.slice(0, 60)), () => {
      assert.throws(() => read(form), new MalformedForm(message));
    });
  }

  test('invalid UTF-8', () => {
    assert.throws(() => readForm(Buffer.from([0x61, 0x3d, 0xff])), MalformedForm);
  });
});

test('nesting of 32 levels is read', () => {
  let value: unknown = read(`a${'[b]'.repeat(31)}=1`).a;
  for (let depth = 0; depth < 31; depth += 1) value = (value as { b: unknown }).b;
  assert.equal(value, '1');
});

test('every form is read or refused, and changes no prototype', () => {
  const noise = fc.string({ unit: fc.constantFrom(...'ab[]=&%+f0_proto') });
  fc.assert(
    fc.property(noise, (text) => {
      try {
        read(text);
      } catch (error) {
        assert.ok(error instanceof MalformedForm);
      }
    }),
  );
  assert.equal(({} as Record<string, unknown>).a, undefined);
});

test('the largest forms are read, or refused by a limit rather than by a timeout', () => {
  const deep = 'The body is nested deeper than 32 levels.';
  const outcomes: [part: string, outcome: string][] = [
    ['a&', 'The body has the field "a" twice.'],
    ['[', deep],
    [']', `The body has a field whose name "${']'.repeat(60)}…" is not valid.`],
    ['a[', deep],
    ['a[b]', deep],
    ['a[]=&', 'The body has more than 4000 fields.'],
    ['%61', 'read'],
    ['&', 'read'],
  ];
  for (const [part, outcome] of outcomes) {
    const text = part.repeat((256 * 1024) / part.length);
    let found = 'read';
    try {
      read(text);
    } catch (error) {
      assert.ok(error instanceof MalformedForm);
      found = error.message;
    }
    assert.equal(found, outcome, part);
  }
});

/** The processor time for reading a form this many times, in milliseconds. */
function costOf(text: string, times: number): number {
  const bytes = Buffer.from(text);
  const before = process.threadCpuUsage();
  for (let count = 0; count < times; count += 1) {
    try {
      readForm(bytes);
    } catch (error) {
      assert.ok(error instanceof MalformedForm);
    }
  }
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1_000;
}

test('one large form costs about as much as sixteen small ones: the work is not quadratic', () => {
  const bytes = 256 * 1024;
  for (const part of ['a&', '[', ']', 'a[', 'a[b]', 'a[]=&', '%61', '%', '+', 'a=', '&', 'é']) {
    const form = (size: number) => part.repeat(size / part.length);
    // Quadratic work would take sixteen times as long, and seconds. A round in which the garbage
    // collector ran is repeated.
    for (let round = 1; ; round += 1) {
      const [parts, whole] = [costOf(form(bytes / 16), 16), costOf(form(bytes), 1)];
      if (whole < 5 * Math.max(parts, 20)) break;
      assert.ok(round < 10, `${part}: ${whole} ms after ${parts} ms`);
    }
  }
});

test('a form that a browser encodes reads back unchanged', () => {
  fc.assert(
    fc.property(fc.string({ unit: anyCharacter }), (text) => {
      fc.pre(text.isWellFormed());
      const form = new URLSearchParams({ 'purchase[order_id]': text }).toString();
      assert.deepEqual(read(form), { purchase: { order_id: text } });
    }),
  );
});
