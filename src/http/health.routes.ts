import type { FastifyInstance } from 'fastify';
import type { Database } from '../database/database.ts';
import { findDatabaseProblem } from '../database/ready.ts';

/** Liveness and readiness, for load balancers and supervisors. */
export async function healthRoutes(
  app: FastifyInstance,
  deps: { database: Database; draining: boolean; clockProblem(): string | null },
): Promise<void> {
  app.get('/healthz', { exposeHeadRoute: true }, async () => ({ status: 'ok' }));

  app.get('/readyz', { exposeHeadRoute: true }, async (request, reply) => {
    if (deps.draining) {
      return reply.code(503).send({ status: 'unavailable', reason: 'the process is stopping' });
    }
    try {
      const reason = deps.clockProblem() ?? (await findDatabaseProblem(deps.database));
      if (reason === null) return { status: 'ok' };
      return reply.code(503).send({ status: 'unavailable', reason });
    } catch (error) {
      request.log.warn({ err: error }, 'not ready');
      return reply
        .code(503)
        .send({ status: 'unavailable', reason: 'the database does not answer' });
    }
  });
}
