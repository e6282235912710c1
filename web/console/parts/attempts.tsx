import { type ReactNode, useState } from 'react';
import type { RetriedCallback } from '#operating/operations/callback.schema.ts';
import type { CallbackAttempt, CallbackDetails } from '#operating/operations/checkout.schema.ts';
import { count, duration, plural, reasonWords, sentence } from '../format.ts';
import { Status, Time } from './basics.tsx';

const shownMax = 3;

/** Delivers a callback now. The message says whether the receiver accepted it. */
export const resend = (row: { id: string; client_reference_id?: string | null }) => ({
  path: `/api/callbacks/${row.id}/retry`,
  what: 'Resend the callback',
  said: ({ status, reason }: RetriedCallback) =>
    status === 'delivered'
      ? `Delivered${row.client_reference_id ? `: ${row.client_reference_id}` : ''}.`
      : `Not delivered${reason ? `: ${reasonWords(reason)}` : ''}.`,
  isFailed: ({ status }: RetriedCallback) => status !== 'delivered',
});

/** Every attempt to deliver a callback, with its request and its response. */
export function Attempts({ of: callback, zone }: { of: CallbackDetails; zone?: string }) {
  const [all, setAll] = useState(false);
  const newest = callback.history.toReversed();
  if (callback.history.length === 0) return <p className="quiet">It has not been attempted yet.</p>;
  return (
    <div className="stack tight">
      {(all ? newest : newest.slice(0, shownMax)).map((attempt) => (
        <Attempt
          key={attempt.number}
          of={attempt}
          payload={callback.payload}
          isNewest={attempt === newest[0]}
          {...(zone && { zone })}
        />
      ))}
      {!all && newest.length > shownMax && (
        <button type="button" className="link" onClick={() => setAll(true)}>
          Show all {count(newest.length)} attempts
        </button>
      )}
      {callback.attempts_expired > 0 && (
        <p className="quiet small">
          Deleted after their retention time: {plural(callback.attempts_expired, 'earlier attempt')}
          .
        </p>
      )}
    </div>
  );
}

/** A request or an answer, unchanged. It scrolls, so it must be reachable by keyboard. */
export const Raw = ({ children }: { children: ReactNode }) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keys.
  <pre className="raw" tabIndex={0}>
    {children}
  </pre>
);

function Attempt(props: {
  of: CallbackAttempt;
  payload: string;
  isNewest: boolean;
  zone?: string;
}) {
  const { of: attempt } = props;
  const [shown, setShown] = useState(props.isNewest);
  return (
    <details className="card" open={shown} onToggle={(event) => setShown(event.currentTarget.open)}>
      <summary className="attempt">
        <span>
          <strong>Attempt {attempt.number}</strong>{' '}
          <Status
            of={attempt.outcome}
            {...(attempt.outcome === 'unknown' && { name: 'No outcome' })}
          />
        </span>
        <span className="quiet break">
          {attempt.reason !== null
            ? reasonWords(attempt.reason)
            : attempt.response_status && `HTTP ${attempt.response_status}`}
        </span>
        <span className="quiet small">
          {attempt.milliseconds !== null && `${duration(attempt.milliseconds)} · `}
          <Time at={attempt.started_at} {...(props.zone && { zone: props.zone })} exact />
        </span>
      </summary>
      {shown && (
        <div className="card-body stack tight">
          <h3>Sent{attempt.operator && <span className="quiet"> by {attempt.operator}</span>}</h3>
          <Raw>
            {headerLines(attempt.request_headers)}
            {'\n\n'}
            {props.payload}
          </Raw>
          <h3>
            Answered{' '}
            <span className="quiet small">
              {[attempt.address, attempt.tls_version].filter(Boolean).join(', ')}
            </span>
          </h3>
          {attempt.response_status === null ? (
            <p className="quiet">
              {attempt.reason ? sentence(reasonWords(attempt.reason)) : 'There was no answer.'}
            </p>
          ) : (
            <Raw>
              HTTP {attempt.response_status}
              {'\n'}
              {headerLines(attempt.response_headers ?? {})}
              {'\n\n'}
              {attempt.response_body ?? ''}
            </Raw>
          )}
          {attempt.response_body_bytes !== null && (
            <p className="quiet small">
              The whole body was {count(attempt.response_body_bytes)} bytes long.
            </p>
          )}
        </div>
      )}
    </details>
  );
}

function headerLines(headers: Record<string, string | string[]>): string {
  return Object.entries(headers)
    .flatMap(([name, value]) => [value].flat().map((one) => `${name}: ${one}`))
    .join('\n');
}
