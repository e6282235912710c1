import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  chooseDeliveries,
  type Destination,
  type DispatchState,
  type Flight,
  type Pace,
  paceAfter,
} from './choose-deliveries.ts';

const now = 100_000;
const inTime = '2026-03-02T08:00:15.000Z';
const late = '2026-03-02T08:00:14.999Z';

const leases = (count: number, leased_until = inTime) =>
  Array.from({ length: count }, () => ({ leased_until }));

const destination = (
  merchant_id: string,
  host: string,
  fields: Partial<Destination> = {},
): Destination => ({
  merchant_id,
  host,
  count: 0,
  claimed: [],
  isClaiming: false,
  reserved: 0,
  ...fields,
});

const flights = (count: number, merchant_id: string, host: string, sentAt: number | null = now) =>
  Array.from({ length: count }, (): Flight => ({ merchant_id, host, sentAt }));

const choose = (destinations: Destination[], state: Partial<DispatchState<Destination>> = {}) => {
  const { release, send, claim } = chooseDeliveries({
    destinations,
    flights: [],
    claimsInFlight: 0,
    paces: new Map(),
    milliseconds: now,
    leasedUntilMin: inTime,
    ...state,
  });
  const name = (one: Destination) => `${one.merchant_id} ${one.host}`;
  return {
    ...(release.length > 0 && {
      release: release.map((one) => [name(one.destination), one.count]),
    }),
    ...(send.length > 0 && { send: send.map((one) => [name(one.destination), one.count]) }),
    ...(claim.length > 0 && {
      claim: claim.map((one) => [name(one.destination), one.rows, one.slots]),
    }),
  };
};

const quick = new Map<string, Pace>([['h', 'quick']]);
const slow = new Map<string, Pace>([['h', 'slow']]);

