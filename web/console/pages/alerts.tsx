import { Button, Textarea } from '@mantine/core';
import { useState } from 'react';
import { Link } from 'wouter';
import type { AlertRow } from '../../../src/console/audit.schema.ts';
import { sentence, words } from '../format.ts';
import { ActDialog, useAct, useQuietAct } from '../parts/acts.tsx';
import { PageHead, Status, Time } from '../parts/basics.tsx';
import { Tabs } from '../parts/filters.tsx';
import { type Column, List } from '../parts/list.tsx';
import { useCan } from '../session.tsx';
import { useFilters } from '../url.ts';

export default function AlertsPage() {
  const can = useCan();
  const [filters] = useFilters();
  const [closing, setClosing] = useState<AlertRow | null>(null);
  const [version, setVersion] = useState(0);
  const { run, busy } = useQuietAct();
  const state = filters.state ?? '';
  const columns: Column<AlertRow>[] = [
    { head: 'Alert', cell: (row) => <strong>{sentence(words(row.kind))}</strong> },
    { head: 'State', cell: (row) => <Status of={row.state} />, phone: 'end' },
    {
      head: 'What happened',
      grow: true,
      cell: (row) => <span className="break">{row.detail}</span>,
      phone: 'full',
    },
    {
      head: 'About',
      cell: (row) =>
        row.merchant_id ? (
          <Link href={`/merchants/${row.merchant_id}`}>{row.merchant_name}</Link>
        ) : row.integration_id ? (
          <Link href={`/integrations/${row.integration_id}`}>Integration</Link>
        ) : (
          <span className="quiet">The service</span>
        ),
      phone: 'sub',
    },
    {
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
    },
    { head: 'Age', right: true, cell: (row) => <Time at={row.at} />, phone: 'sub' },
    {
      head: 'Acts',
      right: true,
      phone: 'full',
      acts: true,
      cell: (row) =>
        can('alerts.handle') && row.state !== 'closed' ? (
          <span className="acts">
            {row.state === 'open' && (
              <Button
                size="xs"
                variant="light"
                disabled={busy}
                aria-label={`Take the alert: ${words(row.kind)}`}
                onClick={() =>
                  void run({
                    path: `/api/alerts/${row.id}/take`,
                    what: 'Take the alert',
                    said: () => 'The alert is yours.',
                  })
                }
              >
                Take
              </Button>
            )}
            <Button
              size="xs"
              variant="default"
              aria-label={`Close the alert: ${words(row.kind)}`}
              onClick={() => setClosing(row)}
            >
              Close…
            </Button>
          </span>
        ) : null,
    },
  ];
  return (
    <>
      <PageHead title="Alerts" about="What the service noticed and a person has to look at." />
      <div className="filters">
        <Tabs
          name="state"
          label="Which alerts"
          fallback=""
          options={[
            { value: '', label: 'Open and taken' },
            { value: 'open', label: 'Open' },
            { value: 'taken', label: 'Taken' },
            { value: 'closed', label: 'Done' },
          ]}
        />
      </div>
      <List
        path="/api/alerts"
        takes={['state']}
        label="Alerts"
        wrap
        columns={columns}
        keyOf={(row) => row.id}
        version={version}
        empty={{
          icon: 'check',
          title: 'No alert is open',
          text: 'The service raises one when a person has to look at something.',
          filtered: state === 'closed' ? 'No alert was closed yet' : 'No alert is in this state',
        }}
      />
      {closing && (
        <CloseAlert
          of={closing}
          close={() => setClosing(null)}
          done={() => setVersion((value) => value + 1)}
        />
      )}
    </>
  );
}

function CloseAlert(props: { of: AlertRow; close: () => void; done: () => void }) {
  const [reason, setReason] = useState('');
  const { run, busy, problem } = useAct();
  const what = 'Close the alert';
  return (
    <ActDialog
      title={sentence(words(props.of.kind))}
      opened
      close={props.close}
      what={what}
      disabled={reason.trim() === ''}
      busy={busy}
      problem={problem}
      onAct={() =>
        void run({
          path: `/api/alerts/${props.of.id}/close`,
          body: { reason: reason.trim() },
          what,
          said: () => 'The alert is closed.',
        }).then((answer) => {
          if (answer === null) return;
          props.done();
          props.close();
        })
      }
    >
      <p className="break">{props.of.detail}</p>
      <Textarea
        label="What was done"
        data-autofocus
        rows={3}
        maxLength={500}
        value={reason}
        onChange={(event) => setReason(event.currentTarget.value)}
      />
    </ActDialog>
  );
}
