import fc from 'fast-check';
import { seededNumbers } from '#platform/shared/seeded-numbers.ts';
import { operations } from './operators.ts';
import { type Fault, faults } from './stage.ts';

// A story is a list of moves: who acts, what they do, and a fault at one of their steps. A seed
// gives numbers, which fast-check can shrink, and the numbers give the moves.

/** Who acts, what they do, and what they choose: a card, an amount, a decision. */
export type Move = {
  who: string;
  does: Deed;
  /** A number from 0 to 999 that chooses a card, a part of an amount or a duration. */
  pick: number;
  /** The number of the step at which the fault happens. */
  at: number;
  fault: Fault | null;
};

export type Story = {
  protocol: 'stripe' | 'hyperswitch';
  /** Stories about disputes and payouts have further moves, besides those of a plain plan. */
  theme: Theme;
  refunds: 'manual' | 'auto';
  term: number;
  amount: number;
  /** The day on which the story begins. */
  day: number;
  /** The shopper's address. The gateway refuses one of the possible addresses. */
  email: string;
  /** Whether time passes on the merchant's own clock. */
  ownClock: boolean;
  moves: Move[];
  /** Faults in the work that is left after the moves, as long as there were fewer than three. */
  rest: Pick<Move, 'at' | 'fault'>[];
};

const deeds = [
  ...['create', 'persist', 'pay', 'cancel', 'return', 'look', 'confirm', 'bank', 'plan', 'card'],
  ...['settle', 'callbacks', 'collect', 'refunds', 'detach', 'messages'],
  ...['dispute', 'decide', 'announce', 'find disputes', 'check disputes'],
  ...['payouts', 'statements', 'ask', 'repeat', ...operations],
  ...['wait', 'next due', 'arrive', 'resume'],
] as const;
export type Deed = (typeof deeds)[number];

/** The moves while a checkout is being paid, and how often each comes. */
const paying: [weight: number, who: string, does: Deed][] = [
  [9, 'tab 1', 'pay'],
  [7, 'tab 2', 'pay'],
  [4, 'tab 2', 'cancel'],
  [2, 'tab 1', 'return'],
  [1, 'tab 2', 'look'],
  [5, 'bank', 'bank'],
  [3, 'form', 'confirm'],
  [3, 'worker 1', 'settle'],
  [2, 'worker 2', 'settle'],
  [2, 'worker 1', 'callbacks'],
  [3, 'time', 'wait'],
  [1, 'network', 'arrive'],
  [1, 'all', 'resume'],
];

/** The moves of every plan, and how often each comes. */
const running: typeof paying = [
  [8, 'time', 'next due'],
  [6, 'worker 1', 'collect'],
  [4, 'worker 2', 'collect'],
  [3, 'merchant', 'ask'],
  [3, 'operator 1', 'approve'],
  [3, 'worker 1', 'refunds'],
  [2, 'worker 2', 'refunds'],
  [2, 'bank', 'bank'],
  [1, 'form', 'confirm'],
  [1, 'worker 2', 'settle'],
  [2, 'worker 1', 'callbacks'],
  [3, 'worker 2', 'callbacks'],
  [1, 'worker 1', 'detach'],
  [1, 'worker 2', 'messages'],
  [2, 'time', 'wait'],
  [1, 'network', 'arrive'],
  [1, 'all', 'resume'],
];

const themes = ['plain', 'disputes', 'payouts'] as const;
type Theme = (typeof themes)[number];

/** The moves that a theme adds to those of a plan. */
const themed: Record<Theme, typeof paying> = {
  plain: [
    [3, 'merchant', 'ask'],
    [3, 'operator 1', 'approve'],
    [2, 'operator 2', 'decline'],
    [3, 'worker 1', 'refunds'],
    [3, 'worker 2', 'refunds'],
    [4, 'tab 1', 'plan'],
    [3, 'tab 2', 'plan'],
    [3, 'tab 2', 'card'],
    [5, 'operator 2', 'retry refund'],
    [5, 'operator 1', 'retry payment'],
    [1, 'merchant', 'repeat'],
  ],
  disputes: [
    [5, 'cardholder', 'dispute'],
    [4, 'gateway 1', 'announce'],
    [3, 'gateway 2', 'announce'],
    [1, 'worker 1', 'find disputes'],
    [4, 'worker 2', 'check disputes'],
    [4, 'issuer', 'decide'],
    [2, 'operator 1', 'stage'],
    [5, 'operator 1', 'submit'],
    [3, 'operator 2', 'submit'],
    [1, 'operator 2', 'accept'],
    [2, 'operator 1', 'resume plan'],
    [2, 'operator 2', 'cancel rest'],
  ],
  payouts: [
    [4, 'worker 1', 'payouts'],
    [4, 'worker 2', 'payouts'],
    [3, 'worker 2', 'statements'],
    [4, 'operator 1', 'approve payout'],
    [4, 'operator 2', 'approve payout'],
    [3, 'operator 1', 'export'],
    [2, 'operator 2', 'export'],
    [3, 'operator 1', 'note paid'],
    [2, 'operator 2', 'note paid'],
    [3, 'operator 1', 'return payout'],
    [3, 'operator 2', 'return payout'],
  ],
};

