import { Button, TextInput } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { Link } from 'wouter';
import type { AlertRow } from '#operating/operations/audit.schema.ts';
import { sendChange } from '../api.ts';
import { plural, words } from '../format.ts';
import { ActionDialog, problemOf } from '../parts/actions.tsx';
import { AlertsFrame, alertName } from '../parts/alert.tsx';
import { AlertButton } from '../parts/alert-button.tsx';
import { useText } from '../parts/text.ts';
import { useCan } from '../session.tsx';

export default function AlertsPage() {
  const can = useCan();
  const mayHandle = can('alerts.handle');
  const [picked, setPicked] = useState(new Set<string>());
  const [rows, setRows] = useState<AlertRow[]>([]);
  const [version, setVersion] = useState(0);
  const chosen = rows.filter((row) => picked.has(row.id));
  const actions = (row: AlertRow, href: string) =>
    row.state === 'closed' ? null : (
      <span className="actions">
        <AlertButton of={row} />
        {mayHandle && (
          <Button
            size="xs"
            variant="default"
            component={Link}
            href={href}
            aria-label={`Close the alert: ${words(row.kind)}`}
          >
            Close…
          </Button>
        )}
      </span>
    );
  return (
    <>
      <AlertsFrame
        title="Alerts"
        about="What a person has to do. An alert closes by itself when its cause ends."
        path="/api/alerts"
        label="Alerts"
        noun="alert"
        parameter="alert"
        nameOf={alertName}
        heads={{ name: 'Kind', detail: 'What happened', at: 'Raised' }}
        empty={{
          title: 'Nothing to do',
          text: 'A payment that stays late, a refund that fails or a shop that cannot be reached appears here.',
        }}
        mayTake={mayHandle}
        mayClose={mayHandle}
        actions={actions}
        withKinds
        onRows={setRows}
        version={version}
        {...(mayHandle && {
          picking: {
            picked,
            set: setPicked,
            can: (row: AlertRow) => row.state !== 'closed' && row.close_refusal === null,
          },
        })}
      />
      {chosen.length > 0 && (
        <Selected
          rows={chosen}
          clear={() => setPicked(new Set())}
          done={() => setVersion((value) => value + 1)}
        />
      )}
    </>
  );
}

/** Closes the selected alerts, all with the same reason. */
function Selected(props: { rows: AlertRow[]; clear: () => void; done: () => void }) {
  const { rows, clear } = props;
  const client = useQueryClient();
  const [asking, setAsking] = useState(false);
  const [reason, reasonField] = useText('');
  // The progress counts the alerts that were selected at the start, because closed ones leave the
  // list.
  const [progress, setProgress] = useState<{ done: number; total: number } | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const what = `Close ${plural(rows.length, 'alert')}`;
  async function closeAll() {
    setProblem(null);
    try {
      for (const [index, { id }] of rows.entries()) {
        setProgress({ done: index, total: rows.length });
        await sendChange('POST', `/api/alerts/${id}/close`, { reason: reason.trim() }, what);
      }
      setAsking(false);
      clear();
    } catch (error) {
      setProblem(problemOf(error));
    } finally {
      setProgress(null);
      await client.invalidateQueries();
      props.done();
    }
  }
  return (
    <section className="picked" aria-label="Selected alerts">
      <span>
        <strong>{plural(rows.length, 'alert')}</strong> selected.
      </span>
      <span className="row-of">
        <Button variant="default" onClick={clear}>
          Clear
        </Button>
        <Button onClick={() => setAsking(true)}>{what}…</Button>
      </span>
      <ActionDialog
        title={what}
        opened={asking}
        close={() => setAsking(false)}
        what={progress ? `Closing ${progress.done + 1} of ${progress.total}` : what}
        disabled={reason.trim() === ''}
        busy={progress !== null}
        problem={problem}
        onAction={() => void closeAll()}
      >
        <TextInput
          label="What was done"
          description="It stays beside each alert and in the audit."
          data-autofocus
          maxLength={500}
          {...reasonField}
        />
      </ActionDialog>
    </section>
  );
}
