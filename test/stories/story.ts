import fc from 'fast-check';
import { type Fault, faults } from './stage.ts';

// A story is a list of moves: who acts, what they do, and a fault at one of their steps. A seed
// makes numbers of it, which fast-check can shrink, and the numbers make the moves.

/** Who acts, what they do, and what they choose: a card, an amount, a decision. */
export type Move = {
  who: string;
  does: Deed;
  /** From 0 to 999: chooses a card, a part of an amount, a duration. */
  pick: number;
  /** The number of the step at which the fault happens. */
  at: number;
  fault: Fault | null;
};

export type Story = {
  protocol: 'stripe' | 'hyperswitch';
  refunds: 'manual' | 'auto';
  term: number;
  amount: number;
  /** The day on which the story begins. */
  day: number;
  /** The gateway refuses the data of one of them. */
  email: string;
  /** Whether time passes on the merchant's own clock. */
  ownClock: boolean;
  moves: Move[];
  /** Faults at the work that is left after the moves, if there were fewer than three. */
  rest: Pick<Move, 'at' | 'fault'>[];
};

const deeds = [
  ...['create', 'persist', 'pay', 'cancel', 'return', 'look', 'confirm', 'bank', 'plan', 'card'],
  ...['settle', 'collect', 'refunds', 'detach', 'messages'],
  ...['ask', 'repeat', 'approve', 'decline', 'retry refund', 'retry payment'],
  ...['wait', 'next due', 'arrive', 'resume'],
] as const;
export type Deed = (typeof deeds)[number];

/** The moves while a checkout is paid, and how often each comes. */
const paying: [weight: number, who: string, does: Deed][] = [
  [6, 'tab 1', 'pay'],
  [4, 'tab 2', 'pay'],
  [2, 'tab 2', 'cancel'],
  [2, 'tab 1', 'return'],
  [1, 'tab 2', 'look'],
  [5, 'bank', 'bank'],
  [3, 'form', 'confirm'],
  [3, 'worker 1', 'settle'],
  [2, 'worker 2', 'settle'],
  [3, 'time', 'wait'],
  [1, 'network', 'arrive'],
  [1, 'all', 'resume'],
];

/** The moves of a plan, and how often each comes. */
const running: typeof paying = [
  [10, 'time', 'next due'],
  [7, 'worker 1', 'collect'],
  [5, 'worker 2', 'collect'],
  [5, 'merchant', 'ask'],
  [5, 'operator 1', 'approve'],
  [1, 'operator 2', 'decline'],
  [5, 'worker 1', 'refunds'],
  [4, 'worker 2', 'refunds'],
  [3, 'tab 1', 'plan'],
  [2, 'tab 2', 'plan'],
  [2, 'tab 2', 'card'],
  [3, 'bank', 'bank'],
  [2, 'form', 'confirm'],
  [2, 'worker 2', 'settle'],
  [1, 'worker 1', 'detach'],
  [1, 'worker 2', 'messages'],
  [2, 'operator 2', 'retry refund'],
  [2, 'operator 1', 'retry payment'],
  [1, 'merchant', 'repeat'],
  [3, 'time', 'wait'],
  [1, 'network', 'arrive'],
  [1, 'all', 'resume'],
];

const spread = (table: typeof paying) =>
  table.flatMap(([weight, who, does]) => Array.from({ length: weight }, () => ({ who, does })));
const payingDeeds = spread(paying);
const runningDeeds = spread(running);

/** Late answers reach the fewest new states. A move without a fault goes through. */
const faultTable: (Fault | null)[] = [
  ...[null, null, null],
  ...faults,
  ...(['pause', 'pause', 'kill before', 'kill after', 'lose after', 'error after'] as const),
];

const terms = [1, 3, 3, 3, 6, 12];

/** Numbers of moves: deed, choice, step and fault. Zero is the simplest of each. */
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

export const choices: fc.Arbitrary<Choices> = fc.tuple(
  fc.tuple(...Array.from({ length: 7 }, () => fc.nat(999))) as fc.Arbitrary<number[]>,
  fc.tuple(fc.nat(999), fc.nat(999), fc.nat(39), fc.nat(999)) as fc.Arbitrary<number[]>,
  moves({ minLength: 0, maxLength: 8 }),
  moves({ minLength: 0, maxLength: 26 }),
  fc.array(fc.tuple(fc.nat(999), fc.nat(999)), { minLength: 0, maxLength: 6, size: 'max' }),
) as fc.Arbitrary<Choices>;

export function choicesOf(seed: number): Choices {
  const [made] = fc.sample(choices, { seed, numRuns: 1 });
  return made as Choices;
}

export function storyOf([setup, create, first, later, rest]: Choices): Story {
  const [protocol = 0, refunds = 0, term = 0, amount = 0, day = 0, own = 0, persists = 0] = setup;
  const chosen = terms[term % terms.length] ?? 1;
  const moveOf = (list: typeof payingDeeds, [deed = 0, pick = 0, at = 0, fault = 0]: number[]) => ({
    ...(list[deed % list.length] as { who: string; does: Deed }),
    pick,
    // Most faults come early: many actions have few steps.
    at: 1 + (at < 30 ? at % 8 : at - 24),
    fault: faultTable[fault % faultTable.length] ?? null,
  });
  return {
    protocol: protocol > 840 ? 'hyperswitch' : 'stripe',
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
      ...(persists < 900 ? [{ who: 'tab 1', does: 'persist' as const, ...plain }] : []),
      ...later.map((one) => moveOf(runningDeeds, one)),
    ],
  };
}
