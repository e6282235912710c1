import { Button } from '@mantine/core';
import { Link } from 'wouter';
import type { PaymentLinkDetails } from '#operating/operations/payment-link.schema.ts';
import { money } from '../format.ts';
import { Icon } from '../icons.tsx';
import { useAction } from '../parts/actions.tsx';
import { Card, Facts, Id, Notice, PageHead, Status, Table, Time } from '../parts/basics.tsx';
import { useDetails, Waiting } from '../parts/details.tsx';
import { MerchantLink } from '../parts/merchants.tsx';
import { Copy } from '../parts/secrets.tsx';
import { useCan, useSession } from '../session.tsx';
import { ActionLine } from './audit.tsx';
import { LinkStatus } from './payment-links.tsx';

const back = { href: '/payment-links', label: 'Payment links' };

export default function PaymentLinkPage({ id }: { id: string }) {
  const can = useCan();
  const found = useDetails<PaymentLinkDetails>('/api/payment-links', id);
  const { run, busy, problem } = useAction();
  const link = found.data;
  if (!link) return <Waiting title="Payment link" back={back} of={found} />;
  const amount = link.amount === null ? null : money(link.amount, link.currency, link.locale);
  const cancel = `Cancel the link ${link.client_reference_id}`;
  return (
    <>
      <PageHead
        title={amount ?? 'Shopper types the amount'}
        back={back}
        about={
          <span className="row-of">
            <LinkStatus of={link} />
            <MerchantLink of={link} />
            <span>{link.client_reference_id}</span>
          </span>
        }
      >
        {can('links.create') && link.status === 'active' && (
          <Button
            color="danger"
            variant="light"
            loading={busy}
            onClick={() =>
              void run({
                path: `/api/payment-links/${id}/cancel`,
                what: cancel,
                said: () => 'The link is cancelled. No one can open it any more.',
              })
            }
          >
            {cancel}
          </Button>
        )}
      </PageHead>
      {problem !== null && <Notice kind="bad">{problem}</Notice>}
      {link.status === 'cancelled' && link.orders.some(({ status }) => status === 'received') && (
        <Notice>
          A shopper who opened the payment page before the link was cancelled can still pay there,
          for half an hour at most.
        </Notice>
      )}
      <div className="columns">
        <div className="stack">
          {link.status === 'active' && <Code of={link} />}
          <Orders of={link} />
          {link.mails.length > 0 && <Mails of={link} />}
          {link.audit.length > 0 && (
            <Card title="Actions">
              <div className="stack tight">
                {link.audit.map((action) => (
                  <ActionLine key={action.id} of={action} />
                ))}
              </div>
            </Card>
          )}
        </div>
        <Card title="Link">
          <Facts
            rows={[
              ['For', link.reusable ? 'A till: many payments' : 'One payment'],
              ['Shopper', link.reusable ? null : (link.email ?? 'Not known yet')],
              ['Created', <Time key="at" at={link.created_at} zone={link.time_zone} exact />],
              [
                'Expires',
                link.expires_at === null ? (
                  'When it is cancelled'
                ) : (
                  <Time key="end" at={link.expires_at} zone={link.time_zone} exact />
                ),
              ],
              [
                'Cancelled',
                link.cancelled_at && (
                  <Time key="off" at={link.cancelled_at} zone={link.time_zone} exact />
                ),
              ],
              [
                'Callbacks to',
                <span className="break" key="to">
                  {link.notify_url ?? 'No server: this page lists who paid'}
                </span>,
              ],
              ['Id', <Id key="id" id={link.id} />],
            ]}
          />
        </Card>
      </div>
    </>
  );
}

