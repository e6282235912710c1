import { merchantNow } from '#merchants/merchant.ts';
import type { Handle } from '#platform/database/database.ts';
import { reading } from '#platform/database/transaction.ts';
import type { Sealing } from '#platform/shared/sealing.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import { linkUrls } from '#purchases/checkouts/link-token.ts';
import { selectLinkMails } from '#purchases/messages/message.sql.ts';
import type { QueueDeps } from '#purchases/messages/queue-messages.ts';
import { cancelPaymentLink } from '#purchases/payment-links/cancel-payment-link.ts';
import { mailPaymentLink } from '#purchases/payment-links/mail-payment-link.ts';
import { type OfferDeps, offerPaymentLink } from '#purchases/payment-links/offer-payment-link.ts';
import { withCheckouts } from '#purchases/payment-links/payment-link.sql.ts';
import { linkMailsMax, type PaymentLink, statusOf } from '#purchases/payment-links/payment-link.ts';
import { qrPath } from '#purchases/payment-links/qr-code.ts';
import { actionsOn, defineAction } from './action.ts';
import { listActionsOn, presentActions } from './audit.ts';
import { defineList, readList } from './list.ts';
import { mustSeeMerchant } from './merchants.ts';
import { listMerchantNames, type MerchantName } from './owner.sql.ts';
import {
  OfferPaymentLink,
  PaymentLinkDetails,
  PaymentLinkRow,
  PaymentLinksQuery,
} from './payment-link.schema.ts';
import { findPaymentLinkWithin, listOrdersOf, listPaymentLinksPage } from './payment-links.sql.ts';
import { BadInput, NotFound, scopeOf, type Viewer, type ViewerDeps } from './viewer.ts';

/** Links are shown with their addresses, which are not stored but derived with `sealing`'s keys. */
export type LinkViewerDeps = ViewerDeps & { sealing: Sealing; baseUrl: string };

/** The newest payment links first. */
export const paymentLinkList = defineList({
  name: 'payment-links',
  permission: 'links.read',
  query: PaymentLinksQuery,
  row: PaymentLinkRow,
  read(viewer, query, page) {
    const seen = { ...viewer, scope: scopeOf(viewer, query) };
    return readList(
      viewer.deps,
      page,
      (db, range) => listPaymentLinksPage(db, seen.scope, range),
      (db, rows) => presentLinks(seen, db, rows),
    );
  },
  columns: [
    ['Created', (row) => row.created_at],
    ['Merchant', (row) => row.merchant_name],
    ['Order', (row) => row.client_reference_id],
    ['Status', (row) => row.status],
    ['Amount', (row) => (row.amount === null ? null : { cents: row.amount })],
    ['Currency', (row) => row.currency],
    ['Reusable', (row) => (row.reusable ? 'yes' : 'no')],
    ['Expires', (row) => row.expires_at],
    ['Checkouts', (row) => row.checkouts],
    ['ID', (row) => row.id],
  ],
});

async function presentLinks({ deps, scope }: Viewer, db: Handle, rows: PaymentLink[]) {
  const ids = rows.map(({ merchant_id }) => merchant_id);
  const names = await listMerchantNames(db, scope, ids);
  return (await withCheckouts(db, rows)).map((row) => {
    const merchant = names.get(row.merchant_id) as MerchantName;
    const { name, time_zone, locale, clock_ahead_ms } = merchant;
    const status = statusOf(row, merchantNow(deps.clock, merchant));
    return { ...row, status, merchant_name: name, time_zone, locale, clock_ahead_ms };
  });
}

/** A page shows this many orders of a link. */
const ordersShownMax = 50;

async function mustSeeLink(viewer: Viewer, id: string): Promise<PaymentLink> {
  const { deps, scope } = viewer;
  const link = isUuid(id) && (await reading(deps, (db) => findPaymentLinkWithin(db, scope, id)));
  if (!link) {
    throw new NotFound(
      `There is no payment link ${id}. \`tranche payment-links list\` lists them.`,
    );
  }
  return link;
}

/** A link with its addresses, its orders and people's actions on it. */
export async function readPaymentLink(viewer: Viewer<LinkViewerDeps>, id: string) {
  const { deps } = viewer;
  const found = await mustSeeLink(viewer, id);
  const urls = linkUrls(deps, found);
  const { link, orders, mails, actions } = await reading(deps, async (db) => ({
    link: (await presentLinks(viewer, db, [found]))[0] as PaymentLinkRow,
    orders: await listOrdersOf(db, found, ordersShownMax + 1),
    mails: await selectLinkMails(db, found).limit(linkMailsMax).execute(),
    actions: await listActionsOn(db, found.id),
  }));
  return {
    ...link,
    ...urls,
    qr: qrPath(urls.url),
    notify_url: found.notify_url,
    email: found.customer?.email ?? null,
    mails,
    is_cut: orders.length > ordersShownMax,
    orders: orders
      .slice(0, ordersShownMax)
      .map(({ customer, ...order }) => ({ ...order, email: customer.email })),
    audit: await presentActions(viewer, actions),
  };
}

const on = actionsOn({
  name: 'payment-links',
  response: PaymentLinkDetails,
  see: mustSeeLink,
  read: (viewer, { id }) => readPaymentLink(viewer as Viewer<LinkViewerDeps>, id),
});

export const paymentLinkActions = {
  create: defineAction({
    url: '/api/payment-links',
    permission: 'links.create',
    schema: { body: OfferPaymentLink, response: PaymentLinkDetails },
    async run(viewer: Viewer<LinkViewerDeps & OfferDeps>, { body }) {
      const { merchant_id, email, notify_url, request_id, ...offer } = body;
      // The callbacks of later links and the events of payouts go to the URL of the newest order's
      // callbacks. So a person at the till could divert them.
      if (viewer.requireReauthentication && notify_url !== undefined && notify_url !== 'none') {
        throw new BadInput(
          'notify_url',
          'An address for callbacks is given at the command line only. Leave it out, or send none.',
        );
      }
      const merchant = await mustSeeMerchant(viewer, merchant_id);
      const id = await offerPaymentLink(viewer.deps, viewer.operator, merchant.id, {
        ...offer,
        request_id: request_id.toLowerCase(),
        notify_url: notify_url === 'none' ? null : notify_url,
        ...(email !== undefined && { customer: { email } }),
      });
      return () => readPaymentLink(viewer, id);
    },
  }),
  cancel: on('cancel', {
    permission: 'links.create',
    change: ({ deps, operator }: Viewer<LinkViewerDeps>, link) =>
      cancelPaymentLink(deps, operator, link),
  }),
  mail: on('mail', {
    permission: 'links.create',
    change: ({ deps, operator }: Viewer<LinkViewerDeps & QueueDeps>, link) =>
      mailPaymentLink(deps, operator, link),
  }),
};
