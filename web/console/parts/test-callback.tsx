import { TextInput } from '@mantine/core';
import { useState } from 'react';
import type { IntegrationRow, TestedCallback } from '#operating/operations/integration.schema.ts';
import { count, duration } from '../format.ts';
import { ActionDialog, useAction } from './actions.tsx';
import { Raw } from './attempts.tsx';
import { Notice } from './basics.tsx';
import { useText } from './text.ts';

/** Sends a test callback to a URL, and shows the answer below the field. */
export function TestCallback({ of: row, close }: { of: IntegrationRow; close: () => void }) {
  const [url, urlField] = useText(row.events_url ?? '');
  const [tested, setTested] = useState<TestedCallback | null>(null);
  const { run, busy, problem } = useAction();
  const what = tested ? 'Send it again' : 'Send a test callback';
  async function send() {
    setTested(null);
    const path = `/api/integrations/${row.id}/test-callback`;
    setTested(await run<TestedCallback>({ path, body: { url: url.trim() }, what }));
  }
  return (
    <ActionDialog
      title="Test callback"
      opened
      close={close}
      what={what}
      size="lg"
      busy={busy}
      problem={problem}
      disabled={url.trim() === ''}
      onAction={() => void send()}
    >
      <p className="quiet">
        One callback goes to this address, signed with the newest signing key in use. It has{' '}
        <code>"test": true</code> and reports a cancelled order that does not exist, so no order
        becomes paid.
      </p>
      <TextInput
        label="Address"
        placeholder="https://shop.example/tranche/callback"
        type="url"
        {...urlField}
      />
      <div role="status">{tested && <Answer of={tested} />}</div>
    </ActionDialog>
  );
}

function Answer({ of: tested }: { of: TestedCallback }) {
  const { response_status: status, response_body: body, response_body_bytes: bytes } = tested;
  const took = tested.milliseconds === null ? null : duration(Math.round(tested.milliseconds));
  return (
    <div className="stack tight">
      {tested.delivered ? (
        <Notice icon="check">{tested.summary}</Notice>
      ) : (
        <Notice kind="warn">{tested.summary}</Notice>
      )}
      <h3>Sent</h3>
      <Raw>{tested.payload}</Raw>
      {status !== null && (
        <>
          <h3>
            Answered <span className="quiet">{took && `after ${took}`}</span>
          </h3>
          <Raw>
            HTTP {status}
            {body && `\n\n${body}`}
          </Raw>
          {bytes !== null && bytes > (body?.length ?? 0) && (
            <p className="quiet small">The whole body was {count(bytes)} bytes long.</p>
          )}
        </>
      )}
    </div>
  );
}
