import type { FastifyInstance } from 'fastify';
import type { Database } from '../database/database.ts';
import { isMigrated } from '../database/migrate.ts';

/** Liveness and readiness, for load balancers and supervisors. */
export async function healthRoutes(
  app: FastifyInstance,
  deps: { database: Database },
): Promise<void> {
  app.get('/healthz', { exposeHeadRoute: true }, async () => ({ status: 'ok' }));

  app.get('/readyz', { exposeHeadRoute: true }, async (request, reply) => {
    try {
      if (await isMigrated(deps.database)) return { status: 'ok' };
      return reply.code(503).send({ status: 'unavailable', reason: 'migrations are not current' });
    } catch (error) {
      request.log.warn({ err: error }, 'not ready');
      return reply
        .code(503)
        .send({ status: 'unavailable', reason: 'the database does not answer' });
    }
  });
}
