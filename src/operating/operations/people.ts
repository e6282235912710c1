import { explainBadReleaser } from '#operating/people/invite-person.ts';
import { listWithPasskey } from '#operating/people/passkey.sql.ts';
import { listPeople, type Person as PersonRow } from '#operating/people/person.sql.ts';
import { listInvitations } from '#operating/people/person-link.sql.ts';
import type { Handle } from '#platform/database/database.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { personOf } from '#record/actions/operate.ts';
import { defineList, readList } from './list.ts';
import { PeopleQuery, Person } from './people.schema.ts';
import { BadKey } from './range.sql.ts';
import type { Viewer } from './viewer.ts';

/** People by their addresses. */
export const peopleList = defineList({
  name: 'people',
  namesPeople: true,
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
      (db, rows) => presentPeople(viewer, db, rows),
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

/** People, whether they can sign in, and their invitations. */
export async function presentPeople({ deps, operator }: Viewer, db: Handle, people: PersonRow[]) {
  const ids = people.map(({ id }) => id);
  const registered = await listWithPasskey(db, ids);
  const invitations = await listInvitations(db, ids, timestamp(deps.clock.now()));
  const releaser = { operator, person_id: personOf(deps) };
  return people.map(({ oidc_subject, registered_at: _, access_since: __, ...person }) => {
    const link = invitations.find(({ person_id }) => person_id === person.id);
    return {
      ...person,
      is_registered: oidc_subject !== null || registered.has(person.id),
      invitation: link
        ? {
            made_by: link.made_by,
            expires_at: link.expires_at,
            is_held: link.released_at === null,
            release_refusal: explainBadReleaser(link, releaser),
          }
        : null,
    };
  });
}
