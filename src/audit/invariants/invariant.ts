/**
 * A statement that returns no rows as long as the invariant holds.
 *
 * A plain string is about the whole database and holds once due work has been done. A function is
 * about a range of checkouts: it holds at any moment, so the continuous audit can ask it too.
 */
export type Invariant = {
  name: string;
  says: string;
  sql: string | ((within: Within) => string);
};

/** The condition that a checkout's id is in the range. */
type Within = (column: string) => string;
