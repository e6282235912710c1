import { isWithin } from '#operating/search/scope.sql.ts';
import type { Handle } from '#platform/database/database.ts';
import { listActors } from '#record/actions/person-names.sql.ts';
import type { Viewer } from './viewer.ts';

/**
 * Returns the name of a person who acted. An action at the command line has only a name, and no
 * person.
 */
export type ShowActor = (
  person_id: string | null,
  name: string,
) => { person_id: string | null; name: string };

/**
 * Finds the current names of people, as far as the viewer may see them. A merchant's people see a
 * member of the service's staff only by role.
 */
export async function namesFor(
  viewer: Pick<Viewer, 'scope'>,
  db: Handle,
  ids: (string | null)[],
): Promise<ShowActor> {
  return await actorsFor(viewer, db, ids, ({ name }) => name);
}

/**
 * Finds the names of people who make a decision that needs two of them. The names include e-mail
 * addresses, because two people may have the same name.
 */
export async function decidersFor(
  viewer: Pick<Viewer, 'scope'>,
  db: Handle,
  ids: (string | null)[],
): Promise<ShowActor> {
  return await actorsFor(viewer, db, ids, ({ name, email }) => `${name} (${email})`);
}

async function actorsFor(
  { scope }: Pick<Viewer, 'scope'>,
  db: Handle,
  ids: (string | null)[],
  call: (person: { name: string; email: string }) => string,
): Promise<ShowActor> {
  const people = await listActors(db, scope === 'all merchants' ? null : scope.merchant_ids, ids);
  return (person_id, name) => {
    const person = people.get(person_id ?? '');
    const isShown = scope === 'all merchants' || (person && person.merchant_ids !== null);
    if (!isShown) return { person_id: null, name: person?.roles[0] ?? 'operator' };
    if (!person) return { person_id, name };
    // The person may have left this merchant since. If they only have access to others now, their
    // e-mail address is left out.
    const isOwn =
      scope === 'all merchants' || person.merchant_ids?.some((id) => isWithin(scope, id));
    return { person_id: person.id, name: isOwn ? call(person) : person.name };
  };
}
