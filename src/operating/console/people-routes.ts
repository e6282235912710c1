import { IdParams } from '#operating/operations/list.schema.ts';
import { mustSeeMerchant } from '#operating/operations/merchants.ts';
import {
  AlertMails,
  AlertMailsQuery,
  ChangePersonBody,
  ChooseAlertMails,
  Invitation,
  InviteBody,
  Person,
  ReadAccessBody,
  ReleasedInvitation,
  Roles,
  SessionParams,
} from '#operating/operations/people.schema.ts';
import { findPersonFor, peopleList, presentPeople } from '#operating/operations/people.ts';
import { listAlertChoices } from '#operating/people/alert-mail.sql.ts';
import { alertMailsOf } from '#operating/people/alert-mail.ts';
import { chooseAlertMails } from '#operating/people/choose-alert-mails.ts';
import { confirmPerson } from '#operating/people/confirm-person.ts';
import { listSessions } from '#operating/people/console-session.ts';
import { releaseInvitation, requestInvitation } from '#operating/people/invite-person.ts';
import { changeAccess, revokePerson } from '#operating/people/manage-people.ts';
import { operatorRoles, permissionsOf } from '#operating/people/permission.ts';
import type { Person as PersonRow } from '#operating/people/person.sql.ts';
import { reading } from '#platform/database/transaction.ts';
import { notFound } from './errors.ts';
import { listRoutes } from './pages.ts';
import { actionRoute, type ConsoleRoute, type Context, consoleRoute, countOfDay } from './route.ts';
import { Done, Sessions } from './session.schema.ts';
import { endSession, presentSessions } from './session-routes.ts';

export const peopleRoutes: ConsoleRoute[] = [
  ...listRoutes(peopleList),
  consoleRoute({
    url: '/api/roles',
    permission: 'people.read',
    schema: { response: Roles },
    // Lists only the roles that the reader may give: people cannot give more rights than they have.
    handle: async ({ person, scope }) => ({
      data: operatorRoles
        .map((role) => ({ role, permissions: permissionsOf([role], scope === 'all merchants') }))
        .filter(({ permissions }) => permissions.every((one) => person.permissions.includes(one))),
    }),
  }),
  actionRoute({
    url: '/api/people',
    permission: 'people.manage',
    fresh: true,
    schema: { body: InviteBody, response: Invitation },
    async run(context, { body }) {
      const { deps, operator } = context;
      await countOfDay(context, 'access', body.merchant_ids);
      const { person, ...invited } = await requestInvitation(deps, operator, body);
      return async () => ({ person: await presentPerson(context, person), ...invited });
    },
  }),
  actionRoute({
    url: '/api/people/:id/release',
    permission: 'people.manage',
    fresh: true,
    schema: { params: IdParams, body: ReadAccessBody, response: ReleasedInvitation },
    async run(context, { params, body }) {
      const { deps, operator } = context;
      const { id } = await mustSeePerson(context, params.id);
      const { person, ...released } = await releaseInvitation(deps, operator, id, body.was);
      return async () => ({ person: await presentPerson(context, person), ...released });
    },
  }),
  actionRoute({
    url: '/api/people/:id/confirm',
    permission: 'people.confirm',
    fresh: true,
    schema: { params: IdParams, body: ReadAccessBody, response: Person },
    async run(context, { params, body }) {
      const { deps, operator } = context;
      const { id } = await mustSeePerson(context, params.id);
      const person = await confirmPerson(deps, operator, id, body.was);
      return () => presentPerson(context, person);
    },
  }),
  consoleRoute({
    url: '/api/people/:id',
    permission: 'people.read',
    schema: { params: IdParams, response: Person },
    async handle(context, { params }) {
      return await presentPerson(context, await mustSeePerson(context, params.id));
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
      const { id, merchant_ids } = await mustSeePerson(context, params.id);
      await countOfDay(context, 'access', merchant_ids);
      const person = await changeAccess(deps, operator, id, body);
      return () => presentPerson(context, person);
    },
  }),
  actionRoute({
    url: '/api/people/:id/revoke',
    permission: 'people.manage',
    fresh: true,
    schema: { params: IdParams, response: Person },
    async run(context, { params }) {
      const { deps, operator } = context;
      const { id } = await mustSeePerson(context, params.id);
      const person = await revokePerson(deps, operator, { id });
      return () => presentPerson(context, person);
    },
  }),
  consoleRoute({
    url: '/api/people/:id/sessions',
    permission: 'people.read',
    schema: { params: IdParams, response: Sessions },
    async handle(context, { params }) {
      const { id: access_id } = await mustSeePerson(context, params.id);
      return presentSessions(context, await listSessions(context.deps, { access_id }));
    },
  }),
  consoleRoute({
    url: '/api/people/:id/alert-mails',
    permission: 'people.read',
    schema: { params: IdParams, query: AlertMailsQuery, response: AlertMails },
    handle: (context, { params, query }) => readAlertMails(context, params.id, query.merchant),
  }),
  actionRoute({
    url: '/api/people/:id/alert-mails',
    permission: 'people.manage',
    fresh: true,
    schema: { params: IdParams, body: ChooseAlertMails, response: AlertMails },
    async run(context, { params, body }) {
      const { deps, operator } = context;
      const { id } = await mustSeePerson(context, params.id);
      const merchant = await mustSeeMerchant(context, body.merchant_id);
      const wanted = { merchant_id: merchant.id, kinds: body.kinds };
      await chooseAlertMails(deps, operator, id, wanted);
      return () => readAlertMails(context, id, merchant.id);
    },
  }),
  actionRoute({
    method: 'DELETE',
    url: '/api/people/:id/sessions/:session',
    permission: 'people.manage',
    fresh: true,
    schema: { params: SessionParams, response: Done },
    async run(context, { params }) {
      const { id: access_id } = await mustSeePerson(context, params.id);
      return await endSession(context, { access_id }, params.session);
    },
  }),
];

async function mustSeePerson(context: Context, id: string): Promise<PersonRow> {
  const person = await findPersonFor(context, id);
  if (!person) throw notFound();
  return person;
}

/** Returns nothing for a person who is not one of the merchant's own people. */
async function readAlertMails(context: Context, of: string, merchant: string): Promise<AlertMails> {
  const { id, roles, merchant_ids } = await mustSeePerson(context, of);
  const { id: merchant_id } = await mustSeeMerchant(context, merchant);
  if (!merchant_ids?.includes(merchant_id)) return { data: [] };
  const chosen = await reading(context.deps, (db) =>
    listAlertChoices(db, { merchant_id, person_id: id }),
  );
  return { data: alertMailsOf(roles, chosen) };
}

async function presentPerson(context: Context, person: PersonRow): Promise<Person> {
  const [presented] = await reading(context.deps, (db) => presentPeople(context, db, [person]));
  return presented as Person;
}
