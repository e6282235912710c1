import { Button, Textarea, TextInput } from '@mantine/core';
import { type ReactNode, useRef, useState } from 'react';
import type { DisputeDetails, DisputeFile } from '#operating/operations/dispute.schema.ts';
import { evidenceFileBytesMax } from '#platform/shared/uploads.ts';
import { longDate, shortTime, words } from '../format.ts';
import { useCan } from '../session.tsx';
import { SingleActionDialog, useAction } from './actions.tsx';
import { Card, Facts, Notice, Time } from './basics.tsx';
import { FileLink } from './file-link.tsx';
import { useText } from './text.ts';
import { base64Of, shrinkImage } from './upload.ts';

type Name = DisputeDetails['wanted'][number];

const names: Record<Name, string> = {
  carrier: 'Carrier',
  tracking_number: 'Tracking number',
  shipped_on: 'Shipped on',
  delivered_on: 'Delivered on',
  statement: 'In your words',
};

const kinds: { kind: DisputeFile['kind']; name: string; about: string }[] = [
  {
    kind: 'delivery',
    name: 'Proof of delivery',
    about: 'A signed slip, or the carrier’s page with the address and the day.',
  },
  {
    kind: 'correspondence',
    name: 'Messages with the customer',
    about: 'E-mails or chats about the order, as one file.',
  },
  { kind: 'receipt', name: 'Receipt or invoice', about: 'What the customer was sent.' },
  { kind: 'other', name: 'Another document', about: 'Anything else that shows what happened.' },
];

/** The facts and files that only the merchant has, and the request for them. */
export function SuppliedCard({ of: dispute }: { of: DisputeDetails }) {
  const can = useCan();
  const [acting, setActing] = useState<'supply' | 'ask' | null>(null);
  const mayChange = can('disputes.supply') && isOpen(dispute);
  const mayAsk = can('disputes.answer') && isOpen(dispute);
  const { supplied, files, wanted } = dispute;
  const facts = wanted.filter((name) => supplied?.[name]);
  if (!mayChange && facts.length === 0 && files.length === 0 && dispute.asked_at === null) {
    return null;
  }
  const close = () => setActing(null);
  return (
    <Card
      title="From the merchant"
      aside={
        <span className="row-of">
          {mayAsk && (
            <Button size="xs" variant="default" onClick={() => setActing('ask')}>
              Ask the merchant…
            </Button>
          )}
          {mayChange && (
            <Button size="xs" variant="default" onClick={() => setActing('supply')}>
              {facts.length === 0 ? 'Add facts…' : 'Change facts…'}
            </Button>
          )}
        </span>
      }
    >
      <div className="stack">
        {can('disputes.answer') && <Request of={dispute} />}
        {facts.length > 0 && (
          <Facts
            rows={facts.map((name): [string, ReactNode] => [
              name === 'statement' ? 'Statement' : names[name],
              <span key={name} className="lines-of" dir="auto">
                {isDay(name) ? longDate(supplied?.[name] ?? '') : supplied?.[name]}
              </span>,
            ])}
          />
        )}
        <ul className="uploads">
          {kinds
            .map((kind) => ({ ...kind, file: files.find((file) => file.kind === kind.kind) }))
            .filter(({ file }) => mayChange || file)
            .map((upload) => (
              <Upload key={upload.kind} {...upload} dispute={dispute} mayChange={mayChange} />
            ))}
        </ul>
      </div>
      {acting === 'supply' && <Supply of={dispute} close={close} />}
      {acting === 'ask' && <Ask of={dispute} close={close} />}
    </Card>
  );
}

const isDay = (name: Name) => name.endsWith('_on');
const isOpen = (dispute: DisputeDetails) => dispute.is_answerable && dispute.submitting_at === null;

