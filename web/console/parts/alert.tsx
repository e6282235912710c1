import { Button, Select, Textarea } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { Link } from 'wouter';
import type { AlertRow } from '#operating/operations/audit.schema.ts';
import { alertKinds } from '#platform/shared/alert-kinds.ts';
import { get } from '../api.ts';
import { sentence, words } from '../format.ts';
import { useFilters, useOpened } from '../url.ts';
import { ActionDialog, useAction } from './actions.tsx';
import { Facts, Id, Notice, PageHead, Status, Time } from './basics.tsx';
import { MerchantFilter, Tabs } from './filters.tsx';
import { type Column, List, type Picking } from './list.tsx';
import { Unread } from './states.tsx';
import { useText } from './text.ts';

/** The title of an alert: its kind as words. */
export const alertName = (kind: string) => sentence(words(kind));

const alertStates = [
  { value: '', label: 'Open and taken' },
  { value: 'open', label: 'Open' },
  { value: 'taken', label: 'Taken' },
  { value: 'closed', label: 'Done' },
];

/** The subject of the alert. */
function About({ of: row }: { of: AlertRow }) {
  if (row.merchant_id) {
    return (
      <Link
        href={`/merchants/${row.merchant_id}`}
        className="clamp two"
        title={row.merchant_name ?? ''}
      >
        {row.merchant_name}
      </Link>
    );
  }
  if (row.integration_id) {
    return <Link href={`/integrations/${row.integration_id}`}>Integration</Link>;
  }
  return <span className="quiet">The service</span>;
}

/** When an alert was raised, in the merchant's time if it is about a merchant. */
const Raised = ({ of: row, exact = false }: { of: AlertRow; exact?: boolean }) => (
  <Time
    at={row.merchant_at ?? row.at}
    {...(row.time_zone && { zone: row.time_zone })}
    ahead={row.merchant_at === null ? 0 : row.clock_ahead_ms}
    exact={exact}
  />
);

const stateColumn: Column<AlertRow> = {
  head: 'State',
  cell: (row) => (
    <span title={row.taken_by_name ?? ''}>
      <Status of={row.state} />
    </span>
  ),
  phone: 'end',
};

/** The person who has taken the alert, or who closed it and why. */
const handlerColumn: Column<AlertRow> = {
  head: 'By',
  cell: (row) =>
    row.state === 'closed' ? (
      <span className="clamp two" title={row.closed_by ?? ''}>
        {sentence(row.closed_by_name ?? '')}: <span className="quiet">{row.close_reason}</span>
      </span>
    ) : (
      <span title={row.taken_by ?? ''}>{row.taken_by_name}</span>
    ),
  phone: 'sub',
};

const detailColumn = (head: string): Column<AlertRow> => ({
  head,
  grow: true,
  cell: (row) => (
    <span className="break clamp" title={row.detail}>
      {row.detail}
    </span>
  ),
  phone: 'full',
});

const firstSentence = (text: string) => /^.*?\.(?=\s+[A-Z])/s.exec(text)?.[0] ?? text;

/** The text after its first sentence, or the detail if the text does not contain it. */
const restOf = ({ text, detail }: AlertRow) =>
  text.endsWith(detail) ? text.slice(firstSentence(text).length).trim() : detail;

/** The sentence with the order and the amount, and in small print what the service noticed. */
const textColumn = (head: string): Column<AlertRow> => ({
  head,
  grow: true,
  cell: (row) => (
    <span className="stack tight" title={row.detail}>
      <strong className="break">{firstSentence(row.text)}</strong>
      <span className="quiet small break clamp two" style={{ fontWeight: 400 }}>
        {[alertName(row.kind), restOf(row)].filter(Boolean).join(' · ')}
      </span>
    </span>
  ),
});

/** A page of alerts: all of them, or the differences from the gateway's records. */
export function AlertsFrame(props: {
  title: string;
  about: string;
  /** `/api/alerts` or `/api/differences`. */
  path: string;
  label: string;
  noun: string;
  /** The parameter of the URL that names the open alert. */
  parameter: string;
  nameOf: (kind: string) => string;
  /** The column heads that differ between the pages. */
  heads: { name: string; detail: string; at: string };
  empty: { title: string; text: string };
  mayTake: boolean;
  mayClose: boolean;
  /** Buttons in the rows. */
  actions?: (row: AlertRow, href: string) => ReactNode;
  /**
   * Whether the page shows many kinds of alerts. Then each row has a sentence of its own, and the
   * person can filter by kind.
   */
  withKinds?: boolean;
  picking?: Picking<AlertRow>;
  onRows?: (rows: AlertRow[]) => void;
  /** The page raises this number after a change, so that the newest alerts are shown at once. */
  version?: number;
}) {
  const { path, noun, nameOf, heads, actions } = props;
  const [filters] = useFilters();
  const { opened, hrefOf, close } = useOpened(props.parameter);
  const [version, setVersion] = useState(0);
  const columns: Column<AlertRow>[] = [
    ...(props.withKinds
      ? [textColumn(heads.detail)]
      : [
          { head: heads.name, cell: (row: AlertRow) => <strong>{nameOf(row.kind)}</strong> },
          detailColumn(heads.detail),
        ]),
    stateColumn,
    ...(filters.state === 'closed' || filters.state === 'taken' ? [handlerColumn] : []),
    { head: 'About', cell: (row) => <About of={row} />, phone: 'sub', namesMerchant: true },
    { head: heads.at, right: true, cell: (row) => <Raised of={row} />, phone: 'sub' },
  ];
  if (actions) {
    const cell = (row: AlertRow) => actions(row, hrefOf(row.id));
    columns.push({ head: 'Actions', right: true, phone: 'full', actions: true, cell });
  }
  return (
    <>
      <PageHead title={props.title} about={props.about} />
      <div className="filters">
        <Tabs name="state" label={`Which ${noun}s`} fallback="" options={alertStates} />
        {props.withKinds && <KindFilter />}
        <MerchantFilter />
      </div>
      <List
        path={path}
        takes={['state', 'merchant', 'kind']}
        {...(props.picking && { picking: props.picking })}
        {...(props.onRows && { onRows: props.onRows })}
        label={props.label}
        wrap
        columns={columns}
        keyOf={(row) => row.id}
        hrefOf={(row) => hrefOf(row.id)}
        version={version + (props.version ?? 0)}
        empty={{
          icon: 'check',
          ...props.empty,
          filtered: filters.kind
            ? `No ${noun} of this kind is ${filters.state === 'closed' ? 'done' : (filters.state ?? 'open')}`
            : filters.merchant
              ? `No ${noun} of this merchant is ${filters.state === 'closed' ? 'done' : (filters.state ?? 'open')}`
              : filters.state === 'closed'
                ? `No ${noun} was closed yet`
                : `No ${noun} is in this state`,
        }}
      />
      {opened && (
        <AlertDialog
          key={opened}
          id={opened}
          path={path}
          noun={noun}
          nameOf={nameOf}
          mayTake={props.mayTake}
          mayClose={props.mayClose}
          close={close}
          done={() => setVersion((value) => value + 1)}
        />
      )}
    </>
  );
}

