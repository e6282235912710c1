import assert from 'node:assert/strict';
import type { FastifyInstance } from 'fastify';
import type { TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import type { ConsoleRoute } from '#operating/console/route.ts';
import { consoleRoutes } from '#operating/console/routes.ts';
import { ask, type ConsolePerson } from './console.ts';
import type { Answer, Service } from './service.ts';

/** A copy of the schema that refuses members that it does not name. */
function strict(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(strict);
  if (typeof schema !== 'object' || schema === null) return schema;
  const copy = Object.fromEntries(
    Object.entries(schema).map(([name, value]) => [name, strict(value)]),
  );
  // `properties` may also be the name of a member. Then the object has no `type`.
  if ('properties' in copy && copy.type === 'object') copy.additionalProperties = false;
  return copy;
}

const validators = new Map<ConsoleRoute, ReturnType<typeof Compile>>();

function routeOf(method: string, url: string): ConsoleRoute {
  const path = url.split('?')[0] ?? '';
  const isMatch = (route: ConsoleRoute) =>
    new RegExp(`^${route.url.replaceAll('.', '[.]').replaceAll(/:\w+/g, '[^/]+')}$`).test(path);
  const found = consoleRoutes.filter((route) => route.method === method && isMatch(route));
  // A path without parameters takes precedence, as in the router.
  const route = found.find(({ url: exact }) => exact === path) ?? found[0];
  assert.ok(route, `${method} ${url} is a route`);
  return route;
}

/**
 * Sends a request to the console, and checks that a successful answer has exactly the members of
 * the route's schema.
 */
export async function askExactly(
  console: { app: FastifyInstance; deps: Service['deps'] },
  person: ConsolePerson,
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE',
  url: string,
  body?: object,
): Promise<Answer> {
  const answer = await ask(console, person, method, url, body && { body });
  if (answer.status !== 200) return answer;
  const route = routeOf(method, url);
  const validator = validators.get(route) ?? Compile(strict(route.schema.response) as TSchema);
  validators.set(route, validator);
  const errors = validator.Check(answer.body) ? [] : validator.Errors(answer.body);
  assert.deepEqual(errors, [], `${method} ${url}: ${JSON.stringify(answer.body).slice(0, 2_000)}`);
  return answer;
}
