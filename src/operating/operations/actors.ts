import type { Handle } from '#platform/database/database.ts';
import { listActors } from './audit.sql.ts';
import type { Viewer } from './viewer.ts';

/** Names someone who acted. The command line gives a name without a person. */
export type ShowActor = (
  person_id: string | null,
  name: string,
) => { person_id: string | null; name: string };

/**
 * The names of people as a viewer may see them: their names today. To a merchant's people the staff
 * of the service has a role and nothing else.
 */
export async function namesFor(
  { scope }: Pick<Viewer, 'scope'>,
  db: Handle,
  ids: (string | null)[],
): Promise<ShowActor> {
  const people = await listActors(db, ids);
  return (person_id, name) => {
    const person = people.get(person_id ?? '');
    const isShown = scope === 'all merchants' || (person && person.merchant_ids !== null);
    return isShown
      ? { person_id, name: person?.name ?? name }
      : { person_id: null, name: person?.roles[0] ?? 'operator' };
  };
}
