import { Button, Checkbox, Select, TextInput } from '@mantine/core';
import { useState } from 'react';
import { Link } from 'wouter';
import type { MerchantDetails, MovedClock } from '#operating/operations/merchant.schema.ts';
import { changesOf } from '../changes.ts';
import { countryName, duration, longTime, money, percent } from '../format.ts';
import { SingleActionDialog, useAction } from '../parts/actions.tsx';
import { BandsForm, BandsTable, readBands, typedBands } from '../parts/bands.tsx';
import { Card, Facts, Id, Notice, PageHead, Time } from '../parts/basics.tsx';
import { useDetails, Waiting } from '../parts/details.tsx';
import { FeesCard } from '../parts/fees.tsx';
import { PayeeCard } from '../parts/payee.tsx';
import { ProfileCard } from '../parts/profile.tsx';
import { useText } from '../parts/text.ts';
import {
  describeThreshold,
  isLifting,
  readThreshold,
  ThresholdForm,
  typedThreshold,
} from '../parts/threshold.tsx';
import { useCan, useSession, useShop } from '../session.tsx';
import { AddIntegration, IntegrationLine } from './integrations.tsx';

export default function MerchantPage({ id }: { id: string }) {
  const can = useCan();
  const { sandbox } = useSession();
  const shop = useShop();
  const [editing, setEditing] = useState(false);
  const [adding, setAdding] = useState(false);
  const found = useDetails<MerchantDetails>('/api/merchants', id);
  const { data } = found;
  const back = { href: '/merchants', label: 'Merchants' };
  if (!data) return <Waiting title="Merchant" back={back} of={found} />;
  const show = (cents: number) => money(cents, data.currency, data.locale);
  return (
    <>
      <PageHead title={data.name} {...(shop === null && { back })} about={<Id id={data.id} />}>
        <Button variant="default" component={Link} href={`/checkouts?merchant=${data.id}`}>
          {shop === null ? 'Its checkouts' : 'Orders'}
        </Button>
        {can('payouts.read') && (
          <Button variant="default" component={Link} href={`/balance?merchant=${data.id}`}>
            {shop === null ? 'What is owed' : 'What you are owed'}
          </Button>
        )}
        {can('merchants.change') && (
          <Button onClick={() => setEditing(true)}>Change the rules</Button>
        )}
      </PageHead>
      <div className="figures">
        <Figure label="Sold, 30 days" value={show(data.sold)} />
        <Figure label="Collected" value={show(data.collected)} />
        <Figure label="Refunded" value={show(data.refunded)} />
        <Figure label="Refund rate" value={percent(data.refund_rate)} />
      </div>
      <div className="columns">
        <div className="stack">
          <Card title="Bands">
            <BandsTable bands={data.rules} currency={data.currency} locale={data.locale} />
          </Card>
          {can('integrations.read') && (
            <Card
              title="Integrations"
              bare
              aside={
                can('integrations.change') && (
                  <Button size="xs" variant="default" onClick={() => setAdding(true)}>
                    Add an integration
                  </Button>
                )
              }
            >
              {data.integrations.length === 0 ? (
                <p className="quiet card-body">No integration yet.</p>
              ) : (
                <div className="lines">
                  {data.integrations.map((one) => (
                    <IntegrationLine key={one.id} of={one} />
                  ))}
                </div>
              )}
            </Card>
          )}
          {data.terms && <FeesCard of={data} terms={data.terms} />}
          {data.payee && <PayeeCard of={data} payee={data.payee} />}
        </div>
        <div className="stack">
          <Card title="Settings">
            <Facts
              rows={[
                ['Territory', `${countryName(data.territory)}, ${data.currency}`],
                ['Time zone', data.time_zone],
                [
                  'Preselected term',
                  data.preselected_term === null ? 'The shortest' : termName(data.preselected_term),
                ],
                ['Second approver', describeThreshold(data, show)],
                ['On statements', data.short_name ?? `${data.name}, as much as fits`],
                ['Shows “No fees”', data.no_fees ? 'Yes' : 'No'],
                ['Gateway', shop === null && (data.gateway ?? 'Default (first configured)')],
                ['Second gateway', shop === null && data.second_gateway],
                ['Since', <Time key="since" at={data.created_at} zone={data.time_zone} exact />],
              ]}
            />
          </Card>
          <ProfileCard of={data} />
          {sandbox && <ClockCard of={data} />}
        </div>
      </div>
      {editing && <ChangeRules of={data} close={() => setEditing(false)} />}
      {adding && <AddIntegration merchant={data} close={() => setAdding(false)} />}
    </>
  );
}

function Figure({ label, value }: { label: string; value: string }) {
  return (
    <div className="card figure">
      <span className="label">{label}</span>
      <span className="value" style={{ fontSize: 20 }}>
        {value}
      </span>
    </div>
  );
}

