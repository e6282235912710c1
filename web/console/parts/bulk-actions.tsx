import { Button, CloseButton } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef, useSyncExternalStore } from 'react';
import type { BulkAction, BulkActions } from '#operating/operations/bulk-action.schema.ts';
import { get } from '../api.ts';
import { count } from '../format.ts';
import { useQuietAction } from './actions.tsx';

// A bulk action is a row in the database, so it continues when the browser is closed. Only this tab
// remembers which bulk actions the person has dismissed from the panel.

const hiddenKey = 'tranche-bulk-actions-hidden';
const hidden = new Set<string>(JSON.parse(sessionStorage.getItem(hiddenKey) ?? '[]') as string[]);
let version = 0;
const listeners = new Set<() => void>();
const changed = () => {
  version += 1;
  for (const listener of listeners) listener();
};

function hide(id: string): void {
  hidden.add(id);
  sessionStorage.setItem(hiddenKey, JSON.stringify([...hidden].slice(-50)));
  changed();
}

let ended = 0;
const noteEnd = () => {
  ended += 1;
  changed();
};

/** How many of the person's bulk actions have ended while this tab was open. */
export const useEndedBulkActions = (): number => useSyncExternalStore(subscribe, () => ended);

/** Shows the progress of an action that has just begun. */
export function followBulkAction(id: string): void {
  hidden.delete(id);
  changed();
}

const subscribe = (listener: () => void) => {
  listeners.add(listener);
  return () => void listeners.delete(listener);
};

const names: Record<BulkAction['kind'], string> = {
  'callbacks retry': 'Resending callbacks',
  'refunds approve': 'Approving refunds',
  'payouts approve': 'Approving payouts',
  'payouts paid': 'Recording payouts as paid',
  'instalments retry': 'Retrying payments',
};
const ends: Record<BulkAction['kind'], string> = {
  'callbacks retry': 'Callbacks resent',
  'refunds approve': 'Refunds approved',
  'payouts approve': 'Payouts approved',
  'payouts paid': 'Payouts recorded as paid',
  'instalments retry': 'Payments retried',
};

const shownAfterMs = 10 * 60_000;

/** The person's actions that are running or ended recently. They are found again after a reload. */
export function BulkActionsPanel() {
  useSyncExternalStore(subscribe, () => version);
  const client = useQueryClient();
  const { data, refetch } = useQuery({
    queryKey: ['/api/bulk-actions'],
    queryFn: ({ signal }) => get<BulkActions>('/api/bulk-actions', {}, signal),
    retry: false,
    refetchInterval: (query) =>
      query.state.data?.data.some(({ finished_at }) => finished_at === null) ? 1_000 : 60_000,
  });
  const current = version;
  useEffect(() => {
    if (current > 0) void refetch();
  }, [current, refetch]);
  const ended = useRef<string[] | null>(null);
  useEffect(() => {
    if (!data) return;
    const now = data.data.flatMap(({ id, finished_at }) => (finished_at === null ? [] : [id]));
    const isNew = ended.current !== null && now.some((id) => !ended.current?.includes(id));
    ended.current = now;
    // Once the new rows have been read, lists show them.
    if (isNew) void client.invalidateQueries().then(noteEnd);
  }, [data, client]);
  const shown = (data?.data ?? []).filter(
    ({ id, finished_at }) =>
      !hidden.has(id) &&
      (finished_at === null || Date.now() - new Date(finished_at).getTime() < shownAfterMs),
  );
  if (shown.length === 0) return null;
  return (
    <section className="stack tight" aria-label="Bulk actions in progress">
      {shown.slice(0, 3).map((one) => (
        <Progress key={one.id} of={one} />
      ))}
      {shown.some(({ finished_at }) => finished_at === null) && (
        <p className="quiet small">You can leave this page. The work stops when you sign out.</p>
      )}
    </section>
  );
}

function Progress({ of: one }: { of: BulkAction }) {
  const { run, busy } = useQuietAction();
  const over = one.done + one.failed;
  const share = one.total ? over / one.total : 1;
  const title = one.finished_at === null || one.stopped ? names[one.kind] : ends[one.kind];
  return (
    <div className="card pad" style={{ padding: '12px 16px' }}>
      <div className="spread">
        <span role="status">
          <strong>{title}</strong>{' '}
          <span className="quiet num">
            {count(one.done)}
            {one.total !== null && ` of ${count(one.total)}`} done
            {one.failed > 0 && `, ${count(one.failed)} not done`}
          </span>
        </span>
        <span className="row-of">
          {one.finished_at === null && (
            <Button
              size="compact-sm"
              variant="default"
              disabled={busy}
              onClick={() =>
                void run({
                  path: `/api/bulk-actions/${one.id}/stop`,
                  what: `Stop: ${title}`,
                  said: () => 'It has stopped. What is done stays done.',
                })
              }
            >
              Stop
            </Button>
          )}
          <CloseButton size="sm" aria-label={`Hide: ${title}`} onClick={() => hide(one.id)} />
        </span>
      </div>
      {one.finished_at === null && (
        <div
          className={one.total === null ? 'progress endless' : 'progress'}
          role="progressbar"
          aria-label={title}
          // Without a total, a screen reader only says that the action is running.
          {...(one.total !== null && {
            'aria-valuemin': 0,
            'aria-valuemax': one.total,
            'aria-valuenow': over,
          })}
        >
          <span style={{ width: `${Math.round(share * 100)}%` }} />
        </div>
      )}
      {one.stopped !== null && <p className="small">{one.stopped} What is done stays done.</p>}
      {one.problems.length > 0 && (
        <ul className="small danger-text" style={{ margin: '4px 0 0', paddingLeft: 18 }}>
          {one.problems.slice(0, 3).map(({ id, problem }) => (
            <li key={id} className="break">
              {problem}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
