import type { Column } from '#operating/operations/csv.ts';
import { IdParams } from '#operating/operations/list.schema.ts';
import {
  BadCursor,
  type PageRequest,
  readCursor,
  writeCursor,
} from '#operating/operations/lists.ts';
import {
  ChangePersonBody,
  Invitation,
  InviteBody,
  PeoplePage,
  PeopleQuery,
  Person,
  Roles,
  SessionParams,
} from '#operating/operations/people.schema.ts';
import { listSessions } from '#operating/people/console-session.ts';
import {
  changeAccess,
  invitePerson,
  revokePerson,
  revokeSession,
} from '#operating/people/manage-people.ts';
import { listWithPasskey } from '#operating/people/passkey.sql.ts';
import { rolePermissions } from '#operating/people/permission.ts';
import { findPerson, listPeople, type Person as PersonRow } from '#operating/people/person.sql.ts';
import { reading } from '#platform/database/transaction.ts';
import { notFound } from './errors.ts';
import { listRoutes } from './pages.ts';
import {
  actRoute,
  type ConsoleDeps,
  type ConsoleRoute,
  type Context,
  consoleRoute,
} from './route.ts';
import { Done, Sessions } from './session.schema.ts';
import { presentSessions } from './session-routes.ts';

const readPeople =
  ({ deps }: Context) =>
  async ({ after, limit }: PageRequest) => {
    const key = after === null ? null : readCursor(after);
    if (key !== null && key.length !== 2) throw new BadCursor();
    const rows = await reading(deps, (db) => listPeople(db, key?.[0] ?? null, limit)).catch(
      (error) => {
        // A cursor may hold a value that the column cannot have (class 22).
        if (key !== null && error.code?.startsWith('22')) throw new BadCursor();
        throw error;
      },
    );
    const last = rows.length < limit ? undefined : rows.at(-1);
    const next = last ? writeCursor([last.email, last.id]) : null;
    return { data: await presentPeople(deps, rows), next };
  };

const columns: Column<Person>[] = [
  ['Name', (row) => row.name],
  ['E-mail', (row) => row.email],
  ['Roles', (row) => row.roles.join(' ')],
  ['Merchants', (row) => row.merchant_ids?.join(' ') ?? 'all'],
  ['Since', (row) => row.created_at],
  ['Registered', (row) => (row.is_registered ? 'yes' : 'no')],
  ['Revoked', (row) => row.revoked_at],
  ['ID', (row) => row.id],
];

export const peopleRoutes: ConsoleRoute[] = [
  ...listRoutes({
    name: 'people',
    permission: 'people.read',
    query: PeopleQuery,
    page: PeoplePage,
    columns,
    read: readPeople,
  }),
  consoleRoute({
    method: 'GET',
    url: '/api/roles',
    permission: 'people.read',
    schema: { response: Roles },
    handle: async () => ({
      data: Object.entries(rolePermissions).map(([role, permissions]) => ({
        role,
        permissions: [...permissions],
      })),
    }),
  }),
  actRoute({
    method: 'POST',
    url: '/api/people',
    permission: 'people.manage',
    fresh: true,
    schema: { body: InviteBody, response: Invitation },
    async act({ deps, operator }, { body }) {
      const { person, url, expires_at } = await invitePerson(deps, operator, body);
      return async () => ({ person: await presentPerson(deps, person), url, expires_at });
    },
  }),
  consoleRoute({
    method: 'GET',
    url: '/api/people/:id',
    permission: 'people.read',
    schema: { params: IdParams, response: Person },
    async handle({ deps }, { params }) {
      const person = await reading(deps, (db) => findPerson(db, params.id));
      if (!person) throw notFound();
      return await presentPerson(deps, person);
    },
  }),
  actRoute({
    method: 'PATCH',
    url: '/api/people/:id',
    permission: 'people.manage',
    fresh: true,
    schema: { params: IdParams, body: ChangePersonBody, response: Person },
    async act({ deps, operator }, { params, body }) {
      await mustExist(deps, params.id);
      const person = await changeAccess(deps, operator, params.id, body);
      return () => presentPerson(deps, person);
    },
  }),
  actRoute({
    method: 'POST',
    url: '/api/people/:id/revoke',
    permission: 'people.manage',
    fresh: true,
    schema: { params: IdParams, response: Person },
    async act({ deps, operator }, { params }) {
      await mustExist(deps, params.id);
      const person = await revokePerson(deps, operator, { id: params.id });
      return () => presentPerson(deps, person);
    },
  }),
  consoleRoute({
    method: 'GET',
    url: '/api/people/:id/sessions',
    permission: 'people.read',
    schema: { params: IdParams, response: Sessions },
    async handle(context, { params }) {
      await mustExist(context.deps, params.id);
      return presentSessions(context, await listSessions(context.deps, params.id));
    },
  }),
  actRoute({
    method: 'DELETE',
    url: '/api/people/:id/sessions/:session',
    permission: 'people.manage',
    fresh: true,
    schema: { params: SessionParams, response: Done },
    async act({ deps, operator }, { params }) {
      const live = await listSessions(deps, params.id);
      if (!live.some(({ id }) => id === params.session)) throw notFound();
      const ended = { person_id: params.id, session_id: params.session };
      await revokeSession(deps, operator, ended);
      return () => ({ done: true });
    },
  }),
];

async function mustExist(deps: ConsoleDeps, id: string): Promise<void> {
  if (!(await reading(deps, (db) => findPerson(db, id)))) throw notFound();
}

async function presentPeople(deps: ConsoleDeps, people: PersonRow[]): Promise<Person[]> {
  const ids = people.map(({ id }) => id);
  const registered = await reading(deps, (db) => listWithPasskey(db, ids));
  return people.map(({ oidc_subject, ...person }) => ({
    id: person.id,
    email: person.email,
    name: person.name,
    roles: person.roles,
    merchant_ids: person.merchant_ids,
    created_at: person.created_at,
    revoked_at: person.revoked_at,
    is_registered: oidc_subject !== null || registered.has(person.id),
  }));
}

async function presentPerson(deps: ConsoleDeps, person: PersonRow): Promise<Person> {
  const [presented] = await presentPeople(deps, [person]);
  return presented as Person;
}
