import { Button } from '@mantine/core';
import type { Sessions } from '#operating/console/session.schema.ts';
import { useQuietAction } from './actions.tsx';
import { Time } from './basics.tsx';

const methods: Record<string, string> = {
  passkey: 'passkey',
  oidc: 'your organisation',
  sandbox_link: 'sandbox link',
};

/** The browser and the system, as far as the user agent tells. */
function browserOf(agent: string): string {
  const browser = /Edg\//.test(agent)
    ? 'Edge'
    : /Firefox\//.test(agent)
      ? 'Firefox'
      : /Chrom(e|ium)\//.test(agent)
        ? 'Chrome'
        : /Safari\//.test(agent)
          ? 'Safari'
          : 'Another program';
  const system = /(Windows|Android|iPhone|iPad|Mac OS X|Linux)/.exec(agent)?.[1];
  return system ? `${browser} on ${system.replace('Mac OS X', 'macOS')}` : browser;
}

/** Open sessions, each with a button that ends it. */
export function SessionLines(props: {
  sessions: Sessions;
  pathOf: (id: string) => string;
  owner: string;
  mayRevoke: boolean;
}) {
  const { run, busy } = useQuietAction();
  if (props.sessions.data.length === 0) return <p className="quiet">None are open.</p>;
  return (
    <div className="lines">
      {props.sessions.data.map((session) => (
        <div key={session.id} className="line flush">
          <span>
            <span title={session.user_agent}>{browserOf(session.user_agent)}</span>
            <span className="quiet">
              {' '}
              · {session.address} · by {methods[session.method] ?? session.method} · active{' '}
              <Time at={session.seen_at} />
            </span>
          </span>
          {session.current ? (
            <span className="chip plain">This session</span>
          ) : (
            props.mayRevoke && (
              <Button
                size="compact-sm"
                variant="default"
                color="danger"
                disabled={busy}
                aria-label={`End the session of ${props.owner} from ${session.address}, ${browserOf(session.user_agent)}`}
                onClick={() =>
                  void run({
                    method: 'DELETE',
                    path: props.pathOf(session.id),
                    what: `End the session of ${props.owner}`,
                    said: () => 'The session has ended.',
                  })
                }
              >
                End
              </Button>
            )
          )}
        </div>
      ))}
    </div>
  );
}
