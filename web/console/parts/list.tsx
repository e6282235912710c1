import { Button, Checkbox } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import {
  type MouseEvent,
  type ReactNode,
  type RefObject,
  useEffect,
  useRef,
  useState,
} from 'react';
import { Link, useLocation } from 'wouter';
import { fetchList, needsReauthentication, withQuery } from '../api.ts';
import { count, plural } from '../format.ts';
import type { IconName } from '../icons.tsx';
import { isForKeys } from '../keys.ts';
import { useAddress, useFilters } from '../url.ts';
import { Scroll } from './basics.tsx';
import { useEndedBulkActions } from './bulk-actions.tsx';
import { FileLink } from './file-link.tsx';
import { useSeesOneMerchant } from './merchants.tsx';
import { Problem, State } from './states.tsx';

export type Column<Row> = {
  head: string;
  cell: (row: Row) => ReactNode;
  /** Right-aligned: numbers and money. */
  right?: boolean;
  /** A sentence, which takes the remaining width. */
  grow?: boolean;
  /** A name, which is shortened if the table has no room for it. */
  share?: boolean;
  /** The merchant. It is the same in all rows for a person who sees only one. */
  namesMerchant?: boolean;
  /** Buttons, which stay in sight when the table is wider than the page. */
  actions?: boolean;
  /**
   * The cell's place on a phone, where a row is a small card. `title`: on the first line. `end`: at
   * the right of that line. `sub`: on a quiet line below. `full`: on a separate line, for buttons.
   * `hide`: not shown, neither on a phone nor on a tablet.
   */
  phone?: 'title' | 'end' | 'sub' | 'full' | 'hide';
  /**
   * Whether the cell shows its column's name on a phone, where there are no column heads and the
   * value alone says too little.
   */
  named?: boolean;
};

export type ListPage<Row> = { data: Row[]; next: string | null };

const refreshMs = 20_000;
const pageSize = 50;

/** One page of a list, refreshed while it is shown. */
export function useListPage<Row>(path: string, query: Record<string, string>) {
  const all = { limit: pageSize, ...query };
  return useQuery({
    queryKey: [path, all],
    queryFn: ({ signal }) => fetchList<ListPage<Row>>(path, all, signal),
    refetchInterval: ({ state }) => (needsReauthentication(state.error) ? false : refreshMs),
    placeholderData: keepPreviousData,
  });
}

/**
 * Keeps the rows in place when a refresh brings different ones: a row that left is faded and a new
 * one is only announced, so that no row moves under the pointer. `accept` shows the new list.
 */
function useSteadyRows<Row>(
  fresh: Row[] | undefined,
  keyOf: (row: Row) => string,
  view: string,
): { rows: Row[]; gone: Set<string>; changes: number; accept: () => void } {
  const shown = useRef<{ view: string; rows: Row[] } | null>(null);
  const [, redraw] = useState(0);
  const rows = fresh ?? [];
  if (fresh && (shown.current === null || shown.current.view !== view)) {
    shown.current = { view, rows };
  }
  if (!fresh || !shown.current) return { rows, gone: new Set(), changes: 0, accept: () => {} };
  const byKey = new Map(rows.map((row) => [keyOf(row), row]));
  const before = new Set(shown.current.rows.map(keyOf));
  const gone = new Set([...before].filter((key) => !byKey.has(key)));
  const added = rows.filter((row) => !before.has(keyOf(row))).length;
  const steady = shown.current.rows.map((row) => byKey.get(keyOf(row)) ?? row);
  return {
    rows: steady,
    gone,
    changes: Math.max(added, gone.size),
    accept: () => {
      shown.current = { view, rows };
      redraw((value) => value + 1);
    },
  };
}

export type Picking<Row> = {
  picked: Set<string>;
  set: (picked: Set<string>) => void;
  can: (row: Row) => boolean;
};

type ListProps<Row> = {
  path: string;
  /** The parameters that do not come from the page's URL. */
  query?: Record<string, string>;
  /** The parameters of the page's URL that the list takes. */
  takes: string[];
  label: string;
  columns: Column<Row>[];
  keyOf: (row: Row) => string;
  /**
   * The page that a row opens, by a click anywhere on it, by its first cell, or by Enter. Null for
   * a row that opens nothing.
   */
  hrefOf: (row: Row) => string | null;
  empty: { icon?: IconName; title: string; text: string; filtered?: string };
  picking?: Picking<Row>;
  /** Whether cells contain sentences and wrap. */
  wrap?: boolean;
  /** Called with the rows of each answer. */
  onRows?: (rows: Row[]) => void;
  /**
   * The page raises this number when the person has changed something, so that the list shows the
   * newest rows at once.
   */
  version?: number;
};

