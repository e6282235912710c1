import type { Language } from '#platform/shared/language.ts';
import { seededNumbers } from '#platform/shared/seeded-numbers.ts';

/** The season of a small shop, day by day. It depends only on the seed. */
export type Season = { days: SeasonDay[]; orders: number };
export type SeasonDay = { day: number; hour: number; orders: PlannedOrder[] };

export type PlannedOrder = {
  reference: string;
  day: number;
  course: Course;
  customer: Customer;
  lines: Line[];
  amount: number;
  /** A number from 0 to 1 that decides which of the page's terms the shopper chooses. */
  termChoice: number;
};

export type Customer = {
  email: string;
  first_name: string;
  last_name: string;
  language: Language;
};
type Line = { name: string; amount: number; quantity: number };

export const weeksMax = 12;
const seasonDays = weeksMax * 7;
/** The shop's receiver answers 503 on this day. */
export const outageDay = 40;
const orderCount = 300;

/**
 * The course that an order takes. `share` is the number of orders that take it; the remaining
 * orders are paid without an event. `days` is the range of days on which it may begin, so that
 * later events still fall within the season.
 */
type CourseRule = {
  share: number;
  days?: readonly [first: number, last: number];
  card?: string;
  terms?: 'one' | 'several';
  /** The smallest amount of the order, in cents. */
  amountMin?: number;
};

const cards = {
  challenge: '4000002500003155',
  declined: '4000000000000002',
  insufficientFunds: '4000000000009995',
  laterDeclined: '4000000000777005',
  laterLost: '4000000000777104',
  refundPending: '4000000000007726',
  refundFails: '4000000000005126',
  fraudulent: '4000000000000259',
  notReceived: '4000000000002685',
  inquiry: '4000000000001976',
};
const early = [3, 45] as const;
const middle = [10, 60] as const;
const late = [78, 82] as const;

/** There are few enough declines on the page to stay below the limits against card testing. */
const courses = {
  challenged: { share: 40, card: cards.challenge },
  'another card': { share: 5, card: cards.insufficientFunds },
  declined: { share: 5, card: cards.declined },
  abandoned: { share: 18 },
  'not opened': { share: 6 },
  cancelled: { share: 9 },
  'challenge abandoned': { share: 4, card: cards.challenge },
  'data refused': { share: 2 },
  'late once': { share: 10, days: early, terms: 'several' },
  'late, paid by shopper': { share: 6, days: early, terms: 'several', card: cards.laterDeclined },
  'late for good': { share: 4, days: early, terms: 'several', card: cards.laterDeclined },
  'card lost': { share: 2, days: early, terms: 'several', card: cards.laterLost },
  'refunded whole': { share: 10, days: [5, 70] },
  'refunded in part': { share: 10, days: [5, 70] },
  'refund declined': { share: 4, days: middle },
  'refund by two': { share: 1, days: middle, amountMin: 1_100_000 },
  'refund waits': { share: 3, days: late },
  'refund waits for the second': { share: 1, days: late, amountMin: 1_100_000 },
  'refund pending': { share: 2, days: [82, 83], card: cards.refundPending },
  'refund fails': { share: 2, days: middle, card: cards.refundFails },
  'dispute won': { share: 2, days: middle, terms: 'one', card: cards.notReceived },
  'dispute lost': { share: 2, days: middle, terms: 'one', card: cards.fraudulent },
  'dispute open': { share: 2, days: late, terms: 'one', card: cards.notReceived },
  inquiry: { share: 1, days: late, terms: 'one', card: cards.inquiry },
  question: { share: 4, days: [60, 83], terms: 'several' },
} satisfies Record<string, CourseRule>;

export type Course = keyof typeof courses | 'paid';

export const ruleOf = (course: Course): CourseRule =>
  course === 'paid' ? { share: 0 } : courses[course];

const usualCards = ['4242424242424242', '5555555555554444', '378282246310005'];

export function cardOf({ course, termChoice }: PlannedOrder): string {
  return ruleOf(course).card ?? usualCards[Math.floor(termChoice * 2.3)] ?? '4242424242424242';
}

