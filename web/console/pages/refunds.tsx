import { Button, Textarea } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Link } from 'wouter';
import type { RefundDetails, RefundRow } from '#operating/operations/refund.schema.ts';
import { get } from '../api.ts';
import { money, percent, plural } from '../format.ts';
import { type Action, ActionDialog, useAction } from '../parts/actions.tsx';
import { Email, Facts, Money, Notice, PageHead, Status, Time } from '../parts/basics.tsx';
import { DayFilters, MerchantFilter, Tabs } from '../parts/filters.tsx';
import { type Column, List } from '../parts/list.tsx';
import { RefundParts } from '../parts/refund-parts.tsx';
import { outcomeOf, reviewOf, reviewOfAll } from '../parts/review.ts';
import { SelectedBar, useBulkAction, usePicked } from '../parts/selected.tsx';
import { Unread } from '../parts/states.tsx';
import { useText } from '../parts/text.ts';
import { useCan } from '../session.tsx';
import { useFilters, useOpened } from '../url.ts';
import { merchantColumn, orderColumn, shopperColumn } from './checkouts.tsx';

const views = [
  { value: 'review', label: 'To review' },
  { value: 'approved', label: 'Approved' },
  { value: 'pending', label: 'In progress' },
  { value: 'complete', label: 'Complete' },
  { value: 'failed', label: 'Failed or declined' },
  { value: 'all', label: 'All' },
];

const shown = (row: { amount: number; currency: string; locale: string }) =>
  money(row.amount, row.currency, row.locale);

export function RefundStatus({ of: row }: { of: RefundRow }) {
  if (row.view === 'review' && row.first_approved_by !== null) {
    return <Status of="requested" name="Second approval" />;
  }
  if (row.view === 'approved') return <Status of="pending" name="Approved" />;
  return <Status of={row.status} {...(row.status === 'pending' && { name: 'In progress' })} />;
}

export default function RefundsPage() {
  const can = useCan();
  const [filters] = useFilters();
  const { opened, hrefOf, close } = useOpened('refund');
  const view = filters.view ?? 'review';
  const [picked, setPicked] = usePicked(view);
  const [rows, setRows] = useState<RefundRow[]>([]);
  const [version, setVersion] = useState(0);
  const columns = columnsOf(view, can('refunds.review'), hrefOf).filter(
    (column) => column !== rateColumn || can('overview.read'),
  );
  const mayPick = (row: RefundRow) => row.may_approve;
  const chosen = rows.filter((row) => picked.has(itemOf(row)) && mayPick(row));
  return (
    <>
      <PageHead
        title="Refunds"
        about={
          view === 'review'
            ? 'What waits for a person, the oldest first. An approval starts the refund, unless it is the first of two.'
            : view === 'approved'
              ? 'Approved and not begun yet, the oldest first.'
              : 'The newest first.'
        }
      />
      <div className="filters">
        <Tabs name="view" label="Which refunds" fallback="review" options={views} />
        <MerchantFilter />
        <DayFilters />
      </div>
      <List
        path="/api/refunds"
        query={view === 'all' ? {} : { view }}
        takes={['merchant', 'from', 'to']}
        label="Refunds"
        columns={columns}
        keyOf={(row) => row.id}
        hrefOf={(row) => hrefOf(row.id)}
        onRows={setRows}
        version={version}
        {...(view === 'review' &&
          can('refunds.review') && {
            picking: {
              picked: new Set(chosen.map(({ id }) => id)),
              set: (ids) => setPicked(new Set(rows.filter(({ id }) => ids.has(id)).map(itemOf))),
              can: mayPick,
            },
          })}
        empty={
          view === 'review'
            ? {
                icon: 'check',
                title: 'Nothing to review',
                text: 'Refunds that merchants ask for wait here until a person approves them.',
              }
            : { icon: 'refunds', title: 'No refunds here', text: 'No refund is in this state.' }
        }
      />
      {chosen.length > 0 && <Selected rows={chosen} clear={() => setPicked(new Set())} />}
      {opened && (
        <ReviewDialog
          key={opened}
          id={opened}
          close={close}
          done={() => setVersion((value) => value + 1)}
        />
      )}
    </>
  );
}

const amountColumn: Column<RefundRow> = {
  head: 'Amount',
  right: true,
  phone: 'end',
  cell: (row) => (
    <span title={`of ${money(row.checkout_amount, row.currency, row.locale)}`}>
      <strong className="num">{shown(row)}</strong>{' '}
      <span className="quiet of">
        of <Money cents={row.checkout_amount} currency={row.currency} locale={row.locale} />
      </span>
    </span>
  ),
};

