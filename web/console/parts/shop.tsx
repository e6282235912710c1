import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import type { Home } from '#operating/operations/home.schema.ts';
import { get } from '../api.ts';
import { longDate, money, percent, plural } from '../format.ts';
import { useCan, useCounts, useSession } from '../session.tsx';
import { Card, clockOf, Status, Time } from './basics.tsx';
import { bounded } from './list.tsx';
import { Unread } from './states.tsx';

/** The first page of a shop: what needs a person, recent sales, and the next payout. */
export function Shop({ merchant }: { merchant: string }) {
  const found = useQuery({
    queryKey: ['/api/home', merchant],
    queryFn: ({ signal }) => get<Home>('/api/home', { merchant }, signal),
    refetchInterval: 30_000,
  });
  const home = found.data;
  if (!home) {
    return (
      <Card>
        <Unread of={found} lines={5} />
      </Card>
    );
  }
  return (
    <>
      <div className="columns">
        <Needed of={home} />
        <div className="stack">
          <Payout of={home} />
          <Week of={home} />
        </div>
      </div>
      <GoLive of={home} />
    </>
  );
}

/**
 * The permissions to do something about the rows that are counted. A person with none of them reads
 * what the shop needs.
 */
const ofNeeded = [
  ...['disputes.supply', 'refunds.review', 'messages.answer', 'instalments.retry'],
  'callbacks.retry',
];

