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
import { useText } from '../parts/text.ts';
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
  const [isChanged, setChanged] = useState(false);
  const others = sessions.data?.data.filter(({ current }) => !current).length ?? 0;
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
          {passkeys.data ? (
            <PasskeyLines of={passkeys.data} changed={() => setChanged(true)} />
          ) : (
            <Unread of={passkeys} lines={2} />
          )}
          {isChanged && others > 0 && (
            <Notice kind="warn">
              <div className="stack tight">
                <span>
                  Your other sessions stay open. If you do not recognise one, end them all.
                </span>
                <EndOthers count={others} />
              </div>
            </Notice>
          )}
          <AddPasskey changed={() => setChanged(true)} />
        </div>
      </Card>
      {passkeys.data?.issuer && <IssuerCard of={passkeys.data.issuer} />}
      <Card title="Open sessions">
        {sessions.data ? (
          <div className="stack">
            <SessionLines
              sessions={sessions.data}
              pathOf={(id) => `/api/sessions/${id}`}
              owner={person.name}
              mayRevoke
            />
            {others > 0 && <EndOthers count={others} />}
          </div>
        ) : (
          <Unread of={sessions} lines={2} />
        )}
      </Card>
    </>
  );
}

/** The person's passkeys. Each has a button to remove it, unless it is the only one. */
function PasskeyLines({ of: { data: rows }, changed }: { of: Passkeys; changed: () => void }) {
  const { run, busy } = useQuietAction();
  if (rows.length === 0) return <p className="quiet">You have no passkeys.</p>;
  return (
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
                  said: () => 'The passkey was removed.',
                }).then((answer) => answer && changed())
              }
            >
              Remove
            </Button>
          )}
        </div>
      ))}
    </div>
  );
}

/** Ends all sessions but this one. */
function EndOthers({ count }: { count: number }) {
  const { run, busy } = useQuietAction();
  return (
    <div>
      <Button
        size="compact-sm"
        variant="default"
        color="danger"
        disabled={busy}
        onClick={() =>
          void run({
            path: '/api/sessions/end-others',
            what: 'End your other sessions',
            said: () => 'Your other sessions have ended.',
          })
        }
      >
        {count === 1 ? 'End the other session' : `End the ${count} other sessions`}
      </Button>
    </div>
  );
}

/** The person's account at the issuer. Linking it asks for the passkey. */
function IssuerCard({ of: { is_tied } }: { of: { is_tied: boolean } }) {
  const { run, busy } = useQuietAction();
  const isRefused = new URLSearchParams(window.location.search).has('refused');
  return (
    <Card title="Company sign-in">
      <div className="stack tight">
        {isRefused && !is_tied && (
          <Notice kind="bad">
            The account was not linked. It must have your e-mail address and belong to no other
            person.
          </Notice>
        )}
        {is_tied ? (
          <p>Your company account is linked. You can sign in with it.</p>
        ) : (
          <>
            <p className="quiet">Link your company account to sign in with it as well.</p>
            <div>
              <Button
                size="compact-sm"
                variant="default"
                disabled={busy}
                onClick={() =>
                  void run<{ url: string }>({
                    path: '/api/issuer/tie',
                    what: 'Link your company account',
                  }).then((answer) => {
                    if (answer) window.location.assign(answer.url);
                  })
                }
              >
                Link the account
              </Button>
            </div>
          </>
        )}
      </div>
    </Card>
  );
}

function AddPasskey({ changed }: { changed: () => void }) {
  const [name, nameField, setName] = useText('', 'passkey');
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const client = useQueryClient();
  const add = async () => {
    setBusy(true);
    setProblem(null);
    try {
      await addPasskey(name.trim());
      setName('');
      changed();
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
          placeholder="For example: security key"
          maxLength={100}
          w={260}
          {...nameField}
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