describe('one destination', () => {
  for (const [what, fields, state, expected] of [
    ['nothing due: nothing', {}, {}, {}],
    [
      'three due: claims a batch and keeps three slots',
      { count: 3 },
      {},
      { claim: [['m h', 8, 3]] },
    ],
    [
      'many due: claims a batch and keeps eight slots',
      { count: 900 },
      {},
      { claim: [['m h', 8, 8]] },
    ],
    ['five claimed: sends them', { claimed: leases(5) }, {}, { send: [['m h', 5]] }],
    [
      'twenty claimed: sends eight in one turn',
      { claimed: leases(20) },
      {},
      { send: [['m h', 8]] },
    ],
    [
      'five claimed and many due: sends five and claims for three more slots',
      { claimed: leases(5), count: 900 },
      {},
      { send: [['m h', 5]], claim: [['m h', 8, 3]] },
    ],
    [
      'eight claimed and many due: a steady host claims no more than it can send',
      { claimed: leases(8), count: 900 },
      {},
      { send: [['m h', 8]] },
    ],
    [
      'a quick host claims a large batch',
      { count: 900 },
      { paces: quick },
      { claim: [['m h', 128, 8]] },
    ],
    [
      'a quick host claims again when less than half of a batch would be left',
      { claimed: leases(71), count: 900 },
      { paces: quick },
      { send: [['m h', 8]], claim: [['m h', 128, 0]] },
    ],
    [
      'a quick host does not claim while half of a batch is left',
      { claimed: leases(72), count: 900 },
      { paces: quick },
      { send: [['m h', 8]] },
    ],
    [
      'a quick host with nothing more due claims nothing',
      { claimed: leases(8) },
      { paces: quick },
      { send: [['m h', 8]] },
    ],
    ['one claim at a time', { count: 900, isClaiming: true, reserved: 8 }, {}, {}],
    [
      'what is claimed is sent while the next claim is in flight',
      { claimed: leases(4), count: 900, isClaiming: true, reserved: 3 },
      {},
      { send: [['m h', 4]] },
    ],
    ['four claims in flight: no other begins', { count: 900 }, { claimsInFlight: 4 }, {}],
    [
      'four claims in flight: what is claimed is sent',
      { claimed: leases(2), count: 900 },
      { claimsInFlight: 4 },
      { send: [['m h', 2]] },
    ],
    [
      'at most sixteen are in flight to one host',
      { claimed: leases(8) },
      { flights: flights(16, 'other', 'h') },
      {},
    ],
    [
      'the last slots of a host',
      { claimed: leases(8) },
      { flights: flights(13, 'other', 'h') },
      { send: [['m h', 3]] },
    ],
    [
      'at most sixteen are in flight for one merchant',
      { claimed: leases(8) },
      { flights: flights(16, 'm', 'other') },
      {},
    ],
    [
      'a process has at most 1,024 in flight',
      { claimed: leases(8) },
      { flights: Array.from({ length: 1_022 }, (_, n) => flights(1, `m${n}`, `h${n}`)).flat() },
      { send: [['m h', 2]] },
    ],
    [
      'a lease that ends too soon: released',
      { claimed: [...leases(2, late), ...leases(1)] },
      {},
      { release: [['m h', 2]], send: [['m h', 1]] },
    ],
    [
      'only leases that end too soon: released and claimed again if more is due',
      { claimed: leases(3, late), count: 2 },
      {},
      { release: [['m h', 3]], claim: [['m h', 8, 2]] },
    ],
    [
      'a lease that ends too soon is released even when no slot is free',
      { claimed: leases(1, late) },
      { flights: flights(16, 'm', 'h') },
      { release: [['m h', 1]] },
    ],
    ['a slow host gets one', { claimed: leases(8) }, { paces: slow }, { send: [['m h', 1]] }],
    ['a slow host claims for one slot', { count: 9 }, { paces: slow }, { claim: [['m h', 8, 1]] }],
    [
      'a slow host gets no second delivery',
      { claimed: leases(8) },
      { paces: slow, flights: flights(1, 'm', 'h') },
      {},
    ],
    [
      'a delivery in flight for two seconds does not make its host slow',
      { claimed: leases(3) },
      { flights: flights(1, 'm', 'h', now - 2_000) },
      { send: [['m h', 3]] },
    ],
    [
      'a delivery in flight for longer makes its host slow',
      { claimed: leases(3) },
      { flights: flights(1, 'm', 'h', now - 2_001) },
      {},
    ],
    [
      'a delivery that is being opened or recorded does not make its host slow',
      { claimed: leases(3) },
      { flights: flights(1, 'm', 'h', null) },
      { send: [['m h', 3]] },
    ],
  ] as [string, Partial<Destination>, Partial<DispatchState<Destination>>, object][]) {
    test(what, () => assert.deepEqual(choose([destination('m', 'h', fields)], state), expected));
  }
});