/** The kinds of alerts that can be open. */
const kinds = Object.entries(alertKinds).flatMap(([kind, ends]) =>
  ends === 'at once' ? [] : [{ value: kind, label: alertName(kind) }],
);

function KindFilter() {
  const [filters, setFilters] = useFilters();
  return (
    <Select
      aria-label="Kind"
      placeholder="All kinds"
      data={kinds}
      value={filters.kind ?? null}
      onChange={(value) => setFilters({ kind: value ?? '' })}
      clearable
      searchable
      w={200}
    />
  );
}

/**
 * One alert or difference with everything that is known about it, and what a person can do about
 * it.
 */
function AlertDialog(props: {
  id: string;
  /** `/api/alerts` or `/api/differences`. */
  path: string;
  noun: string;
  nameOf: (kind: string) => string;
  mayTake: boolean;
  mayClose: boolean;
  close: () => void;
  done: () => void;
}) {
  const { id, path, noun } = props;
  const { data, error, refetch } = useQuery({
    queryKey: [path, id],
    queryFn: ({ signal }) => get<AlertRow>(`${path}/${id}`, {}, signal),
  });
  const [reason, reasonField] = useText('', `close ${id}`);
  const { run, busy, problem } = useAction();
  const isOpen = props.mayClose && data !== undefined && data.state !== 'closed';
  const mayClose = isOpen && data.close_refusal === null;
  const what = `Close the ${noun}`;
  return (
    <ActionDialog
      title={data ? props.nameOf(data.kind) : sentence(noun)}
      size="lg"
      opened
      close={props.close}
      what={what}
      hideAction={!mayClose}
      {...(mayClose && { leave: 'Not now' })}
      disabled={reason.trim() === ''}
      busy={busy}
      problem={problem}
      before={
        props.mayTake &&
        data?.state === 'open' &&
        data.close_refusal === null && (
          <Button
            variant="light"
            disabled={busy}
            onClick={() =>
              void run({
                path: `${path}/${id}/take`,
                what: `Take the ${noun}`,
                said: () => `The ${noun} is yours.`,
              })
            }
          >
            Take the {noun}
          </Button>
        )
      }
      onAction={() =>
        void run({
          path: `${path}/${id}/close`,
          body: { reason: reason.trim() },
          what,
          said: () => `The ${noun} is closed.`,
        }).then((answer) => {
          if (answer === null) return;
          props.done();
          props.close();
        })
      }
    >
      {error || !data ? (
        <Unread of={{ error, refetch }} lines={5} />
      ) : (
        <>
          <p className="break">
            <strong>{data.text}</strong>
          </p>
          {data.detail !== data.text && <p className="break quiet">{data.detail}</p>}
          <AlertFacts of={data} />
          {isOpen && data.close_refusal !== null && <Notice>{data.close_refusal}</Notice>}
          {mayClose && (
            <Textarea
              label="What was done"
              description={`It stays beside the ${noun} and in the audit.`}
              data-autofocus
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

/** Everything that is known about an alert. */
function AlertFacts({ of: data }: { of: AlertRow }) {
  return (
    <Facts
      rows={[
        ['State', <Status key="state" of={data.state} />],
        ['Raised', <Raised key="at" of={data} exact />],
        ['About', <About key="about" of={data} />],
        [
          'Concerns',
          data.subject_id && (
            <Link href={`/search?q=${data.subject_id}`}>
              {data.client_reference_id ?? 'What it is about'}
            </Link>
          ),
        ],
        ['Raised by', data.caused_by && <span title={data.caused_by}>{data.caused_by_name}</span>],
        [
          'Taken',
          data.taken_at && (
            <>
              <Time at={data.taken_at} exact /> by{' '}
              <span title={data.taken_by ?? ''}>{data.taken_by_name}</span>
            </>
          ),
        ],
        [
          'Closed',
          data.closed_at && (
            <>
              <Time at={data.closed_at} exact /> by{' '}
              <span title={data.closed_by ?? ''}>{data.closed_by_name}</span>
            </>
          ),
        ],
        ['Reason', data.close_reason],
        ['Id', <Id key="id" id={data.id} whole />],
      ]}
    />
  );
}
