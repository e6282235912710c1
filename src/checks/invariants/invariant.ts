/**
 * A statement that returns no rows as long as the invariant holds.
 *
 * A plain string is about the whole database and holds once due work has been done. A function is
 * about a range of ids and holds at any moment, so the continuous audit can use it too. The ids are
 * those of checkouts, or of merchants where the books of a whole merchant are compared.
 */
export type Invariant =
  | { name: string; description: string; sql: string | ((within: Within) => string) }
  | { name: string; description: string; by: 'merchant'; sql: (within: Within) => string };

/**
 * Invariants about the same rows of a range of checkouts. One statement reads the rows once and
 * checks all of them, because reading costs more than comparing.
 */
export type RowInvariants = {
  rows: (within: Within) => string;
  each: RowInvariant[];
};

export type RowInvariant = {
  name: string;
  description: string;
  /** The SQL condition that is true for a row that violates the invariant. */
  violated: string;
  /** The columns that explain a violation. */
  shows: string[];
};

/** The condition that the id in a column is in the range. */
export type Within = (column: string) => string;
