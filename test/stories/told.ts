import { expectedRaces, expectedTransitions } from './transitions.ts';

export type Told = {
  stories: number;
  failures: number;
  faults: number;
  transitions: Record<string, number>;
  /** How many times each fault struck each statement or call. */
  struck: Record<string, number>;
  /** How many times an actor acted while another was in the middle of an action. */
  races: Record<string, number>;
};

/** This many stories reach every transition and every pair of racing actors. */
const longRun = 1_500;

/** The seed of the day: tomorrow's stories differ, and today's can be repeated. */
export const seedOf = (date: string) => Number(date.replaceAll('-', '')) * 100_000;
export const seedOfToday = () => seedOf(Temporal.Now.plainDateISO('UTC').toString());

/** The transitions and races that a run of many stories should have reached, and did not. */
export const findUnseen = ({ stories, transitions, races }: Told): string[] =>
  stories < longRun
    ? []
    : [
        ...expectedTransitions.filter((one) => !transitions[one]),
        ...expectedRaces.filter((one) => !races[one]),
      ];

export function addTold(one: Told, other: Told): Told {
  const add = (first: Record<string, number>, second: Record<string, number>) => {
    const names = Object.keys({ ...first, ...second });
    return Object.fromEntries(
      names.map((name) => [name, (first[name] ?? 0) + (second[name] ?? 0)]),
    );
  };
  return {
    stories: one.stories + other.stories,
    failures: one.failures + other.failures,
    faults: one.faults + other.faults,
    transitions: add(one.transitions, other.transitions),
    struck: add(one.struck, other.struck),
    races: add(one.races, other.races),
  };
}
