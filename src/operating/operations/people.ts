import { listWithPasskey } from '#operating/people/passkey.sql.ts';
import { listPeople, type Person as PersonRow } from '#operating/people/person.sql.ts';
import type { Handle } from '#platform/database/database.ts';
import { defineList, readList } from './list.ts';
import { PeopleQuery, Person } from './people.schema.ts';
import { BadKey } from './range.sql.ts';

/** People by their addresses. */
export const peopleList = defineList({
  name: 'people',
  permission: 'people.read',
  query: PeopleQuery,
  row: Person,
  read: (viewer, _, page) =>
    readList(
      viewer.deps,
      page,
      async (db, { after, limit }) => {
        if (after !== null && after.length !== 2) throw new BadKey();
        const rows = await listPeople(db, after?.[0] ?? null, limit);
        const last = rows.length < limit ? undefined : rows.at(-1);
        return { rows, last: last ? [last.email, last.id] : null };
      },
      presentPeople,
    ),
  columns: [
    ['Name', (row) => row.name],
    ['E-mail', (row) => row.email],
    ['Roles', (row) => row.roles.join(' ')],
    ['Merchants', (row) => row.merchant_ids?.join(' ') ?? 'all'],
    ['Since', (row) => row.created_at],
    ['Registered', (row) => (row.is_registered ? 'yes' : 'no')],
    ['Revoked', (row) => row.revoked_at],
    ['ID', (row) => row.id],
  ],
});

/** People with whether they can sign in. */
export async function presentPeople(db: Handle, people: PersonRow[]) {
  const ids = people.map(({ id }) => id);
  const registered = await listWithPasskey(db, ids);
  return people.map(({ oidc_subject, ...person }) => ({
    ...person,
    is_registered: oidc_subject !== null || registered.has(person.id),
  }));
}
