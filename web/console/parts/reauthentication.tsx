import { Button } from '@mantine/core';
import { useEffect, useRef, useState } from 'react';
import { offerReauthentication } from '../api.ts';
import { reauthenticate, reauthenticateInSandbox } from '../passkeys.ts';
import { useSession } from '../session.tsx';
import { Notice } from './basics.tsx';
import { Dialog } from './dialog.tsx';

type Asked = { what: string; answer: (isDone: boolean) => void };

/** Asks for the passkey before an action that moves money, shows credentials or changes people. */
export function ReauthenticationDialog() {
  const { session } = useSession();
  const isSandbox = session.method === 'sandbox_link';
  const [asked, setAsked] = useState<Asked | null>(null);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const current = useRef<Asked | null>(null);
  current.current = asked;

  useEffect(() => {
    offerReauthentication(
      (what) =>
        new Promise((answer) => {
          setProblem(null);
          setAsked({ what, answer });
        }),
    );
    return () => {
      offerReauthentication(null);
      current.current?.answer(false);
    };
  }, []);

  const end = (isDone: boolean) => {
    current.current?.answer(isDone);
    setAsked(null);
  };
  const confirm = async () => {
    setBusy(true);
    setProblem(null);
    try {
      await (isSandbox ? reauthenticateInSandbox() : reauthenticate());
      end(true);
    } catch (error) {
      setProblem(error instanceof Error ? error.message : 'The passkey did not answer.');
    } finally {
      setBusy(false);
    }
  };
  return (
    <Dialog
      opened={asked !== null}
      close={() => end(false)}
      title="Confirm that it is you"
      size="sm"
      above
    >
      <div className="stack">
        <p>
          <strong>{asked?.what}</strong> needs{' '}
          {isSandbox
            ? 'a passkey outside a sandbox. Here a click is enough.'
            : 'your passkey. Then you are not asked again for five minutes.'}
        </p>
        {problem !== null && <Notice kind="bad">{problem}</Notice>}
        <div className="row-of end">
          <Button variant="default" onClick={() => end(false)}>
            Close
          </Button>
          <Button data-autofocus loading={busy} onClick={() => void confirm()}>
            {isSandbox ? 'It is me' : 'Use the passkey'}
          </Button>
        </div>
      </div>
    </Dialog>
  );
}
