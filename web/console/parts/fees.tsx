import { Button, Select, TextInput } from '@mantine/core';
import { useState } from 'react';
import type { MerchantDetails } from '#operating/operations/merchant.schema.ts';
import type { TermsRow } from '#operating/operations/terms.schema.ts';
import { proportion, saleAmounts } from '#platform/shared/fees.ts';
import { longDate, money, plural } from '../format.ts';
import { useCan } from '../session.tsx';
import { SingleActionDialog } from './actions.tsx';
import { parseAmount, typedAmount } from './amount.ts';
import { Card, Facts, Notice } from './basics.tsx';
import { DayInput } from './filters.tsx';
import { useText } from './text.ts';

type Prices = Omit<TermsRow, 'from' | 'created_at'>;

/** The merchant's local date. */
const todayOf = ({ now, time_zone }: MerchantDetails) =>
  new Intl.DateTimeFormat('en-CA', { timeZone: time_zone }).format(new Date(now));

const percentOf = (basisPoints: number) => `${typedAmount(basisPoints).replace(/,?0+$/, '')} %`;

const fundingNames = {
  whole: 'The whole order, once its first payment is collected',
  as_collected: 'Each payment, once it is collected',
};
const refundFeeNames = { kept: 'Stays with the service', returned: 'Is returned with the refund' };

/** The fees of a merchant, and what remains of a sale after them. */
export function FeesCard({ of: merchant, terms }: { of: MerchantDetails; terms: TermsRow[] }) {
  const can = useCan();
  const [opened, setOpened] = useState(false);
  const today = todayOf(merchant);
  const inForce = terms.find(({ from }) => from <= today);
  const next = terms.findLast(({ from }) => from > today);
  return (
    <Card
      title="Fees"
      aside={
        can('fees.set') && (
          <Button size="xs" variant="default" onClick={() => setOpened(true)}>
            {terms.length === 0 ? 'Set the fees…' : 'Change the fees…'}
          </Button>
        )
      }
    >
      <div className="stack tight">
        {inForce ? (
          <>
            <TermsFacts of={inForce} merchant={merchant} />
            <Example of={inForce} merchant={merchant} />
          </>
        ) : (
          <Notice kind="warn">
            {next
              ? `The fees begin on ${longDate(next.from)}. Until then this merchant gets no payouts.`
              : 'No fees are set, so this merchant gets no payouts yet.'}
          </Notice>
        )}
        {next && (
          <div className="proposal">
            <h3>From {longDate(next.from)}</h3>
            <TermsFacts of={next} merchant={merchant} />
          </div>
        )}
      </div>
      {opened && (
        <SetFees of={merchant} terms={inForce ?? next ?? null} close={() => setOpened(false)} />
      )}
    </Card>
  );
}

function TermsFacts({ of: terms, merchant }: { of: Prices; merchant: MerchantDetails }) {
  const { reserve_basis_points, reserve_days } = terms;
  const fixed = money(terms.fixed, merchant.currency, merchant.locale);
  return (
    <Facts
      rows={[
        ['Fee on an order', `${percentOf(terms.basis_points)} and ${fixed}`],
        ['VAT on the fee', percentOf(terms.vat_basis_points)],
        ['Paid out', fundingNames[terms.funding]],
        ['Fee on a refunded order', refundFeeNames[terms.refund_fee]],
        [
          'Reserve',
          reserve_basis_points === 0
            ? 'None'
            : `${percentOf(reserve_basis_points)} of a day’s sales less refunds, for ${plural(reserve_days, 'day')}`,
        ],
      ]}
    />
  );
}

const exampleCents = 100_000;

function Example({ of: terms, merchant }: { of: Prices; merchant: MerchantDetails }) {
  const show = (cents: number) => money(cents, merchant.currency, merchant.locale);
  const { fee, vat, net } = saleAmounts(terms, exampleCents, true);
  const held = proportion(net, terms.reserve_basis_points, 10_000);
  return (
    <p className="example">
      A sale of {show(exampleCents)} pays out <strong className="num">{show(net - held)}</strong>
      {held > 0 && ` at first, and ${show(held)} after ${plural(terms.reserve_days, 'day')}`}. The
      fee is {show(fee)}, or {show(fee + vat)} including VAT.
    </p>
  );
}

