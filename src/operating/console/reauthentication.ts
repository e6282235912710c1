import { reauthenticatedUntil } from '#operating/people/console-session.ts';
import { ConsoleError } from './errors.ts';
import type { Context } from './route.ts';

/** Throws unless the person has re-authenticated recently (`reauthenticatedUntil`). */
export function requireReauthentication({
  deps,
  session,
}: Pick<Context, 'deps' | 'session'>): void {
  if (reauthenticatedUntil(session, deps.clock.now()) !== null) return;
  throw new ConsoleError(403, 'proof_needed', 'Confirm that it is you, then repeat this.', {
    // The demo administrator of a sandbox has no passkey and uses `/api/proof/sandbox`.
    method: session.method === 'sandbox_link' ? 'sandbox_link' : 'passkey',
  });
}
