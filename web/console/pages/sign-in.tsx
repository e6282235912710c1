import { Button } from '@mantine/core';
import { type ReactNode, useState } from 'react';
import { Mark } from '../icons.tsx';
import { Notice } from '../parts/basics.tsx';
import { signIn } from '../passkeys.ts';

/** A page before the session. */
export function Door({ title, children }: { title: string; children: ReactNode }) {
  return (
    <main className="door">
      <div className="card">
        <div className="brand">
          <Mark /> Tranche
        </div>
        <h1>{title}</h1>
        {children}
      </div>
    </main>
  );
}

export function SignIn({ ended, oidc }: { ended: boolean; oidc: boolean }) {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const go = async () => {
    setBusy(true);
    setProblem(null);
    try {
      await signIn();
      // A full load forgets everything that an earlier session read.
      window.location.reload();
    } catch (error) {
      setProblem(error instanceof Error ? error.message : 'Signing in did not work.');
      setBusy(false);
    }
  };
  return (
    <Door title="Sign in to the console">
      <div className="stack">
        <p className="quiet">
          {ended
            ? 'Your session has ended. Sign in again to go on where you were.'
            : 'Your passkey says who you are. There is no password.'}
        </p>
        {problem !== null && <Notice kind="bad">{problem}</Notice>}
        <Button size="md" fullWidth loading={busy} onClick={() => void go()}>
          Sign in with a passkey
        </Button>
        {oidc && (
          <Button size="md" fullWidth variant="default" component="a" href="/api/oidc/start">
            Sign in with your organisation
          </Button>
        )}
        <p className="quiet small">
          No passkey yet, or a lost device? Ask an administrator for an invitation.
        </p>
      </div>
    </Door>
  );
}
