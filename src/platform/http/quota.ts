import type { FastifyReply } from 'fastify';

/** The remainder of a limit after a request was counted. */
export type Quota = { limit: number; remaining: number; resetSeconds: number };

/** Shows a caller how much of its limit is left, whatever the answer. */
export function showQuota(reply: FastifyReply, quota: Quota): void {
  reply.header('ratelimit-limit', quota.limit);
  reply.header('ratelimit-remaining', quota.remaining);
  reply.header('ratelimit-reset', quota.resetSeconds);
}