export function List<Row>(given: ListProps<Row>) {
  const seesOne = useSeesOneMerchant();
  const columns = given.columns.filter(({ namesMerchant }) => !(seesOne && namesMerchant));
  const props = { ...given, columns };
  const [filters, setFilters] = useFilters();
  const taken = Object.fromEntries(
    [...props.takes, 'after'].flatMap((name) => (filters[name] ? [[name, filters[name]]] : [])),
  );
  const query = { ...props.query, ...taken };
  const { data, error, isPending, isPlaceholderData, refetch } = useListPage<Row>(
    props.path,
    query,
  );
  const view = `${JSON.stringify(query)} ${props.version ?? 0} ${useEndedBulkActions()}`;
  const { rows, gone, changes, accept } = useSteadyRows(
    isPlaceholderData ? undefined : data?.data,
    props.keyOf,
    view,
  );
  const shownRows = isPlaceholderData ? (data?.data ?? []) : rows;
  const { onRows } = props;
  useEffect(() => {
    if (data) onRows?.(data.data);
  }, [data, onRows]);
  const [here, setHere] = useState(-1);
  const body = useRef<HTMLTableSectionElement>(null);

  useRowKeys(shownRows, here, body, props);

  const address = useAddress();
  const isFiltered = props.takes.some((name) => address[name]);
  const clear = () => setFilters(Object.fromEntries(props.takes.map((name) => [name, ''])));
  const goToFirst = () => setFilters({ after: '' });
  const { picking } = props;
  const pickable = picking ? shownRows.filter(picking.can).map(props.keyOf) : [];
  const csvQuery = { ...props.query, ...taken };
  delete (csvQuery as Record<string, string>).after;

  if (isPending) return <Skeleton columns={props.columns.length} />;
  if (error && !data) {
    return (
      <div className="card">
        <Problem error={error} retry={() => void refetch()} goToFirst={goToFirst} />
      </div>
    );
  }
  if (shownRows.length === 0) {
    return (
      <Empty
        of={props.empty}
        isFiltered={isFiltered}
        clear={clear}
        {...(address.after && { goToFirst })}
      />
    );
  }
  return (
    <section className="card" aria-label={props.label} aria-busy={isPlaceholderData}>
      {changes > 0 && (
        <div className="fresh">
          <button type="button" onClick={accept}>
            The list has changed. Show the newest
          </button>
        </div>
      )}
      {error && (
        <div className="fresh">
          <span className="warning-text">
            This list could not be refreshed. It may be out of date.
          </span>
          <button type="button" onClick={() => void refetch()}>
            Try again
          </button>
        </div>
      )}
      <Scroll label={props.label}>
        <table className={`table rows ${props.wrap ? 'wrap' : ''}`}>
          <Head columns={props.columns} picking={picking} pickable={pickable} />
          <tbody ref={body}>
            {shownRows.map((row, index) => {
              const key = props.keyOf(row);
              return (
                <ListRow
                  key={key}
                  row={row}
                  of={props}
                  className={[
                    index === here ? 'here' : '',
                    gone.has(key) ? 'gone' : '',
                    picking ? 'picks' : '',
                  ].join(' ')}
                  onFocus={() => setHere(index)}
                />
              );
            })}
          </tbody>
        </table>
      </Scroll>
      <Foot
        rows={shownRows.length}
        isPaged={Boolean(filters.after)}
        next={data?.next ?? null}
        csv={withQuery(`${props.path}.csv`, csvQuery)}
        go={(after) => {
          // The page after the one shown is already being read.
          if (isPlaceholderData && after !== '') return;
          setFilters({ after });
          if (after === '') return;
          setHere(-1);
          window.scrollTo(0, 0);
        }}
      />
    </section>
  );
}

/** j and k move through the rows, and x selects one. */
function useRowKeys<Row>(
  shownRows: Row[],
  here: number,
  body: RefObject<HTMLTableSectionElement | null>,
  props: ListProps<Row>,
): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (!isForKeys(event)) return;
      if (event.key === 'j' || event.key === 'k') {
        event.preventDefault();
        const next = Math.min(
          shownRows.length - 1,
          Math.max(0, here + (event.key === 'j' ? 1 : -1)),
        );
        // The link gets the focus, so that Enter opens the row and screen readers read it.
        body.current?.children[next]?.querySelector<HTMLElement>('.open')?.focus();
      }
      const row = shownRows[here];
      if (row && event.key === 'x' && props.picking?.can(row)) {
        toggle(props.picking, props.keyOf(row));
      }
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  });
}

function Empty(props: {
  of: ListProps<never>['empty'];
  isFiltered: boolean;
  clear: () => void;
  /** Set on a later page that has no rows left. */
  goToFirst?: () => void;
}) {
  const { of: empty, isFiltered, clear, goToFirst } = props;
  const { title, text, label } = goToFirst
    ? {
        title: 'This page has no rows any more',
        text: 'They have left the list. The first page may have rows.',
        label: 'First page',
      }
    : isFiltered
      ? {
          title: empty.filtered ?? 'Nothing matches',
          text: 'No rows match these filters.',
          label: 'Clear the filters',
        }
      : { ...empty, label: null };
  return (
    <div className="card">
      <State
        icon={empty.icon ?? 'empty'}
        title={title}
        actions={
          label !== null && (
            <Button variant="default" onClick={goToFirst ?? clear}>
              {label}
            </Button>
          )
        }
      >
        {text}
      </State>
    </div>
  );
}

