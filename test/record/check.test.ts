import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { isLong } from '../support/service.ts';
import { checkHistory } from './check.ts';
import type { CallName, CheckoutStatus, Input, Operation, Output } from './history.ts';

// Small histories, written by hand. Times are in order of writing unless a test says otherwise.

const merchant = 'm';
let now = 0;
beforeEach(() => {
  now = 0;
});

/** An operation that ends before the next one begins. Without an output its answer is unknown. */
function op<N extends CallName>(
  call: N,
  input: Input<N>,
  output: Output<N> | null,
  times: { begin?: number; end?: number } = {},
): Operation {
  const begin = times.begin ?? now + 1;
  const end = times.end ?? begin + 1;
  now = Math.max(now, end);
  return {
    ...{ client: 'c', call, input, output, begin },
    end: output === null ? null : end,
  } as Operation;
}

const create = (reference: string, id: string | null, key: string | null = null, times = {}) =>
  op(
    'create',
    { merchant, key, reference, amount: 1000 },
    id === null ? null : { status: 200, id },
    times,
  );
const row = (name: string, status: CheckoutStatus = 'received') => {
  const [reference = '', id = reference.toUpperCase()] = name.split('/');
  return { id, reference, amount: 1000, status };
};
const list = (
  names: string[],
  {
    more = false,
    page = 1,
    ...times
  }: Partial<Record<'begin' | 'end' | 'page', number>> & { more?: boolean } = {},
  status?: CheckoutStatus,
) =>
  op(
    'list',
    { merchant, page, items: 2 },
    { status: 200, checkouts: names.map((name) => row(name, status)), more },
    times,
  );
const pay = (checkout: string, page: string | null) =>
  op('pay', { checkout }, page === null ? null : { status: 200, page });
const get = (reference: string, status: CheckoutStatus) =>
  op(
    'get',
    { merchant, checkout: reference.toUpperCase() },
    { status: 200, checkout: row(reference, status) },
  );
const refund = (
  amount: number,
  answer: string | number | null,
  key: string | null = null,
  times = {},
) =>
  op(
    'refund',
    { merchant, key, checkout: 'A', amount },
    answer === null
      ? null
      : typeof answer === 'string'
        ? { status: 200, id: answer }
        : {
            status: 422,
            detail: `Refund amount exceeds the refundable remainder of ${answer} cents.`,
          },
    times,
  );
const refunds = (ids: [string, number][]) =>
  op(
    'refunds',
    { merchant, page: 1, items: 50 },
    {
      status: 200,
      refunds: ids.map(([id, amount]) => ({ id, amount, checkout: 'A', status: 'requested' })),
      more: false,
    },
  );
/** A checkout A of 1,000 cents that is paid. */
const paid = () => [create('a', 'A'), pay('A', 'successful')];

const judge = (operations: Operation[]) => {
  const { problems, undecided } = checkHistory(operations);
  assert.deepEqual(undecided, []);
  return problems;
};

describe('a history that can be explained is accepted', () => {
  for (const [about, make] of [
    ['a create without an answer that happened', () => [create('a', null), list(['a'])]],
    ['a create without an answer that did not happen', () => [create('a', null), list([])]],
    [
      'a list beside a create that does not show it yet',
      () => [create('a', 'A', null, { begin: 10, end: 20 }), list([], { begin: 12, end: 14 })],
    ],
    [
      'a retry of a key after a lost answer',
      () => [create('a', null, 'k'), create('a', 'A', 'k'), create('a', 'A', 'k'), list(['a'])],
    ],
    [
      'a checkout that newer ones push off the first page',
      () => [
        ...[create('a', 'A'), create('b', 'B'), create('c', 'C')],
        ...[list(['c', 'b'], { more: true }), list(['a'], { page: 2 })],
      ],
    ],
    [
      'a payment whose outcome comes after its answer',
      () => [
        ...[create('a', 'A'), pay('A', 'paying'), get('a', 'received')],
        ...[pay('A', null), get('a', 'successful'), list(['a'], {}, 'successful')],
      ],
    ],
    [
      'refunds up to the remainder, one of them without an answer',
      () => [
        ...[...paid(), refund(600, 'R', 'k1'), refund(300, null, 'k2')],
        ...[refund(300, 100, 'k3'), refund(600, 'R', 'k1')],
        refunds([
          ['S', 300],
          ['R', 600],
        ]),
      ],
    ],
    [
      'a refusal beside a refund that takes the remainder',
      () => [
        ...paid(),
        refund(800, 'R', null, { begin: 100, end: 120 }),
        refund(400, 200, null, { begin: 101, end: 110 }),
      ],
    ],
  ] as const) {
    test(about, () => assert.deepEqual(judge(make()), []));
  }
});

