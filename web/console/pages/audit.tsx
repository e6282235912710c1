import { Button } from '@mantine/core';
import { Link } from 'wouter';
import type { Action } from '#operating/operations/audit.schema.ts';
import type { Band } from '#operating/operations/merchant.schema.ts';
import { count, money, sentence, shortTime, words } from '../format.ts';
import { Facts, Id, PageHead, Time } from '../parts/basics.tsx';
import { useDetails } from '../parts/details.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { MerchantFilter, TextFilter } from '../parts/filters.tsx';
import { type Column, List } from '../parts/list.tsx';
import { Unread } from '../parts/states.tsx';
import { useSession } from '../session.tsx';
import { useFilters, useOpened } from '../url.ts';

/** The person, or the name stated at the command line together with the system's user and host. */
export function Actor({ of: action }: { of: Action }) {
  if (action.person_id !== null) {
    return (
      <span title={[action.operator, action.address].filter(Boolean).join('\n')}>
        {action.name}
        {action.roles && <span className="quiet"> · {action.roles.join(', ')}</span>}
      </span>
    );
  }
  return (
    <span title="The system user and the host are recorded facts. The name is unverified.">
      {action.os_user ? (
        <>
          {action.os_user}@{action.host}
          <span className="quiet"> as {action.operator}</span>
        </>
      ) : (
        action.operator
      )}
    </span>
  );
}

const isPlain = (value: unknown): value is string | number | boolean | null =>
  value === null || ['string', 'number', 'boolean'].includes(typeof value);
const isCents = (name: string) => /amount$|^four_eyes_above$/.test(name);
const isTime = (value: string) => /^\d{4}-\d{2}-\d{2}T[\d:.]+Z$/.test(value);
const bandWords = ({ from_amount, to_amount, terms }: Band) =>
  `${money(from_amount)} to ${money(to_amount)} in ${terms.join(', ')}`;
const said = (name: string, value: unknown): string => {
  if (value === null) return 'none';
  if (typeof value === 'number' && isCents(name)) return money(value);
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (name === 'rules' && Array.isArray(value)) return value.map(bandWords).join('; ');
  if (Array.isArray(value) && value.every(isPlain)) return value.join(', ') || 'none';
  if (typeof value === 'string' && isTime(value)) return shortTime(value);
  // The beginning of a SHA-256 is enough to compare it by eye.
  if (typeof value === 'string' && /^[0-9a-f]{64}$/.test(value)) return `${value.slice(0, 12)}…`;
  return isPlain(value) ? String(value) : JSON.stringify(value);
};

/** Many actions have the old values in `before` and the new ones beside it. */
function changesIn({ before, ...now }: { before?: unknown }): unknown {
  if (typeof before !== 'object' || before === null) return undefined;
  return Object.fromEntries(Object.entries(now).filter(([name]) => Object.hasOwn(before, name)));
}

/** Details as before → after if they have both, otherwise as name and value. */
export function Details({ of: details }: { of: unknown }) {
  if (typeof details !== 'object' || details === null) return null;
  const entries = Object.entries(details as Record<string, unknown>);
  const { before, after = changesIn(details) } = details as { before?: unknown; after?: unknown };
  if (entries.length === 0) return <span className="quiet">–</span>;
  if (before !== undefined && after !== undefined) {
    const isShown = (name: string) => 'after' in details || !Object.hasOwn(Object(before), name);
    const rest = entries.filter(([name]) => name !== 'before' && name !== 'after' && isShown(name));
    return (
      <span className="break">
        <Change before={before} after={after} />
        {rest.map(([name, value]) => (
          <span key={name} className="quiet">
            {' '}
            · {words(name)}: {said(name, value)}
          </span>
        ))}
      </span>
    );
  }
  return (
    <span className="break">
      {entries.map(([name, value], index) => (
        <span key={name}>
          {index > 0 && ' · '}
          <span className="quiet">{words(name)}:</span> {said(name, value)}
        </span>
      ))}
    </span>
  );
}

function Change({ before, after }: { before: unknown; after: unknown }) {
  if (
    typeof before === 'object' &&
    before !== null &&
    typeof after === 'object' &&
    after !== null
  ) {
    const one = before as Record<string, unknown>;
    const other = after as Record<string, unknown>;
    const names = [...new Set([...Object.keys(one), ...Object.keys(other)])].filter(
      (name) => JSON.stringify(one[name]) !== JSON.stringify(other[name]),
    );
    return names.map((name, index) => (
      <span key={name}>
        {index > 0 && ' · '}
        <span className="quiet">{words(name)}:</span> <s>{said(name, one[name] ?? null)}</s> →{' '}
        <strong>{said(name, other[name] ?? null)}</strong>
      </span>
    ));
  }
  return (
    <>
      <s>{said('', before)}</s> → <strong>{said('', after)}</strong>
    </>
  );
}