function ClockCard({ of: merchant }: { of: MerchantDetails }) {
  const can = useCan();
  const { run, busy, problem } = useAction();
  const move = (what: string, by_seconds?: number) =>
    void run<MovedClock>({
      path: `/api/merchants/${merchant.id}/clock`,
      body: by_seconds === undefined ? {} : { by_seconds },
      what,
      said: ({ now }) => `The merchant’s time is now ${longTime(now, merchant.time_zone)}.`,
    });
  return (
    <Card title="Sandbox clock">
      <div className="stack tight">
        <Facts
          rows={[
            ['Merchant’s time', longTime(merchant.now, merchant.time_zone)],
            [
              'Ahead',
              merchant.clock_ahead_ms === 0 ? 'Not at all' : duration(merchant.clock_ahead_ms),
            ],
            [
              'Next event',
              merchant.next_event_at
                ? longTime(merchant.next_event_at, merchant.time_zone)
                : 'Nothing is due',
            ],
          ]}
        />
        {problem !== null && <Notice kind="bad">{problem}</Notice>}
        {can('clock.move') && (
          <div className="row-of">
            <Button
              size="xs"
              variant="light"
              loading={busy}
              disabled={merchant.next_event_at === null}
              onClick={() => move('Move to the next event')}
            >
              To the next event
            </Button>
            <Button
              size="xs"
              variant="default"
              disabled={busy}
              onClick={() => move('Move by one day', 86_400)}
            >
              One day on
            </Button>
            <Button
              size="xs"
              variant="default"
              disabled={busy}
              onClick={() => move('Move by 31 days', 31 * 86_400)}
            >
              31 days on
            </Button>
          </div>
        )}
      </div>
    </Card>
  );
}

const termName = (term: number) => (term === 1 ? 'Once-off' : `${term} payments`);

const whoMayLift = 'Only an administrator of the payment service can raise or remove it.';

const defaultOf = ({ four_eyes_default, currency, locale }: MerchantDetails) =>
  four_eyes_default === null
    ? 'Never, the default for all merchants'
    : `Above ${money(four_eyes_default, currency, locale)}, the default for all merchants`;

function ChangeRules({ of, close }: { of: MerchantDetails; close: () => void }) {
  // The merchant as it was when the dialog opened; the page keeps refreshing it.
  const [merchant] = useState(of);
  const [bands, setBands] = useState(() => typedBands(merchant.rules));
  const [preselected, setPreselected] = useState(
    merchant.preselected_term === null ? '' : String(merchant.preselected_term),
  );
  const [threshold, setThreshold] = useState(() => typedThreshold(merchant.four_eyes_above));
  const [shortName, shortNameField] = useText(merchant.short_name ?? '');
  const [isFree, setIsFree] = useState(merchant.no_fees);
  const { bands: rules } = readBands(bands);
  const terms = [...new Set((rules ?? []).flatMap((band) => band.terms))].sort((a, b) => a - b);
  const own = readThreshold(threshold);
  const wanted = {
    rules: rules ?? merchant.rules,
    preselected_term: preselected === '' ? null : Number(preselected),
    four_eyes_above: own ?? null,
    short_name: shortName.trim() === '' ? null : shortName.trim(),
    no_fees: isFree,
  };
  const changes = changesOf(merchant, wanted, ['rules', 'preselected_term', 'four_eyes_above']);
  const can = useCan();
  const mayNot = own !== undefined && isLifting(merchant, own) && !can('review.lift');
  return (
    <SingleActionDialog
      title={`Rules of ${merchant.name}`}
      size="lg"
      what={`Change ${merchant.name}`}
      method="PATCH"
      path={`/api/merchants/${merchant.id}`}
      body={changes}
      said={() => 'New checkouts follow the new rules. Existing ones keep theirs.'}
      disabled={rules === null || own === undefined || mayNot || changes === null}
      close={close}
    >
      <BandsForm bands={bands} onChange={setBands} />
      {!can('limits.raise') && (
        <p className="quiet small">
          You can narrow the bands. An administrator of the payment service can widen them.
        </p>
      )}
      <Select
        label="Preselected term"
        description="The term that the payment page has selected when it opens."
        data={[
          { value: '', label: 'The shortest' },
          ...terms.map((term) => ({ value: String(term), label: termName(term) })),
        ]}
        value={preselected}
        onChange={(value) => setPreselected(value ?? '')}
      />
      <ThresholdForm
        value={threshold}
        byDefault={defaultOf(merchant)}
        refusal={mayNot ? whoMayLift : null}
        onChange={setThreshold}
      />
      <TextInput
        label="Name on card statements"
        description="If it is empty, the beginning of the merchant’s name is used."
        maxLength={20}
        {...shortNameField}
      />
      <Checkbox
        label="The payment page says: No interest. No fees."
        description="Only if it is true of this merchant’s prices."
        checked={isFree}
        onChange={(event) => setIsFree(event.currentTarget.checked)}
      />
    </SingleActionDialog>
  );
}