describe('a history that nothing explains is refused', () => {
  for (const [about, reason, make] of [
    ['an acknowledged create is lost', /list .* fits/, () => [create('a', 'A'), list([])]],
    [
      'a list lacks an older create',
      /list .* fits/,
      () => [
        ...[create('a', 'A'), create('b', 'B'), create('c', 'C'), list(['c', 'a'], { more: true })],
        ...[list(['c', 'b'], { more: true }), list(['a'], { page: 2 })],
      ],
    ],
    [
      'a create that was listed disappears',
      /list .* fits/,
      () => [create('a', null), list(['a']), list([])],
    ],
    [
      'a refused create exists',
      /list .* fits/,
      () => [
        op('create', { merchant, key: null, reference: 'a', amount: 1000 }, { status: 503 }),
        list(['a']),
      ],
    ],
    [
      'a key made two checkouts',
      /key m k made 2/,
      () => [create('a', 'A', 'k'), create('b', 'B', 'k'), list(['b', 'a'])],
    ],
    [
      'a retry made a second checkout, which only a list shows',
      /m a has 2 checkouts/,
      () => [create('a', null, 'k'), create('a', 'A', 'k'), list(['a', 'a/B'])],
    ],
    ['no request made a checkout', /no request made/, () => [create('a', 'A'), list(['b', 'a'])]],
    [
      'a list is in another order',
      /listed as newer/,
      () => [create('a', 'A'), create('b', 'B'), list(['a', 'b'])],
    ],
    ['two pages show one row', /twice/, () => [create('a', 'A'), list(['a', 'a'])]],
    [
      'a paid checkout is unpaid again',
      /get .* fits/,
      () => [...paid(), get('a', 'successful'), get('a', 'received')],
    ],
    [
      'a checkout is paid without a payment',
      /get .* fits/,
      () => [create('a', 'A'), get('a', 'successful')],
    ],
    [
      'refunds exceed the checkout',
      /refund .* fits/,
      () => [...paid(), refund(600, 'R'), refund(500, 'S')],
    ],
    [
      'concurrent refunds exceed the checkout',
      /refund .* fits/,
      () => [
        ...paid(),
        refund(600, 'R', null, { begin: 100, end: 120 }),
        refund(500, 'S', null, { begin: 101, end: 121 }),
      ],
    ],
    [
      'a refusal names a wrong remainder',
      /refund .* fits/,
      () => [...paid(), refund(600, 'R'), refund(500, 300)],
    ],
    [
      'a refund is refused although the remainder covers it',
      /refund .* fits/,
      () => [...paid(), refund(600, 1000)],
    ],
    [
      'a key made two refunds',
      /one request made 2/,
      () => [...paid(), refund(100, 'R', 'k'), refund(100, 'S', 'k')],
    ],
    [
      'a retry made a second refund, which only a list shows',
      /no request made the refund/,
      () => [
        ...[...paid(), refund(100, null, 'k'), refund(100, 'R', 'k')],
        refunds([
          ['S', 100],
          ['R', 100],
        ]),
      ],
    ],
    [
      'an acknowledged refund is lost',
      /refunds .* fits/,
      () => [...paid(), refund(100, 'R'), refunds([])],
    ],
  ] as const) {
    test(about, () => assert.match(judge(make()).join('\n'), reason));
  }
});

test('a checkout with a failed refund is left undecided', () => {
  const listed = refunds([['R', 600]]);
  for (const one of (listed as Operation<'refunds'>).output?.refunds ?? []) one.status = 'failed';
  const { undecided } = checkHistory([...paid(), refund(600, 'R'), listed]);
  assert.equal(undecided.length, 1);
});

const skip = isLong ? false : 'see npm run test:long and npm run record';
test('a load with kills and failovers is linearizable for every checkout', { skip }, async (t) => {
  // This module starts programs, so it is loaded only when they are wanted.
  const { record } = await import('./record.ts');
  const history: Operation[] = [];
  await record({
    seconds: 300,
    random: Math.random,
    write: (operation) => void history.push(operation),
    say: (line) => t.diagnostic(line),
  });
  const { problems, undecided, ...counts } = checkHistory(history);
  t.diagnostic(JSON.stringify(counts));
  assert.deepEqual([problems, undecided], [[], []]);
  assert.ok(history.some(({ output }) => output === null));
});
