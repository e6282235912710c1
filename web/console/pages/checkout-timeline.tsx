import { Button, Textarea } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import type {
  CheckoutDetails,
  MessageDetails,
  Note,
  TimelineEntry,
} from '#operating/operations/checkout.schema.ts';
import { fetchList } from '../api.ts';
import { reasonWords, sentence, words } from '../format.ts';
import { ActionDialog, useAction } from '../parts/actions.tsx';
import { clockOf, Facts, Notice, Status, Time } from '../parts/basics.tsx';
import { PagesDialog } from '../parts/pages.tsx';
import { Unread } from '../parts/states.tsx';
import { useText } from '../parts/text.ts';
import { useCan, useSession } from '../session.tsx';

const tones = { neutral: '', good: 'good', bad: 'bad', waiting: 'warn' } as const;

/** This many entries of one kind in a row become one line. */
const foldMin = 3;

/** The words for several failed deliveries of the callback, or several messages. */
function foldOf({ kind, tone }: TimelineEntry): string | null {
  if (kind === 'callback' && tone === 'bad') return 'attempts to deliver the callback failed';
  if (kind === 'message' && tone === 'waiting') return 'messages are waiting to be sent';
  return null;
}

/** Folds consecutive entries that say the same thing into one line that can be opened. */
function folded(entries: TimelineEntry[]): TimelineEntry[][] {
  const runs: TimelineEntry[][] = [];
  for (const entry of entries) {
    const [first] = runs.at(-1) ?? [];
    const fold = first && foldOf(first);
    if (fold && fold === foldOf(entry)) runs.at(-1)?.push(entry);
    else runs.push([entry]);
  }
  return runs.flatMap((run) => (run.length < foldMin ? run.map((entry) => [entry]) : [run]));
}

/** Replaces the code of a reason at the end of a description by words. */
const readable = (description: string) =>
  sentence(description.replace(/(?<=: )[a-z0-9_]+$/, (reason) => reasonWords(reason)));

export function Timeline(props: { entries: TimelineEntry[]; of: CheckoutDetails }) {
  const { entries, of: checkout } = props;
  const clock = clockOf(checkout);
  const can = useCan();
  const [opened, setOpened] = useState<string | null>(null);
  const open = can('messages.read') ? setOpened : null;
  const lineOf = (one: TimelineEntry) => (
    <Happened key={one.description} of={one} clock={clock} open={open} />
  );
  return (
    <>
      <Entries entries={entries} clock={clock} lineOf={lineOf} />
      {opened !== null && <MessageDialog of={checkout} id={opened} close={() => setOpened(null)} />}
    </>
  );
}

