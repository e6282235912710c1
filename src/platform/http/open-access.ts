import { ApiError, retryAfterSeconds } from './errors.ts';

/** Whether sessions, links and tokens are accepted in this process (decision 0097). */
export type AccessDeps = { money: { accessProblem(): Promise<string | null> } };

/**
 * Refuses every session, link and token while the database may be a restored backup, in which ended
 * ones are valid again.
 */
export async function mustBeOpen({ money }: AccessDeps): Promise<void> {
  if ((await money.accessProblem()) === null) return;
  throw new ApiError(503, 'service_unavailable', [
    `The service has started and waits for the answer of its card gateway. Nothing was changed. Try again in ${retryAfterSeconds} seconds.`,
  ]);
}
