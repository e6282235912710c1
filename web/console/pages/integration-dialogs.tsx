import { Checkbox, Select, TextInput } from '@mantine/core';
import { useState } from 'react';
import { Link } from 'wouter';
import type {
  IntegrationRow,
  IssuedV1Credentials,
  ManagedMerchant,
  RotatedCredential,
} from '#operating/operations/integration.schema.ts';
import { longTime, plural, sentence } from '../format.ts';
import { SingleActionDialog } from '../parts/actions.tsx';
import { Notice } from '../parts/basics.tsx';
import { MerchantsSelect } from '../parts/merchants.tsx';
import { PagesDialog } from '../parts/pages.tsx';
import { Secrets } from '../parts/secrets.tsx';
import { useText } from '../parts/text.ts';
import { ownerOf, RefundModeSelect } from './integrations.tsx';

export type Credential = 'client_secret' | 'signing_key';
const names: Record<Credential, string> = {
  client_secret: 'client secret',
  signing_key: 'signing key',
};

export type EventKind = IntegrationRow['events'][number];
export type Limit = IntegrationRow['limits'][number];
export type V1Action = 'enable' | 'disable';

const overlaps = [
  { value: '0', label: 'It ends now' },
  { value: '3600', label: 'For an hour' },
  { value: '86400', label: 'For a day' },
  { value: '604800', label: 'For 7 days' },
];

export function Rotate(props: { of: IntegrationRow; credential: Credential; close: () => void }) {
  const { credential } = props;
  const [overlap, setOverlap] = useState('86400');
  const name = names[credential];
  return (
    <SingleActionDialog<RotatedCredential>
      title={`Rotate the ${name}`}
      what={`Rotate the ${name} of ${ownerOf(props.of)}`}
      path={`/api/integrations/${props.of.id}/rotate`}
      body={{ credential, overlap_seconds: Number(overlap) }}
      danger={overlap === '0'}
      close={props.close}
      result={{
        title: `The new ${name}`,
        once: true,
        show: ({ value, old_valid_until }) => (
          <>
            <Secrets values={[[sentence(name), value]]} />
            <p className="quiet">The old one is valid until {longTime(old_valid_until)}.</p>
          </>
        ),
      }}
    >
      <Select
        label="How long the old one stays valid"
        data={overlaps}
        value={overlap}
        onChange={(value) => setOverlap(value ?? '86400')}
      />
      {overlap === '0' ? (
        <Notice kind="warn">
          Requests with the old {name} are refused from now on, until the shop uses the new one.
        </Notice>
      ) : (
        <p className="quiet">The shop can use both until then.</p>
      )}
    </SingleActionDialog>
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
        Every request with its credentials is refused at once, and this cannot be undone. Checkouts
        that it created continue: payments are collected and callbacks are sent.
      </p>
    </SingleActionDialog>
  );
}

export function RequireSigning({ of: row, close }: { of: IntegrationRow; close: () => void }) {
  return (
    <SingleActionDialog
      title="Require signatures"
      what={`Require signatures from ${ownerOf(row)}`}
      path={`/api/integrations/${row.id}/require-signing`}
      said={() => 'Requests without a signature are refused from now on.'}
      close={close}
    >
      <p>
        Every request that changes something must be signed from now on. This cannot be undone. If
        the shop does not sign its requests yet, they are refused.
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
        Refunds that are already waiting for review still need it.
      </p>
    </SingleActionDialog>
  );
}

const eventKinds: EventKind[] = ['refunds', 'disputes', 'payouts'];
export const eventNames: Record<EventKind, string> = {
  refunds: 'Refunds',
  disputes: 'Disputes',
  payouts: 'Payouts',
};

export function ChangeEvents({ of, close }: { of: IntegrationRow; close: () => void }) {
  // The integration as it was when the dialog opened; the page keeps refreshing it. Otherwise an
  // event that another person enables meanwhile would count as one that this person disables.
  const [row] = useState(of);
  const [chosen, setChosen] = useState<EventKind[]>(row.events);
  const [url, urlField] = useText(row.events_url ?? '');
  const enable = chosen.filter((kind) => !row.events.includes(kind));
  const disable = row.events.filter((kind) => !chosen.includes(kind));
  const isMoved = url.trim() !== (row.events_url ?? '');
  return (
    <SingleActionDialog
      title="Events"
      what="Change the events"
      path={`/api/integrations/${row.id}/events`}
      body={{ enable, disable, ...(isMoved && { url: url.trim() || 'none' }) }}
      said={() => 'The events were changed.'}
      disabled={enable.length + disable.length === 0 && !isMoved}
      close={close}
    >
      <Checkbox.Group
        label="Tell the shop about changes to"
        value={chosen}
        onChange={(kinds) => setChosen(kinds as EventKind[])}
      >
        <div className="stack tight">
          {eventKinds.map((kind) => (
            <Checkbox key={kind} value={kind} label={eventNames[kind]} />
          ))}
        </div>
      </Checkbox.Group>
      <TextInput
        label="Address for events"
        description="If it is empty, an event goes to the notify_url of its order. An event about a payout goes to the notify_url of the newest order."
        placeholder="https://shop.example/tranche/events"
        type="url"
        {...urlField}
      />
      <p className="quiet">
        Each event is a signed callback, like the one for a payment. Earlier changes are not sent.
      </p>
    </SingleActionDialog>
  );
}

