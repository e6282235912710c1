import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ApiError } from './errors.ts';
import { presentLinks, readPage } from './pagination.ts';

const wrong = (name: string) => `The query parameter ${name} must be an integer of at least 1.`;
const twice = (name: string) =>
  `The query parameter ${name} is given more than once: give it once.`;

test('the default is the first page with ten items, and a page has at most a hundred', () => {
  for (const [query, expected] of [
    [{}, { number: 1, items: 10 }],
    [
      { 'page[number]': '7', 'page[items]': '3' },
      { number: 7, items: 3 },
    ],
    [{ 'page[items]': '100' }, { number: 1, items: 100 }],
    [{ 'page[items]': '101' }, { number: 1, items: 100 }],
    [{ 'page[number]': '1' }, { number: 1, items: 10 }],
  ] as const) {
    assert.deepEqual(readPage(query), expected);
  }
  const limits = { itemsDefault: 50, itemsMax: 60 };
  assert.deepEqual(readPage({}, limits), { number: 1, items: 50 });
  assert.deepEqual(readPage({ 'page[items]': '70' }, limits), { number: 1, items: 60 });
});

describe('a page that is not an integer of at least 1 is a bad request', () => {
  for (const name of ['page[number]', 'page[items]']) {
    for (const [value, detail] of [
      ['0', wrong(name)],
      ['-1', wrong(name)],
      ['1.5', wrong(name)],
      ['', wrong(name)],
      ['x1', wrong(name)],
      ['1x', wrong(name)],
      [5, wrong(name)],
      [['1', '2'], twice(name)],
    ] as const) {
      test(`${name}=${JSON.stringify(value)}`, () => {
        assert.throws(
          () => readPage({ [name]: value }),
          (error: ApiError) => {
            assert.deepEqual([error.status, error.details], [400, [detail]]);
            return true;
          },
        );
      });
    }
  }
});

describe('links lead to the other pages, with the filter and the size of the page', () => {
  for (const [total, number, items, expected] of [
    [0, 1, 10, { last: 1, prev: null, next: null }],
    [10, 1, 10, { last: 1, prev: null, next: null }],
    [11, 1, 10, { last: 2, prev: null, next: 2 }],
    [11, 2, 10, { last: 2, prev: 1, next: null }],
    [30, 2, 10, { last: 3, prev: 1, next: 3 }],
    // A page past the end leads back to the last one.
    [11, 9, 10, { last: 2, prev: 2, next: null }],
    [11, 3, 10, { last: 2, prev: 2, next: null }],
  ] as const) {
    test(`page ${number} of ${total} rows`, () => {
      const to = (page: number | null) =>
        page === null
          ? null
          : `https://pay.example/api/checkouts?status=received&page%5Bnumber%5D=${page}&page%5Bitems%5D=${items}`;
      const links = presentLinks(
        'https://pay.example/api/checkouts',
        { status: 'received' },
        total,
        { number, items },
      );
      assert.deepEqual(links, {
        first: to(1),
        last: to(expected.last),
        prev: to(expected.prev),
        next: to(expected.next),
      });
    });
  }
});
