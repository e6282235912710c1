import { Button, Textarea } from '@mantine/core';
import { useState } from 'react';
import type { TimelineEntry } from '#operating/operations/checkout.schema.ts';
import { reasonWords, sentence } from '../format.ts';
import { useAction } from '../parts/actions.tsx';
import { Notice, Time } from '../parts/basics.tsx';

const tones = { neutral: '', good: 'good', bad: 'bad', waiting: 'warn' } as const;

/** So many failed attempts in a row are one line. */
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
