export type Mutant = {
  line: number;
  /** The top-level declaration that it is part of. */
  within: string;
  mutator: string;
  /** The replaced text, and the text in its place. */
  from: string;
  to: string;
  isKilled: boolean;
};

/**
 * A mutant that may survive. Lines move, so it is recognised by its texts, or by the declaration
 * that only other tests look at.
 */
export type Explained = { file: string; reason: string } & (
  | { from: string; to: string }
  | { within: string }
);

export type Judgement = {
  killed: number;
  excused: number;
  survivors: Mutant[];
  /** Explained, but a test kills it now, or its text is gone. */
  stale: Explained[];
};

export function judge(file: string, mutants: Mutant[], explained: Explained[]): Judgement {
  const own = explained.filter((one) => one.file === file);
  const fits = (mutant: Mutant) => (one: Explained) =>
    'within' in one
      ? one.within === mutant.within
      : one.from === mutant.from && one.to === mutant.to;
  const alive = mutants.filter(({ isKilled }) => !isKilled);
  const survivors = alive.filter((mutant) => !own.some(fits(mutant)));
  return {
    killed: mutants.length - alive.length,
    excused: alive.length - survivors.length,
    survivors,
    stale: own.filter((one) => !alive.some((mutant) => fits(mutant)(one))),
  };
}
