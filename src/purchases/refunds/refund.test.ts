import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { InstalmentStatus } from '#purchases/instalments/instalment.ts';
import {
  agreedTo,
  explainBadReason,
  explainClosedWindow,
  firstApproverOf,
  isFirstOfTwo,
  NothingLeft,
  neededSecondPerson,
  needsSecondPerson,
  nextRefundLookUp,
  nextWatch,
  type PlannedPart,
  partId,
  type RefundRequest,
  requestedId,
  requesterOf,
  splitRefund,
  takeAllowed,
  withDisputed,
} from './refund.ts';

const tooLate = 'Orders can only be refunded within 100 days of the purchase date.';
const sameDay = "Order can't be refunded on the day of purchase.";

// Johannesburg is UTC+2 all year: local midnight is 22:00 UTC on the day before.
const cases: [string, 'manual' | 'auto', string, string, string | null][] = [
  ['manual at once', 'manual', '2026-01-01T08:00:00Z', '2026-01-01T08:00:00Z', null],
  ['day 100, last second', 'manual', '2026-01-01T08:00:00Z', '2026-04-11T21:59:59Z', null],
  ['day 101, first second', 'manual', '2026-01-01T08:00:00Z', '2026-04-11T22:00:00Z', tooLate],
  [
    'bought before local midnight',
    'manual',
    '2026-01-01T21:59:59Z',
    '2026-04-11T22:00:00Z',
    tooLate,
  ],
  ['bought after local midnight', 'manual', '2026-01-01T22:00:00Z', '2026-04-11T22:00:00Z', null],
  ['across a leap day', 'manual', '2028-01-01T08:00:00Z', '2028-04-10T21:59:59Z', null],
  [
    'across a leap day, too late',
    'manual',
    '2028-01-01T08:00:00Z',
    '2028-04-10T22:00:00Z',
    tooLate,
  ],
  ['auto on the same day', 'auto', '2026-01-01T08:00:00Z', '2026-01-01T20:00:00Z', sameDay],
  ['auto at 09:59:59 next day', 'auto', '2026-01-01T08:00:00Z', '2026-01-02T07:59:59Z', sameDay],
  ['auto at 10:00:00 next day', 'auto', '2026-01-01T08:00:00Z', '2026-01-02T08:00:00Z', null],
  [
    'auto, bought after local midnight',
    'auto',
    '2026-01-01T22:00:00Z',
    '2026-01-02T20:00:00Z',
    sameDay,
  ],
  ['auto on day 100', 'auto', '2026-01-01T08:00:00Z', '2026-04-11T21:59:59Z', null],
];

for (const [name, refund_mode, completed_at, now, expected] of cases) {
  test(`the refund window is judged by local dates: ${name}`, () => {
    const purchase = { completed_at, refund_mode, time_zone: 'Africa/Johannesburg' };
    assert.equal(explainClosedWindow(purchase, Temporal.Instant.from(now)), expected);
  });
}

/** Payments of 100 with the given statuses. */
function payments(...statuses: InstalmentStatus[]) {
  return statuses.map((status, index) => ({
    number: index + 1,
    amount: 100,
    reduced: 0,
    status,
    collected_at: status === 'collected' ? `2026-0${index + 1}-01T06:00:00.000Z` : null,
  }));
}

type Payment = ReturnType<typeof payments>[number] & { payment_ref?: string };

/** Each payment was collected by its own payment at the gateway, unless it names another. */
const split = (
  plan: Payment[],
  returned: [number, number][],
  amount: number,
  payment_min: number,
  refund_min = 1,
) =>
  splitRefund(
    plan.map((one) => ({ payment_ref: `payment ${one.number}`, ...one })),
    new Map(returned),
    amount,
    payment_min,
    refund_min,
  );

const written = (parts: PlannedPart[] | null) =>
  parts?.map((part) => `${part.instalment} ${part.kind} ${part.amount}`) ?? null;

