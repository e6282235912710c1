import type { PlanPanel } from '#purchases/shoppers/plan-attempt.ts';

// The requests of the plan page that move no money: the one-time link, the session, a report.

/**
 * The outcome of a request. `limited`: too many. `refused`: the server said no, for this reason.
 */
export type Answered = 'done' | 'limited' | 'refused' | 'failed';

async function request(
  method: 'POST' | 'DELETE',
  address: string,
  body?: object,
): Promise<Answered> {
  try {
    const { ok, status } = await fetch(address, {
      method,
      cache: 'no-store',
      ...(body && {
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      }),
    });
    if (ok) return 'done';
    if (status === 429) return 'limited';
    return status < 500 ? 'refused' : 'failed';
  } catch {
    return 'failed';
  }
}

/**
 * The answer says nothing about the address: it is the same for every one. The link goes on with the
 * panel.
 */
export const sendLink = (path: string, email: string, panel: PlanPanel | null) =>
  request('POST', `${path}/link`, { email, ...(panel && { panel }) });

/** `refused`: the link was used before, or has ended, or is another plan's. */
export const openSession = (path: string, token: string) =>
  request('POST', `${path}/session`, { token });

export const closeSession = (path: string) => request('DELETE', `${path}/session`);

/** `refused`: the session has ended. */
export const report = (path: string, text: string) => request('POST', `${path}/report`, { text });