const products: readonly (readonly [name: string, amount: number])[] = [
  ['Tankwa hiking boots', 189_900],
  ['Two-person tent', 429_900],
  ['Enamel coffee set', 39_900],
  ['Wool blanket', 84_900],
  ['Head torch', 54_900],
  ['Down sleeping bag', 259_900],
  ['Cast-iron potjie', 119_900],
  ['Rucksack, 60 litres', 319_900],
  ['Merino base layer', 99_900],
  ['Gas stove', 74_900],
  ['Trekking poles', 129_900],
  ['Water filter', 64_900],
];
const expedition = ['Expedition set for six', 1_249_900] as const;

const firstNames =
  'Thandi Sipho Nomsa Pieter Lerato Johan Zanele Ayanda Zoë Bongani Anika Themba Fatima Ruan Naledi Imraan Palesa Hendrik Nokuthula André'.split(
    ' ',
  );
const lastNames =
  'Dlamini Botha Naidoo Khumalo Mokoena Jacobs Ndlovu Petersen Mahlangu Pillay Nkosi Fourie Zulu Adams Molefe Davids Sithole Smit Mthembu Abrahams'.split(
    ' ',
  );

/** Forty people. Most of them read English, like most shoppers here. */
export const customers: readonly Customer[] = Array.from({ length: 40 }, (_, i) => {
  const first_name = firstNames[i % firstNames.length] as string;
  const last_name = lastNames[(i * 7 + Math.floor(i / 20)) % lastNames.length] as string;
  const plain = (name: string) => name.normalize('NFD').replaceAll(/\P{ASCII}/gu, '');
  const email = `${plain(first_name)}.${plain(last_name)}${i < 20 ? '' : i}@example.com`;
  const language = i % 4 === 1 ? 'af' : i % 5 === 2 ? 'zu' : 'en';
  return { first_name, last_name, email: email.toLowerCase(), language };
});

/** The season for a seed, or its first weeks. */
export function planSeason(seed: number, weeks = weeksMax): Season {
  const random = seededNumbers(seed);
  const planned = coursesOf(random).map((course): Omit<PlannedOrder, 'reference'> => {
    const { days = [0, seasonDays - 1], amountMin = 0 } = ruleOf(course);
    const lines = chooseLines(random, amountMin);
    return {
      course,
      day: chooseDay(random, days),
      customer: choose(random, customers),
      lines,
      amount: lines.reduce((sum, { amount, quantity }) => sum + amount * quantity, 0),
      termChoice: random(),
    };
  });
  // The sort is stable, so the courses of one day keep their shuffled order.
  const orders = planned
    .sort((one, other) => one.day - other.day)
    .map((order, i) => ({ ...order, reference: `KO-${seed * 1000 + i + 1}` }));
  const byDay = Map.groupBy(orders, ({ day }) => day);
  const days = Array.from({ length: weeks * 7 }, (_, day) => ({
    day,
    hour: 8 + Math.floor(random() * 12),
    orders: byDay.get(day) ?? [],
  }));
  return { days, orders: days.reduce((sum, day) => sum + day.orders.length, 0) };
}

function coursesOf(random: () => number): Course[] {
  const special = Object.entries(courses).flatMap(([course, { share }]) =>
    Array.from({ length: share }, () => course as Course),
  );
  const rest = Array.from({ length: orderCount - special.length }, () => 'paid' as const);
  return [...special, ...rest]
    .map((course) => ({ course, at: random() }))
    .sort((one, other) => one.at - other.at)
    .map(({ course }) => course);
}

/** Orders peak towards the end of each seven days of the story, and the shop grows. */
function chooseDay(random: () => number, [first, last]: readonly [number, number]): number {
  const weights = [3, 2, 2, 3, 4, 5, 2];
  for (;;) {
    const day = first + Math.floor(random() * (last - first + 1));
    const weight = (weights[day % 7] as number) * (0.6 + (0.8 * day) / seasonDays);
    if (random() * 7 < weight) return day;
  }
}

function chooseLines(random: () => number, amountMin: number): Line[] {
  if (amountMin > 0) return [{ name: expedition[0], amount: expedition[1], quantity: 1 }];
  const count = 1 + Math.floor(random() * random() * 3);
  const names = new Map(Array.from({ length: count }, () => choose(random, products)));
  return [...names].map(([name, amount]) => ({
    name,
    amount,
    quantity: amount < 100_000 && random() < 0.2 ? 2 : 1,
  }));
}

const choose = <T>(random: () => number, list: readonly T[]): T =>
  list[Math.floor(random() * list.length)] as T;