function Entries(props: {
  entries: TimelineEntry[];
  clock: ReturnType<typeof clockOf>;
  lineOf: (entry: TimelineEntry) => ReactNode;
}) {
  const { entries, clock, lineOf } = props;
  return (
    <ol className="timeline">
      {folded(entries.toReversed()).map((run, index) => {
        const [entry] = run as [TimelineEntry];
        const lines = run.map(lineOf);
        return (
          <li key={`${entry.at} ${index}`} className={tones[entry.tone]}>
            <span className="dot" aria-hidden="true" />
            {run.length === 1 ? (
              lines
            ) : (
              <details className="fold">
                <summary className="what">
                  {run.length} {foldOf(entry)}
                  <span className="when">
                    {' '}
                    · the last <Time at={entry.at} {...clock} exact />
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

function Happened(props: {
  of: TimelineEntry;
  clock: ReturnType<typeof clockOf>;
  open: ((message: string) => void) | null;
}) {
  const { of: entry, clock, open } = props;
  const { message_id } = entry;
  return (
    <div>
      <div className="what break">
        {entry.kind === 'note' || entry.kind === 'conversation'
          ? entry.description
          : readable(entry.description)}
      </div>
      <div className="when">
        <Time at={entry.at} {...clock} exact />
        {entry.by !== null && ` · ${entry.by}`}
        {open && message_id && (
          <>
            {' · '}
            <button
              type="button"
              className="link"
              aria-label={`Open: ${readable(entry.description)}`}
              onClick={() => open(message_id)}
            >
              Open
            </button>
          </>
        )}
      </div>
    </div>
  );
}

/** A message to the shopper as it would be written today, and the button that sends it again. */
function MessageDialog(props: { of: CheckoutDetails; id: string; close: () => void }) {
  const { of: checkout, id, close } = props;
  const can = useCan();
  const path = `/api/checkouts/${checkout.id}/messages/${id}`;
  const { data, error, refetch } = useQuery({
    queryKey: [path],
    queryFn: ({ signal }) => fetchList<MessageDetails>(path, {}, signal, 'Show this message'),
  });
  const { run, busy, problem } = useAction();
  const what = 'Send it again';
  return (
    <ActionDialog
      title={data?.subject ?? 'Message'}
      size="lg"
      opened
      close={close}
      what={what}
      hideAction={!data || data.refusal !== null || !can('messages.answer')}
      busy={busy}
      problem={problem}
      onAction={() =>
        void run<MessageDetails>({
          path: `${path}/send-again`,
          what,
          said: ({ to }) => `The e-mail is being sent to ${to} again.`,
        }).then((answer) => answer && close())
      }
    >
      {error || !data ? (
        <Unread of={{ error, refetch }} lines={6} />
      ) : (
        <>
          <Facts
            rows={[
              ['To', data.to],
              ['State', <Status key="state" of={data.status} />],
              [
                data.status === 'sent' ? 'Sent' : 'Ended',
                data.settled_at && <Time at={data.settled_at} {...clockOf(checkout)} exact />,
              ],
            ]}
          />
          <MailText of={data.text} />
          <p className="quiet small">
            This is how it would be written now. The shopper’s own link is not shown here.
          </p>
          {data.refusal !== null && can('messages.answer') && <Notice>{data.refusal}</Notice>}
        </>
      )}
    </ActionDialog>
  );
}

/** Prevents a line break inside an amount. */
const wholeAmount = (cell: string) =>
  /^\D{1,4}[\d .,]+$/.test(cell) ? cell.replaceAll(' ', '\u00a0') : cell;

/** A part of a mail: running text in `text`, or the rows of a table in `rows`, split into cells. */
type MailPart = { at: number; text: string; rows: string[][] };

function partsOf(text: string): MailPart[] {
  const parts: MailPart[] = [];
  for (const [at, line] of text.split('\n').entries()) {
    const row = /\S {2,}\S/.test(line) ? line.trim().split(/ {2,}/) : null;
    const last = parts.at(-1);
    if (last && row && last.rows.length > 0) last.rows.push(row);
    else if (last && !row && last.rows.length === 0) last.text += `\n${line}`;
    else parts.push({ at, text: row ? '' : line, rows: row ? [row] : [] });
  }
  return parts;
}

/** The text of a mail. Its columns are shown as a table, which fits a narrow screen. */
function MailText({ of: text }: { of: string }) {
  return (
    <div className="mail">
      {partsOf(text).map((part) =>
        part.rows.length === 0 ? (
          <p key={part.at}>{part.text}</p>
        ) : (
          <table key={part.at}>
            <tbody>
              {part.rows.map((cells) => (
                <tr key={cells.join()}>
                  {cells.map((cell) => (
                    <td key={cell}>{wholeAmount(cell)}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        ),
      )}
    </div>
  );
}

const pagedNames = { notes: 'notes', messages: 'messages' } as const;
type Paged = keyof typeof pagedNames;
const isPaged = (kind: string): kind is Paged => kind in pagedNames;

/** Says which kinds of rows are incomplete, and links to their further pages if they have any. */
export function Cut({ of: checkout }: { of: CheckoutDetails }) {
  const [shown, setShown] = useState<Paged | null>(null);
  if (checkout.cut.length === 0) return null;
  return (
    <div className="stack tight">
      <p className="quiet">
        Only the newest of these are shown: {checkout.cut.map((kind) => words(kind)).join(', ')}.
        The command <code>tranche checkouts show</code> shows all.
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

/** Pages of rows, the newest first. */
function Pages(props: { of: CheckoutDetails; kind: Paged; close: () => void }) {
  const { of: checkout, kind, close } = props;
  const entryOf = (row: Note | TimelineEntry): TimelineEntry =>
    'text' in row
      ? { at: row.at, description: row.text, by: row.by.name, kind: 'note', tone: 'neutral' }
      : row;
  return (
    <PagesDialog<Note | TimelineEntry>
      title={`All ${pagedNames[kind]}`}
      path={`/api/checkouts/${checkout.id}/${kind}`}
      first="Newest"
      next="Earlier"
      show={(rows) => <Timeline entries={rows.map(entryOf).toReversed()} of={checkout} />}
      close={close}
    />
  );
}

export function NoteForm({ id }: { id: string }) {
  const { scope } = useSession();
  const [text, textField, setText] = useText('', 'note');
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
        description={
          scope === 'all'
            ? 'Your colleagues see it. The merchant and the shopper do not.'
            : 'Your colleagues and the payment service see it. The shopper does not.'
        }
        rows={2}
        maxLength={2000}
        {...textField}
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
