import { Button } from '@mantine/core';
import { Link } from 'wouter';
import type { AlertRow } from '#operating/operations/audit.schema.ts';
import { words } from '../format.ts';
import { useQuietAction } from '../parts/actions.tsx';
import { AlertsFrame, alertName } from '../parts/alert.tsx';
import { useCan } from '../session.tsx';

export default function AlertsPage() {
  const can = useCan();
  const { run, busy } = useQuietAction();
  const take = ({ id }: AlertRow) =>
    void run({
      path: `/api/alerts/${id}/take`,
      what: 'Take the alert',
      said: () => 'The alert is yours.',
    });
  const actions = (row: AlertRow, href: string) =>
    row.state === 'closed' ? null : (
      <span className="actions">
        {row.state === 'open' && row.close_refusal === null && (
          <Button
            size="xs"
            variant="light"
            disabled={busy}
            aria-label={`Take the alert: ${words(row.kind)}`}
            onClick={() => take(row)}
          >
            Take
          </Button>
        )}
        <Button
          size="xs"
          variant="default"
          component={Link}
          href={href}
          aria-label={`Close the alert: ${words(row.kind)}`}
        >
          Close…
        </Button>
      </span>
    );
  return (
    <AlertsFrame
      title="Alerts"
      about="What the service noticed and a person has to look at."
      path="/api/alerts"
      label="Alerts"
      noun="alert"
      parameter="alert"
      nameOf={alertName}
      heads={{ name: 'Alert', detail: 'What happened', at: 'Age' }}
      empty={{
        title: 'No alert is open',
        text: 'The service raises one when a person has to look at something.',
      }}
      mayTake={can('alerts.handle')}
      mayClose={can('alerts.handle')}
      {...(can('alerts.handle') && { actions })}
    />
  );
}