const spread = (table: typeof paying) =>
  table.flatMap(([weight, who, does]) => Array.from({ length: weight }, () => ({ who, does })));
const payingDeeds = spread(paying);
const runningDeeds = {
  plain: spread([...running, ...themed.plain]),
  disputes: spread([...running, ...themed.disputes]),
  payouts: spread([...running, ...themed.payouts]),
};

/**
 * Faults by how often they come. Late answers are rare, because they reach the fewest new states.
 * Without a fault (null) a move goes through, and in a pause others act.
 */
const faultTable: (Fault | null)[] = [
  ...[null, null, null],
  ...faults,
  ...([
    'pause',
    'pause',
    'pause',
    'pause',
    'pause',
    'decline',
    'kill before',
    'kill after',
    'lose after',
    'error after',
  ] as const),
];

const terms = [1, 1, 3, 3, 3, 3, 3, 3, 3, 6, 6, 12];

/** The numbers of each move: deed, choice, step and fault. Zero is the simplest of each. */
const moves = (lengths: { minLength: number; maxLength: number }) =>
  fc.array(fc.tuple(fc.nat(999), fc.nat(999), fc.nat(39), fc.nat(999)), {
    ...lengths,
    size: 'max',
  });

export type Choices = [
  setup: number[],
  create: number[],
  paying: number[][],
  running: number[][],
  rest: number[][],
];

const plain = { pick: 0, at: 1, fault: null };
const restFaults = [
  'kill after',
  'kill before',
  'lose after',
  'error after',
  'error before',
] as const;

/**
 * The number of entries in `rest`. Many come to nothing, because their step is beyond the last step
 * of the action. Of this many, three strike.
 */
const restMax = 16;

export const choices: fc.Arbitrary<Choices> = fc.tuple(
  fc.tuple(...Array.from({ length: 8 }, () => fc.nat(999))) as fc.Arbitrary<number[]>,
  fc.tuple(fc.nat(999), fc.nat(999), fc.nat(39), fc.nat(999)) as fc.Arbitrary<number[]>,
  moves({ minLength: 0, maxLength: 8 }),
  moves({ minLength: 0, maxLength: 26 }),
  fc.array(fc.tuple(fc.nat(999), fc.nat(999)), { minLength: 0, maxLength: restMax, size: 'max' }),
) as fc.Arbitrary<Choices>;

/**
 * A seed's choices. fast-check only shrinks them: the samples that it would draw itself for
 * successive seeds are too much alike.
 */
export function choicesOf(seed: number): Choices {
  const next = seededNumbers(seed);
  const nat = (max: number) => Math.floor(next() * (max + 1));
  const list = <T>(length: number, make: () => T) => Array.from({ length }, make);
  const move = () => [nat(999), nat(999), nat(39), nat(999)];
  const setup = list(8, () => nat(999));
  const [create, first, later] = [move(), list(nat(8), move), list(nat(26), move)];
  return [setup, create, first, later, list(restMax, () => [nat(999), nat(999)])];
}

export function storyOf([setup, create, first, later, rest]: Choices): Story {
  const [protocol = 0, refunds = 0, term = 0, amount = 0, day = 0, own = 0, ...more] = setup;
  const [persists = 0, themeNumber = 0] = more;
  const theme = themes[[0, 0, 0, 1, 1, 2, 2][themeNumber % 7] ?? 0] ?? 'plain';
  const chosen = terms[term % terms.length] ?? 1;
  const moveOf = (list: typeof payingDeeds, [deed = 0, pick = 0, at = 0, fault = 0]: number[]) => ({
    ...(list[deed % list.length] as { who: string; does: Deed }),
    pick,
    // Most faults come early: many actions have few steps.
    at: 1 + (at < 30 ? at % 8 : at - 24),
    fault: faultTable[fault % faultTable.length] ?? null,
  });
  return {
    protocol: protocol > 750 ? 'hyperswitch' : 'stripe',
    theme,
    refunds: refunds > 500 ? 'auto' : 'manual',
    term: chosen,
    amount: (chosen > 3 ? 100_000 : 10_000) + amount * 71,
    day,
    email: day % 25 === 24 ? 'refused@example.com' : 'thandi@example.com',
    ownClock: own > 800,
    rest: rest.map(([at = 0, fault = 0]) => ({
      at: 1 + (at % 9),
      fault: restFaults[fault % restFaults.length] ?? null,
    })),
    moves: [
      { ...moveOf(payingDeeds, create), who: 'merchant', does: 'create' },
      ...first.map((one) => moveOf(payingDeeds, one)),
      // Most shoppers pay in the end, without a fault.
      ...(persists < 900
        ? [{ who: 'tab 1', does: 'persist' as const, ...plain, pick: persists }]
        : []),
      ...later.map((one) => moveOf(runningDeeds[theme], one)),
    ],
  };
}
