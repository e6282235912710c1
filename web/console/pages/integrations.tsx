import { Button, Select } from '@mantine/core';
import { useState } from 'react';
import { Link } from 'wouter';
import type {
  IntegrationRow,
  IssuedCredentials,
} from '#operating/operations/integration.schema.ts';
import { plural, shortId } from '../format.ts';
import { SingleActionDialog } from '../parts/actions.tsx';
import { Notice, PageHead, Status, Time } from '../parts/basics.tsx';
import { MerchantFilter } from '../parts/filters.tsx';
import { type Column, List } from '../parts/list.tsx';
import { MerchantSelect, MerchantsSelect } from '../parts/merchants.tsx';
import { Secrets } from '../parts/secrets.tsx';
import { useCan, useSession } from '../session.tsx';

export const ownerOf = (row: IntegrationRow) =>
  row.merchant_name ?? (row.intermediary ? `Intermediary for ${managedCount(row)}` : '–');

const managedCount = ({ managed_merchants: first, manages_more }: IntegrationRow) =>
  `${manages_more ? 'more than ' : ''}${plural(first.length, 'merchant')}`;

export function IntegrationStatus({ of: row }: { of: IntegrationRow }) {
  if (row.revoked_at !== null) return <Status of="revoked" />;
  return <Status of="active" />;
}

/** When the first of the credentials that are being rotated out expires. Null if there are none. */
export const oldestEnd = (row: IntegrationRow): string | null =>
  [...row.client_secrets, ...row.signing_keys]
    .flatMap(({ expires_at }) => (expires_at === null ? [] : [expires_at]))
    .sort()[0] ?? null;

const columns: Column<IntegrationRow>[] = [
  { head: 'Owner', cell: ownerOf },
  { head: 'Status', cell: (row) => <IntegrationStatus of={row} />, phone: 'end' },
  { head: 'Id', cell: (row) => <span className="mono">{shortId(row.id)}</span>, phone: 'sub' },
  {
    head: 'Refunds',
    cell: (row) => (row.refund_mode === 'auto' ? 'At once' : 'Reviewed'),
    phone: 'sub',
    named: true,
  },
  {
    head: 'Signing',
    cell: (row) => (row.signing_required_at === null ? 'Optional' : 'Required'),
    phone: 'hide',
  },
  {
    head: 'Rotation',
    cell: (row) => {
      const end = oldestEnd(row);
      return end === null ? (
        <span className="quiet none">–</span>
      ) : (
        <span className="warning-text">
          Old key ends <Time at={end} future />
        </span>
      );
    },
    phone: 'sub',
  },
  {
    head: 'v1, 30 days',
    right: true,
    cell: (row) =>
      row.v1 === null ? (
        <span className="quiet">–</span>
      ) : row.v1.disabled_at !== null ? (
        <span className="quiet">Off</span>
      ) : row.v1.checkouts === null ? (
        'On'
      ) : (
        plural(row.v1.checkouts, 'checkout')
      ),
    phone: 'hide',
  },
  { head: 'Since', right: true, cell: (row) => <Time at={row.created_at} />, phone: 'hide' },
];

export default function IntegrationsPage() {
  const can = useCan();
  const [adding, setAdding] = useState(false);
  return (
    <>
      <PageHead title="Integrations" about="The credentials that merchants call the API with.">
        {can('integrations.change') && (
          <Button onClick={() => setAdding(true)}>Add an integration</Button>
        )}
      </PageHead>
      <Environment />
      <div className="filters">
        <MerchantFilter />
      </div>
      <List
        path="/api/integrations"
        takes={['merchant']}
        label="Integrations"
        columns={columns}
        keyOf={(row) => row.id}
        hrefOf={(row) => `/integrations/${row.id}`}
        empty={{
          icon: 'integrations',
          title: 'No integrations yet',
          text: 'An integration holds the credentials of a shop’s server.',
        }}
      />
      {adding && <AddIntegration close={() => setAdding(false)} />}
    </>
  );
}

