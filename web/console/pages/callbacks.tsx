import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Link } from 'wouter';
import type { BulkAction } from '#operating/operations/bulk-action.schema.ts';
import type { CallbackRow, DestinationRow } from '#operating/operations/callback.schema.ts';
import type { OwnedCallback } from '#operating/operations/checkout.schema.ts';
import { get } from '../api.ts';
import { count, duration, percent, reasonWords, sentence } from '../format.ts';
import { SingleActionDialog, useQuietAction } from '../parts/actions.tsx';
import { Attempts, resend } from '../parts/attempts.tsx';
import { Facts, Id, PageHead, Status, Time } from '../parts/basics.tsx';
import { followBulkAction } from '../parts/bulk-actions.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { MerchantFilter, Tabs, TextFilter } from '../parts/filters.tsx';
import { type Column, List } from '../parts/list.tsx';
import { useMerchantNames } from '../parts/merchants.tsx';
import { Unread } from '../parts/states.tsx';
import { useCan, useCounts, useSession } from '../session.tsx';
import { useFilters, useOpened } from '../url.ts';
import { merchantColumn, orderColumn } from './checkouts.tsx';

export default function CallbacksPage() {
  const can = useCan();
  const [filters] = useFilters();
  const { opened, close } = useOpened('callback');
  const view = filters.view ?? 'exhausted';
  const isList = view !== 'destinations';
  const { scope } = useSession();
  // The server refuses to filter by host where it has no index for that.
  const ofOne = filters.merchant !== undefined || (scope !== 'all' && scope.length === 1);
  const canFilterHost = view === 'exhausted' || (view === 'pending' && ofOne);
  const [resendingAll, setResendingAll] = useState(false);
  const waiting = useCounts().data?.callbacks_exhausted;
  const [version, setVersion] = useState(0);
  const done = () => setVersion((value) => value + 1);
  return (
    <>
      <PageHead title="Callbacks" about="What we send to merchants’ servers, and what they answer.">
        {view === 'exhausted' && can('callbacks.retry') && waiting?.count !== 0 && (
          <Button variant="default" onClick={() => setResendingAll(true)}>
            Resend all that match…
          </Button>
        )}
      </PageHead>
      <div className="filters">
        <Tabs
          name="view"
          label="Which callbacks"
          fallback="exhausted"
          ends={['host']}
          options={[
            { value: 'exhausted', label: 'Given up' },
            { value: 'pending', label: 'To send' },
            { value: 'delivered', label: 'Delivered' },
            { value: 'all', label: 'All' },
            { value: 'destinations', label: 'Destinations' },
          ]}
        />
        <MerchantFilter />
        {canFilterHost && (
          <TextFilter
            name="host"
            label="Host"
            placeholder="Host, such as shop.example"
            width={240}
          />
        )}
      </div>
      {isList ? (
        <Callbacks view={view} byHost={canFilterHost} version={version} done={done} />
      ) : (
        <Destinations />
      )}
      {opened && <CallbackDialog key={opened} id={opened} close={close} done={done} />}
      {resendingAll && <ResendAll close={() => setResendingAll(false)} />}
    </>
  );
}