/** The code is large enough to be scanned from the screen. */
function Code({ of: link }: { of: PaymentLinkDetails }) {
  const { size, path } = link.qr;
  return (
    <Card title={link.reusable ? 'For the till' : 'Send or show it'}>
      <div className="link-code">
        <svg viewBox={`0 0 ${size} ${size}`} role="img" aria-label="QR code of the link">
          <path className="link-paper" d={`M0 0h${size}v${size}H0z`} />
          <path d={path} />
        </svg>
        <div className="stack">
          <div className="secret">
            <span className="break">{link.url}</span>
            <Copy value={link.url} name="the link" />
          </div>
          <div className="row-of">
            <Button component="a" href={link.print_url} target="_blank" rel="noopener">
              Print
            </Button>
            <MailIt of={link} />
            <a className="link row-of" href={link.qr_svg_url} target="_blank" rel="noopener">
              <Icon name="download" /> SVG
            </a>
            <a className="link row-of" href={link.qr_png_url} target="_blank" rel="noopener">
              <Icon name="download" /> PNG
            </a>
          </div>
        </div>
      </div>
    </Card>
  );
}

/**
 * The person's own program writes the mail. If the link has the shopper's e-mail address, the
 * service can mail the link itself.
 */
function MailIt({ of: link }: { of: PaymentLinkDetails }) {
  const can = useCan();
  const { sends_mail } = useSession();
  const { run, busy, problem } = useAction();
  const write = (
    <Button variant="default" component="a" href={mailto(link)}>
      Write an e-mail
    </Button>
  );
  if (!sends_mail || link.email === null || !can('links.create')) return write;
  const again = link.mails.length > 0 ? ' again' : '';
  return (
    <>
      <Button
        variant="default"
        loading={busy}
        onClick={() =>
          void run({
            path: `/api/payment-links/${link.id}/mail`,
            what: `Mail the link${again} to ${link.email}`,
            said: () => `The link is being sent to ${link.email}.`,
          })
        }
      >
        {`Mail it${again}`}
      </Button>
      {write}
      {problem !== null && <Notice kind="bad">{problem}</Notice>}
    </>
  );
}

function Mails({ of: link }: { of: PaymentLinkDetails }) {
  return (
    <Card title="E-mails to the shopper" bare>
      <Table label="E-mails of this link" columns={['Requested', 'Status', { right: 'Settled' }]}>
        {link.mails.map((mail) => (
          <tr key={mail.id}>
            <td>
              <Time at={mail.created_at} zone={link.time_zone} ahead={link.clock_ahead_ms} />
            </td>
            <td>
              <Status of={mail.status} />
            </td>
            <td className="right">
              {mail.settled_at && <Time at={mail.settled_at} zone={link.time_zone} exact />}
            </td>
          </tr>
        ))}
      </Table>
    </Card>
  );
}

/** Opens the person's own mail program, with a text that they can change. */
function mailto(link: PaymentLinkDetails): string {
  const subject = `Payment for ${link.client_reference_id} at ${link.merchant_name}`;
  const body = `You can pay here, at once or in monthly payments:\n\n${link.url}\n\n${link.merchant_name}`;
  const to = encodeURIComponent(link.email ?? '');
  return `mailto:${to}?subject=${encodeURIComponent(subject)}&body=${encodeURIComponent(body)}`;
}

function Orders({ of: link }: { of: PaymentLinkDetails }) {
  if (link.orders.length === 0) {
    return (
      <Card title="Who paid">
        <p className="quiet">No shopper has begun to pay from this link yet.</p>
      </Card>
    );
  }
  return (
    <Card title="Who paid" bare>
      {link.is_cut && (
        <p className="card-body quiet">
          Only {link.orders.length} of this link’s orders are shown, the paid ones first.{' '}
          <Link href="/checkouts">Checkouts</Link> lists them all.
        </p>
      )}
      <Table
        label="Orders of this link"
        columns={['Order', 'Shopper', 'Status', { right: 'Amount' }, { right: 'Opened' }]}
      >
        {link.orders.map((order) => (
          <tr key={order.id}>
            <td>
              <Link href={`/checkouts/${order.id}`}>{order.client_reference_id}</Link>
            </td>
            <td>{order.email}</td>
            <td>
              <Status of={order.status} />
            </td>
            <td className="right number">{money(order.amount, link.currency, link.locale)}</td>
            <td className="right">
              <Time at={order.created_at} zone={link.time_zone} ahead={link.clock_ahead_ms} />
            </td>
          </tr>
        ))}
      </Table>
    </Card>
  );
}
