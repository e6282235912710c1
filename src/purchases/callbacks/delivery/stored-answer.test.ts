import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Exchange } from './send-callback.ts';
import { storedAnswer } from './stored-answer.ts';

const exchange = (fields: Partial<Exchange>): Exchange => ({
  delivered: false,
  reason: 'http_500',
  address: null,
  tls_version: null,
  status: 500,
  headers: {},
  body: Buffer.alloc(0),
  body_bytes: 0,
  truncated: false,
  timings: {},
  ...fields,
});

for (const [what, headers, stored, bytes] of [
  ['no answer', null, null, null],
  ['no headers', {}, [], 0],
  ['4,096 bytes', { a: 'x'.repeat(4_095) }, ['a'], 4_096],
  ['4,097 bytes', { a: 'x'.repeat(4_096) }, [], 4_097],
  ['several', { a: 'x'.repeat(4_000), b: 'x'.repeat(94), c: 'y' }, ['a', 'b'], 4_098],
  ['a header that came twice', { 'set-cookie': ['a=b', 'c=d'] }, ['set-cookie'], 26],
] as const) {
  test(`the headers that are stored: ${what}`, () => {
    const answer = storedAnswer(exchange({ headers: headers as Exchange['headers'] }));
    assert.deepEqual(answer.response_headers && Object.keys(answer.response_headers), stored);
    assert.equal(answer.response_header_bytes, bytes);
  });
}

for (const [length, stored] of [
  [0, 0],
  [8_192, 8_192],
  [8_193, 8_192],
] as const) {
  test(`a body of ${length} bytes: ${stored} are stored`, () => {
    const answer = storedAnswer(exchange({ body: Buffer.alloc(length), body_bytes: length }));
    assert.equal(answer.response_body?.length, stored);
    assert.equal(answer.response_body_bytes, length);
  });
}
