import { Button, Select, TextInput } from '@mantine/core';
import { useState } from 'react';
import { Link } from 'wouter';
import type {
  IntegrationRow,
  IssuedV1Credentials,
  RotatedCredential,
} from '#operating/operations/integration.schema.ts';
import { count, duration, exactTime, plural } from '../format.ts';
import { ActDialog, OneActDialog, useAct } from '../parts/acts.tsx';
import { Card, Facts, Id, Notice, PageHead, Status, Time } from '../parts/basics.tsx';
import { useDetails, Waiting } from '../parts/details.tsx';
import { MerchantsSelect } from '../parts/merchants.tsx';
import { Secrets } from '../parts/secrets.tsx';
import { useCan } from '../session.tsx';
import { IntegrationStatus, ownerOf, RefundModeSelect, refundModes } from './integrations.tsx';

type Credential = 'client_secret' | 'signing_key';
const names: Record<Credential, string> = {
  client_secret: 'client secret',
  signing_key: 'signing key',
};

export default function IntegrationPage({ id }: { id: string }) {
  const can = useCan();
  const [rotating, setRotating] = useState<Credential | null>(null);
  const [revoking, setRevoking] = useState(false);
  const [limiting, setLimiting] = useState<Limit | null>(null);
  const [managing, setManaging] = useState(false);
  const [requiring, setRequiring] = useState(false);
  const [changingMode, setChangingMode] = useState(false);
  const [changingV1, setChangingV1] = useState<V1Act | null>(null);
  const found = useDetails<IntegrationRow>('/api/integrations', id);
  const { data } = found;
  const back = { href: '/integrations', label: 'Integrations' };
  if (!data) return <Waiting title="Integration" back={back} of={found} />;
  const isLive = data.revoked_at === null;
  const mayRotate = isLive && can('credentials.rotate');
  const mayLimit = isLive && can('integrations.change');
  return (
    <>
      <PageHead
        title={ownerOf(data)}
        back={back}
        about={
          <span className="row-of">
            <IntegrationStatus of={data} />
            <Id id={data.id} />
          </span>
        }
      >
        {isLive && data.signing_required_at === null && can('integrations.change') && (
          <Button variant="default" onClick={() => setRequiring(true)}>
            Require signatures…
          </Button>
        )}
        {mayRotate && (
          <Button variant="default" color="danger" onClick={() => setRevoking(true)}>
            Revoke…
          </Button>
        )}
      </PageHead>
      {!isLive && (
        <Notice kind="bad">
          Revoked <Time at={data.revoked_at} exact />. Every request with its credentials is
          refused.
        </Notice>
      )}
      <div className="columns">
        <div className="stack">
          <Card
            title="Client secrets"
            aside={
              mayRotate && (
                <Button size="xs" variant="light" onClick={() => setRotating('client_secret')}>
                  Rotate the client secret…
                </Button>
              )
            }
            bare
          >
            <Lives rows={data.client_secrets.map((one) => ({ ...one, id: one.created_at }))} />
          </Card>
          <Card
            title="Signing keys"
            aside={
              mayRotate && (
                <Button size="xs" variant="light" onClick={() => setRotating('signing_key')}>
                  Rotate the signing key…
                </Button>
              )
            }
            bare
          >
            <Lives rows={data.signing_keys} withUse />
          </Card>
          <Card title="Limits" bare>
            <div className="lines">
              {data.limits.map((limit) => (
                <div key={limit.endpoint} className="line limit">
                  <span>
                    <span className="mono break">{limit.endpoint}</span>
                    <span className="quiet small block">
                      {plural(limit.max_requests, 'request')} in{' '}
                      {duration(limit.window_seconds * 1000)},{' '}
                      {limit.is_own ? 'set by an operator' : 'as in the contract'}
                    </span>
                  </span>
                  {mayLimit && (
                    <Button
                      size="compact-xs"
                      variant="default"
                      aria-label={`Change the limit of ${limit.endpoint}`}
                      onClick={() => setLimiting(limit)}
                    >
                      Change
                    </Button>
                  )}
                </div>
              ))}
            </div>
          </Card>
        </div>
        <div className="stack">
          <Card title="Settings">
            <Facts
              rows={[
                ['Client id', <Id key="id" id={data.id} whole />],
                [
                  'Merchant',
                  data.merchant_id && (
                    <Link href={`/merchants/${data.merchant_id}`}>{data.merchant_name}</Link>
                  ),
                ],
                [
                  'Refunds',
                  <span key="refunds" className="row-of">
                    {refundModes[data.refund_mode]}
                    {isLive && can('integrations.change') && (
                      <button
                        type="button"
                        className="link"
                        aria-label="Change who approves refunds"
                        onClick={() => setChangingMode(true)}
                      >
                        Change
                      </button>
                    )}
                  </span>,
                ],
                [
                  'Signing',
                  data.signing_required_at ? (
                    <>
                      Required since <Time at={data.signing_required_at} exact />
                    </>
                  ) : (
                    'Optional'
                  ),
                ],
                ['Since', <Time key="since" at={data.created_at} exact />],
              ]}
            />
          </Card>
          {data.intermediary && (
            <Card
              title="Acts for"
              aside={
                isLive &&
                can('integrations.change') && (
                  <Button size="xs" variant="default" onClick={() => setManaging(true)}>
                    Change…
                  </Button>
                )
              }
            >
              <ul className="plain">
                {data.managed_merchants.map((merchant) => (
                  <li key={merchant.id}>
                    <Link href={`/merchants/${merchant.id}`}>{merchant.name}</Link>
                  </li>
                ))}
              </ul>
            </Card>
          )}
          {(data.v1 || mayRotate) && <V1Card of={data} change={mayRotate ? setChangingV1 : null} />}
        </div>
      </div>
      {rotating && <Rotate of={data} credential={rotating} close={() => setRotating(null)} />}
      {revoking && <Revoke of={data} close={() => setRevoking(false)} />}
      {limiting && <ChangeLimit id={data.id} limit={limiting} close={() => setLimiting(null)} />}
      {managing && <Manage of={data} close={() => setManaging(false)} />}
      {changingV1 && <ChangeV1 of={data} act={changingV1} close={() => setChangingV1(null)} />}
      {changingMode && <ChangeRefundMode of={data} close={() => setChangingMode(false)} />}
      {requiring && <RequireSigning of={data} close={() => setRequiring(false)} />}
    </>
  );
}

