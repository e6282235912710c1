export type Mutant = {
  line: number;
  /** The top-level declaration that contains the mutant. */
  within: string;
  mutator: string;
  /** The replaced text, and the text in its place. */
  from: string;
  to: string;
  isKilled: boolean;
};

/**
 * A mutant that may survive. Lines move, so it is recognised by its texts, by the declaration that
 * it is part of, or by both. With a declaration alone, all mutants in it may survive.
 */
export type Explained = { file: string; reason: string; within?: string } & (
  | { from: string; to: string }
  | { from?: never; to?: never; within: string }
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
    (one.within ?? mutant.within) === mutant.within &&
    (one.from ?? mutant.from) === mutant.from &&
    (one.to ?? mutant.to) === mutant.to;
  const alive = mutants.filter(({ isKilled }) => !isKilled);
  const survivors = alive.filter((mutant) => !own.some(fits(mutant)));
  return {
    killed: mutants.length - alive.length,
    excused: alive.length - survivors.length,
    survivors,
    stale: own.filter((one) => !alive.some((mutant) => fits(mutant)(one))),
  };
}