describe('a refund is taken from uncollected payments, then the hold, then the card', () => {
  const held = payments('authorised', 'scheduled', 'scheduled');
  const twoOfThree = payments('collected', 'collected', 'scheduled');
  for (const [name, plan, returned, amount, expected] of [
    ['before capture, the last payment first', held, [], 150, ['3 cancel 100', '2 cancel 50']],
    ['before capture, into the hold', held, [], 250, ['3 cancel 100', '2 cancel 100', '1 hold 50']],
    [
      'in whatever order they are read',
      held.toReversed(),
      [],
      150,
      ['3 cancel 100', '2 cancel 50'],
    ],
    ['before capture, all of it', held, [], 300, ['3 cancel 100', '2 cancel 100', '1 hold 100']],
    ['after two of three, the last one', twoOfThree, [], 60, ['3 cancel 60']],
    ['after two of three, the newest too', twoOfThree, [], 160, ['3 cancel 100', '2 card 60']],
    [
      'after an earlier refund, what it left',
      payments('collected', 'collected', 'cancelled').map((one) =>
        one.number === 3 ? { ...one, reduced: 100 } : one,
      ),
      [[2, 60]],
      100,
      ['2 card 40', '1 card 60'],
    ],
    [
      'an overdue payment is not collected',
      payments('collected', 'overdue', 'scheduled'),
      [],
      250,
      ['3 cancel 100', '2 cancel 100', '1 card 50'],
    ],
    [
      'the newest payment is the last collected, whatever its number',
      payments('collected', 'collected').map((one) =>
        one.number === 1 ? { ...one, collected_at: '2026-09-01T06:00:00.000Z' } : one,
      ),
      [],
      150,
      ['1 card 100', '2 card 50'],
    ],
  ] as [string, ReturnType<typeof payments>, [number, number][], number, string[]][]) {
    test(name, () => {
      assert.deepEqual(written(split(plan, returned, amount, 1)), expected);
    });
  }
});

test('a refund larger than what is left of the payments is not split', () => {
  const error = new NothingLeft('1 cents of a refund have no payment to come from');
  assert.throws(() => split(payments('collected'), [[1, 50]], 51, 1), error);
  assert.deepEqual(written(split(payments('collected'), [[1, 50]], 50, 1)), ['1 card 50']);
});