type Life = {
  id: string;
  created_at: string;
  expires_at: string | null;
  first_used_at?: string | null;
};

function Lives({ rows, withUse }: { rows: Life[]; withUse?: boolean }) {
  if (rows.length === 0) return <p className="quiet card-body">Nothing is in force.</p>;
  return (
    <div className="lines">
      {rows.map((row, index) => (
        <div key={row.id} className="line">
          <span>
            {index === 0 ? 'Newest' : 'Older'}
            <span className="quiet">
              {' '}
              · since <Time at={row.created_at} exact />
              {withUse &&
                row.first_used_at !== undefined &&
                (row.first_used_at ? (
                  <>
                    , used since <Time at={row.first_used_at} exact />
                  </>
                ) : (
                  ', not used yet'
                ))}
            </span>
          </span>
          {row.expires_at === null ? (
            <span className="quiet">No end</span>
          ) : (
            <span className="warning-text">
              Ends <Time at={row.expires_at} future />
            </span>
          )}
        </div>
      ))}
    </div>
  );
}

const overlaps = [
  { value: '0', label: 'Not at all: it ends now' },
  { value: '3600', label: 'For an hour' },
  { value: '86400', label: 'For a day' },
  { value: '604800', label: 'For 7 days' },
];

function Rotate(props: { of: IntegrationRow; credential: Credential; close: () => void }) {
  const { credential } = props;
  const [overlap, setOverlap] = useState('86400');
  const [rotated, setRotated] = useState<RotatedCredential | null>(null);
  const { run, busy, problem } = useAct();
  const what = `Rotate the ${names[credential]} of ${ownerOf(props.of)}`;
  return (
    <ActDialog
      title={rotated ? `The new ${names[credential]}` : `Rotate the ${names[credential]}`}
      opened
      close={props.close}
      what={what}
      hideAct={rotated !== null}
      danger={overlap === '0'}
      busy={busy}
      problem={problem}
      onAct={() =>
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
    </ActDialog>
  );
}

function Revoke({ of: row, close }: { of: IntegrationRow; close: () => void }) {
  return (
    <OneActDialog
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
    </OneActDialog>
  );
}

function RequireSigning({ of: row, close }: { of: IntegrationRow; close: () => void }) {
  return (
    <OneActDialog
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
    </OneActDialog>
  );
}

function ChangeRefundMode({ of: row, close }: { of: IntegrationRow; close: () => void }) {
  const [mode, setMode] = useState<string>(row.refund_mode);
  const isAuto = mode === 'auto';
  return (
    <OneActDialog
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
    </OneActDialog>
  );
}

type V1Act = 'enable' | 'disable';

/** The v1 plugin API: whether it is on, and whether the shop still uses it. */
function V1Card(props: { of: IntegrationRow; change: ((act: V1Act) => void) | null }) {
  const { v1 } = props.of;
  const isOn = v1 !== null && v1.disabled_at === null;
  return (
    <Card
      title="v1"
      aside={
        props.change && (
          <Button
            size="xs"
            variant="default"
            onClick={() => props.change?.(isOn ? 'disable' : 'enable')}
          >
            {isOn ? 'Disable v1…' : 'Enable v1…'}
          </Button>
        )
      }
    >
      {v1 === null ? (
        <p className="quiet">It calls only v2.</p>
      ) : (
        <Facts
          rows={[
            [
              'State',
              <Status key="state" of={isOn ? 'active' : 'closed'} name={isOn ? 'On' : 'Off'} />,
            ],
            ['Client id', <Id key="v1" id={v1.client_id} />],
            ['Checkouts, 30 days', v1.checkouts === null ? null : count(v1.checkouts)],
            ['Log-ins, 30 days', v1.logins === null ? null : count(v1.logins)],
            ['Enabled', <Time key="since" at={v1.created_at} exact />],
            ['Disabled', v1.disabled_at && <Time at={v1.disabled_at} exact />],
          ]}
        />
      )}
    </Card>
  );
}

function ChangeV1({ of: row, act, close }: { of: IntegrationRow; act: V1Act; close: () => void }) {
  const [issued, setIssued] = useState<IssuedV1Credentials | null>(null);
  const { run, busy, problem } = useAct();
  const isOff = act === 'disable';
  const what = `${isOff ? 'Disable' : 'Enable'} v1 of ${ownerOf(row)}`;
  const path = `/api/integrations/${row.id}/${act}-v1`;
  const used = row.v1?.checkouts ?? 0;
  return (
    <ActDialog
      title={issued ? 'The v1 credentials' : isOff ? 'Disable v1' : 'Enable v1'}
      opened
      close={close}
      what={what}
      danger={isOff}
      hideAct={issued !== null}
      busy={busy}
      problem={problem}
      onAct={() => {
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
    </ActDialog>
  );
}

type Limit = IntegrationRow['limits'][number];

function ChangeLimit(props: { id: string; limit: Limit; close: () => void }) {
  const { endpoint } = props.limit;
  const [most, setMost] = useState(String(props.limit.max_requests));
  const [window, setWindow] = useState(String(props.limit.window_seconds));
  const isGood = /^\d{1,9}$/.test(most) && /^\d{1,5}$/.test(window) && Number(window) > 0;
  const isSame =
    Number(most) === props.limit.max_requests && Number(window) === props.limit.window_seconds;
  return (
    <OneActDialog
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
    </OneActDialog>
  );
}

function Manage({ of: row, close }: { of: IntegrationRow; close: () => void }) {
  // As it was when the dialog opened: what another person adds meanwhile is not removed.
  const [before] = useState(() => row.managed_merchants.map(({ id }) => id));
  const [chosen, setChosen] = useState(before);
  const add = chosen.filter((id) => !before.includes(id));
  const remove = before.filter((id) => !chosen.includes(id));
  return (
    <OneActDialog
      title="Merchants of the intermediary"
      what={`Add ${add.length}, remove ${remove.length}`}
      path={`/api/integrations/${row.id}/managed-merchants`}
      body={{ add, remove }}
      danger={remove.length > 0}
      disabled={add.length + remove.length === 0}
      close={close}
    >
      <MerchantsSelect name="Acts for" value={chosen} onChange={setChosen} />
    </OneActDialog>
  );
}