/** Says which environment these credentials work in, and links to the credentials of the other. */
function Environment() {
  const { sandbox, other_console_url } = useSession();
  if (other_console_url === null) return null;
  const [here, there] = sandbox ? ['the sandbox', 'production'] : ['production', 'the sandbox'];
  return (
    <Notice>
      These credentials work in {here} only.{' '}
      <a href={`${other_console_url}/integrations`}>Those for {there} are in its console</a>
    </Notice>
  );
}

/** Whether the shop still uses v1. */
function v1Use({ disabled_at, checkouts }: NonNullable<IntegrationRow['v1']>): string {
  if (disabled_at !== null) return 'off';
  return checkouts === null ? 'on' : `${plural(checkouts, 'checkout')} in 30 days`;
}

/** One integration on a merchant's page. */
export function IntegrationLine({ of: row }: { of: IntegrationRow }) {
  const end = oldestEnd(row);
  return (
    <Link href={`/integrations/${row.id}`} className="line">
      <span>
        <span className="mono">{shortId(row.id)}</span>
        <span className="quiet">
          {' '}
          · {row.intermediary ? 'intermediary' : 'own'} · refunds{' '}
          {row.refund_mode === 'auto' ? 'approved at once' : 'reviewed'}
          {row.v1 !== null && ` · v1 ${v1Use(row.v1)}`}
        </span>
      </span>
      <span className="row-of">
        {end !== null && (
          <span className="warning-text small">
            Old key ends <Time at={end} future />
          </span>
        )}
        <IntegrationStatus of={row} />
      </span>
    </Link>
  );
}

export const refundModes: Record<IntegrationRow['refund_mode'], string> = {
  manual: 'A person reviews each one',
  auto: 'Approved at once',
};

export function RefundModeSelect(props: { mode: string; onChange: (mode: string) => void }) {
  const mayNot = !useCan()('review.lift') && props.mode !== 'auto';
  return (
    <Select
      label="Refunds"
      {...(mayNot && {
        description: 'Only an administrator of the payment service can end the review.',
      })}
      data={Object.entries(refundModes).map(([value, label]) => ({
        value,
        label,
        disabled: mayNot && value === 'auto',
      }))}
      allowDeselect={false}
      value={props.mode}
      onChange={(value) => value !== null && props.onChange(value)}
    />
  );
}

export function AddIntegration(props: {
  merchant?: { id: string; name: string };
  close: () => void;
}) {
  const [kind, setKind] = useState('own');
  const [merchant, setMerchant] = useState(props.merchant ?? null);
  const [managed, setManaged] = useState<string[]>([]);
  const [mode, setMode] = useState('manual');
  const isIntermediary = kind === 'intermediary';
  const what = isIntermediary
    ? `Add an intermediary for ${plural(managed.length, 'merchant')}`
    : `Add an integration${merchant ? ` for ${merchant.name}` : ''}`;
  return (
    <SingleActionDialog<IssuedCredentials>
      title="Add an integration"
      what={what}
      path="/api/integrations"
      body={{
        ...(isIntermediary ? { managed_merchant_ids: managed } : { merchant_id: merchant?.id }),
        refund_mode: mode,
      }}
      disabled={isIntermediary ? managed.length === 0 : merchant === null}
      close={props.close}
      result={{
        title: 'The integration was added',
        once: true,
        show: (issued) => (
          <Secrets
            values={[
              ['Client id', issued.id],
              ['Client secret', issued.client_secret],
              ['Signing key', issued.signing_key],
            ]}
          />
        ),
      }}
    >
      {!props.merchant && (
        <Select
          label="Kind"
          data={[
            { value: 'own', label: 'For one merchant' },
            { value: 'intermediary', label: 'For an intermediary with several merchants' },
          ]}
          value={kind}
          onChange={(value) => setKind(value ?? 'own')}
        />
      )}
      {!props.merchant && !isIntermediary && (
        <MerchantSelect
          name="Merchant"
          shown
          value={merchant?.id ?? null}
          onChange={(id, name) => setMerchant(id === null ? null : { id, name: name ?? '' })}
        />
      )}
      {isIntermediary && <MerchantsSelect name="Merchants" value={managed} onChange={setManaged} />}
      <RefundModeSelect mode={mode} onChange={setMode} />
      <Notice>The credentials are shown once, on the next page of this dialog.</Notice>
    </SingleActionDialog>
  );
}
