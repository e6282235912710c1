import { Button, Textarea, TextInput } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Link } from 'wouter';
import type { RetriedCallback } from '#operating/operations/callback.schema.ts';
import type {
  CheckoutDetails,
  PlanPayment,
  RefundPreview,
  TimelineEntry,
} from '#operating/operations/checkout.schema.ts';
import type { RefundDetails } from '#operating/operations/refund.schema.ts';
import { act } from '../api.ts';
import { money, plural, reasonWords, sentence, shortDate, words } from '../format.ts';
import { ActDialog, problemOf, useAct, useQuietAct } from '../parts/acts.tsx';
import { parseAmount, typedAmount } from '../parts/amount.ts';
import { Attempts } from '../parts/attempts.tsx';
import {
  Card,
  Facts,
  Id,
  Money,
  Notice,
  PageHead,
  Scroll,
  Status,
  Time,
} from '../parts/basics.tsx';
import { useDetails, Waiting } from '../parts/details.tsx';
import { RefundParts } from '../parts/refund-parts.tsx';
import { Bones } from '../parts/states.tsx';
import { useCan } from '../session.tsx';
import { ActionLine } from './audit.tsx';
import { DisputeStatus } from './disputes.tsx';
import { type Retry, RetryDialog } from './overdue.tsx';
import { RefundStatus } from './refunds.tsx';

const back = { href: '/checkouts', label: 'Checkouts' };

export default function CheckoutPage({ id }: { id: string }) {
  const found = useDetails<CheckoutDetails>('/api/checkouts', id);
  if (!found.data) return <Waiting title="Checkout" back={back} of={found} />;
  return <Checkout of={found.data} />;
}