const typedPoints = (basisPoints: number) => typedAmount(basisPoints).replace(/,00$/, '');
/** Basis points of a percentage as people type it: `5,35`. Null for any other text. */
function parsePoints(text: string): number | null {
  const points = parseAmount(text.replace('%', ''));
  return points !== null && points <= 10_000 ? points : null;
}

function usePrices(before: TermsRow | null) {
  const [percent, percentField] = useText(before ? typedPoints(before.basis_points) : '');
  const [fixed, fixedField] = useText(before ? typedAmount(before.fixed) : '');
  const [vat, vatField] = useText(before ? typedPoints(before.vat_basis_points) : '15');
  const [funding, setFunding] = useState<Prices['funding']>(before?.funding ?? 'whole');
  const [refundFee, setRefundFee] = useState<Prices['refund_fee']>(before?.refund_fee ?? 'kept');
  const [reserve, reserveField] = useText(before ? typedPoints(before.reserve_basis_points) : '0');
  const [days, daysField] = useText(String(before?.reserve_days ?? 0));
  const read = {
    basis_points: parsePoints(percent),
    fixed: parseAmount(fixed),
    vat_basis_points: parsePoints(vat),
    reserve_basis_points: parsePoints(reserve),
    reserve_days: /^\d{1,3}$/.test(days) && Number(days) <= 366 ? Number(days) : null,
  };
  const isGood =
    Object.values(read).every((value) => value !== null) &&
    (read.reserve_basis_points === 0 || read.reserve_days !== 0);
  const prices = isGood ? ({ ...read, funding, refund_fee: refundFee } as Prices) : null;
  const fields = { percentField, fixedField, vatField, reserveField, daysField };
  return { prices, ...fields, funding, setFunding, refundFee, setRefundFee };
}

function SetFees(props: { of: MerchantDetails; terms: TermsRow | null; close: () => void }) {
  const { of: merchant, terms, close } = props;
  const form = usePrices(terms);
  const [from, setFrom] = useState(() => todayOf(merchant));
  const { prices } = form;
  return (
    <SingleActionDialog
      title={`Fees of ${merchant.name}`}
      size="lg"
      what={`Set the fees from ${from === '' ? '…' : longDate(from)}`}
      path={`/api/merchants/${merchant.id}/terms`}
      body={{ from, ...prices }}
      said={() => `The fees of ${merchant.name} apply from ${longDate(from)}.`}
      disabled={prices === null || from === ''}
      close={close}
    >
      <div className="pair">
        <TextInput
          label="Percent of the order"
          placeholder="4,95"
          inputMode="decimal"
          data-autofocus
          {...form.percentField}
        />
        <TextInput
          label="Fixed part of each order"
          placeholder="2,50"
          inputMode="decimal"
          {...form.fixedField}
        />
        <TextInput label="VAT on the fee, percent" inputMode="decimal" {...form.vatField} />
        <DayInput label="From" day={from} onDay={setFrom} />
        <TextInput label="Reserve, percent of sales" inputMode="decimal" {...form.reserveField} />
        <TextInput label="Days that the reserve is held" inputMode="numeric" {...form.daysField} />
      </div>
      <Select
        label="Paid out"
        allowDeselect={false}
        data={Object.entries(fundingNames).map(([value, label]) => ({ value, label }))}
        value={form.funding}
        onChange={(value) => value && form.setFunding(value as Prices['funding'])}
      />
      <Select
        label="The fee on an order that is refunded"
        allowDeselect={false}
        data={Object.entries(refundFeeNames).map(([value, label]) => ({ value, label }))}
        value={form.refundFee}
        onChange={(value) => value && form.setRefundFee(value as Prices['refund_fee'])}
      />
      {prices ? (
        <Example of={prices} merchant={merchant} />
      ) : (
        <p className="quiet">
          Fill in the figures to see what a sale of{' '}
          {money(exampleCents, merchant.currency, merchant.locale)} pays out.
        </p>
      )}
      <p className="quiet small">Orders that are already in the books keep their fees.</p>
    </SingleActionDialog>
  );
}
