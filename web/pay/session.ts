import type { PlanPanel } from '#purchases/shoppers/plan-attempt.ts';

// The plan page's requests that move no money: the one-time link, the session, a message.

/**
 * The outcome of a request. `limited`: there were too many. `refused`: the server refused it, for
 * the reason that each function states.
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
 * Asks for a one-time link by mail, which will open `panel`. The server answers in the same way for
 * every e-mail address, so that it does not reveal which one belongs to the shopper.
 */
export const sendLink = (path: string, email: string, panel: PlanPanel | null) =>
  request('POST', `${path}/link`, { email, ...(panel && { panel }) });

/** `refused` means that the link was used before, has expired, or belongs to another plan. */
export const openSession = (path: string, token: string) =>
  request('POST', `${path}/session`, { token });

export const closeSession = (path: string) => request('DELETE', `${path}/session`);

/** `refused` means that the session has ended. */
export const report = (path: string, text: string) => request('POST', `${path}/report`, { text });