const ageColumn: Column<RefundRow> = {
  head: 'Age',
  right: true,
  cell: (row) => <Time at={row.created_at} zone={row.time_zone} ahead={row.clock_ahead_ms} age />,
  phone: 'sub',
  named: true,
};

const boughtColumn: Column<RefundRow> = {
  head: 'Requested after',
  right: true,
  cell: (row) =>
    row.days_since_purchase === null ? (
      <span className="quiet">–</span>
    ) : (
      <span title="Days from the purchase to the request">
        {plural(row.days_since_purchase, 'day')}
      </span>
    ),
  phone: 'hide',
};

const rateColumn: Column<RefundRow> = {
  head: 'Refund rate',
  right: true,
  cell: (row) => (
    <span title="Refunds as a share of the merchant's sales, last 30 days">
      {percent(row.refund_rate)}
    </span>
  ),
  phone: 'hide',
};

function columnsOf(
  view: string,
  mayReview: boolean,
  hrefOf: (id: string) => string,
): Column<RefundRow>[] {
  return [
    orderColumn,
    amountColumn,
    shopperColumn,
    merchantColumn,
    ageColumn,
    ...(view === 'review'
      ? []
      : [
          {
            head: 'Status',
            cell: (row: RefundRow) => <RefundStatus of={row} />,
            phone: 'end' as const,
          },
        ]),
    boughtColumn,
    { head: 'Taken from', grow: true, cell: (row) => <TakenFrom of={row} />, phone: 'hide' },
    rateColumn,
    {
      head: view === 'review' ? 'Review' : 'Details',
      right: true,
      phone: 'full',
      actions: true,
      cell: (row) => (
        <span className="actions">
          <Button
            size="xs"
            component={Link}
            href={hrefOf(row.id)}
            variant={row.view === 'review' && mayReview ? 'light' : 'default'}
            aria-label={`${row.view === 'review' ? 'Review' : 'View'} the refund of ${shown(row)} for ${row.client_reference_id}`}
          >
            {row.view !== 'review' || !mayReview
              ? 'View'
              : row.needs_second_person && !row.is_first_of_two
                ? 'Second review'
                : 'Review'}
          </Button>
        </span>
      ),
    },
  ];
}

/**
 * A refund with what the list says about its approval. A person selects both: if another person
 * approves the refund first, the refund is no longer selected.
 */
const itemOf = ({ id, is_first_of_two }: RefundRow) => (is_first_of_two ? `${id}:first` : id);

function Selected({ rows, clear }: { rows: RefundRow[]; clear: () => void }) {
  const { begin, ...bulk } = useBulkAction(clear);
  const { approve: what, notice } = reviewOfAll(rows);
  return (
    <SelectedBar
      label="Selected refunds"
      what={what}
      clear={clear}
      {...bulk}
      onAction={() => begin('/api/refunds/approve', { ids: rows.map(itemOf) }, what)}
    >
      <strong>{plural(rows.length, 'refund')}</strong> selected. {notice}
    </SelectedBar>
  );
}

function TakenFrom({ of: row }: { of: RefundRow }) {
  if (row.planned === null) return <span className="quiet">–</span>;
  const sum = (kind: string) =>
    (row.planned ?? []).reduce((all, part) => (part.kind === kind ? all + part.amount : all), 0);
  const show = (cents: number) => money(cents, row.currency, row.locale);
  const texts = [
    sum('cancel') > 0 && `${show(sum('cancel'))} not collected`,
    sum('hold') > 0 && `${show(sum('hold'))} held`,
    sum('card') > 0 && `${show(sum('card'))} to the card`,
  ].filter(Boolean);
  return <span title={texts.join(', ')}>{texts.join(', ')}</span>;
}