function Callbacks(props: { view: string; byHost: boolean; version: number; done: () => void }) {
  const { view, byHost, version, done } = props;
  const can = useCan();
  const { hrefOf } = useOpened('callback');
  const { run, busy } = useQuietAction();
  const columns: Column<CallbackRow>[] = [
    orderColumn,
    { head: 'About', cell: (row) => subjectOf(row), phone: 'sub' },
    ...(view === 'all'
      ? [
          {
            head: 'Status',
            cell: (row: CallbackRow) => <Status of={row.status} />,
            phone: 'end' as const,
          },
        ]
      : []),
    { ...merchantColumn, phone: 'sub' },
    {
      head: 'Sent to',
      cell: (row) => (
        <span className="mono" title={row.notify_url}>
          {row.host}
        </span>
      ),
      phone: 'hide',
    },
    { head: 'Attempts', right: true, cell: (row) => count(row.attempts), phone: 'hide' },
    {
      head: 'Last problem',
      grow: true,
      cell: (row) => (
        <span title={row.reason ?? ''}>
          {row.reason !== null ? (
            sentence(reasonWords(row.reason))
          ) : (
            <span className="quiet none">–</span>
          )}
        </span>
      ),
      phone: 'sub',
    },
    {
      head: view === 'pending' ? 'Next attempt' : 'Created',
      right: true,
      cell: (row) => (
        <Time
          at={view === 'pending' ? row.due_at : row.created_at}
          zone={row.time_zone}
          ahead={row.clock_ahead_ms}
          future={view === 'pending'}
        />
      ),
      phone: 'sub',
    },
    {
      head: 'Actions',
      right: true,
      phone: 'full',
      actions: true,
      cell: (row) => (
        <span className="actions">
          {can('callbacks.retry') && (
            <Button
              size="xs"
              variant="light"
              disabled={busy}
              aria-label={`Resend the callback for ${row.client_reference_id}`}
              onClick={() => void run(resend(row)).then((answer) => answer && done())}
            >
              Resend
            </Button>
          )}
        </span>
      ),
    },
  ];
  return (
    <List
      path="/api/callbacks"
      query={view === 'all' ? {} : { status: view }}
      takes={byHost ? ['merchant', 'host'] : ['merchant']}
      label="Callbacks"
      columns={columns}
      keyOf={(row) => row.id}
      hrefOf={(row) => hrefOf(row.id)}
      version={version}
      empty={
        view === 'exhausted'
          ? {
              icon: 'check',
              title: 'No callback was given up',
              text: 'Every merchant has been told how each checkout ended, or is still being told.',
            }
          : { icon: 'callbacks', title: 'No callbacks here', text: 'No callback is in this state.' }
      }
    />
  );
}

const subjects = {
  'refund.updated': 'Refund',
  'dispute.updated': 'Dispute',
  'payout.updated': 'Payout',
} as const;
const subjectOf = ({ event }: Pick<CallbackRow, 'event'>) =>
  event === null ? 'Payment' : subjects[event];

function Destinations() {
  const columns: Column<DestinationRow>[] = [
    {
      head: 'Host',
      cell: (row) => <span className="mono">{row.host}</span>,
    },
    { head: 'Merchant', cell: (row) => row.merchant_name, phone: 'sub' },
    {
      head: 'Success',
      right: true,
      phone: 'end',
      cell: (row) => (
        <span
          className={
            row.success_rate === null
              ? 'quiet'
              : row.success_rate < 0.9
                ? 'danger-text'
                : row.success_rate < 0.99
                  ? 'warning-text'
                  : ''
          }
        >
          <strong>{percent(row.success_rate)}</strong>
        </span>
      ),
    },
    {
      head: 'Delivered',
      right: true,
      cell: (row) => `${count(row.delivered)} of ${count(row.attempts)}`,
      phone: 'hide',
    },
    {
      head: 'p95',
      right: true,
      cell: (row) => (row.p95_ms === null ? '–' : `≤ ${duration(row.p95_ms)}`),
      phone: 'sub',
    },
    {
      head: 'Failing',
      right: true,
      cell: (row) => (
        <span className={row.failures_in_a_row > 0 ? 'warning-text' : 'quiet'}>
          {count(row.failures_in_a_row)}
        </span>
      ),
      phone: 'hide',
    },
    {
      head: 'Last problem',
      grow: true,
      cell: (row) => (
        <span title={row.last_error ?? ''}>
          {row.last_error === null ? (
            <span className="quiet none">–</span>
          ) : (
            sentence(reasonWords(row.last_error))
          )}
        </span>
      ),
      phone: 'sub',
    },
    {
      head: 'Last attempt',
      right: true,
      cell: (row) => <Time at={row.last_attempt_at} />,
      phone: 'sub',
    },
  ];
  return (
    <List
      path="/api/destinations"
      takes={['merchant']}
      label="Destinations"
      columns={columns}
      keyOf={(row) => `${row.merchant_id} ${row.host}`}
      hrefOf={(row) =>
        `/callbacks?host=${encodeURIComponent(row.host)}&merchant=${row.merchant_id}`
      }
      empty={{
        icon: 'callbacks',
        title: 'No callbacks in the last 7 days',
        text: 'Each merchant’s servers appear here with their success rate and speed.',
      }}
    />
  );
}

