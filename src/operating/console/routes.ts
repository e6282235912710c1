import { readReview } from '#operating/bulk-actions/bulk-action.ts';
import { ManyReviews } from '#operating/operations/bulk-action.schema.ts';
import { ConversationDetails } from '#operating/operations/conversation.schema.ts';
import {
  conversationActions,
  conversationList,
  readConversation,
} from '#operating/operations/conversations.ts';
import { PaymentLinkDetails } from '#operating/operations/payment-link.schema.ts';
import {
  paymentLinkActions,
  paymentLinkList,
  readPaymentLink,
} from '#operating/operations/payment-links.ts';
import { RefundDetails } from '#operating/operations/refund.schema.ts';
import {
  findRefunds,
  readRefund,
  refundActions,
  refundList,
} from '#operating/operations/refunds.ts';
import { mustSee } from '#operating/operations/viewer.ts';
import { auditRoutes } from './audit-routes.ts';
import { bulkActionRoutes } from './bulk-action-routes.ts';
import { bulkRoute } from './bulk-route.ts';
import { callbackRoutes } from './callback-routes.ts';
import { checkoutRoutes } from './checkout-routes.ts';
import { disputeRoutes } from './dispute-routes.ts';
import { integrationRoutes } from './integration-routes.ts';
import { merchantNameRoutes } from './merchant-name-routes.ts';
import { merchantRoutes } from './merchant-routes.ts';
import { moneyRoutes } from './money-routes.ts';
import { overdueRoutes } from './overdue-routes.ts';
import { overviewRoutes } from './overview-routes.ts';
import { listRoutes, shopperRoute } from './pages.ts';
import { payeeRoutes } from './payee-routes.ts';
import { payoutRoutes } from './payout-routes.ts';
import { peopleRoutes } from './people-routes.ts';
import { actionRoutes, type ConsoleRoute } from './route.ts';
import { sessionRoutes } from './session-routes.ts';
import { signInRoutes } from './sign-in-routes.ts';
import { statementRoutes } from './statement-routes.ts';

/** Every route of the console's API. A test calls each of them in every role and scope. */
export const consoleRoutes: ConsoleRoute[] = [
  ...signInRoutes,
  ...sessionRoutes,
  ...overviewRoutes,
  ...checkoutRoutes,
  ...listRoutes(paymentLinkList),
  shopperRoute(
    'payment-links',
    'links.read',
    PaymentLinkDetails,
    readPaymentLink,
    ({ reusable }) => reusable,
  ),
  ...actionRoutes(paymentLinkActions),
  ...listRoutes(conversationList),
  shopperRoute('conversations', 'messages.read', ConversationDetails, readConversation),
  ...actionRoutes(conversationActions),
  ...listRoutes(refundList),
  shopperRoute('refunds', 'refunds.read', RefundDetails, async (context, id) =>
    readRefund(context, await mustSee(context, 'refund_requests', id)),
  ),
  ...actionRoutes(refundActions),
  bulkRoute({
    url: '/api/refunds/approve',
    permission: 'refunds.review',
    kind: 'refunds approve',
    body: ManyReviews,
    see: (context, items) =>
      findRefunds(
        context,
        items.map((item) => readReview(item).id),
      ),
  }),
  ...overdueRoutes,
  ...callbackRoutes,
  ...disputeRoutes,
  ...payoutRoutes,
  ...statementRoutes,
  ...moneyRoutes,
  ...merchantRoutes,
  ...merchantNameRoutes,
  ...payeeRoutes,
  ...integrationRoutes,
  ...auditRoutes,
  ...bulkActionRoutes,
  ...peopleRoutes,
];