describe('several destinations', () => {
  test('every destination has a turn, in order', () => {
    const all = ['a', 'b', 'c'].map((id) => destination(id, `h-${id}`, { claimed: leases(9) }));
    assert.deepEqual(choose(all), {
      send: [
        ['a h-a', 8],
        ['b h-b', 8],
        ['c h-c', 8],
      ],
    });
  });

  test('merchants share the slots of a host', () => {
    const all = ['a', 'b', 'c'].map((id) => destination(id, 'h', { claimed: leases(7) }));
    assert.deepEqual(choose(all), {
      send: [
        ['a h', 7],
        ['b h', 7],
        ['c h', 2],
      ],
    });
  });

  test("a delivery that hangs does not count against the merchant's other callbacks", () => {
    const all = [
      destination('m', 'h', { claimed: leases(9) }),
      destination('m', 'good', { claimed: leases(9) }),
    ];
    const state = { paces: slow, flights: flights(16, 'm', 'h') };
    assert.deepEqual(choose(all, state), { send: [['m good', 8]] });
  });

  test('slow hosts have 32 slots in all, and the others keep theirs', () => {
    const hosts = Array.from({ length: 40 }, (_, n) => `slow-${n}`);
    const paces = new Map(hosts.map((host): [string, Pace] => [host, 'slow']));
    const all = hosts.map((host, n) => destination(`m${n}`, host, { claimed: leases(3) }));
    const { send = [] } = choose([...all, destination('m', 'h', { claimed: leases(3) })], {
      paces,
    });
    assert.equal(send.length, 33);
    assert.deepEqual(send.at(-1), ['m h', 3]);
  });

  test('at most four claims begin, for the first in the order', () => {
    const all = ['a', 'b', 'c', 'd', 'e'].map((id) => destination(id, `h-${id}`, { count: 1 }));
    assert.deepEqual(
      choose(all).claim?.map(([name]) => name),
      ['a h-a', 'b h-b', 'c h-c', 'd h-d'],
    );
  });

  test('a claim that cannot begin takes no slot from others', () => {
    const all = [
      destination('a', 'h', { count: 8 }),
      destination('b', 'h', { claimed: leases(8) }),
      destination('c', 'h', { claimed: leases(8) }),
    ];
    assert.deepEqual(choose(all, { claimsInFlight: 4 }), {
      send: [
        ['b h', 8],
        ['c h', 8],
      ],
    });
  });

  test('reserved slots are kept for what a claim in flight brings', () => {
    const all = [
      destination('a', 'h', { claimed: leases(20) }),
      destination('b', 'h', { isClaiming: true, reserved: 8 }),
    ];
    const state = { flights: flights(6, 'c', 'h') };
    assert.deepEqual(choose(all, state), { send: [['a h', 2]] });
  });

  test('after its claim a destination gets the slots that were reserved for it', () => {
    const all = [
      destination('a', 'h', { claimed: leases(20) }),
      destination('b', 'h', { claimed: leases(8), reserved: 8 }),
    ];
    const state = { flights: flights(6, 'c', 'h') };
    assert.deepEqual(choose(all, state), {
      send: [
        ['a h', 2],
        ['b h', 8],
      ],
    });
  });

  test('the choice changes nothing', () => {
    const all = [destination('a', 'h', { claimed: leases(20, late), count: 5, reserved: 2 })];
    const before = structuredClone(all);
    choose(all);
    assert.deepEqual(all, before);
  });
});

describe('the pace of a host', () => {
  for (const [reason, total, pace] of [
    [null, 0, 'quick'],
    [null, 199.9, 'quick'],
    [null, 200, 'steady'],
    [null, 2_000, 'steady'],
    [null, 2_000.1, 'slow'],
    ['http_500', 5, 'quick'],
    ['http_500', 2_500, 'slow'],
    ['connection_closed', 5, 'quick'],
    ['timeout', 10_000, 'slow'],
    ['dns', 1, 'slow'],
    ['connect', 1, 'slow'],
    ['tls', 1, 'slow'],
    ['blocked_address', 1, 'quick'],
    // We sent nothing, or ended the exchange ourselves.
    ['not_sent', undefined, null],
    ['no_signing_key', undefined, null],
    ['interrupted', 1, null],
  ] as const) {
    test(`${reason ?? 'delivered'} after ${total} ms: ${pace ?? 'as before'}`, () => {
      assert.equal(paceAfter({ reason, timings: total === undefined ? {} : { total } }), pace);
    });
  }
});

describe('slots and leases at their edges', () => {
  for (const [what, destinations, state, expected] of [
    [
      'slots that a claim in flight reserved are not given to another destination',
      [
        destination('m', 'h', { isClaiming: true, reserved: 16 }),
        destination('n', 'h', { claimed: leases(1) }),
      ],
      {},
      {},
    ],
    [
      'a quick host without a free slot claims nothing',
      [destination('m', 'h', { count: 900 })],
      { paces: quick, flights: flights(16, 'n', 'h') },
      {},
    ],
    [
      'a turn takes the slots for its sends and its claim only once',
      [
        destination('m', 'h', { claimed: leases(3), count: 1 }),
        destination('n', 'h', { claimed: leases(8) }),
        destination('o', 'h', { claimed: leases(8) }),
      ],
      {},
      {
        send: [
          ['m h', 3],
          ['n h', 8],
          ['o h', 4],
        ],
        claim: [['m h', 8, 1]],
      },
    ],
    [
      'a callback without a lease is released',
      [destination('m', 'h', { claimed: [{ leased_until: null }, ...leases(1)] })],
      {},
      { release: [['m h', 1]], send: [['m h', 1]] },
    ],
  ] as [string, Destination[], Partial<DispatchState<Destination>>, object][]) {
    test(what, () => assert.deepEqual(choose(destinations, state), expected));
  }
});
