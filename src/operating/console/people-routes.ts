import { IdParams } from '#operating/operations/list.schema.ts';
import {
  ChangePersonBody,
  Invitation,
  InviteBody,
  Person,
  ReleasedInvitation,
  Roles,
  SessionParams,
} from '#operating/operations/people.schema.ts';
import { peopleList, presentPeople } from '#operating/operations/people.ts';
import { listSessions } from '#operating/people/console-session.ts';
import { releaseInvitation, requestInvitation } from '#operating/people/invite-person.ts';
import { changeAccess, revokePerson, revokeSession } from '#operating/people/manage-people.ts';
import { rolePermissions } from '#operating/people/permission.ts';
import { findPerson, type Person as PersonRow } from '#operating/people/person.sql.ts';
import { reading } from '#platform/database/transaction.ts';
import { notFound } from './errors.ts';
import { listRoutes } from './pages.ts';
import {
  actionRoute,
  type ConsoleDeps,
  type ConsoleRoute,
  type Context,
  consoleRoute,
} from './route.ts';
import { Done, Sessions } from './session.schema.ts';
import { presentSessions } from './session-routes.ts';

export const peopleRoutes: ConsoleRoute[] = [
  ...listRoutes(peopleList),
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
  actionRoute({
    method: 'POST',
    url: '/api/people',
    permission: 'people.manage',
    fresh: true,
    schema: { body: InviteBody, response: Invitation },
    async run(context, { body }) {
      const { deps, operator } = context;
      const { person, ...invited } = await requestInvitation(deps, operator, body);
      return async () => ({ person: await presentPerson(context, person), ...invited });
    },
  }),
  actionRoute({
    method: 'POST',
    url: '/api/people/:id/release',
    permission: 'people.manage',
    fresh: true,
    schema: { params: IdParams, response: ReleasedInvitation },
    async run(context, { params }) {
      const { deps, operator } = context;
      await mustExist(deps, params.id);
      const { person, ...released } = await releaseInvitation(deps, operator, params.id);
      return async () => ({ person: await presentPerson(context, person), ...released });
    },
  }),
  consoleRoute({
    method: 'GET',
    url: '/api/people/:id',
    permission: 'people.read',
    schema: { params: IdParams, response: Person },
    async handle(context, { params }) {
      const person = await reading(context.deps, (db) => findPerson(db, params.id));
      if (!person) throw notFound();
      return await presentPerson(context, person);
    },
  }),
  actionRoute({
    method: 'PATCH',
    url: '/api/people/:id',
    permission: 'people.manage',
    fresh: true,
    schema: { params: IdParams, body: ChangePersonBody, response: Person },
    async run(context, { params, body }) {
      const { deps, operator } = context;
      await mustExist(deps, params.id);
      const person = await changeAccess(deps, operator, params.id, body);
      return () => presentPerson(context, person);
    },
  }),
  actionRoute({
    method: 'POST',
    url: '/api/people/:id/revoke',
    permission: 'people.manage',
    fresh: true,
    schema: { params: IdParams, response: Person },
    async run(context, { params }) {
      const { deps, operator } = context;
      await mustExist(deps, params.id);
      const person = await revokePerson(deps, operator, { id: params.id });
      return () => presentPerson(context, person);
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
  actionRoute({
    method: 'DELETE',
    url: '/api/people/:id/sessions/:session',
    permission: 'people.manage',
    fresh: true,
    schema: { params: SessionParams, response: Done },
    async run({ deps, operator }, { params }) {
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

async function presentPerson(context: Context, person: PersonRow): Promise<Person> {
  const [presented] = await reading(context.deps, (db) => presentPeople(context, db, [person]));
  return presented as Person;
}
