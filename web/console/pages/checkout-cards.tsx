import { Link } from 'wouter';
import type { CheckoutDetails } from '#operating/operations/checkout.schema.ts';
import { languageNames } from '#platform/shared/language.ts';
import { plural, sentence, words } from '../format.ts';
import { Attempts } from '../parts/attempts.tsx';
import { Card, clockOf, Email, Facts, Id, Status, Table, Time } from '../parts/basics.tsx';
import { useCan } from '../session.tsx';
import { DisputeStatus } from './disputes.tsx';
import { RefundStatus } from './refunds.tsx';

type CardProps = { of: CheckoutDetails; show: (cents: number) => string };
type Callback = NonNullable<CheckoutDetails['callback']>;

export function RefundsCard({ of: checkout, show }: CardProps) {
  return (
    <Card title="Refunds" bare>
      <Table label="Refunds" columns={['Requested', { right: 'Amount' }, 'Status', 'By', 'Note']}>
        {checkout.refunds.map((refund) => (
          <tr key={refund.id}>
            <td>
              <Link href={`/refunds?view=${refund.view}&refund=${refund.id}`}>
                <Time at={refund.created_at} {...clockOf(checkout)} exact />
              </Link>
            </td>
            <td className="right">{show(refund.amount)}</td>
            <td>
              <RefundStatus of={refund} />
            </td>
            <td>{refund.requested_by?.name ?? 'The merchant'}</td>
            <td title={refund.reason ?? ''}>{refund.reason ?? refund.request_reason ?? '–'}</td>
          </tr>
        ))}
      </Table>
    </Card>
  );
}

export function DisputesCard({ of: checkout, show }: CardProps) {
  const can = useCan();
  return (
    <Card title="Disputes" bare>
      <div className="lines">
        {checkout.disputes.map((dispute) => {
          const line = (
            <>
              <span>
                <strong className="num">{show(dispute.amount)}</strong>
                <span className="quiet">
                  {' '}
                  · payment {dispute.instalment} · {words(dispute.reason)} · opened{' '}
                  <Time at={dispute.created_at} {...clockOf(checkout)} exact />
                </span>
              </span>
              <DisputeStatus of={dispute} />
            </>
          );
          return can('disputes.read') ? (
            <Link key={dispute.id} href={`/disputes/${dispute.id}`} className="line">
              {line}
            </Link>
          ) : (
            <div key={dispute.id} className="line">
              {line}
            </div>
          );
        })}
      </div>
    </Card>
  );
}

export function CallbackCard(props: { of: Callback; owner: CheckoutDetails }) {
  const { of: callback } = props;
  const { time_zone: zone, clock_ahead_ms: ahead } = props.owner;
  return (
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
              callback.due_at && <Time at={callback.due_at} zone={zone} ahead={ahead} future />,
            ],
          ]}
        />
        <Attempts of={callback} zone={zone} />
      </div>
    </Card>
  );
}

export function ShopperCard({ of: checkout }: { of: CheckoutDetails }) {
  return (
    <Card title="Shopper">
      {checkout.erased_at ? (
        <p className="quiet">
          The shopper’s data was erased{' '}
          <Time at={checkout.erased_at} {...clockOf(checkout)} exact />.
        </p>
      ) : (
        <Facts
          rows={[
            ['Name', checkout.name],
            ['E-mail', checkout.email && <Email key="email" of={checkout.email} />],
            ['Telephone', checkout.phone_number],
            ['Address', checkout.billing_address],
            ['Language', checkout.language && languageNames[checkout.language]],
            [
              'Card',
              checkout.card &&
                `${sentence(checkout.card.brand ?? 'Card')} ending in ${checkout.card.last4 ?? '????'}`,
            ],
          ]}
        />
      )}
    </Card>
  );
}

/**
 * The order as the shopper sees it. If the items do not add up to the amount, the difference is a
 * charge or a discount.
 */
