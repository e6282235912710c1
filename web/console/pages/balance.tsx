import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import type { Balance, BalanceLine } from '#operating/operations/money.schema.ts';
import { get, withQuery } from '../api.ts';
import { longDate, money, plural, shortDate } from '../format.ts';
import { Card, Money, Notice, PageHead, Table, Time } from '../parts/basics.tsx';
import { Tabs } from '../parts/filters.tsx';
import { type Column, List } from '../parts/list.tsx';
import { MerchantSelect, useFoundMerchants } from '../parts/merchants.tsx';
import { State, Unread } from '../parts/states.tsx';
import { useSession, useShop } from '../session.tsx';
import { useFilters } from '../url.ts';
import { PayoutStatus } from './payouts.tsx';

/** The chosen merchant, or the only one that the person sees. */
function useMerchant(): { merchant: string | undefined; isOnly: boolean } {
  const [{ merchant }] = useFilters();
  const { scope } = useSession();
  const { data } = useFoundMerchants('');
  const only =
    scope !== 'all' && scope.length === 1 ? scope[0] : data?.length === 1 ? data[0]?.id : undefined;
  return { merchant: merchant ?? only, isOnly: only !== undefined };
}

export default function BalancePage() {
  const { merchant, isOnly } = useMerchant();
  const [, setFilters] = useFilters();
  const isShop = useShop() !== null;
  const select = !isOnly && (
    <MerchantSelect
      name="Merchant"
      placeholder="Choose a merchant"
      value={merchant ?? null}
      onChange={(value) => setFilters({ merchant: value ?? '', kind: '' })}
      w={220}
    />
  );
  return (
    <>
      <PageHead
        title={isShop ? 'What you are owed' : 'What is owed'}
        about={
          isShop
            ? 'What the payment service owes you now, and what your payouts will be.'
            : 'What a merchant is owed now, and what its payouts will be.'
        }
      >
        {select}
      </PageHead>
      {merchant === undefined ? (
        <Card>
          <State icon="payouts" title="Choose a merchant">
            The balance of one merchant is shown at a time.
          </State>
        </Card>
      ) : (
        <BalanceOf merchant={merchant} />
      )}
    </>
  );
}

function BalanceOf({ merchant }: { merchant: string }) {
  const found = useQuery({
    queryKey: ['/api/merchants', merchant, 'balance'],
    queryFn: ({ signal }) => get<Balance>(`/api/merchants/${merchant}/balance`, {}, signal),
    refetchInterval: 30_000,
  });
  const balance = found.data;
  if (!balance) {
    return (
      <Card>
        <Unread of={found} lines={8} />
      </Card>
    );
  }
  return (
    <>
      {!balance.has_terms && (
        <Notice>
          No fees are set, so {balance.merchant_name} gets no payouts yet.{' '}
          <Link href={`/merchants/${merchant}`}>Fees</Link> are on the merchant’s page.
        </Notice>
      )}
      <div className="columns">
        <Sums of={balance} />
        <Payouts of={balance} />
      </div>
      <h2 id="lines">Lines</h2>
      <Lines merchant={merchant} />
    </>
  );
}

const showLines = () => document.getElementById('lines')?.scrollIntoView();

/** Each sum links to the lines that it consists of. */
function Sums({ of: balance }: { of: Balance }) {
  const { sums, merchant_id: merchant } = balance;
  const isShop = useShop() !== null;
  const show = (cents: number) => money(cents, balance.currency, balance.locale);
  const line = (label: string, cents: number, kind: string) => (
    <SumLine
      key={label}
      label={
        <Link href={withQuery('/balance', { merchant, kind })} onClick={showLines}>
          {label}
        </Link>
      }
      amount={show(cents)}
    />
  );
  return (
    <Card title={balance.merchant_name}>
      <p className="sum">{show(balance.owed)}</p>
      <p className="quiet">
        {balance.owed < 0 ? 'is owed by' : 'is owed to'} {isShop ? 'you' : 'the merchant'}
      </p>
      <dl className="balance">
        {line('Sales', sums.sale, 'sale')}
        {line('Refunds', sums.refund, 'refund')}
        {line('Disputes', sums.dispute, 'dispute')}
        {sums.payout_returned !== 0 &&
          line('Returned payouts', sums.payout_returned, 'payout_returned')}
        {sums.withheld !== 0 && line('Held back in reserve', sums.withheld, 'reserve')}
        {line('Fees', sums.fee, 'fee')}
        {line('VAT on fees', sums.vat, 'fee')}
        <SumLine strong label="Not in a payout yet" amount={show(balance.open)} />
        <SumLine
          label={<Link href={withQuery('/payouts', { merchant })}>Payouts not paid yet</Link>}
          amount={show(sums.payouts)}
        />
        {line('Held in reserve', sums.reserve, 'reserve')}
        <SumLine strong label="Owed in total" amount={show(balance.owed)} />
      </dl>
    </Card>
  );
}

