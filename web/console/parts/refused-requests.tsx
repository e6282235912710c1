import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type {
  RefusedRequests as Answer,
  IntegrationRow,
} from '#operating/operations/integration.schema.ts';
import { fetchList } from '../api.ts';
import { plural } from '../format.ts';
import { useSession } from '../session.tsx';
import { Raw } from './attempts.tsx';
import { Card, Time } from './basics.tsx';
import { Problem } from './states.tsx';

type Refused = Answer['data'][number];

/**
 * The newest requests from an integration that had a wrong signature. Shows nothing if there are
 * none.
 */
export function RefusedRequests({ of: row }: { of: IntegrationRow }) {
  const { scope } = useSession();
  const path = `/api/integrations/${row.id}/refused-requests`;
  const found = useQuery({
    queryKey: [path],
    queryFn: ({ signal }) => fetchList<Answer>(path, {}, signal, 'Show the refused signatures'),
    // An intermediary's requests may be about several merchants, so only our staff may read them.
    enabled: !row.intermediary || scope === 'all',
  });
  const answer = found.data;
  if (!answer && found.error) {
    return (
      <Card title="Refused signatures">
        <Problem error={found.error} retry={() => void found.refetch()} />
      </Card>
    );
  }
  if (!answer || answer.data.length === 0) return null;
  return (
    <Card
      title="Refused signatures"
      aside={`${plural(answer.data.length, 'request')} in 3 days`}
      bare
    >
      <div className="lines">
        {answer.data.map((one) => (
          <Row key={one.id} of={one} doctor={answer.doctor_url} />
        ))}
      </div>
    </Card>
  );
}

function Row({ of: one, doctor }: { of: Refused; doctor: string }) {
  const [shown, setShown] = useState(false);
  const isWhole = new TextEncoder().encode(one.body).length === one.body_bytes;
  const filled = encodeURIComponent(JSON.stringify({ body: one.body, header: one.header }));
  return (
    <details className="line-details" onToggle={(event) => setShown(event.currentTarget.open)}>
      <summary>
        <span className="row-of">
          <span className="mono break">{one.request}</span>
          <span className="quiet small">
            <Time at={one.at} exact />
          </span>
        </span>
        <span className="quiet small block">
          {one.mistake ?? 'It was made with another key, or over another body.'}
        </span>
      </summary>
      {shown && (
        <div className="stack tight">
          <h3>What we received</h3>
          <Raw>
            {`X-Signature: ${one.header}`}
            {one.user_agent && `\nUser-Agent: ${one.user_agent}`}
            {`\n\n${one.body}`}
          </Raw>
          <h3>What we expected</h3>
          <Raw>{`X-Signature: ${one.expected}`}</Raw>
          {isWhole ? (
            <a href={`${doctor}#${filled}`} target="_blank" rel="noreferrer">
              Open it in the signature doctor
            </a>
          ) : (
            <p className="quiet small">
              This is not the whole body, so the doctor cannot compare it: it had {one.body_bytes}{' '}
              bytes, or it contained a secret, which is left out here.
            </p>
          )}
        </div>
      )}
    </details>
  );
}
