import { Button, Textarea } from '@mantine/core';
import { useState } from 'react';
import type {
  CheckoutDetails,
  Note,
  TimelineEntry,
} from '#operating/operations/checkout.schema.ts';
import { reasonWords, sentence, words } from '../format.ts';
import { useAction } from '../parts/actions.tsx';
import { Notice, Time } from '../parts/basics.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { useListPage } from '../parts/list.tsx';
import { Unread } from '../parts/states.tsx';

const tones = { neutral: '', good: 'good', bad: 'bad', waiting: 'warn' } as const;

/** This many failed attempts in a row become one line. */
const foldMin = 3;

/** Failed attempts to deliver the callback, one after the other, as one line that can be opened. */
function folded(entries: TimelineEntry[]): TimelineEntry[][] {
  const runs: TimelineEntry[][] = [];
  const fails = ({ kind, tone }: TimelineEntry) => kind === 'callback' && tone === 'bad';
  for (const entry of entries) {
    const [first] = runs.at(-1) ?? [];
    if (first && fails(first) && fails(entry)) runs.at(-1)?.push(entry);
    else runs.push([entry]);
  }
  return runs.flatMap((run) => (run.length < foldMin ? run.map((entry) => [entry]) : [run]));
}

/** The code of the reason at the end of a sentence, in words. */
const readable = (description: string) =>
  sentence(description.replace(/(?<=: )[a-z0-9_]+$/, (reason) => reasonWords(reason)));

export function Timeline({ entries, zone }: { entries: TimelineEntry[]; zone: string }) {
  return (
    <ol className="timeline">
      {folded(entries.toReversed()).map((run, index) => {
        const [entry] = run as [TimelineEntry];
        const lines = run.map((one) => <Happened key={one.description} of={one} zone={zone} />);
        return (
          <li key={`${entry.at} ${index}`} className={tones[entry.tone]}>
            <span className="dot" aria-hidden="true" />
            {run.length === 1 ? (
              lines
            ) : (
              <details className="fold">
                <summary className="what">
                  {run.length} attempts to deliver the callback failed
                  <span className="when">
                    {' '}
                    · the last <Time at={entry.at} zone={zone} exact />
                  </span>
                </summary>
                {lines}
              </details>
            )}
          </li>
        );
      })}
    </ol>
  );
}

function Happened({ of: entry, zone }: { of: TimelineEntry; zone: string }) {
  return (
    <div>
      <div className="what break">
        {entry.kind === 'note' ? entry.description : readable(entry.description)}
      </div>
      <div className="when">
        <Time at={entry.at} zone={zone} exact />
        {entry.by !== null && ` · ${entry.by}`}
      </div>
    </div>
  );
}

const pagedNames = { notes: 'notes', messages: 'messages' } as const;
type Paged = keyof typeof pagedNames;
const isPaged = (kind: string): kind is Paged => kind in pagedNames;

/** Says which kinds of rows show only the newest, and offers the pages of those that have pages. */
export function Cut({ of: checkout }: { of: CheckoutDetails }) {
  const [shown, setShown] = useState<Paged | null>(null);
  if (checkout.cut.length === 0) return null;
  return (
    <div className="stack tight">
      <p className="quiet">
        Only the newest are shown of: {checkout.cut.map((kind) => words(kind)).join(', ')}. The
        command <code>tranche checkouts show</code> shows all.
      </p>
      <span className="row-of">
        {checkout.cut.filter(isPaged).map((kind) => (
          <Button key={kind} variant="default" onClick={() => setShown(kind)}>
            All {pagedNames[kind]}…
          </Button>
        ))}
      </span>
      {shown !== null && <Pages of={checkout} kind={shown} close={() => setShown(null)} />}
    </div>
  );
}

/** The newest first, a page at a time. */
function Pages(props: { of: CheckoutDetails; kind: Paged; close: () => void }) {
  const { of: checkout, kind, close } = props;
  const [after, setAfter] = useState<string | null>(null);
  const page = useListPage<Note | TimelineEntry>(
    `/api/checkouts/${checkout.id}/${kind}`,
    after === null ? {} : { after },
  );
  const next = page.data?.next ?? null;
  const entries = (page.data?.data ?? []).map(
    (row): TimelineEntry =>
      'text' in row
        ? { at: row.at, description: row.text, by: row.by.name, kind: 'note', tone: 'neutral' }
        : row,
  );
  return (
    <Dialog opened close={close} title={`All ${pagedNames[kind]}`} size="lg">
      <div className="stack">
        {page.data ? (
          <Timeline entries={entries.toReversed()} zone={checkout.time_zone} />
        ) : (
          <Unread of={page} lines={6} />
        )}
        <span className="row-of end">
          <Button variant="default" disabled={after === null} onClick={() => setAfter(null)}>
            Newest
          </Button>
          <Button variant="default" disabled={next === null} onClick={() => setAfter(next)}>
            Earlier
          </Button>
        </span>
      </div>
    </Dialog>
  );
}

export function NoteForm({ id }: { id: string }) {
  const [text, setText] = useState('');
  const { run, busy, problem } = useAction();
  return (
    <form
      className="stack tight"
      onSubmit={(event) => {
        event.preventDefault();
        void run({
          path: `/api/checkouts/${id}/notes`,
          body: { text: text.trim() },
          what: 'Add the note',
        }).then((answer) => answer !== null && setText(''));
      }}
    >
      <Textarea
        label="Add a note"
        description="Colleagues see it. The merchant and the shopper do not."
        rows={2}
        maxLength={2000}
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
      />
      {problem !== null && <Notice kind="bad">{problem}</Notice>}
      <span>
        <Button type="submit" variant="default" loading={busy} disabled={text.trim() === ''}>
          Add the note
        </Button>
      </span>
    </form>
  );
}
