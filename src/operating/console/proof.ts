import { proofUntil } from '#operating/people/console-session.ts';
import { ConsoleError } from './errors.ts';
import type { Context } from './route.ts';

/** Throws unless the person proved their presence in the last five minutes. */
export function requireProof({ deps, session }: Pick<Context, 'deps' | 'session'>): void {
  if (proofUntil(session, deps.clock.now()) !== null) return;
  throw new ConsoleError(403, 'proof_needed', 'Prove that it is you, then repeat this.', {
    // The demo administrator of a sandbox proves their presence at `/api/proof/sandbox`.
    method: session.method === 'sandbox_link' ? 'sandbox_link' : 'passkey',
  });
}
