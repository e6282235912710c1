import { Select } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';
import type { Overview } from '#operating/console/overview.schema.ts';
import { get, type Query, withQuery } from '../api.ts';
import {
  count,
  money,
  monthName,
  percent,
  relativeTime,
  roundMoney,
  sentence,
  words,
} from '../format.ts';
import { Card, PageHead, Time } from '../parts/basics.tsx';
import { DayChart } from '../parts/chart.tsx';
import { MerchantFilter } from '../parts/filters.tsx';
import { bounded } from '../parts/list.tsx';
import { Shop } from '../parts/shop.tsx';
import { Bones, Problem } from '../parts/states.tsx';
import { StoryCard } from '../parts/story.tsx';
import { useSession, useShop } from '../session.tsx';
import { useFilters } from '../url.ts';

export default function OverviewPage() {
  const [filters] = useFilters();
  const { merchant, days, month } = filters;
  const query = { merchant, days, month };
  const { scope } = useSession();
  const shop = useShop();
  const { data, error, refetch } = useQuery({
    queryKey: ['/api/overview', query] as const,
    queryFn: ({ signal }) => get<Overview>('/api/overview', query, signal),
    // The previous charts may stay for a moment, but never under another merchant or month.
    placeholderData: (before, of) => {
      const asked = of?.queryKey[1];
      return asked && asked.merchant === merchant && asked.month === month ? before : undefined;
    },
    refetchInterval: ({ state }) => (state.data?.story?.is_playing ? 3_000 : 30_000),
  });
  return (
    <>
      <PageHead
        title={scope === 'all' ? 'Overview' : shop ? 'Your shop today' : 'Your shops today'}
        about={
          data?.as_of ? (
            <>
              Charts up to <Time at={data.as_of} />
            </>
          ) : (
            ' '
          )
        }
      >
        <MerchantFilter />
      </PageHead>
      {error && !data ? (
        <Card>
          <Problem error={error} retry={() => void refetch()} />
        </Card>
      ) : !data ? (
        <>
          <div className="figures">
            {['a', 'b', 'c', 'd', 'e'].map((key) => (
              <div key={key} className="card figure">
                <Bones lines={2} />
              </div>
            ))}
          </div>
          <Card>
            <Bones lines={7} />
          </Card>
        </>
      ) : (
        <>
          {data.story && <StoryCard isPlaying={data.story.is_playing} />}
          {shop ? <Shop merchant={shop} /> : <Waiting of={data} merchant={merchant} />}
          <Periods today={data.today} />
          <Charts of={data} period={periodName(data, month)} />
        </>
      )}
    </>
  );
}

const periods = ['7', '30', '90'];

/** The days that the charts show: the last ones, or a calendar month of the last two years. */
function Periods({ today }: { today: string }) {
  const [{ days = '30', month }, setFilters] = useFilters();
  const [year = 0, number = 1] = today.split('-').map(Number);
  const months = Array.from({ length: 24 }, (_, back) =>
    new Date(Date.UTC(year, number - 1 - back, 1)).toISOString().slice(0, 7),
  );
  // A link may name an older month.
  if (month && !months.includes(month)) months.push(month);
  return (
    <div className="filters">
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset cannot scroll sideways
          everywhere. */}
      <div className="tabs" role="group" aria-label="Days of the charts">
        {periods.map((value) => (
          <button
            key={value}
            type="button"
            aria-pressed={!month && days === value}
            onClick={() => setFilters({ days: value === '30' ? '' : value, month: '' })}
          >
            {value} days
          </button>
        ))}
      </div>
      <Select
        aria-label="Month of the charts"
        placeholder="A month"
        value={month ?? null}
        onChange={(value) => setFilters({ month: value ?? '', days: '' })}
        data={months.map((value) => ({ value, label: monthName(value) }))}
        clearable
        w={190}
      />
    </div>
  );
}

const periodName = ({ days }: Overview, month: string | undefined) =>
  month ? monthName(month) : `${days.length} days`;

/**
 * The counts of waiting work, and the last check of the books. A value that the person may not read
 * is null and has no figure. Each count links to its list, filtered by the same merchant.
 */
function Waiting({ of: overview, merchant }: { of: Overview; merchant: string | undefined }) {
  const { counts, books } = overview;
  const show = (cents: number) => money(cents, overview.currency, overview.locale);
  const listOf = (path: string, query: Query = {}) => withQuery(path, { ...query, merchant });
  return (
    <section className="figures waiting" aria-label="Waiting">
      <WaitingFigure
        of={counts.refunds_to_review}
        href={listOf('/refunds')}
        label="Refunds to review"
        note={
          overview.oldest_refund_at
            ? `The oldest is from ${relativeTime(overview.oldest_refund_at, Date.now() + overview.clock_ahead_ms)}`
            : 'None is waiting'
        }
        none="None is waiting"
      />
      <WaitingFigure
        of={counts.overdue}
        href={listOf('/overdue')}
        label="Overdue payments"
        note={
          overview.overdue_amount
            ? show(overview.overdue_amount)
            : 'The total follows within minutes'
        }
        none="All were collected"
      />
      <WaitingFigure
        of={counts.callbacks_exhausted}
        href={listOf('/callbacks')}
        label="Callbacks given up"
        note="Not delivered yet"
        none="All were delivered"
      />
      <WaitingFigure
        of={counts.disputes_to_answer}
        href={listOf('/disputes', { status: 'needs_response' })}
        label="Disputes to answer"
        state="bad"
        note="Lost if not answered"
        none={null}
      />
      <WaitingFigure
        of={counts.payouts_to_approve}
        href={listOf('/payouts', { status: 'draft' })}
        label="Payouts to approve"
        note="Two people approve each"
        none={null}
      />
      <WaitingFigure
        of={counts.alerts}
        href={listOf('/alerts')}
        label="Alerts"
        state="bad"
        note="Open or taken"
        none="None open"
      />
      {books && (
        <Figure
          href={null}
          label="Books"
          value={books.proved_at === null ? 'Not checked yet' : books.agree ? 'Agree' : 'Disagree'}
          state={books.agree ? '' : 'bad'}
          note={
            books.proved_at
              ? `Checked ${relativeTime(books.proved_at)}`
              : 'The first check runs soon'
          }
        />
      )}
    </section>
  );
}

