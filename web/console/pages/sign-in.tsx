import { Button } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import type { SignInWays } from '#operating/console/session.schema.ts';
import { ApiError, get } from '../api.ts';
import { Logo } from '../icons.tsx';
import { Notice } from '../parts/basics.tsx';
import { signIn, signInByLink } from '../passkeys.ts';

/** A page for people who are not signed in. */
export function Door({ title, children }: { title: string; children: ReactNode }) {
  return (
    <main className="door">
      <div className="card">
        <div className="brand">
          <Logo /> Tranche
        </div>
        <h1>{title}</h1>
        {children}
      </div>
    </main>
  );
}

/** The server redirects here when the company's sign-in did not lead to a session. */
const whyRefused = () =>
  new URLSearchParams(window.location.search).has('refused')
    ? 'The company sign-in did not let you in. If you were not invited yet, ask an administrator for an invitation to the same e-mail address.'
    : null;

// The company's sign-in leads away from the console and back to its first page. The person then
// continues to the page that they wanted. Its filters are not stored: they may name a shopper.
const pageKey = 'tranche-page';

/** The page that a person wanted before they left for the company's sign-in; null if none. */
export function takeWantedPage(): string | null {
  const path = sessionStorage.getItem(pageKey);
  sessionStorage.removeItem(pageKey);
  // Accept only a path of this console: `//host` would be another site.
  return path !== null && /^\/(?!\/)/.test(path) ? path : null;
}

export function SignIn({ ended }: { ended: boolean }) {
  const { data: ways } = useQuery({
    queryKey: ['/api/sign-in'],
    queryFn: ({ signal }) => get<SignInWays>('/api/sign-in', {}, signal),
  });
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState(whyRefused);
  const client = useQueryClient();
  const go = async () => {
    setBusy(true);
    setProblem(null);
    try {
      await signIn();
      // Everything that an earlier session read is discarded. A full load would also discard what
      // the person had typed when that session ended.
      client.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== '/api/session' });
      await client.resetQueries({ queryKey: ['/api/session'] });
    } catch (error) {
      setProblem(error instanceof Error ? error.message : 'Signing in did not work.');
      setBusy(false);
    }
  };
  return (
    <Door title={ways?.is_for_merchants ? 'Sign in to your shop' : 'Sign in to the console'}>
      <div className="stack">
        <p className="quiet">
          {ended
            ? 'Your session has ended. Sign in again to continue where you left off.'
            : 'Your passkey proves who you are. There is no password.'}
        </p>
        {problem !== null && <Notice kind="bad">{problem}</Notice>}
        <Button size="md" fullWidth loading={busy} onClick={() => void go()}>
          Sign in with a passkey
        </Button>
        {ways?.oidc && (
          <Button
            size="md"
            fullWidth
            variant="default"
            component="a"
            href="/api/sign-in/oidc"
            onClick={() => sessionStorage.setItem(pageKey, window.location.pathname)}
          >
            Use the company sign-in
          </Button>
        )}
        <p className="quiet small">
          {ways?.sandbox ? (
            <>
              This is a sandbox: <code>tranche console sign-in</code> prints a link that signs you
              in.
            </>
          ) : (
            `No passkey yet, or a lost device? Ask an administrator${ways?.is_for_merchants ? ' of your shop' : ''} for an invitation.`
          )}
        </p>
      </div>
    </Door>
  );
}

/** The page that a sandbox's sign-in link opens. */
export function LinkSignIn({ token }: { token: string }) {
  const { error, refetch, isFetching } = useQuery({
    queryKey: ['sign-in link', token],
    queryFn: async () => {
      await signInByLink(token);
      window.location.replace('/');
      return null;
    },
    // The link works only once.
    retry: false,
    refetchOnWindowFocus: false,
  });
  if (error instanceof ApiError && error.code === 'link_ended') {
    return (
      <Door title="This link no longer works">
        <p className="quiet">
          A link works once and for a short time. Run <code>tranche console sign-in</code> for a new
          one.
        </p>
      </Door>
    );
  }
  if (error) {
    return (
      <Door title="You could not be signed in">
        <div className="stack">
          <p className="quiet">{error.message}</p>
          <Button fullWidth loading={isFetching} onClick={() => void refetch()}>
            Try again
          </Button>
        </div>
      </Door>
    );
  }
  return (
    <Door title="Signing you in">
      <p className="quiet">One moment.</p>
    </Door>
  );
}
