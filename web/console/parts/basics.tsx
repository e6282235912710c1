import { type ReactNode, useEffect, useState } from 'react';
import { Link, useLocation } from 'wouter';
import {
  duration,
  exactTime,
  money,
  relativeTime,
  sentence,
  shortId,
  shortTime,
  words,
} from '../format.ts';
import { Icon, type IconName } from '../icons.tsx';
import { shopPages } from '../places.ts';
import { useSession } from '../session.tsx';

export function Money(props: { cents: number; currency?: string; locale?: string }) {
  return <span className="num">{money(props.cents, props.currency, props.locale)}</span>;
}

/** The last digits of an account number. */
export const AccountEnd = ({ of: { last4 } }: { of: { last4: string } }) => (
  <span className="num">•••• {last4}</span>
);

/**
 * Which payment of a plan this is. On a phone there is no column head, so the words are in the
 * cell.
 */
export function NthPayment(props: { number: number; of: number }) {
  return (
    <span className="num">
      <span className="on-phone">Payment </span>
      {props.number} of {props.of}
    </span>
  );
}

let ticks = 0;
const listeners = new Set<() => void>();
setInterval(() => {
  ticks += 1;
  for (const listener of listeners) listener();
}, 15_000);

/** Updates relative times while a page stays open. */
function useTicks(): void {
  const [, set] = useState(ticks);
  useEffect(() => {
    const listener = () => set(ticks);
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }, []);
}

/**
 * A time, either relative to now or exact, in the merchant's zone. On hover it shows the exact time
 * and UTC.
 */
export function Time(props: {
  at: string | null;
  zone?: string;
  /** How far the clock that gave this time is ahead of the real one. */
  ahead?: number;
  exact?: boolean;
  age?: boolean;
  /**
   * Whether a time in the future is expected. An unexpected one, which comes from a sandbox clock
   * that was moved, is shown as an exact time.
   */
  future?: boolean;
}) {
  useTicks();
  if (props.at === null) return <span className="quiet none">–</span>;
  const zone = props.zone;
  const now = Date.now() + (props.ahead ?? 0);
  const utc = new Date(props.at).toISOString().replace('T', ' ').slice(0, 19);
  return (
    <time dateTime={props.at} title={`${exactTime(props.at, zone)}\n${utc} UTC`} className="num">
      {props.exact || (!props.future && isAhead(props.at, now))
        ? shortTime(props.at, zone, now)
        : props.age
          ? duration(Math.max(0, now - new Date(props.at).getTime()))
          : relativeTime(props.at, now)}
    </time>
  );
}

/** The zone and the clock of the merchant whose row is shown. */
export const clockOf = (row: { time_zone: string; clock_ahead_ms: number }) => ({
  zone: row.time_zone,
  ahead: row.clock_ahead_ms,
});

/** Clocks may differ a little. */
const isAhead = (at: string, now: number) => new Date(at).getTime() > now + 60_000;

type Tone = 'good' | 'warn' | 'bad' | 'plain';

const tones: Record<string, Tone> = {
  successful: 'good',
  complete: 'good',
  collected: 'good',
  delivered: 'good',
  approved: 'good',
  active: 'good',
  done: 'good',
  authorised: 'good',
  sent: 'good',
  received: 'plain',
  scheduled: 'plain',
  pending: 'plain',
  closed: 'plain',
  cancelled: 'plain',
  expired: 'plain',
  taken: 'warn',
  requested: 'warn',
  overdue: 'warn',
  open: 'warn',
  invited: 'warn',
  held: 'warn',
  unconfirmed: 'warn',
  running: 'warn',
  exhausted: 'bad',
  failed: 'bad',
  refused: 'bad',
  declined: 'bad',
  revoked: 'bad',
  invalid_payload: 'bad',
};

/** Words for statuses whose name in the database says too little. */
const names: Record<string, string> = {
  requested: 'To review',
  exhausted: 'Given up',
  invalid_payload: 'Invalid',
  received: 'Not paid yet',
  successful: 'Paid',
  authorised: 'Held',
  held: 'To release',
  unconfirmed: 'To confirm',
};

export function Status({ of: status, name, tone }: { of: string; name?: string; tone?: Tone }) {
  return (
    <span className={`status ${tone ?? tones[status] ?? 'plain'}`}>
      {name ?? names[status] ?? sentence(words(status))}
    </span>
  );
}

