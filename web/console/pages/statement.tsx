import { Button } from '@mantine/core';
import { Link, useLocation } from 'wouter';
import type { StatementDetails } from '#operating/operations/statement.schema.ts';
import { languageNames } from '#platform/shared/language.ts';
import { count, longDate, money, monthName } from '../format.ts';
import { useAction } from '../parts/actions.tsx';
import { Card, Facts, Notice, PageHead, Time } from '../parts/basics.tsx';
import { useDetails, Waiting } from '../parts/details.tsx';
import { FileLink } from '../parts/file-link.tsx';
import { MerchantLink } from '../parts/merchants.tsx';
import { useCan } from '../session.tsx';
import { SumLine } from './balance.tsx';

const back = { href: '/statements', label: 'Statements' };

export default function StatementPage({ id }: { id: string }) {
  const found = useDetails<StatementDetails>('/api/statements', id);
  const statement = found.data;
  if (!statement) return <Waiting title="Statement" back={back} of={found} />;
  const { reference } = statement;
  const file = (format: string, label: string) => (
    <FileLink
      path={`/api/statements/${id}/statement.${format}`}
      name={`${reference}.${format}`}
      label={label}
    />
  );
  return (
    <>
      <PageHead
        title={monthName(statement.month.slice(0, 7))}
        back={back}
        about={
          <span className="row-of">
            <MerchantLink of={statement} />
            <span className="mono">{reference}</span>
          </span>
        }
      >
        {file('pdf', 'PDF')}
        {file('csv', 'CSV')}
      </PageHead>
      {statement.corrected_by && (
        <Notice>
          <VersionLink of={statement.corrected_by} /> replaces this statement. Use only that one.
        </Notice>
      )}
      {!statement.pdf_has_lines && (
        <Notice>
          The PDF has the sums. The {count(statement.line_count)} lines are in the CSV file.
        </Notice>
      )}
      <div className="columns">
        <Sums of={statement} />
        <div className="stack">
          <Invoice of={statement} />
          <Correction of={statement} />
          <Card title="Statement">
            <Facts
              rows={[
                [
                  'Number',
                  <span className="mono" key="number">
                    {reference}
                  </span>,
                ],
                [
                  'Replaces',
                  statement.corrects && <VersionLink key="old" of={statement.corrects} />,
                ],
                ['Lines', count(statement.line_count)],
                ['Language', languageNames[statement.language]],
                [
                  'Made',
                  <Time key="made" at={statement.created_at} zone={statement.time_zone} exact />,
                ],
              ]}
            />
          </Card>
        </div>
      </div>
    </>
  );
}

const VersionLink = ({ of: { id, reference } }: { of: { id: string; reference: string } }) => (
  <Link className="mono" href={`/statements/${id}`}>
    {reference}
  </Link>
);

const correctionLabels: Record<StatementDetails['corrections'][number]['name'], string> = {
  merchant_name: 'To',
  merchant_address: 'Merchant’s address',
  merchant_vat_number: 'Merchant’s VAT number',
  issuer_name: 'From',
  issuer_address: 'Our address',
  issuer_vat_number: 'Our VAT number',
  language: 'Language',
};

/** Shown while the merchant's or the issuer's details on the statement differ from today's. */
function Correction({ of: { id, reference, corrections } }: { of: StatementDetails }) {
  const can = useCan();
  const [, navigate] = useLocation();
  const { run, busy, problem } = useAction();
  if (corrections.length === 0 || !can('merchants.change')) return null;
  const what = `Correct ${reference}`;
  const shown = (name: string, value: string | null) =>
    name === 'language' ? languageNames[value as StatementDetails['language']] : value;
  const correct = async () => {
    const made = await run<StatementDetails>({
      path: `/api/statements/${id}/correct`,
      what,
      said: (one) => `${one.reference} replaces ${reference}.`,
    });
    if (made) navigate(`/statements/${made.id}`);
  };
  return (
    <Card title="Changed since">
      <div className="stack">
        <Facts
          rows={corrections.map(({ name, from, to }) => [
            correctionLabels[name],
            `${shown(name, from) ?? 'None'} here, ${shown(name, to) ?? 'none'} today`,
          ])}
        />
        <p className="quiet small">
          The correction is a new statement with the next number and the same amounts. This one
          stays as it is.
        </p>
        {problem !== null && <Notice kind="bad">{problem}</Notice>}
        <div>
          <Button variant="default" loading={busy} onClick={() => void correct()}>
            {what}
          </Button>
        </div>
      </div>
    </Card>
  );
}

/** The last day of a month, given its first day. */
function endOf(month: string): string {
  const [year = 0, number = 0] = month.split('-').map(Number);
  return new Date(Date.UTC(year, number, 0)).toISOString().slice(0, 10);
}

function Sums({ of: statement }: { of: StatementDetails }) {
  const show = (cents: number) => money(cents, statement.currency, statement.locale);
  const line = (label: string, cents: number) => <SumLine label={label} amount={show(cents)} />;
  const rare = (label: string, cents: number) => cents !== 0 && line(label, cents);
  return (
    <Card title="The month">
      <dl className="balance">
        {line(`Balance on ${longDate(statement.month)}`, statement.opening)}
        {line('Sales', statement.sales)}
        {rare('Refunds', statement.refunds)}
        {rare('Disputes', statement.disputes)}
        {line('Fees', statement.fees)}
        {line('VAT on fees', statement.vat)}
        {rare('Held in reserve and released', statement.reserve)}
        {line('Paid to the bank account', statement.paid)}
        <SumLine
          strong
          label={`Balance on ${longDate(endOf(statement.month))}`}
          amount={show(statement.closing)}
        />
      </dl>
    </Card>
  );
}

function Invoice({ of: statement }: { of: StatementDetails }) {
  const show = (cents: number) => money(cents, statement.currency, statement.locale);
  const { fees, vat } = statement;
  return (
    <Card title={statement.issuer_vat_number === null ? 'Invoice' : 'Tax invoice'}>
      <Facts
        rows={[
          ['From', statement.issuer_name],
          ['VAT number', statement.issuer_vat_number],
          ['To', statement.merchant_name],
          ['Its VAT number', statement.merchant_vat_number],
        ]}
      />
      <dl className="balance">
        <SumLine label="Fees excluding VAT" amount={show(-fees)} />
        <SumLine label="VAT" amount={show(-vat)} />
        <SumLine strong label="Fees including VAT" amount={show(-fees - vat)} />
      </dl>
    </Card>
  );
}