function Head<Row>(props: {
  columns: Column<Row>[];
  picking: Picking<Row> | undefined;
  /** The keys of the rows that can be selected. */
  pickable: string[];
}) {
  const { columns, picking, pickable } = props;
  return (
    <thead>
      <tr>
        {picking && (
          <th className="pick" scope="col">
            <Checkbox
              size="sm"
              aria-label="Select all on this page"
              // Phones show this label. On a wider screen the checkbox is the head of its column.
              label="Select all on this page"
              disabled={pickable.length === 0}
              checked={pickable.length > 0 && pickable.every((id) => picking.picked.has(id))}
              onChange={(event) =>
                picking.set(new Set(event.currentTarget.checked ? pickable : []))
              }
            />
          </th>
        )}
        {columns.map((column) => (
          <th
            key={column.head}
            scope="col"
            className={[
              column.right ? 'right' : '',
              column.actions ? 'stick' : '',
              column.phone === 'hide' ? 'hide' : '',
            ].join(' ')}
          >
            {column.head}
          </th>
        ))}
      </tr>
    </thead>
  );
}

function ListRow<Row>(props: {
  row: Row;
  of: ListProps<Row>;
  className: string;
  onFocus: () => void;
}) {
  const [, navigate] = useLocation();
  const { row, of } = props;
  const { picking } = of;
  const key = of.keyOf(row);
  const href = of.hrefOf(row);
  /** A click on a row, outside of its controls, opens it, unless the person has selected text. */
  const openRow = (event: MouseEvent<HTMLTableRowElement>, href: string) => {
    const { target } = event;
    if (!(target instanceof Element) || target.closest('a, button, input, label')) return;
    if (window.getSelection()?.isCollapsed === false) return;
    if (event.metaKey || event.ctrlKey) window.open(href, '_blank', 'noopener');
    else navigate(href);
  };
  return (
    <tr
      className={props.className}
      {...(href !== null && { onClick: (event) => openRow(event, href) })}
      onFocus={props.onFocus}
    >
      {picking && (
        <td className="pick">
          <Checkbox
            size="sm"
            aria-label="Select this row"
            disabled={!picking.can(row)}
            checked={picking.picked.has(key)}
            onChange={() => toggle(picking, key)}
          />
        </td>
      )}
      {of.columns.map((column, place) => (
        <Cell key={column.head} of={column} place={place} row={row} href={href} />
      ))}
    </tr>
  );
}

function Cell<Row>(props: { of: Column<Row>; place: number; row: Row; href: string | null }) {
  const { of: column, place, row, href } = props;
  const phone = column.phone ?? (place === 0 ? 'title' : 'sub');
  const content = column.cell(row);
  return (
    <td
      className={[
        column.right ? 'right number' : '',
        column.actions ? 'stick' : '',
        column.grow ? 'grow' : column.share ? 'share' : '',
        place === 0 ? 'lead' : '',
        phone === 'title' ? '' : phone,
      ].join(' ')}
    >
      {place === 0 && href !== null ? (
        <Link href={href} className="open">
          {content}
        </Link>
      ) : place === 0 ? (
        <span className="open" tabIndex={-1}>
          {content}
        </span>
      ) : (
        <>
          {column.named && <span className="on-phone">{column.head}: </span>}
          {content}
        </>
      )}
    </td>
  );
}

function Foot(props: {
  rows: number;
  /** Whether this is not the first page. */
  isPaged: boolean;
  next: string | null;
  csv: string;
  go: (after: string) => void;
}) {
  const { isPaged, next, go } = props;
  return (
    <div className="table-foot">
      <span>
        {plural(props.rows, 'row')}
        {isPaged || next ? ' on this page' : ''}
      </span>
      <span className="row-of">
        <FileLink path={props.csv} name={fileNameOf(props.csv)} label="CSV" />
        {isPaged && (
          <Button size="xs" variant="default" onClick={() => go('')}>
            First page
          </Button>
        )}
        {(isPaged || next) && (
          <Button size="xs" variant="default" disabled={!next} onClick={() => next && go(next)}>
            Next page
          </Button>
        )}
      </span>
    </div>
  );
}

function toggle<Row>({ picked, set }: Picking<Row>, key: string): void {
  const next = new Set(picked);
  if (!next.delete(key)) next.add(key);
  set(next);
}

function Skeleton({ columns }: { columns: number }) {
  return (
    <div className="card" role="status" aria-label="Loading">
      <div className="table-wrap">
        <table className="table bones" aria-hidden="true">
          <tbody>
            {Array.from({ length: 8 }, (_, row) => (
              <tr key={row}>
                {Array.from({ length: Math.min(columns, 6) }, (_, column) => (
                  <td key={column}>
                    <span
                      className="bone"
                      style={{ width: `${80 - ((row * 17 + column * 29) % 45)}%`, minWidth: 40 }}
                    />
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </div>
  );
}

/** Shows a count. A plus sign means that the server stopped counting at its limit. */
export const bounded = ({ count: value, more }: { count: number; more: boolean }) =>
  more ? `${count(value)}+` : count(value);

const fileNameOf = (path: string) => path.split('?')[0]?.split('/').at(-1) ?? 'list.csv';
