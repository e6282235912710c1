import { Button } from '@mantine/core';
import { useState } from 'react';
import { Link } from 'wouter';
import type { AlertRow } from '../../../src/console/audit.schema.ts';
import { words } from '../format.ts';
import { useQuietAct } from '../parts/acts.tsx';
import { About, AlertDialog, alertName, alertStates, ownerColumn } from '../parts/alert.tsx';
import { PageHead, Status, Time } from '../parts/basics.tsx';
import { Tabs } from '../parts/filters.tsx';
import { type Column, List } from '../parts/list.tsx';
import { useCan } from '../session.tsx';
import { useFilters, useOpened } from '../url.ts';

export default function AlertsPage() {
  const can = useCan();
  const [filters] = useFilters();
  const { opened, hrefOf, close } = useOpened('alert');
  const [version, setVersion] = useState(0);
  const { run, busy } = useQuietAct();
  const state = filters.state ?? '';
  const columns: Column<AlertRow>[] = [
    { head: 'Alert', cell: (row) => <strong>{alertName(row.kind)}</strong> },
    { head: 'State', cell: (row) => <Status of={row.state} />, phone: 'end' },
    {
      head: 'What happened',
      grow: true,
      cell: (row) => <span className="break">{row.detail}</span>,
      phone: 'full',
    },
    { head: 'About', cell: (row) => <About of={row} />, phone: 'sub' },
    ownerColumn,
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
              component={Link}
              href={hrefOf(row.id)}
              aria-label={`Close the alert: ${words(row.kind)}`}
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
        <Tabs name="state" label="Which alerts" fallback="" options={alertStates} />
      </div>
      <List
        path="/api/alerts"
        takes={['state']}
        label="Alerts"
        wrap
        columns={columns}
        keyOf={(row) => row.id}
        hrefOf={(row) => hrefOf(row.id)}
        version={version}
        empty={{
          icon: 'check',
          title: 'No alert is open',
          text: 'The service raises one when a person has to look at something.',
          filtered: state === 'closed' ? 'No alert was closed yet' : 'No alert is in this state',
        }}
      />
      {opened && (
        <AlertDialog
          key={opened}
          id={opened}
          path="/api/alerts"
          noun="alert"
          nameOf={alertName}
          mayTake={can('alerts.handle')}
          mayClose={can('alerts.handle')}
          close={close}
          done={() => setVersion((value) => value + 1)}
        />
      )}
    </>
  );
}