describe('a refund leaves no payment with less than the gateway accepts', () => {
  const held = payments('authorised', 'scheduled', 'scheduled');
  const collected = payments('collected', 'scheduled', 'scheduled');
  for (const [name, plan, returned, amount, expected] of [
    [
      'the payment keeps the minimum, and the next one gives the rest',
      held,
      [],
      50,
      ['3 cancel 20', '2 cancel 20', '1 hold 10'],
    ],
    ['after a whole payment, too', held, [], 135, ['3 cancel 100', '2 cancel 20', '1 hold 15']],
    [
      'the card gives what no payment can',
      collected,
      [],
      50,
      ['3 cancel 20', '2 cancel 20', '1 card 10'],
    ],
    [
      'a hold keeps the minimum or nothing',
      held,
      [],
      300,
      ['3 cancel 100', '2 cancel 100', '1 hold 100'],
    ],
    ['if the hold would keep less, the refund waits for its capture', held, [], 270, null],
    ['if all of them would, too', held, [], 90, null],
    [
      'a payment that was already reduced below the minimum may stay so',
      [
        {
          ...collected[2],
          number: 3,
          amount: 100,
          reduced: 50,
          status: 'scheduled',
          collected_at: null,
        },
        ...collected.slice(0, 1),
      ],
      [],
      20,
      ['1 card 20'],
    ],
    [
      'without a hold or money on the card, the payment is left with less',
      payments('cancelled', 'scheduled').map((one) =>
        one.number === 1 ? { ...one, reduced: 100 } : one,
      ),
      [],
      50,
      ['2 cancel 50'],
    ],
    [
      'other payments are cancelled whole if that helps',
      [
        { number: 1, amount: 100, reduced: 0, status: 'authorised', collected_at: null },
        { number: 2, amount: 80, reduced: 0, status: 'scheduled', collected_at: null },
        { number: 3, amount: 200, reduced: 0, status: 'scheduled', collected_at: null },
      ],
      [],
      250,
      ['3 cancel 70', '2 cancel 80', '1 hold 100'],
    ],
    [
      'no other payment is cancelled whole if the last one keeps enough',
      [
        { number: 2, amount: 70, reduced: 0, status: 'scheduled', collected_at: null },
        { number: 3, amount: 160, reduced: 0, status: 'scheduled', collected_at: null },
      ],
      [],
      80,
      ['3 cancel 80'],
    ],
    [
      'nor is a second one, if the next payment keeps enough',
      [
        { number: 2, amount: 60, reduced: 0, status: 'scheduled', collected_at: null },
        { number: 3, amount: 200, reduced: 0, status: 'scheduled', collected_at: null },
        { number: 4, amount: 100, reduced: 0, status: 'scheduled', collected_at: null },
      ],
      [],
      170,
      ['4 cancel 100', '3 cancel 70'],
    ],
  ] as [string, ReturnType<typeof payments>, [number, number][], number, string[] | null][]) {
    test(name, () => {
      assert.deepEqual(written(split(plan, returned, amount, 80)), expected);
    });
  }

  const anyPayment = fc.record({
    payment_ref: fc.constantFrom('one', 'two', 'three'),
    amount: fc.integer({ min: 1, max: 30 }),
    taken: fc.integer({ min: 0, max: 30 }),
    status: fc.constantFrom<InstalmentStatus>('scheduled', 'overdue', 'collected', 'authorised'),
  });
  const anyPlan = fc.array(anyPayment, { minLength: 1, maxLength: 6 }).map((some) =>
    some.map(({ payment_ref, amount, taken, status }, index) => ({
      payment_ref,
      number: index + 1,
      amount,
      reduced: Math.min(taken, amount),
      // Only the first payment is ever held.
      status: status === 'authorised' && index > 0 ? ('scheduled' as const) : status,
      collected_at: status === 'collected' ? `2026-0${index + 1}-01T06:00:00.000Z` : null,
    })),
  );

  const anyMinimum = fc.integer({ min: 1, max: 20 });

  test('for any payments, if any split allows it', () => {
    fc.assert(
      fc.property(anyPlan, fc.nat(), anyMinimum, anyMinimum, (plan, some, least, card) => {
        const room = (one: (typeof plan)[number]) => one.amount - one.reduced;
        const total = plan.reduce((sum, one) => sum + room(one), 0);
        if (total === 0) return;
        const amount = 1 + (some % total);
        const parts = split(plan, [], amount, least, card);
        const isPossible = hasAllowedSplit(
          plan.map((one) => ({ ...one, room: room(one) })),
          amount,
          least,
        );
        const isHeld = plan.some((one) => one.status === 'authorised' && room(one) > 0);
        if (parts === null) {
          assert.ok(isHeld && !isPossible);
          return;
        }
        assert.equal(
          parts.reduce((sum, part) => sum + part.amount, 0),
          amount,
        );
        assert.equal(new Set(parts.map(({ instalment }) => instalment)).size, parts.length);
        for (const part of parts) {
          const payment = plan[part.instalment - 1];
          assert.ok(payment && part.amount > 0 && part.amount <= room(payment));
          const left = room(payment) - part.amount;
          const isEnough = part.kind === 'card' || left === 0 || left >= least;
          assert.ok(isEnough || !isPossible, `payment ${part.instalment} keeps ${left}`);
        }
      }),
      { numRuns: process.env.TRANCHE_TEST_LONG ? 20_000 : 2_000 },
    );
  });

  test('a plan of ten years is split, whatever it needs', () => {
    const plan = Array.from({ length: 120 }, (_, index) => ({
      number: index + 1,
      amount: 1_199,
      reduced: 0,
      status: index === 0 ? ('authorised' as const) : ('scheduled' as const),
      collected_at: null,
    }));
    const sumOf = (amount: number) =>
      split(plan, [], amount, 1_000)?.reduce((sum, part) => sum + part.amount, 0);
    assert.equal(sumOf(100), 100);
    assert.equal(sumOf(70_000), 70_000);
    assert.equal(sumOf(120 * 1_199 - 1), undefined);
  });
});

