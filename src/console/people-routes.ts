import { reading } from '../database/transaction.ts';
import { listSessions } from '../operators/console-session.ts';
import {
  changeAccess,
  invitePerson,
  revokePerson,
  revokeSession,
} from '../operators/manage-people.ts';
import { rolePermissions } from '../operators/permission.ts';
import { findPerson, listPeople, type Person as PersonRow } from '../operators/person.sql.ts';
import { notFound } from './errors.ts';
import {
  ChangePersonBody,
  Invitation,
  InviteBody,
  PeoplePage,
  PeopleQuery,
  Person,
  SessionParams,
} from './people.schema.ts';
import { type ConsoleDeps, type ConsoleRoute, consoleRoute } from './route.ts';
import { Done, IdParams, Sessions } from './session.schema.ts';
import { presentSessions } from './session-routes.ts';

export const peopleRoutes: ConsoleRoute[] = [
  consoleRoute({
    method: 'GET',
    url: '/api/people',
    permission: 'people.read',
    schema: { query: PeopleQuery, response: PeoplePage },
    async handle({ deps }, { query }) {
      const limit = query.limit ?? 50;
      const rows = await reading(deps, (db) => listPeople(db, query.after ?? null, limit));
      return {
        data: rows.map(presentPerson),
        next: rows.length < limit ? null : (rows.at(-1)?.email ?? null),
        roles: Object.entries(rolePermissions).map(([role, permissions]) => ({
          role,
          permissions: [...permissions],
        })),
      };
    },
  }),
  consoleRoute({
    method: 'POST',
    url: '/api/people',
    permission: 'people.manage',
    fresh: true,
    schema: { body: InviteBody, response: Invitation },
    async handle({ deps, operator }, { body }) {
      const { person, url, expires_at } = await invitePerson(deps, operator, body);
      return { person: presentPerson(person), url, expires_at };
    },
  }),
  consoleRoute({
    method: 'PATCH',
    url: '/api/people/:id',
    permission: 'people.manage',
    fresh: true,
    schema: { params: IdParams, body: ChangePersonBody, response: Person },
    async handle({ deps, operator }, { params, body }) {
      await mustExist(deps, params.id);
      return presentPerson(await changeAccess(deps, operator, params.id, body));
    },
  }),
  consoleRoute({
    method: 'POST',
    url: '/api/people/:id/revoke',
    permission: 'people.manage',
    fresh: true,
    schema: { params: IdParams, response: Person },
    async handle({ deps, operator }, { params }) {
      await mustExist(deps, params.id);
      return presentPerson(await revokePerson(deps, operator, { id: params.id }));
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
  consoleRoute({
    method: 'DELETE',
    url: '/api/people/:id/sessions/:session',
    permission: 'people.manage',
    fresh: true,
    schema: { params: SessionParams, response: Done },
    async handle({ deps, operator }, { params }) {
      const live = await listSessions(deps, params.id);
      if (!live.some(({ id }) => id === params.session)) throw notFound();
      const ended = { person_id: params.id, session_id: params.session };
      await revokeSession(deps, operator, ended);
      return { done: true };
    },
  }),
];

async function mustExist(deps: ConsoleDeps, id: string): Promise<void> {
  if (!(await reading(deps, (db) => findPerson(db, id)))) throw notFound();
}

function presentPerson(person: PersonRow): Person {
  const { id, email, name, roles, merchant_ids, created_at, revoked_at } = person;
  return { id, email, name, roles, merchant_ids, created_at, revoked_at };
}