/** One action, on the page of its subject. */
export function ActionLine({ of: action }: { of: Action }) {
  return (
    <div>
      <div>
        <strong>{sentence(words(action.action))}</strong> <span className="quiet">by</span>{' '}
        <Actor of={action} />
        <span className="quiet small">
          {' '}
          · <Time at={action.at} exact />
        </span>
      </div>
      <div className="small">
        <Details of={action.details} />
      </div>
    </div>
  );
}

const columns: Column<Action>[] = [
  { head: 'When', cell: (row) => <Time at={row.at} exact />, phone: 'title' },
  { head: 'Who', cell: (row) => <Actor of={row} />, phone: 'sub' },
  { head: 'Did', cell: (row) => <strong>{sentence(words(row.action))}</strong>, phone: 'full' },
  {
    head: 'To',
    cell: (row) => (row.subject_id ? <Id id={row.subject_id} /> : <span className="quiet">–</span>),
    phone: 'sub',
  },
  {
    head: 'Details',
    grow: true,
    cell: (row) => <Details of={row.details} />,
    phone: 'full',
  },
  { head: 'From', cell: (row) => row.address ?? row.host ?? '–', phone: 'hide' },
];

export default function AuditPage() {
  const [filters] = useFilters();
  const { opened, hrefOf, close } = useOpened('action');
  const isStaff = useSession().scope === 'all';
  return (
    <>
      <PageHead
        title={isStaff ? 'Audit' : 'What your people did'}
        about={
          isStaff
            ? 'Every action by an operator, the newest first. Rows are chained and cannot be changed.'
            : 'Every action by your own people, the newest first. No one can change or delete a row.'
        }
      >
        <MerchantFilter />
      </PageHead>
      <div className="filters">
        <TextFilter name="subject" label="Id of the object" placeholder="Id of the object" />
        {filters.person && (
          <Link href="/audit" className="chip plain">
            Actions by one person: show all
          </Link>
        )}
      </div>
      <List
        path="/api/audit"
        takes={['merchant', 'subject', 'person']}
        label={isStaff ? 'Audit' : 'What your people did'}
        wrap
        columns={columns}
        keyOf={(row) => row.id}
        hrefOf={(row) => hrefOf(row.id)}
        empty={{
          icon: 'audit',
          title: 'No actions yet',
          text: isStaff
            ? 'Changes that people make here or at the command line are recorded with their names.'
            : 'Changes that your people make here are recorded with their names.',
        }}
      />
      {opened && <ActionDialog key={opened} id={opened} close={close} />}
    </>
  );
}

/** One action with everything that was recorded about it. */
function ActionDialog({ id, close }: { id: string; close: () => void }) {
  const { data, error, refetch } = useDetails<Action>('/api/audit', id);
  return (
    <Dialog opened close={close} title={data ? sentence(words(data.action)) : 'Action'} size="lg">
      {error || !data ? (
        <Unread of={{ error, refetch }} lines={6} />
      ) : (
        <div className="stack">
          <Facts
            rows={[
              ['When', <Time key="at" at={data.at} exact />],
              ['Who', <Actor key="who" of={data} />],
              [
                'Recorded as',
                data.person_id === null ? (
                  data.operator
                ) : (
                  <Link href={`/audit?person=${data.person_id}`}>{data.operator}</Link>
                ),
              ],
              ['Roles then', data.roles?.map((role) => sentence(words(role))).join(', ')],
              ['Address', data.address],
              ['Session', data.session_id && <Id id={data.session_id} whole />],
              ['System user', data.os_user && `${data.os_user}@${data.host}`],
              [
                'To',
                data.subject_id && (
                  <Link href={`/search?q=${data.subject_id}`} className="mono">
                    {data.subject_id}
                  </Link>
                ),
              ],
              ['Number in the chain', data.number === null ? null : count(data.number)],
              ['Id', <Id key="id" id={data.id} whole />],
            ]}
          />
          <section>
            <h3>What changed</h3>
            <Details of={data.details} />
          </section>
          <pre className="raw">{JSON.stringify(data.details, null, 2)}</pre>
          <div className="row-of end">
            <Button variant="default" onClick={close}>
              Close
            </Button>
          </div>
        </div>
      )}
    </Dialog>
  );
}
