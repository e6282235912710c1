import { auditRoutes } from './audit-routes.ts';
import { bulkActionRoutes } from './bulk-action-routes.ts';
import { callbackRoutes } from './callback-routes.ts';
import { checkoutRoutes } from './checkout-routes.ts';
import { conversationRoutes } from './conversation-routes.ts';
import { disputeRoutes } from './dispute-routes.ts';
import { integrationRoutes } from './integration-routes.ts';
import { merchantNameRoutes } from './merchant-name-routes.ts';
import { merchantRoutes } from './merchant-routes.ts';
import { moneyRoutes } from './money-routes.ts';
import { overdueRoutes } from './overdue-routes.ts';
import { overviewRoutes } from './overview-routes.ts';
import { payeeRoutes } from './payee-routes.ts';
import { paymentLinkRoutes } from './payment-link-routes.ts';
import { payoutRoutes } from './payout-routes.ts';
import { peopleRoutes } from './people-routes.ts';
import { refundRoutes } from './refund-routes.ts';
import type { ConsoleRoute } from './route.ts';
import { sessionRoutes } from './session-routes.ts';
import { signInRoutes } from './sign-in-routes.ts';
import { statementRoutes } from './statement-routes.ts';

/** Every route of the console's API. A test calls each of them in every role and scope. */
export const consoleRoutes: ConsoleRoute[] = [
  ...signInRoutes,
  ...sessionRoutes,
  ...overviewRoutes,
  ...checkoutRoutes,
  ...paymentLinkRoutes,
  ...conversationRoutes,
  ...refundRoutes,
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
