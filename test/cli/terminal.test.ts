import assert from 'node:assert/strict';
import { test } from 'node:test';
import { byDay, createTerminal, fields, table, toPrintedJson } from '#cli/terminal.ts';

/** Makes a terminal with colours. `written` returns everything that was written to it. */
function open(columns?: number) {
  let written = '';
  const output = {
    isTTY: true,
    ...(columns !== undefined && { columns }),
    write: (text: string) => {
      written += text;
    },
  };
  const terminal = createTerminal({ stdout: output, stderr: output, env: {} });
  return { terminal, written: () => written };
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: the test looks for control characters.
const ours = /\x1b\[(36|39|2|22)m/g;
const raw = /[\p{Cc}\p{Cf}\u2028\u2029]/u;

/** Texts that a merchant, a shopper or a receiver may have written. */
const hostile = [
  '\x1b[2J\x1b[H',
  '\x1b]0;title\x07',
  '\x1b[36mcolour',
  'back\b\b\bspace',
  'carriage\rreturn',
  'new\nline',
  'tab\tstop',
  '\u009b31m',
  '\u202egnp.exe',
  '\u2066isolate\u2069',
  '\u200bzero\ufeff',
  '\u2028separator',
  '\u{e0001}tag',
  '\ud800lone',
];

for (const text of hostile) {
  test(`${JSON.stringify(text)} is never printed raw`, () => {
    const { terminal, written } = open();
    const at = '2026-11-15T08:00:00Z';
    terminal.print(table(terminal, ['A'], [{ cells: [text], below: [text] }]));
    terminal.print(fields(terminal, [['A', text]]));
    terminal.print(byDay(terminal, [{ at, cells: [text, text] }]));
    terminal.print(terminal.accent(text));
    terminal.warn(text);
    const lines = written().replace(ours, '').split('\n');
    for (const line of lines) assert.doesNotMatch(line, raw, JSON.stringify(line));

    const json = toPrintedJson({ text });
    assert.doesNotMatch(json, raw);
    assert.equal(JSON.parse(json).text, text);
  });
}

test('a line break in a value does not begin a line of the page', () => {
  const { terminal } = open();
  const page = fields(terminal, [['Reference', 'order\ntranche: all is well']]);
  assert.equal(page.split('\n').length, 1);
  const row = table(terminal, ['Reference'], [['order\ntranche: all is well']]);
  assert.equal(row.split('\n').length, 2);
});

test('a page takes the width of the terminal, and 80 columns without one', () => {
  const long = 'x'.repeat(300);
  const widthOf = (columns?: number) => {
    const { terminal, written } = open(columns);
    terminal.print(table(terminal, ['ID', 'Text'], [['0199a8f0', long]], 'Text'));
    const lines = written().replace(ours, '').split('\n');
    return Math.max(...lines.map((line) => line.length));
  };
  assert.equal(widthOf(), 80);
  assert.equal(widthOf(60), 60);
  assert.equal(widthOf(200), 200);
});

test('a table never shortens a column that is not flexible', () => {
  const { terminal, written } = open(40);
  const id = '0199a8f0-7c1e-7d62-9a1f-4a2b8f0c6d11';
  terminal.print(table(terminal, ['ID', 'Text'], [[id, 'x'.repeat(100)]], 'Text'));
  assert.ok(written().includes(id));
});
