import { Select, TextInput } from '@mantine/core';
import { useState } from 'react';
import type {
  IntegrationRow,
  IssuedV1Credentials,
  RotatedCredential,
} from '#operating/operations/integration.schema.ts';
import { exactTime, plural } from '../format.ts';
import { ActionDialog, SingleActionDialog, useAction } from '../parts/actions.tsx';
import { Notice } from '../parts/basics.tsx';
import { MerchantsSelect } from '../parts/merchants.tsx';
import { Secrets } from '../parts/secrets.tsx';
import { ownerOf, RefundModeSelect } from './integrations.tsx';

export type Credential = 'client_secret' | 'signing_key';
const names: Record<Credential, string> = {
  client_secret: 'client secret',
  signing_key: 'signing key',
};

export type Limit = IntegrationRow['limits'][number];
export type V1Action = 'enable' | 'disable';

const overlaps = [
  { value: '0', label: 'Not at all: it ends now' },
  { value: '3600', label: 'For an hour' },
  { value: '86400', label: 'For a day' },
  { value: '604800', label: 'For 7 days' },
];

export function Rotate(props: { of: IntegrationRow; credential: Credential; close: () => void }) {
  const { credential } = props;
  const [overlap, setOverlap] = useState('86400');
  const [rotated, setRotated] = useState<RotatedCredential | null>(null);
  const { run, busy, problem } = useAction();
  const what = `Rotate the ${names[credential]} of ${ownerOf(props.of)}`;
  return (
    <ActionDialog
      title={rotated ? `The new ${names[credential]}` : `Rotate the ${names[credential]}`}
      opened
      close={props.close}
      what={what}
      hideAction={rotated !== null}
      danger={overlap === '0'}
      busy={busy}
      problem={problem}
      onAction={() =>
        void run<RotatedCredential>({
          path: `/api/integrations/${props.of.id}/rotate`,
          body: { credential, overlap_seconds: Number(overlap) },
          what,
        }).then(setRotated)
      }
    >
      {rotated ? (
        <>
          <Secrets
            values={[
              [credential === 'client_secret' ? 'Client secret' : 'Signing key', rotated.value],
            ]}
          />
          <p className="quiet">The old one is valid until {exactTime(rotated.old_valid_until)}.</p>
        </>
      ) : (
        <>
          <Select
            label="How long the old one stays valid"
            data={overlaps}
            value={overlap}
            onChange={(value) => setOverlap(value ?? '86400')}
          />
          {overlap === '0' ? (
            <Notice kind="warn">
              Requests with the old {names[credential]} are refused from now on, until the shop uses
              the new one.
            </Notice>
          ) : (
            <p className="quiet">
              The shop can use both until then, and has that long to change over.
            </p>
          )}
        </>
      )}
    </ActionDialog>
  );
}

export function Revoke({ of: row, close }: { of: IntegrationRow; close: () => void }) {
  return (
    <SingleActionDialog
      title="Revoke the integration"
      what={`Revoke the integration of ${ownerOf(row)}`}
      path={`/api/integrations/${row.id}/revoke`}
      said={() => 'The integration is revoked.'}
      danger
      close={close}
    >
      <p>
        Every request with its credentials is refused at once, and it cannot be brought back.
        Checkouts that it created go on: payments are collected and callbacks are sent.
      </p>
    </SingleActionDialog>
  );
}

export function RequireSigning({ of: row, close }: { of: IntegrationRow; close: () => void }) {
  return (
    <SingleActionDialog
      title="Require signatures"
      what={`Require signatures of ${ownerOf(row)}`}
      path={`/api/integrations/${row.id}/require-signing`}
      said={() => 'Requests without a signature are refused from now on.'}
      close={close}
    >
      <p>
        Every request that changes something must be signed from now on. This cannot be undone. The
        shop must sign its requests already, or they are refused.
      </p>
    </SingleActionDialog>
  );
}

export function ChangeRefundMode({ of: row, close }: { of: IntegrationRow; close: () => void }) {
  const [mode, setMode] = useState<string>(row.refund_mode);
  const isAuto = mode === 'auto';
  return (
    <SingleActionDialog
      title="Refunds"
      what={`${isAuto ? 'Approve' : 'Review'} refunds of ${ownerOf(row)}${isAuto ? ' at once' : ''}`}
      path={`/api/integrations/${row.id}/refund-mode`}
      body={{ refund_mode: mode }}
      said={() =>
        isAuto ? 'New refunds are approved at once.' : 'A person reviews each new refund.'
      }
      danger={isAuto && row.refund_mode !== 'auto'}
      disabled={mode === row.refund_mode}
      close={close}
    >
      <RefundModeSelect mode={mode} onChange={setMode} />
      <p className="quiet">
        {isAuto
          ? 'No person looks at a refund before the money goes back. An order cannot be refunded on the day of its purchase.'
          : 'Each refund waits in the list of refunds until a person approves it.'}{' '}
        Refunds that wait for a review now still need it.
      </p>
    </SingleActionDialog>
  );
}

