import type { FastifyRequest } from 'fastify';
import { forbidden } from './errors.ts';

/** A page of another origin must not act for a shopper whose browser has a session. */
export function refuseForeignOrigin(request: FastifyRequest, baseUrl: string): void {
  const { origin } = request.headers;
  if (origin !== undefined && origin !== new URL(baseUrl).origin) {
    throw forbidden('This request comes from another site.');
  }
}
