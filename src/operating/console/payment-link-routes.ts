import { PaymentLinkDetails } from '#operating/operations/payment-link.schema.ts';
import {
  paymentLinkActions,
  paymentLinkList,
  readPaymentLink,
} from '#operating/operations/payment-links.ts';
import { listRoutes } from './pages.ts';
import { actionRoutes, type ConsoleRoute, detailRoute } from './route.ts';

export const paymentLinkRoutes: ConsoleRoute[] = [
  ...listRoutes(paymentLinkList),
  detailRoute('payment-links', 'links.read', PaymentLinkDetails, readPaymentLink),
  ...actionRoutes(paymentLinkActions),
];
