import {
  findPerson,
  identityOf,
  listAccesses,
  listPeople,
  listWithSignInMethod,
  liveFirst,
  type Person as PersonRow,
} from '#operating/people/person.sql.ts';
import { listInvitations, type PersonLink } from '#operating/people/person-link.sql.ts';
import { explainBadReleaser } from '#operating/people/released-access.ts';
import type { Handle } from '#platform/database/database.ts';
import { reading } from '#platform/database/transaction.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import { personOf } from '#record/actions/operate.ts';
import { namesFor } from './actors.ts';
import { defineList, readList } from './list.ts';
import { PeopleQuery, Person } from './people.schema.ts';
import { BadKey } from './range.sql.ts';
import { scopeOf, type Viewer } from './viewer.ts';

/** People, ordered by e-mail address. */
export const peopleList = defineList({
  name: 'people',
  namesPeople: true,
  permission: 'people.read',
  query: PeopleQuery,
  row: Person,
  read: (viewer, query, page) =>
    readList(
      viewer.deps,
      page,
      async (db, { after, limit }) => {
        if (after !== null && after.length !== 2) throw new BadKey();
        if (after !== null && !isUuid(after[1] ?? '')) throw new BadKey();
        const key = after && ([after[0] ?? '', after[1] ?? ''] as const);
        const rows = await listPeople(
          db,
          key,
          limit,
          merchantsOf({ scope: scopeOf(viewer, query) }),
        );
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
    ['Confirmed', (row) => (row.is_confirmed ? 'yes' : 'no')],
    ['Revoked', (row) => row.revoked_at],
    ['ID', (row) => row.id],
  ],
});

/** The merchants whose people a viewer sees. Null means all people, including the service's own. */
const merchantsOf = ({ scope }: Pick<Viewer, 'scope'>): string[] | null =>
  scope === 'all merchants' ? null : scope.merchant_ids;

/**
 * A person whom the viewer may see; null for anyone else, whether they exist or not. A merchant may
 * know a person by an older id, because accesses were separated or merged since.
 */
export async function findPersonFor(viewer: Viewer, id: string): Promise<PersonRow | null> {
  const own = merchantsOf(viewer);
  const isSeen = ({ merchant_ids }: PersonRow) =>
    own === null || merchant_ids?.some((one) => own.includes(one)) === true;
  return await reading(viewer.deps, async (db) => {
    const person = await findPerson(db, id);
    if (!person || own === null || (isSeen(person) && person.revoked_at === null)) return person;
    const seen = (await listAccesses(db, identityOf(person))).filter(isSeen);
    const isSame = ({ merchant_ids }: PersonRow) =>
      !isSeen(person) || merchant_ids?.some((one) => person.merchant_ids?.includes(one)) === true;
    return seen.filter(isSame).sort(liveFirst)[0] ?? null;
  });
}

/**
 * Whether the staff made the invitation for a person who already had this access, and no second
 * administrator has approved it. Such an invitation stays hidden from the merchant, because it
 * would show that the person also has access elsewhere.
 */
const isStaffMatter = (link: PersonLink, { created_at }: PersonRow) =>
  link.by_staff && link.released_at === null && link.created_at > created_at;

/**
 * People, whether they can sign in, and their invitations. A merchant's people learn nothing about
 * other merchants, nor who on the service's staff invited a person.
 */
export async function presentPeople(viewer: Viewer, db: Handle, people: PersonRow[]) {
  const { deps, operator } = viewer;
  const own = merchantsOf(viewer);
  const shown = (ids: string[] | null) =>
    own === null ? ids : (ids?.filter((id) => own.includes(id)) ?? []);
  const ids = people.map(({ id }) => id);
  const ready = await listWithSignInMethod(db, people.map(identityOf));
  const invitations = await listInvitations(db, ids, timestamp(deps.clock.now()));
  const show = await namesFor(
    viewer,
    db,
    invitations.map(({ made_by_person_id }) => made_by_person_id),
  );
  const isStaff = viewer.may('people.confirm');
  const releaser = { operator, person_id: personOf(deps), isStaff };
  return people.map((row) => {
    const { id, email, name, roles, created_at, registered_at, revoked_at } = row;
    const link = invitations.find(
      (one) => one.person_id === id && (own === null || !isStaffMatter(one, row)),
    );
    return {
      ...{ id, email, name, roles, created_at, revoked_at },
      merchant_ids: shown(row.merchant_ids),
      is_registered: registered_at !== null && revoked_at === null && ready.has(identityOf(row)),
      is_confirmed: row.unconfirmed_since === null,
      identity_id: own === null ? row.identity_id : null,
      invitation: link
        ? {
            made_by: own === null ? link.made_by : show(link.made_by_person_id, link.made_by).name,
            expires_at: link.expires_at,
            is_held: link.released_at === null,
            access: link.access && {
              ...link.access,
              merchant_ids: shown(link.access.merchant_ids),
            },
            release_refusal: explainBadReleaser(link, row, releaser),
          }
        : null,
    };
  });
}
