import { Button, TextInput } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { Passkeys, Sessions } from '#operating/console/session.schema.ts';
import { get } from '../api.ts';
import { sentence, words } from '../format.ts';
import { problemOf, useQuietAction } from '../parts/actions.tsx';
import { Card, Facts, Notice, PageHead, Time } from '../parts/basics.tsx';
import { SessionLines } from '../parts/sessions.tsx';
import { Unread } from '../parts/states.tsx';
import { addPasskey } from '../passkeys.ts';
import { useSession } from '../session.tsx';

/** The person's own passkeys and sessions. */
export default function Me() {
  const { person, scope } = useSession();
  const passkeys = useQuery({
    queryKey: ['/api/passkeys'],
    queryFn: ({ signal }) => get<Passkeys>('/api/passkeys', {}, signal),
  });
  const sessions = useQuery({
    queryKey: ['/api/sessions'],
    queryFn: ({ signal }) => get<Sessions>('/api/sessions', {}, signal),
  });
  const { run, busy } = useQuietAction();
  const rows = passkeys.data?.data ?? [];
  return (
    <>
      <PageHead title={person.name} about={person.email} />
      <Card title="What you may do">
        <Facts
          rows={[
            ['Roles', person.roles.map((role) => sentence(words(role))).join(', ')],
            ['Merchants', scope === 'all' ? 'All' : String(scope.length)],
          ]}
        />
      </Card>
      <Card title="Passkeys">
        <div className="stack">
          {!passkeys.data ? (
            <Unread of={passkeys} lines={2} />
          ) : rows.length === 0 ? (
            <p className="quiet">You have none.</p>
          ) : (
            <div className="lines">
              {rows.map((passkey) => (
                <div key={passkey.id} className="line flush">
                  <span>
                    {passkey.name}
                    <span className="quiet">
                      {' '}
                      · since <Time at={passkey.created_at} exact /> ·{' '}
                      {passkey.used_at ? (
                        <>
                          used <Time at={passkey.used_at} />
                        </>
                      ) : (
                        'not used yet'
                      )}
                    </span>
                  </span>
                  {rows.length > 1 && (
                    <Button
                      size="compact-sm"
                      variant="default"
                      color="danger"
                      disabled={busy}
                      aria-label={`Remove the passkey ${passkey.name}`}
                      onClick={() =>
                        void run({
                          method: 'DELETE',
                          path: `/api/passkeys/${passkey.id}`,
                          what: `Remove the passkey ${passkey.name}`,
                          said: () => 'The passkey is removed.',
                        })
                      }
                    >
                      Remove
                    </Button>
                  )}
                </div>
              ))}
            </div>
          )}
          <AddPasskey />
        </div>
      </Card>
      <Card title="Open sessions">
        {sessions.data ? (
          <SessionLines
            sessions={sessions.data}
            pathOf={(id) => `/api/sessions/${id}`}
            owner={person.name}
            mayRevoke
          />
        ) : (
          <Unread of={sessions} lines={2} />
        )}
      </Card>
    </>
  );
}

function AddPasskey() {
  const [name, setName] = useState('');
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const client = useQueryClient();
  const add = async () => {
    setBusy(true);
    setProblem(null);
    try {
      await addPasskey(name.trim());
      setName('');
      await client.invalidateQueries();
    } catch (error) {
      setProblem(problemOf(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <form
      className="stack tight"
      onSubmit={(event) => {
        event.preventDefault();
        void add();
      }}
    >
      <div className="row-of">
        <TextInput
          aria-label="Name of the new passkey"
          placeholder="Such as: security key"
          maxLength={100}
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
        />
        <Button type="submit" variant="default" loading={busy} disabled={name.trim() === ''}>
          Add a passkey
        </Button>
      </div>
      {problem !== null && <Notice kind="bad">{problem}</Notice>}
      <p className="quiet small">A second passkey on another device helps when one is lost.</p>
    </form>
  );
}
