import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { Invited } from '#operating/console/session.schema.ts';
import { ApiError, sendChange } from '../api.ts';
import { longTime, sentence, words } from '../format.ts';
import { Facts, Notice } from '../parts/basics.tsx';
import { Bones } from '../parts/states.tsx';
import { register } from '../passkeys.ts';
import { Door } from './sign-in.tsx';

/** The page that an invitation opens, where the person registers a passkey. */
export default function Register({ token }: { token: string }) {
  const { data, error, refetch, isFetching } = useQuery({
    queryKey: ['invitation', token],
    enabled: token !== '',
    queryFn: () => sendChange<Invited>('POST', '/api/invitation', { token }),
    retry: false,
    refetchOnWindowFocus: false,
  });
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const go = async () => {
    setBusy(true);
    setProblem(null);
    try {
      if (data?.must_sign_in) await sendChange('POST', '/api/session/invitation', { token });
      else await register(token);
      window.location.assign('/');
    } catch (failure) {
      setProblem(failure instanceof Error ? failure.message : 'The passkey did not work.');
      setBusy(false);
    }
  };
  // The URL contains the token only when the link is opened.
  if (token === '') {
    return (
      <Door title="This link has no invitation">
        <p className="quiet">Open the link in your invitation again.</p>
      </Door>
    );
  }
  if (error instanceof ApiError && error.code === 'link_ended') {
    return (
      <Door title="This invitation has ended">
        <p className="quiet">
          It was used already, or it has expired. Ask an administrator for a new one.
        </p>
      </Door>
    );
  }
  if (error) {
    return (
      <Door title="The invitation could not be read">
        <div className="stack">
          <p className="quiet">{error.message}</p>
          <Button fullWidth loading={isFetching} onClick={() => void refetch()}>
            Try again
          </Button>
        </div>
      </Door>
    );
  }
  if (!data) {
    return (
      <Door title="One moment">
        <Bones lines={3} />
      </Door>
    );
  }
  return (
    <Door title="Welcome to the console">
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void go();
        }}
      >
        <p className="quiet">
          {data.must_sign_in
            ? 'You already have access. Sign in as usual in another tab, then accept here. Your other access stays as it is. If you can no longer sign in, ask for a new invitation to the access that you have.'
            : 'Create a passkey on this device, with your fingerprint, face, PIN or security key. You sign in with it from now on.'}
        </p>
        <Facts
          rows={[
            ['Name', data.name],
            ['E-mail', data.email],
            ['Roles', data.roles.map((role) => sentence(words(role))).join(', ')],
            ['Valid until', longTime(data.expires_at)],
          ]}
        />
        {problem !== null && <Notice kind="bad">{problem}</Notice>}
        <Button type="submit" size="md" fullWidth loading={busy}>
          {data.must_sign_in ? 'Accept the invitation' : 'Create the passkey'}
        </Button>
      </form>
    </Door>
  );
}
