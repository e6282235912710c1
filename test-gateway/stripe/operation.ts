import { invalidRequest } from './errors.ts';

/**
 * An answer to send and, for a POST with a key, to keep. A decline is an answer and not an
 * exception, so that its writes are committed.
 */
export type Answer = { status: number; body: object };

export const ok = (body: object): Answer => ({ status: 200, body });

export function throwMissing(param: string): never {
  throw invalidRequest(`Missing required param: ${param}.`, { code: 'parameter_missing', param });
}

export function oneOf(value: string | undefined, allowed: string[], param: string): void {
  if (value === undefined || allowed.includes(value)) return;
  throw invalidRequest(`Invalid ${param}: must be one of ${allowed.join(', ')}`, { param });
}