export function OrderCard({ of: checkout, show }: CardProps) {
  const { amount, line_items: items } = checkout;
  const rest = amount - items.reduce((sum, item) => sum + item.amount * item.quantity, 0);
  // A product beyond the safe integers has no exact amount.
  const exactly = (cents: number) => Number.isSafeInteger(cents) && show(cents);
  return (
    <Card title="Order">
      <table className="parts">
        <caption className="visually-hidden">Items of the order</caption>
        <tbody>
          {items.map((item, index) => (
            <tr key={index}>
              <th scope="row" className="break">
                {item.name}
                {item.quantity > 1 && (
                  <span className="quiet">
                    {' '}
                    · {item.quantity} at {show(item.amount)}
                  </span>
                )}
              </th>
              <td>{exactly(item.amount * item.quantity)}</td>
            </tr>
          ))}
          {rest !== 0 && (
            <tr>
              <th scope="row">{rest > 0 ? 'Other charges' : 'Discounts'}</th>
              <td>{exactly(rest)}</td>
            </tr>
          )}
        </tbody>
        <tfoot>
          <tr>
            <th scope="row">Total</th>
            <td>{show(amount)}</td>
          </tr>
        </tfoot>
      </table>
    </Card>
  );
}

export function MoneyCard({ of: checkout, show }: CardProps) {
  return (
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
  );
}

export function DetailsCard({ of: checkout }: { of: CheckoutDetails }) {
  const can = useCan();
  return (
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
          [
            'Payment link',
            checkout.payment_link_id && (
              <Link key="link" href={`/payment-links/${checkout.payment_link_id}`}>
                {checkout.payment_link_id}
              </Link>
            ),
          ],
          [
            'Callbacks',
            checkout.notify_url === null ? 'None: its payment link has no address' : null,
          ],
          ['Gateway', checkout.gateway],
          ['Terms offered', checkout.terms.join(', ')],
          [
            'Request',
            `${checkout.is_v1 ? 'v1' : 'v2'}, ${checkout.signed ? 'signed' : 'not signed'}`,
          ],
          ['Created', <Time key="created" at={checkout.created_at} {...clockOf(checkout)} exact />],
          [
            'Ended',
            checkout.completed_at && (
              <Time at={checkout.completed_at} {...clockOf(checkout)} exact />
            ),
          ],
          [
            'Link valid until',
            <Time key="until" at={checkout.expires_at} {...clockOf(checkout)} exact />,
          ],
        ]}
      />
    </Card>
  );
}

export function Attempted({
  of: checkout,
  show,
}: {
  of: CheckoutDetails;
  show: (cents: number) => string;
}) {
  const attempts = [
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
  if (attempts.length === 0) return null;
  return (
    <Card title="Requests to the bank" bare>
      <Table
        label="Requests to the bank"
        columns={['When', 'What', { right: 'Amount' }, 'Outcome', 'Reference']}
        wrap
      >
        {attempts.map((one) => (
          <tr key={one.id}>
            <td>
              <Time at={one.created_at} {...clockOf(checkout)} exact />
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
      </Table>
    </Card>
  );
}

export function Books({
  of: checkout,
  show,
}: {
  of: CheckoutDetails;
  show: (cents: number) => string;
}) {
  return (
    <Card title="Books" bare>
      <Table label="Books" columns={['When', 'What', 'Debit', 'Credit', { right: 'Amount' }]} wrap>
        {checkout.postings.map((posting) => (
          <tr key={posting.id}>
            <td>
              <Time at={posting.at} {...clockOf(checkout)} exact />
            </td>
            <td>
              {sentence(words(posting.kind))}
              {posting.instalment !== null && (
                <span className="quiet"> · payment&nbsp;{posting.instalment}</span>
              )}
            </td>
            <td>{words(posting.debit)}</td>
            <td>{words(posting.credit)}</td>
            <td className="right number">{show(posting.amount)}</td>
          </tr>
        ))}
      </Table>
    </Card>
  );
}
