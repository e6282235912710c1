import { useState } from 'react';
import type { AlertRow } from '../../../src/console/audit.schema.ts';
import { About, AlertDialog, alertName, alertStates, ownerColumn } from '../parts/alert.tsx';
import { PageHead, Status, Time } from '../parts/basics.tsx';
import { Tabs } from '../parts/filters.tsx';
import { type Column, List } from '../parts/list.tsx';
import { useCan } from '../session.tsx';
import { useFilters, useOpened } from '../url.ts';

const nameOf = (kind: string) => alertName(kind.replace(/^gateway_/, ''));

const columns: Column<AlertRow>[] = [
  { head: 'Difference', cell: (row) => <strong>{nameOf(row.kind)}</strong> },
  { head: 'State', cell: (row) => <Status of={row.state} />, phone: 'end' },
  {
    head: 'What to do',
    grow: true,
    cell: (row) => <span className="break">{row.detail}</span>,
    phone: 'full',
  },
  { head: 'About', cell: (row) => <About of={row} />, phone: 'sub' },
  ownerColumn,
  { head: 'Found', right: true, cell: (row) => <Time at={row.at} />, phone: 'sub' },
];

export default function FindingsPage() {
  const can = useCan();
  const [filters] = useFilters();
  const { opened, hrefOf, close } = useOpened('finding');
  const [version, setVersion] = useState(0);
  return (
    <>
      <PageHead
        title="Reconciliation"
        about="Where the gateway’s records differ from ours. They are compared once a day."
      />
      <div className="filters">
        <Tabs name="state" label="Which differences" fallback="" options={alertStates} />
      </div>
      <List
        path="/api/findings"
        takes={['state']}
        label="Differences"
        wrap
        columns={columns}
        keyOf={(row) => row.id}
        hrefOf={(row) => hrefOf(row.id)}
        version={version}
        empty={{
          icon: 'check',
          title: 'The gateway and our books agree',
          text: 'No difference is open. A new one appears here after the daily comparison.',
          filtered:
            filters.state === 'closed'
              ? 'No difference was closed yet'
              : 'No difference is in this state',
        }}
      />
      {opened && (
        <AlertDialog
          key={opened}
          id={opened}
          path="/api/findings"
          noun="difference"
          nameOf={nameOf}
          mayTake={false}
          mayClose={can('findings.close')}
          close={close}
          done={() => setVersion((value) => value + 1)}
        />
      )}
    </>
  );
}