/** The request by mail, and whether it was answered. */
function Request({ of: dispute }: { of: DisputeDetails }) {
  const { asked_at, asked_until, supplied_at, time_zone: zone } = dispute;
  if (asked_at === null || asked_until === null) return null;
  const isAnswered = supplied_at !== null && supplied_at > asked_at;
  return (
    <Notice>
      {dispute.merchant_name} was asked by mail on <Time at={asked_at} zone={zone} exact />.{' '}
      {isAnswered ? (
        <>
          The last change came on <Time at={supplied_at} zone={zone} exact />.
        </>
      ) : (
        <>An answer is expected by {shortTime(asked_until, zone)}.</>
      )}
    </Notice>
  );
}

const kilobytes = (bytes: number) =>
  bytes < 1_000_000 ? `${Math.ceil(bytes / 1_000)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;

/** One kind of file: what it should show, and the uploaded file. */
function Upload(props: {
  kind: DisputeFile['kind'];
  name: string;
  about: string;
  file: DisputeFile | undefined;
  dispute: DisputeDetails;
  mayChange: boolean;
}) {
  const { kind, name, about, file, dispute, mayChange } = props;
  const input = useRef<HTMLInputElement>(null);
  const { run, busy, problem, clear } = useAction();
  const [unread, setUnread] = useState<string | null>(null);
  const [isReading, setReading] = useState(false);
  const path = `/api/disputes/${dispute.id}`;
  const add = async (chosen: File) => {
    clear();
    setUnread(null);
    setReading(true);
    try {
      const fitted = await fit(chosen);
      const body = { kind, name: nameOf(chosen, fitted), content: await base64Of(fitted) };
      const what = `Add ${chosen.name}`;
      await run({ path: `${path}/add-file`, body, what, said: () => `${name}: added.` });
    } catch (error) {
      setUnread((error as Error).message);
    } finally {
      setReading(false);
    }
  };
  const remove = () =>
    void run({
      path: `${path}/remove-file`,
      body: { kind },
      what: 'Remove',
      said: () => 'Removed.',
    });
  return (
    <li>
      <div className="upload-text">
        <strong>{name}</strong>
        {file ? (
          <div className="row-of small">
            <FileLink path={`${path}/files/${file.id}`} name={file.name} label={file.name} />
            <span className="quiet">{kilobytes(file.size)}</span>
          </div>
        ) : (
          <div className="quiet small">{about}</div>
        )}
        {(problem ?? unread) !== null && <Notice kind="bad">{problem ?? unread}</Notice>}
      </div>
      {mayChange && (
        <span className="row-of">
          {file && (
            <Button
              size="xs"
              variant="subtle"
              aria-label={`Remove ${file.name}`}
              loading={busy}
              onClick={remove}
            >
              Remove
            </Button>
          )}
          <Button
            size="xs"
            variant="default"
            aria-label={`${file ? 'Replace' : 'Add'}: ${name}`}
            loading={busy || isReading}
            onClick={() => input.current?.click()}
          >
            {file ? 'Replace…' : 'Add…'}
          </Button>
          <input
            ref={input}
            type="file"
            hidden
            aria-label={name}
            accept="application/pdf,image/png,image/jpeg"
            onChange={(event) => {
              const [chosen] = event.currentTarget.files ?? [];
              event.currentTarget.value = '';
              if (chosen) void add(chosen);
            }}
          />
        </span>
      )}
    </li>
  );
}

/** A phone's photo is larger than a bank needs. A file that the server would refuse is not sent. */
async function fit(file: File): Promise<Blob> {
  if (file.size <= evidenceFileBytesMax) return file;
  const fitted = file.type.startsWith('image/')
    ? await shrinkImage(file, { width: 2_000, height: 2_800 }, 'image/jpeg')
    : file;
  if (fitted.size <= evidenceFileBytesMax) return fitted;
  throw new Error(
    `The file is ${kilobytes(fitted.size)}, but at most ${kilobytes(evidenceFileBytesMax)} can be added. Make it smaller.`,
  );
}

const nameOf = (file: File, fitted: Blob) =>
  (fitted === file ? file.name : file.name.replace(/(\.\w+)?$/, '.jpg')).slice(-100);

function Supply({ of, close }: { of: DisputeDetails; close: () => void }) {
  // The dispute as it was when the dialog opened; the page keeps refreshing it. Newer facts from
  // another person must not be overwritten unseen.
  const [dispute] = useState(of);
  const [facts, setFacts] = useState<Partial<Record<Name, string>>>(dispute.supplied ?? {});
  const before = dispute.supplied?.statement ?? '';
  const [statement, statementField] = useText(before, before === '' ? 'statement' : undefined);
  const given = Object.entries({ ...facts, statement }).filter(([, text]) => text.trim() !== '');
  const body = {
    ...Object.fromEntries(given.map(([name, text]) => [name, text.trim()])),
    seen_at: dispute.supplied_at,
  };
  const field = (name: Name) => ({
    label: names[name],
    value: facts[name] ?? '',
    onChange: (event: { currentTarget: { value: string } }) => {
      const { value } = event.currentTarget;
      setFacts((before) => ({ ...before, [name]: value }));
    },
  });
  const shows = (name: Name) => dispute.wanted.includes(name);
  const about = `The bank’s reason: ${words(dispute.reason)}. Write what happened, in order, with dates.`;
  return (
    <SingleActionDialog<DisputeDetails>
      title={`Facts about order ${dispute.client_reference_id}`}
      what="Save the facts"
      path={`/api/disputes/${dispute.id}/supply`}
      body={body}
      said={() => 'Saved. The payment service adds it when it next prepares the evidence.'}
      close={close}
    >
      {shows('carrier') && (
        <div className="pair">
          <TextInput {...field('carrier')} maxLength={100} />
          <TextInput {...field('tracking_number')} maxLength={100} />
          <TextInput {...field('shipped_on')} type="date" />
          <TextInput {...field('delivered_on')} type="date" />
        </div>
      )}
      <Textarea
        label={names.statement}
        {...statementField}
        description={about}
        autosize
        minRows={4}
        maxRows={12}
        maxLength={4_000}
      />
    </SingleActionDialog>
  );
}

function Ask({ of: dispute, close }: { of: DisputeDetails; close: () => void }) {
  const { id, merchant_name, client_reference_id, due_by, time_zone } = dispute;
  return (
    <SingleActionDialog<DisputeDetails>
      title={`Ask ${merchant_name}`}
      what={`Ask ${merchant_name} by e-mail`}
      path={`/api/disputes/${id}/ask`}
      said={({ asked_until }) =>
        `The e-mail is on its way. An answer is expected by ${shortTime(asked_until ?? '', time_zone)}.`
      }
      close={close}
    >
      <p>
        An e-mail to the merchant’s contact asks for facts and files about order{' '}
        {client_reference_id}. It links to this page, where the merchant’s own people add them.
      </p>
      <p className="quiet">
        They have five days, or until two days before the bank’s deadline
        {due_by !== null && <> ({shortTime(due_by, time_zone)})</>}. The e-mail does not name the
        shopper.
      </p>
    </SingleActionDialog>
  );
}

/** The files that are part of the evidence. */
export function EvidenceFiles({ of: dispute }: { of: DisputeDetails }) {
  const { evidence_files: files } = dispute;
  if (files.length === 0) return null;
  return (
    <div>
      <dt>Files</dt>
      <dd>
        {kinds.map(({ kind, name }) => {
          const file = files.find((one) => one.kind === kind);
          return (
            file && (
              <div key={kind} className="row-of">
                <FileLink
                  path={`/api/disputes/${dispute.id}/files/${file.id}`}
                  name={file.name}
                  label={file.name}
                />
                <span className="quiet">{name}</span>
              </div>
            )
          );
        })}
      </dd>
    </div>
  );
}