function Checkout({ of: checkout }: { of: CheckoutDetails }) {
  const can = useCan();
  const [refunding, setRefunding] = useState(false);
  const [retrying, setRetrying] = useState<Retry | null>(null);
  const resend = useQuietAct();
  const { currency, locale, time_zone: zone } = checkout;
  const show = (cents: number) => money(cents, currency, locale);
  const { callback } = checkout;
  return (
    <>
      <PageHead
        back={back}
        title={checkout.client_reference_id}
        about={
          <span className="row-of">
            <Status of={checkout.status} />
            <Link href={`/merchants/${checkout.merchant_id}`}>{checkout.merchant_name}</Link>
            <span>
              created <Time at={checkout.created_at} zone={zone} />
            </span>
            <Id id={checkout.id} />
          </span>
        }
      >
        {callback && can('callbacks.retry') && (
          <Button
            variant="default"
            loading={resend.busy}
            onClick={() =>
              void resend.run<RetriedCallback>({
                path: `/api/callbacks/${callback.id}/retry`,
                what: 'Resend the callback',
                said: ({ status, reason }) =>
                  status === 'delivered'
                    ? 'The merchant accepted the callback.'
                    : `Not delivered${reason ? `: ${reason}` : ''}.`,
              })
            }
          >
            Resend the callback
          </Button>
        )}
        {can('refunds.create') && checkout.refundable > 0 && (
          <Button onClick={() => setRefunding(true)}>Refund…</Button>
        )}
      </PageHead>

      <div className="columns">
        <div className="stack">
          <Card>
            <div className="stack">
              <div>
                <div className="hero-amount">{show(checkout.amount)}</div>
                <p className="quiet">{standing(checkout, show)}</p>
              </div>
              {checkout.plan.length > 0 && (
                <Plan
                  of={checkout}
                  retry={can('instalments.retry') ? setRetrying : null}
                  show={show}
                />
              )}
            </div>
          </Card>
          {checkout.refunds.length > 0 && (
            <Card title="Refunds" bare>
              <Scroll label="Refunds">
                <table className="table">
                  <thead>
                    <tr>
                      <th scope="col">Requested</th>
                      <th scope="col" className="right">
                        Amount
                      </th>
                      <th scope="col">Status</th>
                      <th scope="col">By</th>
                      <th scope="col">Note</th>
                    </tr>
                  </thead>
                  <tbody>
                    {checkout.refunds.map((refund) => (
                      <tr key={refund.id}>
                        <td>
                          <Link href={`/refunds?view=${refund.view}&refund=${refund.id}`}>
                            <Time at={refund.created_at} zone={zone} exact />
                          </Link>
                        </td>
                        <td className="right">{show(refund.amount)}</td>
                        <td>
                          <RefundStatus of={refund} />
                        </td>
                        <td>{refund.requested_by?.name ?? 'The merchant'}</td>
                        <td title={refund.reason ?? ''}>
                          {refund.reason ?? refund.request_reason ?? '–'}
                        </td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </Scroll>
            </Card>
          )}
          {checkout.disputes.length > 0 && (
            <Card title="Disputes" bare>
              <div className="lines">
                {checkout.disputes.map((dispute) => (
                  <Link key={dispute.id} href={`/disputes/${dispute.id}`} className="line">
                    <span>
                      <strong className="num">{show(dispute.amount)}</strong>
                      <span className="quiet">
                        {' '}
                        · payment {dispute.instalment} · {words(dispute.reason)} · opened{' '}
                        <Time at={dispute.created_at} zone={zone} exact />
                      </span>
                    </span>
                    <DisputeStatus of={dispute} />
                  </Link>
                ))}
              </div>
            </Card>
          )}
          <Card title="What happened">
            <Timeline entries={checkout.timeline} zone={zone} />
            {can('notes.write') && <NoteForm id={checkout.id} />}
          </Card>
          {callback && (
            <Card
              title="Callback"
              aside={
                <span className="row-of">
                  <Status of={callback.status} />
                  <span className="quiet small">{plural(callback.attempts, 'attempt')}</span>
                </span>
              }
            >
              <div className="stack">
                <Facts
                  rows={[
                    [
                      'To',
                      <span key="to" className="mono">
                        {callback.notify_url}
                      </span>,
                    ],
                    ['Sends', <code key="sends">{callback.payload}</code>],
                    [
                      'Next attempt',
                      callback.due_at && <Time at={callback.due_at} zone={zone} future />,
                    ],
                  ]}
                />
                <Attempts of={callback} zone={zone} />
              </div>
            </Card>
          )}
          <Attempted of={checkout} show={show} />
          {checkout.postings.length > 0 && <Books of={checkout} show={show} />}
          {checkout.audit.length > 0 && (
            <Card title="Acts of operators">
              <div className="stack tight">
                {checkout.audit.map((action) => (
                  <ActionLine key={action.id} of={action} />
                ))}
              </div>
            </Card>
          )}
        </div>

        <div className="stack">
          <Card title="Shopper">
            {checkout.erased_at ? (
              <p className="quiet">
                The shopper’s data was erased <Time at={checkout.erased_at} zone={zone} exact />.
              </p>
            ) : (
              <Facts
                rows={[
                  ['Name', checkout.name],
                  ['E-mail', checkout.email],
                  ['Telephone', checkout.phone_number],
                  ['Address', checkout.billing_address],
                  ['Language', checkout.language],
                  [
                    'Card',
                    checkout.card &&
                      `${sentence(checkout.card.brand ?? 'Card')} ending in ${checkout.card.last4 ?? '????'}`,
                  ],
                ]}
              />
            )}
          </Card>
          {checkout.line_items.length > 0 && (
            <Card title="Order">
              <table className="parts">
                <caption className="visually-hidden">Items of the order</caption>
                <tbody>
                  {checkout.line_items.map((item, index) => (
                    <tr key={index}>
                      <th scope="row" className="break">
                        {item.quantity > 1 ? `${item.quantity} × ` : ''}
                        {item.name}
                      </th>
                      <td>
                        <Money cents={item.amount} currency={currency} locale={locale} />
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </Card>
          )}
          <Card title="Money">
            <Facts
              rows={[
                ['Collected', show(checkout.collected)],
                ['Outstanding', show(checkout.outstanding)],
                ['Refunded', show(checkout.refunded)],
                ['Can be refunded', show(checkout.refundable)],
              ]}
            />
          </Card>
          <Card title="Details">
            <Facts
              rows={[
                ['Id', <Id key="id" id={checkout.id} whole />],
                ['Trace', checkout.trace_id && <Id id={checkout.trace_id} whole />],
                [
                  'Integration',
                  can('integrations.read') ? (
                    <Link key="integration" href={`/integrations/${checkout.integration_id}`}>
                      {checkout.integration_id}
                    </Link>
                  ) : (
                    checkout.integration_id
                  ),
                ],
                ['Terms offered', checkout.terms.join(', ')],
                [
                  'Request',
                  `${checkout.is_v1 ? 'v1' : 'v2'}, ${checkout.signed ? 'signed' : 'not signed'}`,
                ],
                ['Created', <Time key="created" at={checkout.created_at} zone={zone} exact />],
                [
                  'Ended',
                  checkout.completed_at && <Time at={checkout.completed_at} zone={zone} exact />,
                ],
                [
                  'Link valid until',
                  <Time key="until" at={checkout.expires_at} zone={zone} exact />,
                ],
              ]}
            />
          </Card>
        </div>
      </div>
      {refunding && <RefundDialog of={checkout} close={() => setRefunding(false)} />}
      <RetryDialog of={retrying} close={() => setRetrying(null)} />
    </>
  );
}

/** Where things stand, in one sentence. */
function standing(checkout: CheckoutDetails, show: (cents: number) => string): string {
  if (checkout.plan.length === 0) {
    return checkout.status === 'received'
      ? 'The shopper has not paid yet.'
      : 'Nothing was collected.';
  }
  const first = `${show(checkout.collected)} of ${show(checkout.amount)} collected.`;
  const late = checkout.plan.find(({ status }) => status === 'overdue');
  if (late)
    return `${first} Payment ${late.number} has been overdue since ${shortDate(late.due_on)}.`;
  const next = checkout.plan.find(
    ({ status }) => status === 'scheduled' || status === 'authorised',
  );
  if (!next) return first;
  return `${first} Next: ${show(next.amount - next.reduced)} on ${shortDate(next.due_on)}.`;
}

function Plan(props: {
  of: CheckoutDetails;
  retry: ((payment: Retry) => void) | null;
  show: (cents: number) => string;
}) {
  const { of: checkout, retry, show } = props;
  return (
    <ol className="plan" aria-label="The plan">
      {checkout.plan.map((payment) => (
        <li key={payment.number} className={payment.status}>
          <span className="dot" aria-hidden="true" />
          <span className="amount">
            {show(
              payment.status === 'cancelled' ? payment.amount : payment.amount - payment.reduced,
            )}
          </span>
          <span className="when">
            {payment.status === 'collected' && payment.collected_at ? (
              <>
                Collected <Time at={payment.collected_at} zone={checkout.time_zone} exact />
              </>
            ) : (
              `${stateOf(payment)} ${shortDate(payment.due_on)}`
            )}
          </span>
          {payment.reduced > 0 && payment.status !== 'cancelled' && (
            <span className="when">{show(payment.reduced)} refunded</span>
          )}
          {payment.reason && payment.status !== 'collected' && (
            <span className="when warning-text">{sentence(words(payment.reason))}</span>
          )}
          {retry && payment.status === 'overdue' && !payment.paused && (
            <Button
              size="compact-xs"
              variant="light"
              mt={4}
              aria-label={`Retry payment ${payment.number}`}
              onClick={() =>
                retry({
                  ...checkout,
                  checkout_id: checkout.id,
                  number: payment.number,
                  number_of_payments: checkout.plan.length,
                  amount: payment.amount - payment.reduced,
                  due_on: payment.due_on,
                  reason: payment.reason,
                  advice:
                    payment.may_retry === false
                      ? 'The bank forbade another attempt. Ask the shopper for another card.'
                      : null,
                  is_retry_sensible: payment.may_retry !== false,
                })
              }
            >
              Retry
            </Button>
          )}
        </li>
      ))}
    </ol>
  );
}

function stateOf({ status, paused }: PlanPayment): string {
  if (paused) return 'Paused, due';
  if (status === 'overdue') return 'Overdue since';
  if (status === 'cancelled') return 'Cancelled, was due';
  if (status === 'authorised') return 'Held, bought';
  return 'Due';
}

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
const readable = (says: string) =>
  sentence(says.replace(/(?<=: )[a-z0-9_]+$/, (reason) => reasonWords(reason)));

function Timeline({ entries, zone }: { entries: TimelineEntry[]; zone: string }) {
  return (
    <ol className="timeline">
      {folded(entries.toReversed()).map((run, index) => {
        const [entry] = run as [TimelineEntry];
        const lines = run.map((one) => <Happened key={one.says} of={one} zone={zone} />);
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
      <div className="what break">{entry.kind === 'note' ? entry.says : readable(entry.says)}</div>
      <div className="when">
        <Time at={entry.at} zone={zone} exact />
        {entry.by !== null && ` · ${entry.by}`}
      </div>
    </div>
  );
}

function NoteForm({ id }: { id: string }) {
  const [text, setText] = useState('');
  const { run, busy, problem } = useAct();
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

function Attempted({
  of: checkout,
  show,
}: {
  of: CheckoutDetails;
  show: (cents: number) => string;
}) {
  const tries = [
    ...checkout.attempts.map((one) => ({
      ...one,
      what: 'On the page',
      card: one.card_last4 ? `${sentence(one.card_brand ?? '')} ${one.card_last4}` : null,
    })),
    ...checkout.collections.map((one) => ({
      ...one,
      what: `${one.kind === 'capture' ? 'Capture' : 'Charge'} of payment ${one.instalment}`,
      card: null,
    })),
  ].sort((one, other) => (one.created_at < other.created_at ? -1 : 1));
  if (tries.length === 0) return null;
  return (
    <Card title="Requests to the bank" bare>
      <Scroll label="Requests to the bank">
        <table className="table wrap">
          <thead>
            <tr>
              <th scope="col">When</th>
              <th scope="col">What</th>
              <th scope="col" className="right">
                Amount
              </th>
              <th scope="col">Outcome</th>
              <th scope="col">Reference</th>
            </tr>
          </thead>
          <tbody>
            {tries.map((one) => (
              <tr key={one.id}>
                <td>
                  <Time at={one.created_at} zone={checkout.time_zone} exact />
                </td>
                <td>
                  {one.what}
                  {one.card !== null && <span className="quiet"> · {one.card}</span>}
                </td>
                <td className="right number">{show(one.amount)}</td>
                <td>
                  <Status of={one.status} />{' '}
                  <span className="quiet">
                    {one.decline_reason && sentence(words(one.decline_reason))}
                    {one.may_retry === false && ', no retry'}
                  </span>
                </td>
                <td className="mono">{one.payment_ref ?? '–'}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </Card>
  );
}

function Books({ of: checkout, show }: { of: CheckoutDetails; show: (cents: number) => string }) {
  return (
    <Card title="Books" bare>
      <Scroll label="Books">
        <table className="table wrap">
          <thead>
            <tr>
              <th scope="col">When</th>
              <th scope="col">What</th>
              <th scope="col">Debit</th>
              <th scope="col">Credit</th>
              <th scope="col" className="right">
                Amount
              </th>
            </tr>
          </thead>
          <tbody>
            {checkout.postings.map((posting) => (
              <tr key={posting.id}>
                <td>
                  <Time at={posting.at} zone={checkout.time_zone} exact />
                </td>
                <td>
                  {sentence(words(posting.kind))}
                  {posting.instalment !== null && (
                    <span className="quiet"> · payment {posting.instalment}</span>
                  )}
                </td>
                <td>{words(posting.debit)}</td>
                <td>{words(posting.credit)}</td>
                <td className="right number">{show(posting.amount)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </Card>
  );
}

/** An amount, what it would be taken from, and a button that names it. */
function RefundDialog({ of: checkout, close }: { of: CheckoutDetails; close: () => void }) {
  const { currency, locale } = checkout;
  const [typed, setTyped] = useState(() => typedAmount(checkout.refundable));
  const [reason, setReason] = useState('');
  // A repeated press, or a repeated request after a lost answer, makes one refund.
  const [requestId] = useState(() => crypto.randomUUID());
  const cents = parseAmount(typed);
  const [wanted] = useDebouncedValue(cents, 200);
  const { data: preview, error } = useQuery({
    queryKey: ['refund-preview', checkout.id, wanted],
    queryFn: () =>
      act<RefundPreview>('POST', `/api/checkouts/${checkout.id}/refund-preview`, {
        amount: wanted,
      }),
    enabled: wanted !== null && wanted > 0,
    retry: false,
  });
  const { run, busy, problem } = useAct();
  const isCurrent = preview !== undefined && preview.amount === cents;
  const what = cents ? `Refund ${money(cents, currency, locale)}` : 'Refund';
  return (
    <ActDialog
      title={`Refund ${checkout.client_reference_id}`}
      size="lg"
      opened
      close={close}
      what={what}
      danger
      disabled={!isCurrent || preview.refusal !== null}
      busy={busy}
      problem={problem}
      onAct={() =>
        void run<RefundDetails>({
          path: `/api/checkouts/${checkout.id}/refunds`,
          body: {
            amount: cents,
            request_id: requestId,
            ...(reason.trim() && { reason: reason.trim() }),
          },
          what,
          said: ({ view }) =>
            view === 'review'
              ? 'The refund now waits for a second person.'
              : `${what}: it starts now.`,
        }).then((answer) => answer && close())
      }
    >
      <TextInput
        label="Amount"
        description={`At most ${money(checkout.refundable, currency, locale)}`}
        inputMode="decimal"
        data-autofocus
        leftSection="R"
        value={typed}
        error={typed !== '' && cents === null ? 'Write it like 600,00.' : null}
        onChange={(event) => setTyped(event.currentTarget.value)}
      />
      <TextInput
        label="Reason"
        description="Your colleagues read it beside the refund. The audit does not keep it."
        maxLength={500}
        value={reason}
        onChange={(event) => setReason(event.currentTarget.value)}
      />
      {error && <Notice kind="bad">{problemOf(error)}</Notice>}
      {cents !== null && !error && !isCurrent && <Bones lines={3} />}
      {isCurrent && preview.refusal !== null && <Notice kind="bad">{preview.refusal}</Notice>}
      {isCurrent && preview.refusal === null && (
        <section>
          <h3>What it will be taken from</h3>
          <RefundParts parts={preview.parts} currency={currency} locale={locale} />
        </section>
      )}
      {isCurrent &&
        preview.warnings.map((warning) => (
          <Notice key={warning} kind="warn">
            {warning}
          </Notice>
        ))}
      {isCurrent && preview.needs_second_person && (
        <Notice>
          The amount is above the merchant’s threshold. Another person has to approve it before it
          starts.
        </Notice>
      )}
    </ActDialog>
  );
}
