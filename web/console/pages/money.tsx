import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { MoneyDayRow, MoneyTotals } from '#operating/operations/money.schema.ts';
import { get } from '../api.ts';
import { longDate, money } from '../format.ts';
import { Icon } from '../icons.tsx';
import { Card, Money, PageHead } from '../parts/basics.tsx';
import { DayInput, MerchantFilter } from '../parts/filters.tsx';
import { type Column, List } from '../parts/list.tsx';
import { Bones, Problem } from '../parts/states.tsx';
import { useCan } from '../session.tsx';
import { useFilters } from '../url.ts';

const figures = [
  ['Sold', 'sold', 'New orders, in full'],
  ['Collected', 'collected', 'Taken from cards'],
  ['Returned to cards', 'refunded', 'By refunds'],
  ['Disputed', 'disputed', 'Taken back by banks'],
  ['Fees', 'fees', 'Kept by the service'],
  ['VAT', 'vat', 'On the fees'],
  ['Paid out', 'paid_out', 'To merchants’ banks'],
] as const;

const columns: Column<MoneyDayRow>[] = [
  { head: 'Merchant', cell: (row) => row.merchant_name, share: true },
  ...figures.map(
    ([head, name], place): Column<MoneyDayRow> => ({
      head,
      right: true,
      cell: (row) =>
        row[name] === 0 ? (
          <span className="quiet">–</span>
        ) : (
          <Money cents={row[name]} currency={row.currency} locale={row.locale} />
        ),
      phone: place === 0 ? 'end' : 'sub',
      named: true,
    }),
  ),
];

export default function MoneyPage() {
  const can = useCan();
  const [{ date, merchant }] = useFilters();
  const { data, error, refetch } = useQuery({
    queryKey: ['/api/money-totals', date ?? '', merchant ?? ''],
    queryFn: ({ signal }) => get<MoneyTotals>('/api/money-totals', { date, merchant }, signal),
    refetchInterval: 30_000,
  });
  return (
    <>
      <PageHead
        title="Money by day"
        about={data ? `What moved on ${longDate(data.day)}, to the cent` : ' '}
      />
      <div className="filters">
        <DayPicker day={date ?? data?.day} />
        <MerchantFilter />
      </div>
      {error && !data ? (
        <Card>
          <Problem error={error} retry={() => void refetch()} />
        </Card>
      ) : !data ? (
        <Card>
          <Bones lines={3} />
        </Card>
      ) : (
        <Totals of={data} />
      )}
      <List
        path="/api/money-days"
        takes={['date', 'merchant']}
        label="Merchants"
        columns={columns}
        keyOf={(row) => row.merchant_id}
        hrefOf={(row) =>
          can('payouts.read')
            ? `/balance?merchant=${row.merchant_id}`
            : `/merchants/${row.merchant_id}`
        }
        empty={{
          icon: 'payouts',
          title: 'Nothing has moved today',
          text: 'A merchant appears here as soon as money moves for one of its orders.',
          filtered: 'Nothing moved on this day',
        }}
      />
    </>
  );
}

/** A day, with buttons for the day before and the day after. */
function DayPicker({ day }: { day: string | undefined }) {
  const [, setFilters] = useFilters();
  const other = (days: number) => {
    const date = new Date(`${day}T00:00:00Z`);
    date.setUTCDate(date.getUTCDate() + days);
    setFilters({ date: date.toISOString().slice(0, 10) });
  };
  return (
    <span className="row-of">
      <Button
        variant="default"
        aria-label="The day before"
        disabled={day === undefined}
        onClick={() => other(-1)}
      >
        <Icon name="back" />
      </Button>
      <DayInput aria-label="Day" day={day ?? ''} onDay={(date) => setFilters({ date })} w={160} />
      <Button
        variant="default"
        aria-label="The day after"
        disabled={day === undefined}
        onClick={() => other(1)}
      >
        <Icon name="next" />
      </Button>
    </span>
  );
}

function Totals({ of: { totals, account_fees } }: { of: MoneyTotals }) {
  return (
    <>
      {totals.map((total) => (
        <section
          key={total.currency}
          className="figures"
          aria-label={totals.length > 1 ? `Totals in ${total.currency}` : 'Totals of the day'}
        >
          {figures.map(([label, name, note]) => (
            <div key={name} className="card figure small">
              <span className="label">{label}</span>
              <span className="value">{money(total[name], total.currency, total.locale)}</span>
              <span className="note">{note}</span>
            </div>
          ))}
        </section>
      ))}
      {(account_fees ?? []).map((fee) => (
        <p key={fee.currency} className="quiet">
          The gateway charged the account a fee of {money(fee.amount, fee.currency, fee.locale)}{' '}
          that belongs to no payment.
        </p>
      ))}
    </>
  );
}
