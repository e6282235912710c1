import { randomBytes } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import { cookieName } from '#operating/console/cookie.ts';
import { buildConsole } from '#operating/console/server.ts';
import type { SessionMethod } from '#operating/people/console-session.sql.ts';
import { newToken, openConsoleSession } from '#operating/people/console-session.ts';
import type { OperatorRole } from '#operating/people/permission.ts';
import { insertPerson } from '#operating/people/person.sql.ts';
import { transaction } from '#platform/database/transaction.ts';
import { timestamp } from '#platform/shared/clock.ts';
import type { Answer, Service } from './service.ts';

/** Opens the console of a service in this process, without a port. */
export async function openConsole({ deps }: Pick<Service, 'deps'>): Promise<FastifyInstance> {
  const app = buildConsole(deps);
  await app.ready();
  return app;
}

export type ConsolePerson = { id: string; email: string; cookie: string; session_id: string };

/** Creates a person with a live session. It needs re-authentication only if `isFresh` is false. */
export async function addPerson(
  { deps }: Pick<Service, 'deps'>,
  options: {
    roles: OperatorRole[];
    merchant_ids?: string[];
    email?: string;
    name?: string;
    isFresh?: boolean;
    method?: SessionMethod;
  },
): Promise<ConsolePerson> {
  const id = deps.random.uuid();
  const session_id = deps.random.uuid();
  const token = newToken(deps.random);
  const email = options.email ?? `person-${randomBytes(4).toString('hex')}@example.com`;
  await transaction(deps, async ({ db }) => {
    await insertPerson(db, {
      id,
      email,
      name: options.name ?? 'Nomsa Dube',
      roles: options.roles,
      merchant_ids: options.merchant_ids ?? null,
      oidc_subject: null,
      created_at: timestamp(deps.clock.now()),
      registered_at: timestamp(deps.clock.now()),
      access_since: timestamp(deps.clock.now()),
      unconfirmed_since: null,
      unconfirmed_by: null,
      revoked_at: null,
      identity_id: null,
    });
    await openConsoleSession(deps, db, {
      id: session_id,
      token,
      person_id: id,
      access_id: id,
      method: options.method ?? 'passkey',
      address: '192.0.2.7',
      user_agent: 'a test',
      isFresh: options.isFresh ?? true,
      passkey_id: null,
    });
  });
  return { id, email, session_id, cookie: `${cookieName(deps.console.url)}=${token}` };
}

/** Opens a session of the same person in another browser. */
export async function openAnotherSession(
  { deps }: Pick<Service, 'deps'>,
  person: ConsolePerson,
): Promise<ConsolePerson> {
  const session_id = deps.random.uuid();
  const token = newToken(deps.random);
  await transaction(deps, ({ db }) =>
    openConsoleSession(deps, db, {
      id: session_id,
      token,
      person_id: person.id,
      access_id: person.id,
      method: 'passkey',
      address: '192.0.2.8',
      user_agent: 'another browser',
      isFresh: true,
      passkey_id: null,
    }),
  );
  return { ...person, session_id, cookie: `${cookieName(deps.console.url)}=${token}` };
}

/** Counts as many pages, or rows, as if the person had read them in the console. */
export async function readPages(
  { rateLimits }: Service['deps'],
  { id }: ConsolePerson,
  count: number,
  of: 'pages' | 'rows' = 'pages',
): Promise<void> {
  for (let read = 0; read < count; read += 1) await rateLimits.bulkRead(of, id, String(read));
}

/** The session cookie that an answer sets. */
export const cookieOf = ({ headers }: Pick<Answer, 'headers'>): string =>
  String(headers['set-cookie']).split(';')[0] ?? '';

/** Sends a request to the console as its page would. */
export async function ask(
  { app, deps }: { app: FastifyInstance; deps: Service['deps'] },
  person: Pick<ConsolePerson, 'cookie'> | null,
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE',
  url: string,
  options: { body?: object; headers?: Record<string, string>; remoteAddress?: string } = {},
): Promise<Answer> {
  const response = await app.inject({
    method,
    url,
    ...(options.remoteAddress && { remoteAddress: options.remoteAddress }),
    headers: {
      ...(person && { cookie: person.cookie }),
      ...(method !== 'GET' && { origin: deps.console.url }),
      ...(options.body && { 'content-type': 'application/json' }),
      ...options.headers,
    },
    ...(options.body && { payload: JSON.stringify(options.body) }),
  });
  const type = String(response.headers['content-type'] ?? '');
  return {
    status: response.statusCode,
    body: type.includes('json') ? response.json() : response.body,
    headers: response.headers,
  };
}
