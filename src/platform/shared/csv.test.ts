import assert from 'node:assert/strict';
import { test } from 'node:test';
import { writeCsv } from './csv.ts';

test('text that a spreadsheet would run as a formula is written as text', () => {
  for (const text of ['=1+1', '+1', '-1', '@SUM(A1)', ' =1', '\t=1', '＝1', '＋1', '－1', '＠A1']) {
    const line = writeCsv([[text]]);
    assert.match(line, /^"'/, text);
  }
});

test('no part of a text becomes a formula where a spreadsheet splits at semicolons', () => {
  for (const text of ['a;=1+1', 'a; =1', 'a;b;@SUM(A1)', 'a;"=1', ';-1']) {
    const line = writeCsv([[text]]);
    for (const part of line.split(';')) assert.doesNotMatch(part, /^[\s"]*[=+\-@]/, text);
  }
});

test('quotes, commas and line breaks stay inside one cell', () => {
  const rows = [
    ['one', 'two'],
    ['a "b", c\r\nd', null],
  ];
  assert.equal(writeCsv(rows), 'one,two\r\n"a ""b"", c  d",\r\n');
});

test('a negative number keeps its sign', () => {
  assert.equal(writeCsv([['net'], [-5]]), 'net\r\n-5\r\n');
  const amounts = [0, 5, -5, 786_110, -1_500_00].map((cents) => [{ cents }]);
  assert.equal(writeCsv(amounts), '0.00\r\n0.05\r\n-0.05\r\n7861.10\r\n-1500.00\r\n');
});
