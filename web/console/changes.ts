/** The text by which two values are compared. The order of names in a list does not matter. */
const keyOf = (value: unknown) =>
  JSON.stringify(
    Array.isArray(value) && value.every((one) => typeof one === 'string')
      ? [...value].sort()
      : value,
  );

/**
 * The members of a record that a dialog sends: only those that the person changed, so that
 * concurrent changes to other members survive. `was` has the `guarded` members as they were read:
 * the server refuses the change if they have changed since (decision 0076). `read` is the record as
 * it was when the dialog opened, not its current state. Returns null if nothing was changed.
 */
export function changesOf<Fields extends object>(
  read: Fields,
  wanted: Fields,
  guarded: (keyof Fields)[],
): object | null {
  const names = Object.keys(wanted) as (keyof Fields)[];
  const changed = names.filter((name) => keyOf(wanted[name]) !== keyOf(read[name]));
  if (changed.length === 0) return null;
  const of = (record: Fields, some: (keyof Fields)[]) =>
    Object.fromEntries(some.map((name) => [name, record[name]]));
  return {
    ...of(wanted, changed),
    was: of(
      read,
      changed.filter((name) => guarded.includes(name)),
    ),
  };
}
