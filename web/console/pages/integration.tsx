import { Button } from '@mantine/core';
import { useState } from 'react';
import { Link } from 'wouter';
import type { IntegrationRow } from '#operating/operations/integration.schema.ts';
import { count, duration, plural, sentence } from '../format.ts';
import { Card, Facts, Id, Notice, PageHead, Status, Time } from '../parts/basics.tsx';
import { useDetails, Waiting } from '../parts/details.tsx';
import { RefusedRequests } from '../parts/refused-requests.tsx';
import { TestCallback } from '../parts/test-callback.tsx';
import { useCan } from '../session.tsx';
import {
  AllManaged,
  ChangeEvents,
  ChangeLimit,
  ChangeRefundMode,
  ChangeV1,
  type Credential,
  eventNames,
  type Limit,
  Manage,
  ManagedMerchants,
  RequireSigning,
  Revoke,
  Rotate,
  type V1Action,
} from './integration-dialogs.tsx';
import { IntegrationStatus, ownerOf, refundModes } from './integrations.tsx';

export default function IntegrationPage({ id }: { id: string }) {
  const can = useCan();
  const [rotating, setRotating] = useState<Credential | null>(null);
  const [revoking, setRevoking] = useState(false);
  const [limiting, setLimiting] = useState<Limit | null>(null);
  const [managing, setManaging] = useState(false);
  const [listing, setListing] = useState(false);
  const [requiring, setRequiring] = useState(false);
  const [changingMode, setChangingMode] = useState(false);
  const [changingEvents, setChangingEvents] = useState(false);
  const [changingV1, setChangingV1] = useState<V1Action | null>(null);
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
          <RefusedRequests of={data} />
          <LimitsCard of={data} change={mayLimit ? setLimiting : null} />
        </div>
        <div className="stack">
          <SettingsCard of={data} changeMode={mayLimit ? () => setChangingMode(true) : null} />
          <EventsCard of={data} change={mayLimit ? () => setChangingEvents(true) : null} />
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
              <div className="stack">
                <ManagedMerchants of={data.managed_merchants} />
                {data.manages_more && (
                  <span>
                    <Button size="xs" variant="default" onClick={() => setListing(true)}>
                      All merchants…
                    </Button>
                  </span>
                )}
              </div>
            </Card>
          )}
          {(data.v1 || mayRotate) && <V1Card of={data} change={mayRotate ? setChangingV1 : null} />}
        </div>
      </div>
      {rotating && <Rotate of={data} credential={rotating} close={() => setRotating(null)} />}
      {revoking && <Revoke of={data} close={() => setRevoking(false)} />}
      {limiting && <ChangeLimit id={data.id} limit={limiting} close={() => setLimiting(null)} />}
      {listing && <AllManaged of={data} close={() => setListing(false)} />}
      {managing && <Manage of={data} close={() => setManaging(false)} />}
      {changingV1 && <ChangeV1 of={data} action={changingV1} close={() => setChangingV1(null)} />}
      {changingMode && <ChangeRefundMode of={data} close={() => setChangingMode(false)} />}
      {changingEvents && <ChangeEvents of={data} close={() => setChangingEvents(false)} />}
      {requiring && <RequireSigning of={data} close={() => setRequiring(false)} />}
    </>
  );
}

function LimitsCard(props: { of: IntegrationRow; change: ((limit: Limit) => void) | null }) {
  const { of: row, change } = props;
  return (
    <Card title="Limits" bare>
      <div className="lines">
        {row.limits.map((limit) => (
          <div key={limit.endpoint} className="line limit">
            <span>
              <span className="mono break">{limit.endpoint}</span>
              <span className="quiet small block">
                {plural(limit.max_requests, 'request')} in {duration(limit.window_seconds * 1000)},{' '}
                {limit.is_own ? 'set by an operator' : 'as in the contract'}
              </span>
            </span>
            {change && (
              <Button
                size="compact-xs"
                variant="default"
                aria-label={`Change the limit for ${limit.endpoint}`}
                onClick={() => change(limit)}
              >
                Change
              </Button>
            )}
          </div>
        ))}
      </div>
    </Card>
  );
}

function SettingsCard(props: { of: IntegrationRow; changeMode: (() => void) | null }) {
  const { of: row, changeMode } = props;
  return (
    <Card title="Settings">
      <Facts
        rows={[
          ['Client id', <Id key="id" id={row.id} whole />],
          [
            'Merchant',
            row.merchant_id && (
              <Link href={`/merchants/${row.merchant_id}`}>{row.merchant_name}</Link>
            ),
          ],
          [
            'Refunds',
            <span key="refunds" className="row-of">
              {refundModes[row.refund_mode]}
              {changeMode && (
                <button
                  type="button"
                  className="link"
                  aria-label="Change who approves refunds"
                  onClick={changeMode}
                >
                  Change
                </button>
              )}
            </span>,
          ],
          [
            'Signing',
            row.signing_required_at ? (
              <>
                Required since <Time at={row.signing_required_at} exact />
              </>
            ) : (
              'Optional'
            ),
          ],
          ['Since', <Time key="since" at={row.created_at} exact />],
        ]}
      />
    </Card>
  );
}

/** Where events go if the integration has no URL of its own for them. */
function addressOf({ events }: IntegrationRow): string {
  const ofPayouts = 'the notify_url of the newest order';
  if (!events.includes('payouts')) return 'The notify_url of the order';
  return events.length === 1
    ? sentence(ofPayouts)
    : `The notify_url of the order; for a payout, ${ofPayouts}`;
}

/** The events that are sent to the shop. */
function EventsCard({ of: row, change }: { of: IntegrationRow; change: (() => void) | null }) {
  const [testing, setTesting] = useState(false);
  const names = row.events.map((kind) => eventNames[kind].toLowerCase());
  return (
    <Card
      title="Callbacks"
      aside={
        change && (
          <Button size="xs" variant="default" onClick={change}>
            Change events…
          </Button>
        )
      }
    >
      <div className="stack">
        <Facts
          rows={[
            ['Callbacks for', ['Payments', ...names].join(', ')],
            [
              'Other events go to',
              names.length === 0 ? null : row.events_url === null ? (
                addressOf(row)
              ) : (
                <span className="mono break">{row.events_url}</span>
              ),
            ],
          ]}
        />
        {names.length === 0 && (
          <p className="quiet">
            With callbacks for refunds, disputes and payouts too, a shop does not have to poll.
          </p>
        )}
        {change && (
          <span>
            <Button size="xs" variant="light" onClick={() => setTesting(true)}>
              Send a test callback…
            </Button>
          </span>
        )}
      </div>
      {testing && <TestCallback of={row} close={() => setTesting(false)} />}
    </Card>
  );
}

type Life = {
  id: string;
  created_at: string;
  expires_at: string | null;
  first_used_at?: string | null;
};

function Lives({ rows, withUse }: { rows: Life[]; withUse?: boolean }) {
  if (rows.length === 0) return <p className="quiet card-body">None is valid.</p>;
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
            <span className="quiet">No end date</span>
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

/** The v1 plugin API: whether it is on, and whether the shop still uses it. */
function V1Card(props: { of: IntegrationRow; change: ((action: V1Action) => void) | null }) {
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
        <p className="quiet">This integration uses only v2.</p>
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
