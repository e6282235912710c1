import { Button, Textarea } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Link } from 'wouter';
import type { AlertRow } from '../../../src/console/audit.schema.ts';
import { get } from '../api.ts';
import { sentence, words } from '../format.ts';
import { ActDialog, useAct } from './acts.tsx';
import { Facts, Id, Status, Time } from './basics.tsx';
import type { Column } from './list.tsx';
import { Bones, Problem } from './states.tsx';

/** What an alert is called: `gateway_other_amount` is `Other amount` where all are the gateway's. */
export const alertName = (kind: string) => sentence(words(kind));

export const alertStates = [
  { value: '', label: 'Open and taken' },
  { value: 'open', label: 'Open' },
  { value: 'taken', label: 'Taken' },
  { value: 'closed', label: 'Done' },
];

/** What the alert is about. */
export function About({ of: row }: { of: AlertRow }) {
  if (row.merchant_id)
    return <Link href={`/merchants/${row.merchant_id}`}>{row.merchant_name}</Link>;
  if (row.integration_id) {
    return <Link href={`/integrations/${row.integration_id}`}>Integration</Link>;
  }
  return <span className="quiet">The service</span>;
}

export const ownerColumn: Column<AlertRow> = {
  head: 'Owner',
  cell: (row) =>
    row.state === 'closed' ? (
      <span title={row.close_reason ?? ''}>
        {row.closed_by}: <span className="quiet">{row.close_reason}</span>
      </span>
    ) : (
      (row.taken_by ?? <span className="quiet">Not taken yet</span>)
    ),
  phone: 'sub',
};

/** One alert or finding with everything that is known of it, and what a person does about it. */
export function AlertDialog(props: {
  id: string;
  /** `/api/alerts` or `/api/findings`. */
  path: string;
  noun: string;
  nameOf: (kind: string) => string;
  mayTake: boolean;
  mayClose: boolean;
  close: () => void;
  done: () => void;
}) {
  const { id, path, noun } = props;
  const { data, error, refetch } = useQuery({
    queryKey: [path, id],
    queryFn: ({ signal }) => get<AlertRow>(`${path}/${id}`, {}, signal),
  });
  const [reason, setReason] = useState('');
  const { run, busy, problem } = useAct();
  const mayClose = props.mayClose && data !== undefined && data.state !== 'closed';
  const what = `Close the ${noun}`;
  return (
    <ActDialog
      title={data ? props.nameOf(data.kind) : sentence(noun)}
      size="lg"
      opened
      close={props.close}
      what={what}
      hideAct={!mayClose}
      {...(mayClose && { leave: 'Not now' })}
      disabled={reason.trim() === ''}
      busy={busy}
      problem={problem}
      before={
        props.mayTake &&
        data?.state === 'open' && (
          <Button
            variant="light"
            disabled={busy}
            onClick={() =>
              void run({
                path: `${path}/${id}/take`,
                what: `Take the ${noun}`,
                said: () => `The ${noun} is yours.`,
              })
            }
          >
            Take the {noun}
          </Button>
        )
      }
      onAct={() =>
        void run({
          path: `${path}/${id}/close`,
          body: { reason: reason.trim() },
          what,
          said: () => `The ${noun} is closed.`,
        }).then((answer) => {
          if (answer === null) return;
          props.done();
          props.close();
        })
      }
    >
      {error ? (
        <Problem error={error} retry={() => void refetch()} />
      ) : !data ? (
        <Bones lines={5} />
      ) : (
        <>
          <p className="break">{data.detail}</p>
          <Facts
            rows={[
              ['State', <Status key="state" of={data.state} />],
              ['Raised', <Time key="at" at={data.at} exact />],
              ['About', <About key="about" of={data} />],
              [
                'Concerns',
                data.subject_id && (
                  <Link href={`/search?q=${data.subject_id}`} className="mono">
                    {data.subject_id}
                  </Link>
                ),
              ],
              [
                'Taken',
                data.taken_at && (
                  <>
                    <Time at={data.taken_at} exact /> by {data.taken_by}
                  </>
                ),
              ],
              [
                'Closed',
                data.closed_at && (
                  <>
                    <Time at={data.closed_at} exact /> by {data.closed_by}
                  </>
                ),
              ],
              ['Reason', data.close_reason],
              ['Id', <Id key="id" id={data.id} whole />],
            ]}
          />
          {mayClose && (
            <Textarea
              label="What was done"
              description={`It stays beside the ${noun} and in the audit.`}
              data-autofocus
              rows={3}
              maxLength={500}
              value={reason}
              onChange={(event) => setReason(event.currentTarget.value)}
            />
          )}
        </>
      )}
    </ActDialog>
  );
}
