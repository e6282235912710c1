import { findLongAct, listLongActs } from '#operating/acts/long-act.sql.ts';
import type { LongAct as LongActRow } from '#operating/acts/long-act.ts';
import { LongAct, LongActs } from '#operating/operations/act.schema.ts';
import { IdParams } from '#operating/operations/list.schema.ts';
import { reading } from '#platform/database/transaction.ts';
import { notFound } from './errors.ts';
import { type ConsoleDeps, type ConsoleRoute, consoleRoute } from './route.ts';

const actsMax = 20;

/** A person sees their own bulk actions. */
export const actRoutes: ConsoleRoute[] = [
  consoleRoute({
    method: 'GET',
    url: '/api/acts',
    permission: 'signed-in',
    schema: { response: LongActs },
    async handle({ deps, person }) {
      const acts = await reading(deps, (db) => listLongActs(db, person.id, actsMax));
      return { data: acts.map(presentLongAct) };
    },
  }),
  consoleRoute({
    method: 'GET',
    url: '/api/acts/:id',
    permission: 'signed-in',
    schema: { params: IdParams, response: LongAct },
    async handle({ deps, person }, { params }) {
      return await readLongAct(deps, person.id, params.id);
    },
  }),
];

/** A bulk action as it is now. */
export async function readLongAct(
  deps: ConsoleDeps,
  person_id: string,
  id: string,
): Promise<LongAct> {
  const act = await reading(deps, (db) => findLongAct(db, person_id, id));
  if (!act) throw notFound();
  return presentLongAct(act);
}

function presentLongAct(act: LongActRow): LongAct {
  return {
    id: act.id,
    kind: act.kind,
    by: act.actor.operator,
    created_at: act.created_at,
    finished_at: act.finished_at,
    total: act.total,
    done: act.done,
    failed: act.failed,
    problems: act.problems,
  };
}
