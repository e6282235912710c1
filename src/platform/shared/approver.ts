/** A person who approves an amount or a bank account. The command line knows only their name. */
export type Approver = { person_id: string | null; name: string };

/** People are compared by id, and users of the command line by name. */
export const isSamePerson = (one: Approver, other: Approver): boolean =>
  one.person_id !== null && other.person_id !== null
    ? one.person_id === other.person_id
    : one.name === other.name;
