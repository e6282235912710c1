import { Button } from '@mantine/core';
import { useState } from 'react';
import type { CheckoutDetails, PlanPayment } from '#operating/operations/checkout.schema.ts';
import { money, sentence, shortDate, words } from '../format.ts';
import { useQuietAction } from '../parts/actions.tsx';
import { resend } from '../parts/attempts.tsx';
import { Card, clockOf, Id, Notice, PageHead, Status, Time } from '../parts/basics.tsx';
import { useDetails, Waiting } from '../parts/details.tsx';
import { MerchantLink } from '../parts/merchants.tsx';
import { standingOf } from '../parts/standing.ts';
import { useCan } from '../session.tsx';
import { ActionLine } from './audit.tsx';
import {
  Attempted,
  Books,
  CallbackCard,
  DetailsCard,
  DisputesCard,
  MoneyCard,
  OrderCard,
  RefundsCard,
  ShopperCard,
} from './checkout-cards.tsx';
import { RefundDialog } from './checkout-refund.tsx';
import { Cut, NoteForm, Timeline } from './checkout-timeline.tsx';
import { type Retry, RetryDialog } from './overdue.tsx';

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
  const { run, busy } = useQuietAction();
  const { currency, locale } = checkout;
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
            <MerchantLink of={checkout} />
            <span>
              created <Time at={checkout.created_at} {...clockOf(checkout)} />
            </span>
            <Id id={checkout.id} />
          </span>
        }
      >
        {callback && can('callbacks.retry') && (
          <Button variant="default" loading={busy} onClick={() => void run(resend(callback))}>
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
                <p className="quiet">{standingOf(checkout)}</p>
              </div>
              {checkout.waiting !== null && <Notice>{checkout.waiting}</Notice>}
              {checkout.plan.length > 0 && (
                <Plan
                  of={checkout}
                  retry={can('instalments.retry') ? setRetrying : null}
                  show={show}
                />
              )}
            </div>
          </Card>
          {checkout.refunds.length > 0 && <RefundsCard of={checkout} show={show} />}
          {checkout.disputes.length > 0 && <DisputesCard of={checkout} show={show} />}
          <Card title="What happened">
            <Timeline entries={checkout.timeline} of={checkout} />
            <Cut of={checkout} />
            {can('notes.write') && checkout.erased_at === null && <NoteForm id={checkout.id} />}
          </Card>
          {callback && <CallbackCard of={callback} owner={checkout} />}
          <Attempted of={checkout} show={show} />
          {checkout.postings.length > 0 && <Books of={checkout} show={show} />}
          {checkout.audit.length > 0 && (
            <Card title="Actions of operators">
              <div className="stack tight">
                {checkout.audit.map((action) => (
                  <ActionLine key={action.id} of={action} />
                ))}
              </div>
            </Card>
          )}
        </div>

        <div className="stack">
          <ShopperCard of={checkout} />
          {checkout.line_items.length > 0 && <OrderCard of={checkout} show={show} />}
          <MoneyCard of={checkout} show={show} />
          <DetailsCard of={checkout} />
        </div>
      </div>
      {refunding && <RefundDialog of={checkout} close={() => setRefunding(false)} />}
      <RetryDialog of={retrying} close={() => setRetrying(null)} />
    </>
  );
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
                Collected <Time at={payment.collected_at} {...clockOf(checkout)} exact />
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
          {retry && checkout.card !== null && payment.status === 'overdue' && !payment.paused && (
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
                      ? 'The bank allows no further attempt. Ask the shopper for another card.'
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
  if (status === 'authorised') return 'Held since';
  return 'Due';
}