function Needed({ of: home }: { of: Home }) {
  const can = useCan();
  const { refunds_to_review, callbacks_exhausted, messages_to_answer, disputes_to_answer } = home;
  // The navigation has read this count.
  const overdue = useCounts().data?.overdue;
  const clock = clockOf(home);
  const rows: { key: string; href: string; text: ReactNode; note: ReactNode }[] = [];
  if (disputes_to_answer?.count) {
    rows.push({
      key: 'disputes',
      href: '/disputes?status=needs_response',
      text: `${bounded(disputes_to_answer)} ${disputes_to_answer.count === 1 ? 'dispute' : 'disputes'} ${can('disputes.supply') ? 'to answer' : 'to be answered'}`,
      note: home.dispute_due_by && (
        <>
          The first answer is due <Time at={home.dispute_due_by} {...clock} future />
        </>
      ),
    });
  }
  if (refunds_to_review?.count) {
    rows.push({
      key: 'refunds',
      href: '/refunds',
      text: `${bounded(refunds_to_review)} ${refunds_to_review.count === 1 ? 'refund is waiting' : 'refunds are waiting'} for ${can('refunds.review') ? 'you' : 'a review'}`,
      note: can('refunds.review')
        ? 'Look at each, and approve or decline it'
        : 'A colleague who may review refunds decides',
    });
  }
  if (messages_to_answer?.count) {
    rows.push({
      key: 'messages',
      href: '/messages',
      text: `${bounded(messages_to_answer)} ${messages_to_answer.count === 1 ? 'shopper is waiting' : 'shoppers are waiting'} for an answer`,
      note: can('messages.answer')
        ? 'Answer in the conversation'
        : 'A colleague who may write to shoppers answers',
    });
  }
  if (overdue?.count) {
    rows.push({
      key: 'overdue',
      href: '/overdue',
      text: `${bounded(overdue)} ${overdue.count === 1 ? 'payment is' : 'payments are'} overdue`,
      note: `Every planned retry was declined. ${can('instalments.retry') ? 'Retry those that may work' : 'A colleague who may retry payments can do so'}`,
    });
  }
  if (callbacks_exhausted?.count) {
    rows.push({
      key: 'callbacks',
      href: '/callbacks',
      text: `${bounded(callbacks_exhausted)} ${callbacks_exhausted.count === 1 ? 'callback was' : 'callbacks were'} given up`,
      note: `Your server did not accept them. ${can('callbacks.retry') ? 'Send them again once it works' : 'A colleague who may resend them can do so once it works'}`,
    });
  }
  for (const { integration_id, kind, expires_at } of home.ending_keys ?? []) {
    rows.push({
      key: `${integration_id} ${kind} ${expires_at}`,
      href: `/integrations/${integration_id}`,
      text: kind === 'signing_key' ? 'A signing key expires' : 'A client secret expires',
      note: <Time at={expires_at} future />,
    });
  }
  const needs = ofNeeded.some(can) ? 'needs you' : 'needs your shop';
  return (
    <Card title={`What ${needs} today`} bare>
      {rows.length === 0 ? (
        <p className="card-body quiet">Nothing {needs} today.</p>
      ) : (
        <ul className="needed">
          {rows.map(({ key, href, text, note }) => (
            <li key={key}>
              <Link href={href}>
                <strong>{text}</strong>
                <span className="quiet small">{note}</span>
              </Link>
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}

function Payout({ of: home }: { of: Home }) {
  const { next_payout: next, unpaid_payouts: unpaid } = home;
  const show = (cents: number) => money(cents, home.currency, home.locale);
  const waiting = unpaid?.count ? unpaid : null;
  if (next === null && waiting === null) return null;
  return (
    <Link href="/balance" className="card figure">
      <span className="label">{next ? 'Next payout, as it stands' : 'Payouts not paid yet'}</span>
      <span className="value">{show((next ?? waiting)?.amount ?? 0)}</span>
      {next && <span className="note">Made on {longDate(next.business_on)}</span>}
      {waiting && (
        <span className="note">
          {next
            ? `${show(waiting.amount)} in ${plural(waiting.count, 'earlier payout')} is not paid yet`
            : `In ${plural(waiting.count, 'payout')}`}
        </span>
      )}
    </Link>
  );
}

function Week({ of: { week, week_before: before, currency, locale } }: { of: Home }) {
  const change = before.sold === 0 ? null : week.sold / before.sold - 1;
  const compared =
    change === null
      ? 'Nothing was sold in the seven days before'
      : `${percent(Math.abs(change))} ${change < 0 ? 'less' : 'more'} than in the seven days before (${money(before.sold, currency, locale)})`;
  return (
    <Link href="/checkouts?status=successful" className="card figure">
      <span className="label">Sales in seven days</span>
      <span className="value">{money(week.sold, currency, locale)}</span>
      <span className="note">
        {plural(week.paid, 'order')}. {compared}
      </span>
    </Link>
  );
}

const steps: {
  name: keyof Home['go_live'];
  label: string;
  how: string;
  href: string;
  /** The permission that the step's page needs, besides those for this page. */
  permission?: string;
}[] = [
  {
    name: 'signed_request',
    label: 'Signed request received',
    how: 'Your server signs each POST with the signing key',
    href: '/integrations',
    permission: 'integrations.read',
  },
  {
    name: 'callback_delivered',
    label: 'Callback accepted',
    how: 'Your server verifies the callback of an order and answers 2xx. A shop without a server sells by payment link and skips this',
    href: '/callbacks',
  },
  {
    name: 'refund_requested',
    label: 'Refund tried',
    how: 'Refund one order, through the API or here',
    href: '/checkouts?status=successful',
  },
  {
    name: 'drill_passed',
    label: 'Drill passed',
    how: 'Your developer runs it here in the sandbox. It plays through what can go wrong with callbacks',
    href: '/callbacks',
  },
  {
    name: 'bank_account',
    label: 'Bank account confirmed',
    how: 'Propose it on your shop’s page, and the payment service confirms it',
    href: '/merchants',
  },
];

/** The list ticks off what is done, and disappears when everything is. */
function GoLive({ of: home }: { of: Home }) {
  const can = useCan();
  const { sandbox, other_console_url } = useSession();
  const shown = steps.filter(({ name }) => home.go_live[name] !== null);
  const done = shown.filter(({ name }) => home.go_live[name]);
  if (done.length === shown.length) return null;
  return (
    <Card
      title={sandbox ? 'Before going live' : 'Going live'}
      aside={`${done.length} of ${shown.length} done`}
      bare
    >
      <ul className="needed">
        {shown.map(({ name, label, how, href, permission }) => {
          const isDone = home.go_live[name];
          const to = name === 'bank_account' ? `/merchants/${home.merchant_id}` : href;
          const line = (
            <>
              <strong>{label}</strong>
              {!isDone && <span className="quiet small">{how}</span>}
            </>
          );
          return (
            <li key={name} className={isDone ? 'done' : ''}>
              {permission === undefined || can(permission) ? (
                <Link href={to}>{line}</Link>
              ) : (
                <span className="where">{line}</span>
              )}
              <Status of={isDone ? 'delivered' : 'pending'} name={isDone ? 'Done' : 'To do'} />
            </li>
          );
        })}
        {!sandbox && home.go_live.callback_delivered !== null && (
          <li>
            <span className="where">
              <strong>Drill</strong>
              <span className="quiet small">
                It pays for orders and forges callbacks, so it runs in the sandbox only.{' '}
                {other_console_url && (
                  <a href={other_console_url}>See whether it has passed there</a>
                )}
              </span>
            </span>
          </li>
        )}
      </ul>
    </Card>
  );
}
