import assert from 'node:assert/strict';
import { test } from 'node:test';
import Type from 'typebox';
import { compileWhenUsed } from './serialisers.ts';

test('a member that may be null is written as it is, or as null', () => {
  const inner = Type.Object({
    at: Type.Union([Type.String({ format: 'date-time' }), Type.Null()]),
  });
  const schema = Type.Object({
    text: Type.Union([Type.String(), Type.Null()]),
    count: Type.Union([Type.Null(), Type.Integer()]),
    word: Type.Union([Type.Literal('a'), Type.Null()]),
    either: Type.Union([Type.Integer(), Type.Literal('all'), Type.Null()]),
    inner: Type.Union([inner, Type.Null()]),
    list: Type.Array(Type.Union([inner, Type.Null()])),
  });
  const write = compileWhenUsed({ schema, method: 'GET', url: '/' });
  for (const one of [
    { text: 'x', count: 0, word: 'a', either: 'all', inner: { at: null }, list: [null] },
    {
      text: '',
      count: 7,
      word: null,
      either: 3,
      inner: null,
      list: [{ at: '2026-11-15T08:00:00Z' }],
    },
    { text: null, count: null, word: null, either: null, inner: null, list: [] },
  ]) {
    assert.equal(write(one), JSON.stringify(one));
  }
  const other = { text: '', count: 0, word: 'b', either: 1, inner: null, list: [] };
  assert.throws(() => write(other), 'no other word is written as the constant');
});