/**
 * A count of waiting work. `none` is the note if nothing is waiting. If the count is null, no
 * figure is shown.
 */
function WaitingFigure(props: {
  of: Overview['counts'][keyof Overview['counts']];
  href: string;
  label: string;
  note: string;
  none: string | null;
  state?: string;
}) {
  const { of: waiting, none, note, state = 'needs', ...rest } = props;
  if (waiting === null) return null;
  const value = bounded(waiting);
  if (waiting.count > 0) return <Figure {...rest} value={value} state={state} note={note} />;
  return none !== null && <Figure {...rest} value={value} state="" note={none} />;
}

function Figure(props: {
  href: string | null;
  label: string;
  value: string;
  note: string;
  state: string;
}) {
  const content = (
    <>
      <span className="label">{props.label}</span>
      <span className={`value ${/[a-z]/.test(props.value) ? 'text' : ''}`}>{props.value}</span>
      <span className="note">{props.note}</span>
    </>
  );
  const className = `card figure ${props.state}`;
  return props.href === null ? (
    <div className={className}>{content}</div>
  ) : (
    <Link href={props.href} className={className}>
      {content}
    </Link>
  );
}

function Charts({ of: overview, period }: { of: Overview; period: string }) {
  const { days, currency, locale } = overview;
  const show = (cents: number) => money(cents, currency, locale);
  const axis = (cents: number) => roundMoney(cents, currency, locale);
  const sum = (name: 'sold' | 'collected' | 'refunded') =>
    days.reduce((all, day) => all + day[name], 0);
  const dayNames = days.map(({ day }) => day);
  const due = overview.due.reduce((all, { amount }) => all + amount, 0);
  return (
    <div className="charts">
      <DayChart
        title="Sold, collected and refunded"
        className="wide"
        days={dayNames}
        series={[
          { name: 'Sold', colour: '--accent', values: days.map(({ sold }) => sold) },
          { name: 'Collected', colour: '--quiet', values: days.map(({ collected }) => collected) },
          { name: 'Refunded', colour: '--danger', values: days.map(({ refunded }) => refunded) },
        ]}
        show={show}
        axis={axis}
        summary={
          <div className="sums">
            <Sum label={`Sold, ${period}`} value={show(sum('sold'))} />
            <Sum label="Collected" value={show(sum('collected'))} />
            <Sum label="Refunded" value={show(sum('refunded'))} />
          </div>
        }
      />
      <DayChart
        title="Approval rate"
        days={dayNames}
        series={[
          {
            name: 'Approved',
            colour: '--accent',
            values: days.map(({ approved, declined }) =>
              approved + declined === 0 ? null : approved / (approved + declined),
            ),
          },
        ]}
        show={(share) => percent(share)}
        axis={(share) => percent(share)}
        max={1}
        summary={
          <div className="sums">
            <Sum label={`Share of attempts, ${period}`} value={percent(overview.approval_rate)} />
          </div>
        }
      />
      <DayChart
        title="Due in the next 90 days"
        days={overview.due.map(({ day }) => day)}
        series={[
          {
            name: 'Due',
            colour: '--accent',
            values: overview.due.map(({ amount }) => amount),
            bars: true,
          },
        ]}
        show={show}
        axis={axis}
        summary={
          <div className="sums">
            <Sum label="Still to be collected" value={show(due)} />
          </div>
        }
      />
      <Card title={`From created to paid, ${period}`}>
        <Bars
          rows={[
            ['Created', overview.funnel.created],
            ['Opened', overview.funnel.opened],
            ['Tried to pay', overview.funnel.tried],
            ['Paid', overview.funnel.paid],
          ]}
          of={overview.funnel.created}
        />
      </Card>
      <Card title={`Why payments were declined, ${period}`}>
        {overview.decline_reasons.length === 0 ? (
          <p className="quiet">No payment was declined.</p>
        ) : (
          <Bars
            rows={overview.decline_reasons
              .slice(0, 6)
              .map(({ reason, count: times }) => [
                reason === 'generic' ? 'No reason given' : sentence(words(reason)),
                times,
              ])}
            of={overview.decline_reasons.reduce((all, one) => all + one.count, 0)}
          />
        )}
      </Card>
    </div>
  );
}

function Sum({ label, value }: { label: string; value: string }) {
  return (
    <div>
      <div className="quiet small">{label}</div>
      <div className="sum">{value}</div>
    </div>
  );
}

/** Counts as bars, each with its share of the total. The numbers are beside the bars. */
function Bars({ rows, of: whole }: { rows: [string, number][]; of: number }) {
  return (
    <ul className="bars">
      {rows.map(([name, value]) => (
        <li key={name}>
          <div className="spread">
            <span>{name}</span>
            <span className="num">
              {count(value)}{' '}
              <span className="quiet">{whole > 0 ? percent(value / whole) : '–'}</span>
            </span>
          </div>
          <div className="bar" aria-hidden="true">
            <span style={{ width: `${whole > 0 ? Math.min(100, (value / whole) * 100) : 0}%` }} />
          </div>
        </li>
      ))}
    </ul>
  );
}
