import Type, { type Static, type TSchema } from 'typebox';
import type { Context } from '../books/context.ts';
import { readId } from '../http.ts';
import {
  createCustomer,
  deleteCustomer,
  deletePaymentMethod,
  retrieveCustomer,
  retrievePaymentMethod,
  updateCustomer,
} from './customers.ts';
import { acceptDispute, listDisputes, retrieveDispute, submitEvidence } from './disputes.ts';
import { payment, paymentList } from './payment.schema.ts';
import {
  cancelPayment,
  capturePayment,
  confirmPayment,
  createPayment,
  listPayments,
  retrievePayment,
  updatePayment,
} from './payments.ts';
import { createRefund, listRefunds, retrieveRefund } from './refunds.ts';
import * as schemas from './schemas.ts';
import { object, text } from './shapes.ts';

export type Operation = {
  /** The schema of the body, or of the query of a GET or DELETE. */
  request: TSchema;
  answer: TSchema;
  run(context: Context, given: Record<string, unknown>, id: string, isPublishable: boolean): object;
  /** Whether Hyperswitch accepts a publishable key here. */
  publishable?: boolean;
};

/** Gives the handler the type that the schema has checked. */
function operation<S extends TSchema>(
  request: S,
  answer: TSchema,
  run: (context: Context, given: Static<S>, id: string, isPublishable: boolean) => object,
): Operation {
  return {
    request,
    answer,
    run: (context, given, ...rest) => run(context, given as Static<S>, ...rest),
  };
}

const nothing = object({});
const limit = Type.Optional(Type.Integer({ minimum: 1, maximum: 100 }));

const listedPayments = object({
  customer_id: Type.Optional(text(64)),
  starting_after: Type.Optional(text()),
  ending_before: Type.Optional(text()),
  limit,
});

const listedDisputes = object({
  limit,
  offset: Type.Optional(Type.Integer({ minimum: 0, maximum: 20_000 })),
});

const retrievedPayment = object({
  client_secret: Type.Optional(text()),
  force_sync: Type.Optional(Type.Enum(['true', 'false'])),
});

const retrievedRefund = object({ force_sync: Type.Optional(Type.Enum(['true', 'false'])) });

const operations: [method: string, path: RegExp, operation: Operation][] = [
  ['POST', /^\/customers$/, operation(schemas.createCustomer, schemas.customer, createCustomer)],
  [
    'GET',
    /^\/customers\/([^/]+)$/,
    operation(nothing, schemas.customer, (context, _, id) => retrieveCustomer(context, id)),
  ],
  [
    'POST',
    /^\/customers\/([^/]+)$/,
    operation(schemas.updateCustomer, schemas.customer, updateCustomer),
  ],
  [
    'DELETE',
    /^\/customers\/([^/]+)$/,
    operation(nothing, schemas.deletedCustomer, (context, _, id) => deleteCustomer(context, id)),
  ],
  [
    'GET',
    /^\/payment_methods\/([^/]+)$/,
    operation(nothing, schemas.paymentMethod, (context, _, id) =>
      retrievePaymentMethod(context, id),
    ),
  ],
  [
    'DELETE',
    /^\/payment_methods\/([^/]+)$/,
    operation(nothing, schemas.deletedPaymentMethod, (context, _, id) =>
      deletePaymentMethod(context, id),
    ),
  ],
  ['POST', /^\/payments$/, operation(schemas.createPayment, payment, createPayment)],
  [
    'GET',
    /^\/payments\/list$/,
    operation(listedPayments, paymentList, (context, given) =>
      listPayments(context, { limit: 10, ...given }),
    ),
  ],
  [
    'GET',
    /^\/payments\/([^/]+)$/,
    {
      ...operation(retrievedPayment, payment, (context, { client_secret }, id, isPublishable) =>
        retrievePayment(context, { isPublishable, client_secret }, id),
      ),
      publishable: true,
    },
  ],
  ['POST', /^\/payments\/([^/]+)$/, operation(schemas.updatePayment, payment, updatePayment)],
  [
    'POST',
    /^\/payments\/([^/]+)\/confirm$/,
    { ...operation(schemas.confirmPayment, payment, confirmPayment), publishable: true },
  ],
  [
    'POST',
    /^\/payments\/([^/]+)\/capture$/,
    operation(schemas.capturePayment, payment, capturePayment),
  ],
  [
    'POST',
    /^\/payments\/([^/]+)\/cancel$/,
    operation(schemas.cancelPayment, payment, cancelPayment),
  ],
  ['POST', /^\/refunds$/, operation(schemas.createRefund, schemas.refund, createRefund)],
  ['POST', /^\/refunds\/list$/, operation(schemas.listRefunds, schemas.refundList, listRefunds)],
  [
    'GET',
    /^\/refunds\/([^/]+)$/,
    operation(retrievedRefund, schemas.refund, (context, { force_sync }, id) =>
      retrieveRefund(context, force_sync === 'true', id),
    ),
  ],
  [
    'GET',
    /^\/disputes\/list$/,
    operation(listedDisputes, schemas.disputeList, (context, given) =>
      listDisputes(context, { limit: 10, offset: 0, ...given }),
    ),
  ],
  [
    'GET',
    /^\/disputes\/([^/]+)$/,
    operation(nothing, schemas.dispute, (context, _, id) => retrieveDispute(context, id)),
  ],
  [
    'POST',
    /^\/disputes\/evidence$/,
    operation(schemas.submitEvidence, schemas.dispute, submitEvidence),
  ],
  [
    'POST',
    /^\/disputes\/accept\/([^/]+)$/,
    operation(nothing, schemas.dispute, (context, _, id) => acceptDispute(context, id)),
  ],
];

export function findOperation(
  method: string,
  path: string,
): { operation: Operation; objectId: string } | null {
  for (const [wanted, pattern, found] of operations) {
    const match = wanted === method ? pattern.exec(path) : null;
    if (match !== null) {
      return { operation: found, objectId: readId(match[1]) };
    }
  }
  return null;
}