export function ChangeV1({
  of: row,
  action,
  close,
}: {
  of: IntegrationRow;
  action: V1Action;
  close: () => void;
}) {
  const [issued, setIssued] = useState<IssuedV1Credentials | null>(null);
  const { run, busy, problem } = useAction();
  const isOff = action === 'disable';
  const what = `${isOff ? 'Disable' : 'Enable'} v1 of ${ownerOf(row)}`;
  const path = `/api/integrations/${row.id}/${action}-v1`;
  const used = row.v1?.checkouts ?? 0;
  return (
    <ActionDialog
      title={issued ? 'The v1 credentials' : isOff ? 'Disable v1' : 'Enable v1'}
      opened
      close={close}
      what={what}
      danger={isOff}
      hideAction={issued !== null}
      busy={busy}
      problem={problem}
      onAction={() => {
        if (isOff) {
          void run({ path, what, said: () => 'v1 is off.' }).then((answer) => answer && close());
        } else void run<IssuedV1Credentials>({ path, what }).then(setIssued);
      }}
    >
      {issued ? (
        <Secrets
          values={[
            ['v1 client id', issued.client_id],
            ['v1 client secret', issued.client_secret],
          ]}
        />
      ) : isOff ? (
        <>
          <p>
            The v1 credentials and every token that was issued for them end at once. Checkouts that
            exist keep their v1 callback.
          </p>
          <Notice kind={used > 0 ? 'warn' : undefined}>
            The shop created {plural(used, 'checkout')} by v1 in the last 30 days.
          </Notice>
        </>
      ) : (
        <p>
          The shop gets v1 credentials beside its v2 ones, for a plugin that knows only v1. They are
          shown once.
        </p>
      )}
    </ActionDialog>
  );
}

export function ChangeLimit(props: { id: string; limit: Limit; close: () => void }) {
  const { endpoint } = props.limit;
  const [most, setMost] = useState(String(props.limit.max_requests));
  const [window, setWindow] = useState(String(props.limit.window_seconds));
  const isGood = /^\d{1,9}$/.test(most) && /^\d{1,5}$/.test(window) && Number(window) > 0;
  const isSame =
    Number(most) === props.limit.max_requests && Number(window) === props.limit.window_seconds;
  return (
    <SingleActionDialog
      title={`Limit of ${endpoint}`}
      what={`Allow ${plural(Number(most) || 0, 'request')} in ${plural(Number(window) || 0, 'second')}`}
      path={`/api/integrations/${props.id}/limit`}
      body={{ endpoint, max_requests: Number(most), window_seconds: Number(window) }}
      said={() => 'The limit is changed.'}
      disabled={!isGood || isSame}
      close={props.close}
    >
      <TextInput
        label="Requests at most"
        inputMode="numeric"
        value={most}
        onChange={(event) => setMost(event.currentTarget.value)}
      />
      <TextInput
        label="In how many seconds"
        inputMode="numeric"
        value={window}
        onChange={(event) => setWindow(event.currentTarget.value)}
      />
    </SingleActionDialog>
  );
}

export function Manage({ of: row, close }: { of: IntegrationRow; close: () => void }) {
  // The list as it was when the dialog opened, so that merchants whom another person adds meanwhile
  // stay.
  const [before] = useState(() => row.managed_merchants.map(({ id }) => id));
  const [chosen, setChosen] = useState(before);
  const add = chosen.filter((id) => !before.includes(id));
  const remove = before.filter((id) => !chosen.includes(id));
  return (
    <SingleActionDialog
      title="Merchants of the intermediary"
      what={`Add ${add.length}, remove ${remove.length}`}
      path={`/api/integrations/${row.id}/managed-merchants`}
      body={{ add, remove }}
      danger={remove.length > 0}
      disabled={add.length + remove.length === 0}
      close={close}
    >
      <MerchantsSelect name="Acts for" value={chosen} onChange={setChosen} />
    </SingleActionDialog>
  );
}