/** One refund with the payments that it would be taken from, and the decision. */
function ReviewDialog(props: { id: string; close: () => void; done: () => void }) {
  const can = useCan();
  const {
    data: newest,
    error,
    refetch,
  } = useQuery({
    queryKey: ['/api/refunds', props.id],
    queryFn: ({ signal }) => get<RefundDetails>(`/api/refunds/${props.id}`, {}, signal),
  });
  // The person read this first. Another person may approve the refund in the meantime.
  const [isFirst, setIsFirst] = useState<boolean | null>(null);
  if (newest && isFirst === null) setIsFirst(newest.is_first_of_two);
  const data = newest && { ...newest, is_first_of_two: isFirst ?? newest.is_first_of_two };
  const { run, busy, problem } = useAction();
  const [declining, setDeclining] = useState(false);
  const [reason, reasonField] = useText('', `decline ${props.id}`);
  const amount = data ? shown(data) : '';
  const isReview = data?.view === 'review';
  const mayReview = data !== undefined && can('refunds.review') && isReview;
  const canRetry = data?.status === 'failed' && data.approved_at !== null && can('refunds.retry');
  const approve = data ? reviewOf(data).approve : 'Approve';
  const decline = `Decline ${amount}`;
  const retry = `Retry the refund of ${amount}`;
  const perform = (path: string, what: string, action: Partial<Action<RefundDetails>> = {}) =>
    void run<RefundDetails>({
      path: `/api/refunds/${props.id}/${path}`,
      what,
      said: outcomeOf,
      isFailed: ({ status }) => path !== 'decline' && status === 'failed',
      ...action,
    }).then((answer) => {
      if (!answer) return;
      props.done();
      props.close();
    });
  return (
    <ActionDialog
      title="Refund"
      size="lg"
      opened
      close={props.close}
      what={declining ? decline : canRetry ? retry : approve}
      danger={declining}
      disabled={
        declining ? reason.trim() === '' : canRetry ? false : !(mayReview && data.may_approve)
      }
      hideAction={!mayReview && !canRetry}
      busy={busy}
      problem={problem}
      before={
        mayReview && (
          <Button
            variant="subtle"
            color={declining ? 'accent' : 'danger'}
            onClick={() => setDeclining(!declining)}
          >
            {declining ? 'Back to approving' : 'Decline…'}
          </Button>
        )
      }
      onAction={() => {
        if (declining) {
          const said = () => `${amount} was declined.`;
          perform('decline', decline, { body: { reason: reason.trim() }, said });
        } else if (canRetry) perform('retry', retry);
        else perform('approve', approve, { body: { as_first: data?.is_first_of_two === true } });
      }}
    >
      {error || !data ? (
        <Unread of={{ error, refetch }} lines={6} />
      ) : (
        <>
          <Reviewed of={data} />
          {declining && (
            <Textarea
              label="Why it is declined"
              description="The merchant reads this sentence in the API."
              data-autofocus
              autosize={false}
              rows={3}
              maxLength={500}
              {...reasonField}
            />
          )}
        </>
      )}
    </ActionDialog>
  );
}

/** The refund, and why a person may or may not approve it. */
function Reviewed({ of: data }: { of: RefundDetails }) {
  const can = useCan();
  const { notice } = reviewOf(data);
  return (
    <>
      <div>
        <div className="hero-amount">{shown(data)}</div>
        <div className="quiet">
          of {money(data.checkout_amount, data.currency, data.locale)} · <RefundStatus of={data} />
        </div>
      </div>
      <Facts
        rows={[
          [
            'Order',
            <Link key="order" href={`/checkouts/${data.checkout_id}`}>
              {data.client_reference_id}
            </Link>,
          ],
          [
            'Shopper',
            <>
              {data.name && `${data.name}, `}
              <Email of={data.email} />
            </>,
          ],
          ['Merchant', data.merchant_name],
          [
            'Bought',
            data.purchased_at && (
              <>
                <Time at={data.purchased_at} zone={data.time_zone} exact />
                {data.days_since_purchase !== null &&
                  `, ${plural(data.days_since_purchase, 'day')} before the request`}
              </>
            ),
          ],
          [
            'Requested',
            <>
              <Time key="time" at={data.created_at} zone={data.time_zone} exact /> by{' '}
              {data.requested_by?.name ?? 'the merchant'}
            </>,
          ],
          ['Because', data.request_reason],
          [
            'Merchant’s refund rate',
            can('overview.read') &&
              (data.refund_rate === null
                ? 'Nothing was sold in the last 30 days'
                : `${percent(data.refund_rate)} of what was sold in the last 30 days`),
          ],
          ['Outcome', data.reason],
        ]}
      />
      {data.planned && (
        <section>
          <h3>What it will be taken from</h3>
          <RefundParts parts={data.planned} currency={data.currency} locale={data.locale} />
        </section>
      )}
      {!data.planned && data.parts.length > 0 && (
        <section>
          <h3>What it was taken from</h3>
          <RefundParts parts={data.parts} currency={data.currency} locale={data.locale} />
        </section>
      )}
      {data.waits_for !== null && (
        <Notice>
          Payment {data.waits_for} is being collected. The refund is split once its outcome is
          known.
        </Notice>
      )}
      {data.view === 'review' && notice !== null && (
        <Notice kind={data.may_approve ? undefined : 'warn'}>{notice}</Notice>
      )}
    </>
  );
}
