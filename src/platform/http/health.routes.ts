import type { FastifyInstance } from 'fastify';
import type { Database } from '#platform/database/database.ts';
import { findDatabaseProblem } from '#platform/database/ready.ts';

/** Liveness and readiness, for load balancers and supervisors. */
export async function healthRoutes(
  app: FastifyInstance,
  deps: {
    database: Database;
    draining: boolean;
    clockProblem(): string | null;
    money: { stopReason(): Promise<string | null> };
  },
): Promise<void> {
  app.get('/healthz', { exposeHeadRoute: true }, async () => ({ status: 'ok' }));

  app.get('/readyz', { exposeHeadRoute: true }, async (request, reply) => {
    if (deps.draining) {
      return reply.code(503).send({ status: 'unavailable', reason: 'the process is stopping' });
    }
    try {
      const reason = deps.clockProblem() ?? (await findDatabaseProblem(deps.database));
      if (reason === null) {
        // While money is stopped, creates and reads continue, so load balancers must keep sending
        // requests (decision 0097).
        const stopped = await deps.money.stopReason();
        return stopped === null ? { status: 'ok' } : { status: 'degraded', reason: stopped };
      }
      return reply.code(503).send({ status: 'unavailable', reason });
    } catch (error) {
      request.log.warn({ err: error }, 'not ready');
      return reply
        .code(503)
        .send({ status: 'unavailable', reason: 'the database does not answer' });
    }
  });
}