describe('a plan of ten years whose payments all differ is split without trying them all', () => {
  const payment_min = 1_000;
  for (const width of [150, 500, 4_000]) {
    const rooms = Array.from({ length: 120 }, (_, index) => 1_000 + ((index ** 2 * 7_919) % width));
    const total = rooms.reduce((sum, room) => sum + room, 0);
    for (const [name, amount, isPossible] of [
      ['a small refund', 500, true],
      ['a half', Math.floor(total / 2), true],
      ['all but the least that a payment keeps', total - 1_000, true],
      ['a cent more', total - 999, false],
      ['all but a cent', total - 1, false],
    ] as const) {
      test(`${name}, of payments that differ by up to ${width} cents`, () => {
        let reads = 0;
        const open = rooms.map((room, index) => ({
          ...{ instalment: 120 - index, kind: 'cancel' as const, payment_ref: null },
          get room() {
            reads += 1;
            return room;
          },
        }));
        const takes = takeAllowed(open, 0, amount, payment_min);
        assert.equal(takes !== null, isPossible);
        assert.ok(reads <= 4 * 120 ** 2, `${reads} reads`);
      });
    }
  }
});

describe('a refund returns no less to the card than the gateway accepts, and leaves no less', () => {
  const collected = payments('collected', 'collected', 'collected');
  const together = collected.map((one) => ({ ...one, payment_ref: 'one' }));
  for (const [name, plan, returned, amount, expected] of [
    ['another payment gives what is missing', collected, [], 105, ['3 card 90', '2 card 15']],
    ['a payment that is returned whole', collected, [], 110, ['3 card 100', '2 card 10']],
    ['a payment would keep less', collected, [], 95, ['3 card 85', '2 card 10']],
    ['a payment that has less left is passed over', collected, [[3, 95]], 50, ['2 card 50']],
    ['until all is returned', collected, [[3, 90]], 210, ['3 card 10', '2 card 100', '1 card 100']],
    [
      'payments that were paid at once give together',
      together,
      [],
      105,
      ['3 card 100', '2 card 5'],
    ],
    ['a small refund of one payment cannot be more', collected.slice(0, 1), [], 5, ['1 card 5']],
    ['one payment may keep less', collected.slice(0, 1), [], 95, ['1 card 95']],
    [
      'a payment that is not collected gives less',
      payments('collected', 'scheduled'),
      [],
      105,
      ['2 cancel 20', '1 card 85'],
    ],
    [
      'what another payment must keep',
      payments('collected', 'scheduled', 'scheduled'),
      [],
      45,
      ['3 cancel 20', '2 cancel 15', '1 card 10'],
    ],
  ] as [string, Payment[], [number, number][], number, string[]][]) {
    test(name, () => {
      assert.deepEqual(written(split(plan, returned, amount, 80, 10)), expected);
    });
  }
});

/** Tries every choice of payments that are taken entirely. */
function hasAllowedSplit(
  plan: { room: number; status: InstalmentStatus }[],
  amount: number,
  least: number,
): boolean {
  const onCard = plan
    .filter(({ status }) => status === 'collected')
    .reduce((sum, { room }) => sum + room, 0);
  const open = plan.filter(({ status }) => status !== 'collected');
  for (let choice = 0; choice < 2 ** open.length; choice += 1) {
    let whole = 0;
    let spare = onCard;
    for (const [index, { room }] of open.entries()) {
      if (choice & (1 << index)) whole += room;
      else spare += Math.max(0, room - least);
    }
    if (whole <= amount && amount <= whole + spare) return true;
  }
  return false;
}

test('a refund is watched for 30 days after it is complete', () => {
  const completed = '2026-01-01T00:00:00.000Z';
  const after = (days: number) => Temporal.Instant.from(completed).add({ hours: 24 * days });
  assert.equal(nextWatch(completed, after(0))?.toString(), after(1).toString());
  assert.equal(nextWatch(completed, after(21))?.toString(), after(30).toString());
  assert.equal(nextWatch(completed, after(30)), null);
  const checks: number[] = [];
  for (let at = after(0); ; ) {
    const next = nextWatch(completed, at);
    if (next === null) break;
    checks.push(next.since(after(0)).total('hours') / 24);
    at = next;
  }
  assert.deepEqual(checks, [1, 2, 3, 5, 7, 10, 14, 21, 30]);
});

test('a refund that the gateway has not settled is looked up at growing intervals, up to 6 hours', () => {
  const now = Temporal.Instant.from('2026-01-01T00:00:00Z');
  const minutes = (attempts: number) => nextRefundLookUp(now, attempts).since(now).total('minutes');
  assert.deepEqual([0, 1, 2, 8, 9, 10, 11, 5_000].map(minutes), [
    ...[1, 2, 4, 256, 360, 360, 360, 360],
  ]);
});