/** The order number in the body that was sent, or null. */
function orderOf(payload: string): string | null {
  try {
    const { client_reference_id } = JSON.parse(payload);
    return typeof client_reference_id === 'string' ? client_reference_id : null;
  } catch {
    return null;
  }
}

/** The reference of the payout that an event is about. */
const payoutOf = (payload: string): string => JSON.parse(payload).data.attributes.reference;

function CallbackDialog(props: { id: string; close: () => void; done: () => void }) {
  const { id, close, done } = props;
  const can = useCan();
  const { data, error, refetch } = useQuery({
    queryKey: ['/api/callbacks', id],
    queryFn: ({ signal }) => get<OwnedCallback>(`/api/callbacks/${id}`, {}, signal),
  });
  const { run, busy } = useQuietAction();
  return (
    <Dialog opened close={close} title="Callback" size="xl">
      {error || !data ? (
        <Unread of={{ error, refetch }} lines={6} />
      ) : (
        <div className="stack">
          <Facts
            rows={[
              ['Status', <Status key="status" of={data.status} />],
              [
                'To',
                <span key="to" className="mono">
                  {data.notify_url}
                </span>,
              ],
              [
                'Redirected to',
                data.redirect_url && <span className="mono">{data.redirect_url}</span>,
              ],
              ['About', subjectOf(data)],
              [
                'Order',
                data.checkout_id && (
                  <Link key="c" href={`/checkouts/${data.checkout_id}`}>
                    {orderOf(data.payload) ?? data.checkout_id}
                  </Link>
                ),
              ],
              [
                'Payout',
                data.event === 'payout.updated' && (
                  <Link key="p" href={`/payouts/${data.subject_id}`}>
                    {payoutOf(data.payload)}
                  </Link>
                ),
              ],
              ['Id', <Id key="id" id={data.id} whole />],
              [
                'Next attempt',
                data.due_at && (
                  <Time at={data.due_at} zone={data.time_zone} ahead={data.clock_ahead_ms} future />
                ),
              ],
            ]}
          />
          <Attempts of={data} zone={data.time_zone} />
          <div className="row-of end">
            <Button variant="default" onClick={close}>
              Close
            </Button>
            {can('callbacks.retry') && (
              <Button
                loading={busy}
                onClick={() => void run(resend(data)).then((answer) => answer && done())}
              >
                Resend the callback
              </Button>
            )}
          </div>
        </div>
      )}
    </Dialog>
  );
}

function ResendAll({ close }: { close: () => void }) {
  const [filters] = useFilters();
  const { data: merchants } = useMerchantNames(filters.merchant ? [filters.merchant] : []);
  // The names of an earlier choice stay until those of this one have been read.
  const merchant = merchants?.find(({ id }) => id === filters.merchant);
  const ofMerchant = merchant ? ` of ${merchant.name}` : '';
  const where = filters.host ? ` to ${filters.host}` : '';
  return (
    <SingleActionDialog<BulkAction>
      title="Resend callbacks"
      what={`Resend all callbacks${ofMerchant}${where} that were given up`}
      path="/api/callbacks/retry-all"
      body={{
        ...(filters.merchant && { merchant: filters.merchant }),
        ...(filters.host && { host: filters.host }),
      }}
      disabled={Boolean(filters.merchant) && merchant === undefined}
      close={close}
      done={({ id }) => {
        followBulkAction(id);
        close();
      }}
    >
      <p>
        Every callback{ofMerchant}
        {where} that was given up is sent once more. Receivers get the same bytes as before, so a
        server that has already handled a callback can ignore it.
      </p>
      <p className="quiet">
        {filters.merchant || filters.host
          ? 'The filters of the page decide which.'
          : 'Filter the page by merchant or host to resend fewer.'}
      </p>
    </SingleActionDialog>
  );
}