export function Card(props: {
  title?: ReactNode;
  aside?: ReactNode;
  children: ReactNode;
  bare?: boolean;
  className?: string;
  label?: string;
}) {
  return (
    <section className={`card ${props.className ?? ''}`} aria-label={props.label}>
      {props.title !== undefined && (
        <div className="card-head">
          <h2>{props.title}</h2>
          {props.aside}
        </div>
      )}
      {props.bare ? props.children : <div className="card-body">{props.children}</div>}
    </section>
  );
}

/** The head of a page. In the merchants' console its texts are worded for shops. */
export function PageHead(props: {
  title: ReactNode;
  about?: ReactNode;
  back?: { href: string; label: string };
  children?: ReactNode;
}) {
  const [path] = useLocation();
  const { is_for_merchants } = useSession();
  const inShop = (href: string) => (is_for_merchants ? shopPages[href] : null);
  const words = inShop(path);
  const about = words?.about ?? props.about;
  const title = (words?.about && words.label) ?? props.title;
  return (
    <div className="page-head">
      <div>
        {props.back && (
          <Link href={props.back.href} className="crumb">
            <Icon name="back" />
            {inShop(props.back.href)?.label ?? props.back.label}
          </Link>
        )}
        <h1>{title}</h1>
        {about !== undefined && <div className="about">{about}</div>}
      </div>
      {props.children && <div className="row-of">{props.children}</div>}
    </div>
  );
}

export function Notice(props: {
  kind?: 'warn' | 'bad' | undefined;
  icon?: IconName;
  children: ReactNode;
}) {
  const icon = props.icon ?? (props.kind ? 'warning' : 'info');
  return (
    <div className={`notice ${props.kind ?? ''}`} role={props.kind === 'bad' ? 'alert' : undefined}>
      <Icon name={icon} />
      <div className="break">{props.children}</div>
    </div>
  );
}

/** Names and their values. Rows without a value are left out. */
export function Facts({ rows }: { rows: [string, ReactNode][] }) {
  return (
    <dl className="facts">
      {rows
        .filter(
          ([, value]) => value !== null && value !== undefined && value !== false && value !== '',
        )
        .map(([name, value]) => (
          <div key={name} style={{ display: 'contents' }}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}

/** An e-mail address. A narrow column breaks it before the @ and not within a word. */
export function Email({ of: address }: { of: string }) {
  const at = address.lastIndexOf('@');
  return (
    <>
      {address.slice(0, at)}
      <wbr />
      {address.slice(at)}
    </>
  );
}

/** An id that can be copied. */
export function Id({ id, whole }: { id: string; whole?: boolean }) {
  const [copied, setCopied] = useState(false);
  const copy = () => {
    void navigator.clipboard?.writeText(id).then(() => {
      setCopied(true);
      setTimeout(() => setCopied(false), 1500);
    });
  };
  return (
    <button
      type="button"
      className={`link mono ${whole ? '' : 'short'}`}
      title={`${id}\nCopy`}
      onClick={copy}
    >
      {copied ? 'Copied' : whole ? id : shortId(id)}
    </button>
  );
}

export function Person({ name }: { name: string }) {
  const initials = name
    .split(/[\s@.]+/)
    .filter(Boolean)
    .slice(0, 2)
    .map((word) => word.charAt(0).toUpperCase())
    .join('');
  return (
    <span className="avatar" aria-hidden="true">
      {initials || '?'}
    </span>
  );
}

/** A table that may be wider than its card. It also scrolls by keyboard. */
export function Scroll({ label, children }: { label: string; children: ReactNode }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keys.
    <section className="table-wrap" tabIndex={0} aria-label={`${label}, table`}>
      {children}
    </section>
  );
}

export function Table(props: {
  label: string;
  /** A column that is `wide` is not shown on a phone. */
  columns: (string | { right: string; wide?: true })[];
  /** Whether cells contain sentences and wrap. */
  wrap?: boolean;
  children: ReactNode;
  foot?: ReactNode;
}) {
  return (
    <Scroll label={props.label}>
      <table className={props.wrap ? 'table wrap' : 'table'}>
        <thead>
          <tr>
            {props.columns.map((column) =>
              typeof column === 'string' ? (
                <th key={column} scope="col">
                  {column}
                </th>
              ) : (
                <th key={column.right} scope="col" className={column.wide ? 'right wide' : 'right'}>
                  {column.right}
                </th>
              ),
            )}
          </tr>
        </thead>
        <tbody>{props.children}</tbody>
        {props.foot && <tfoot>{props.foot}</tfoot>}
      </table>
    </Scroll>
  );
}