type V1Props = { of: IntegrationRow; close: () => void };

export function ChangeV1({ action, ...props }: V1Props & { action: V1Action }) {
  return action === 'enable' ? <EnableV1 {...props} /> : <DisableV1 {...props} />;
}

function EnableV1({ of: row, close }: V1Props) {
  return (
    <SingleActionDialog<IssuedV1Credentials>
      title="Enable v1"
      what={`Enable v1 for ${ownerOf(row)}`}
      path={`/api/integrations/${row.id}/enable-v1`}
      close={close}
      result={{
        title: 'The v1 credentials',
        once: true,
        show: (issued) => (
          <Secrets
            values={[
              ['v1 client id', issued.client_id],
              ['v1 client secret', issued.client_secret],
            ]}
          />
        ),
      }}
    >
      <p>
        The shop gets v1 credentials beside its v2 ones, for a plugin that knows only v1. They are
        shown once.
      </p>
    </SingleActionDialog>
  );
}

function DisableV1({ of: row, close }: V1Props) {
  const used = row.v1?.checkouts ?? 0;
  return (
    <SingleActionDialog
      title="Disable v1"
      what={`Disable v1 for ${ownerOf(row)}`}
      path={`/api/integrations/${row.id}/disable-v1`}
      said={() => 'v1 is off.'}
      danger
      close={close}
    >
      <p>
        The v1 credentials and every token that was issued for them end at once. Checkouts that
        exist keep their v1 callback.
      </p>
      <Notice kind={used > 0 ? 'warn' : undefined}>
        The shop created {plural(used, 'checkout')} through v1 in the last 30 days.
      </Notice>
    </SingleActionDialog>
  );
}

export function ChangeLimit(props: { id: string; limit: Limit; close: () => void }) {
  const { endpoint } = props.limit;
  const [most, mostField] = useText(String(props.limit.max_requests));
  const [window, windowField] = useText(String(props.limit.window_seconds));
  const isGood = /^\d{1,9}$/.test(most) && /^\d{1,5}$/.test(window) && Number(window) > 0;
  const isSame =
    Number(most) === props.limit.max_requests && Number(window) === props.limit.window_seconds;
  return (
    <SingleActionDialog
      title={`Limit for ${endpoint}`}
      what={`Allow ${plural(Number(most) || 0, 'request')} in ${plural(Number(window) || 0, 'second')}`}
      path={`/api/integrations/${props.id}/limit`}
      body={{ endpoint, max_requests: Number(most), window_seconds: Number(window) }}
      said={() => 'The limit was changed.'}
      disabled={!isGood || isSame}
      close={props.close}
    >
      <TextInput label="Maximum requests" inputMode="numeric" {...mostField} />
      <TextInput label="Within this many seconds" inputMode="numeric" {...windowField} />
    </SingleActionDialog>
  );
}

/** There may be thousands of merchants, so a person only names those to add and those to remove. */
export function Manage({ of: row, close }: { of: IntegrationRow; close: () => void }) {
  const [add, setAdd] = useState<string[]>([]);
  const [remove, setRemove] = useState<string[]>([]);
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
      <MerchantsSelect name="Act for" value={add} onChange={setAdd} />
      <MerchantsSelect name="No longer act for" value={remove} onChange={setRemove} />
    </SingleActionDialog>
  );
}

/** The merchants that an intermediary acts for. */
export function ManagedMerchants({ of: merchants }: { of: { id: string; name: string }[] }) {
  return (
    <ul className="plain">
      {merchants.map(({ id, name }) => (
        <li key={id}>
          <Link href={`/merchants/${id}`}>{name}</Link>
        </li>
      ))}
    </ul>
  );
}

export function AllManaged({ of: row, close }: { of: IntegrationRow; close: () => void }) {
  return (
    <PagesDialog<ManagedMerchant>
      title="All merchants that it acts for"
      path="/api/managed-merchants"
      query={{ integration: row.id }}
      first="First"
      next="Next"
      show={(rows) => <ManagedMerchants of={rows} />}
      close={close}
    />
  );
}