export function SumLine(props: { label: ReactNode; amount: string; strong?: boolean }) {
  return (
    <div className={props.strong ? 'total' : ''}>
      <dt>{props.label}</dt>
      <dd className="num">{props.amount}</dd>
    </div>
  );
}

function Payouts({ of: balance }: { of: Balance }) {
  const { next_payout: next, payouts } = balance;
  const isShop = useShop() !== null;
  const show = (cents: number) => money(cents, balance.currency, balance.locale);
  return (
    <div className="stack">
      {next && (
        <Card title="Next payout, as it stands">
          <p className="sum">{show(Math.max(0, next.amount))}</p>
          <p className="quiet">
            {longDate(next.business_on)}, made{' '}
            <Time
              at={next.made_at}
              zone={balance.time_zone}
              ahead={balance.clock_ahead_ms}
              future
            />
          </p>
          <dl className="balance">
            <SumLine label="Open before that day" amount={show(next.open)} />
            <SumLine label="Held back in reserve" amount={show(next.reserve_held)} />
            <SumLine label="Released from reserve" amount={show(next.reserve_released)} />
          </dl>
          {next.amount < 0 && (
            <p className="quiet small">
              {isShop ? 'You owe' : 'The merchant owes'} {show(-next.amount)}. Later sales pay it
              off before the next payout.
            </p>
          )}
        </Card>
      )}
      <Card title="Not paid yet" bare>
        {payouts.length === 0 ? (
          <p className="card-body quiet">The bank has paid every payout that was made.</p>
        ) : (
          <Table label="Payouts not paid yet" wrap columns={['Payout', { right: 'Amount' }]}>
            {payouts.map((payout) => (
              <tr key={payout.id}>
                <td>
                  <span className="row-of">
                    <Link href={`/payouts/${payout.id}`} className="mono">
                      {payout.reference}
                    </Link>
                    <PayoutStatus of={payout} />
                  </span>
                </td>
                <td className="right number">{show(payout.amount)}</td>
              </tr>
            ))}
          </Table>
        )}
        {balance.payout_count > payouts.length && (
          <p className="card-body quiet small">
            The oldest {plural(payouts.length, 'payout')} of {balance.payout_count}.
          </p>
        )}
      </Card>
    </div>
  );
}

const kinds = [
  { value: '', label: 'All' },
  { value: 'sale', label: 'Sales' },
  { value: 'refund', label: 'Refunds' },
  { value: 'dispute', label: 'Disputes' },
  { value: 'fee', label: 'Fees and VAT' },
  { value: 'payout_returned', label: 'Returned' },
  { value: 'reserve', label: 'Reserve' },
];

const amountOf = (name: 'gross' | 'fee' | 'vat' | 'net', head: string): Column<BalanceLine> => ({
  head,
  right: true,
  phone: name === 'net' ? 'end' : 'sub',
  named: name !== 'net',
  cell: (row) => <Money cents={row[name]} currency={row.currency} locale={row.locale} />,
});

const columns: Column<BalanceLine>[] = [
  { head: 'Order', cell: (row) => row.client_reference_id ?? row.name, share: true },
  amountOf('net', 'Net'),
  { head: 'Kind', cell: (row) => row.name, phone: 'sub' },
  amountOf('gross', 'Gross'),
  amountOf('fee', 'Fee'),
  amountOf('vat', 'VAT'),
  {
    head: 'When',
    right: true,
    phone: 'sub',
    cell: (row) =>
      row.release_on === null ? (
        <Time at={row.at} zone={row.time_zone} ahead={row.clock_ahead_ms} />
      ) : (
        `released ${shortDate(row.release_on)}`
      ),
  },
];

function Lines({ merchant }: { merchant: string }) {
  // A reserve may be held back on a day without a payout.
  const hrefOf = ({ checkout_id, payout_id }: BalanceLine) =>
    checkout_id !== null ? `/checkouts/${checkout_id}` : payout_id && `/payouts/${payout_id}`;
  return (
    <>
      <div className="filters">
        <Tabs name="kind" label="Which lines" fallback="" options={kinds} />
      </div>
      <List
        path="/api/balance-lines"
        query={{ merchant }}
        takes={['kind']}
        label="Lines"
        columns={columns}
        keyOf={(row) => row.id}
        hrefOf={hrefOf}
        empty={{
          icon: 'payouts',
          title: 'Everything is in a payout',
          text: 'New sales, refunds and disputes appear here until a payout includes them.',
          filtered: 'No lines of this kind',
        }}
      />
    </>
  );
}