describe('two people agree to a refund above the threshold', () => {
  const thandi = { requested_by: 'p1', requested_by_name: 'Thandi' };
  const sipho = { first_approved_by: 'p2', first_approved_by_name: 'Sipho' };
  const refundOf = (fields: Partial<RefundRequest> = {}) =>
    ({
      ...{ amount: 100, approved_at: null, approved_by_name: null },
      ...{ requested_by: null, requested_by_name: null },
      ...{ first_approved_by: null, first_approved_by_name: null },
      ...fields,
    }) as RefundRequest;

  test('the amount decides, together with what fewer than two people agreed to', () => {
    assert.equal(needsSecondPerson(101, 100), true);
    assert.equal(needsSecondPerson(100, 100), false);
    assert.equal(needsSecondPerson(1_000, null), false);
    for (const [alone, above, expected] of [
      [0, 100, false],
      [1, 100, true],
      [0, 99, true],
      [0, null, false],
    ] as const) {
      assert.equal(isFirstOfTwo(refundOf(), above, alone), expected);
      assert.equal(neededSecondPerson(refundOf(), above, alone), expected);
      // After a first person's approval, the next one is the second.
      assert.equal(isFirstOfTwo(refundOf(thandi), above, alone), false);
      assert.equal(isFirstOfTwo(refundOf(sipho), above, alone), false);
    }
  });

  test("a first approval or a person's request needs a second approval", () => {
    const approved_at = '2026-01-01T00:00:00.000Z';
    for (const [fields, expected] of [
      [sipho, true],
      [thandi, true],
      [{ ...thandi, approved_at, approved_by_name: 'Sipho' }, true],
      // The service approved this one when it was created.
      [{ ...thandi, approved_at }, false],
      [{ ...sipho, approved_at }, true],
      [{ approved_at }, false],
    ] as const) {
      assert.equal(neededSecondPerson(refundOf(fields), 100, 0), expected);
    }
  });

  test('those who agreed to it cannot agree again, and are told why', () => {
    assert.deepEqual(agreedTo(refundOf()), []);
    assert.deepEqual(agreedTo(refundOf({ ...thandi, ...sipho })), [
      {
        by: { person_id: 'p1', name: 'Thandi' },
        refusal: 'You asked for this refund. Another person has to approve it.',
      },
      {
        by: { person_id: 'p2', name: 'Sipho' },
        refusal: 'You gave the first approval. Another person has to give the second.',
      },
    ]);
    assert.equal(requesterOf(refundOf()), null);
    assert.equal(firstApproverOf(refundOf()), null);
  });
});

test('ids at the gateway differ by refund, round and payment, and never change', () => {
  assert.equal(partId('r', 1, 1), '43ae0c8a-f62a-8919-bdfe-962163f6d447');
  assert.equal(requestedId('m', 'r'), '47e93c2a-cce7-8845-8b57-2fc283a4680b');
  const ids = [partId('r', 1, 1), partId('r', 1, 2), partId('r', 2, 1), partId('s', 1, 1)];
  assert.equal(new Set(ids).size, ids.length);
});

test('disputed amounts count as returned', () => {
  const returned = new Map([[1, 50]]);
  const disputed = [
    { instalment: 1, amount: 20 },
    { instalment: 2, amount: 30 },
    { instalment: 2, amount: 5 },
  ];
  assert.deepEqual(
    [...withDisputed(returned, disputed)],
    [
      [1, 70],
      [2, 35],
    ],
  );
  assert.deepEqual([...returned], [[1, 50]]);
});

test('a reason to decline is one line of at most 500 visible characters', () => {
  for (const [reason, expected] of [
    ['The parcel was not returned.', null],
    ['', 'A reason is needed.'],
    [' \t', 'A reason is needed.'],
    ['x'.repeat(500), null],
    ['x'.repeat(501), 'The reason has 501 characters and may have at most 500.'],
    [
      'a\nb',
      'The reason has a line break or another invisible character. Type it on one line instead of pasting it.',
    ],
  ] as const) {
    assert.equal(explainBadReason(reason), expected);
  }
});
