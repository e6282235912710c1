import type { Context } from '../books/context.ts';
import {
  books,
  controlDispute,
  controlForgetting,
  controlResolution,
  controlSettlement,
  controlTransaction,
} from '../control.ts';
import { readId } from '../http.ts';
import { listBalanceTransactions, retrieveBalanceTransaction } from './balance.ts';
import { listCharges, retrieveCharge } from './charges.ts';
import { createConfirmationToken, retrieveConfirmationToken } from './confirmation-tokens.ts';
import {
  createCustomer,
  deleteCustomer,
  listCustomers,
  retrieveCustomer,
  searchCustomers,
  updateCustomer,
} from './customers.ts';
import { closeDispute, listDisputes, retrieveDispute, updateDispute } from './disputes.ts';
import { listEvents, retrieveEvent } from './events.ts';
import { createFile, retrieveFile } from './files.ts';
import type { Form } from './form.ts';
import type { Answer } from './operation.ts';
import {
  cancelPaymentIntent,
  capturePaymentIntent,
  createPaymentIntent,
  listPaymentIntents,
  retrievePaymentIntent,
} from './payment-intents.ts';
import {
  detachPaymentMethod,
  listPaymentMethods,
  retrievePaymentMethod,
} from './payment-methods.ts';
import { createRefund, listRefunds, retrieveRefund } from './refunds.ts';
import {
  cancelSetupIntent,
  createSetupIntent,
  listSetupIntents,
  retrieveSetupIntent,
} from './setup-intents.ts';

export type Operation = {
  run: (context: Context, form: Form, id: string) => Answer;
  /** Whether Stripe accepts a publishable key here. */
  publishable?: boolean;
  /** The limit of a body that may be larger than others. */
  bodyBytesMax?: number;
};

const operations: [method: string, path: RegExp, operation: Operation][] = [
  ['POST', /^\/v1\/customers$/, { run: createCustomer }],
  ['GET', /^\/v1\/customers\/search$/, { run: searchCustomers }],
  ['GET', /^\/v1\/customers$/, { run: listCustomers }],
  ['GET', /^\/v1\/customers\/([^/]+)$/, { run: retrieveCustomer }],
  ['POST', /^\/v1\/customers\/([^/]+)$/, { run: updateCustomer }],
  ['DELETE', /^\/v1\/customers\/([^/]+)$/, { run: deleteCustomer }],
  ['POST', /^\/v1\/confirmation_tokens$/, { run: createConfirmationToken, publishable: true }],
  ['POST', /^\/v1\/test_helpers\/confirmation_tokens$/, { run: createConfirmationToken }],
  ['GET', /^\/v1\/confirmation_tokens\/([^/]+)$/, { run: retrieveConfirmationToken }],
  ['POST', /^\/v1\/payment_intents$/, { run: createPaymentIntent }],
  ['GET', /^\/v1\/payment_intents$/, { run: listPaymentIntents }],
  ['GET', /^\/v1\/payment_intents\/([^/]+)$/, { run: retrievePaymentIntent, publishable: true }],
  ['POST', /^\/v1\/payment_intents\/([^/]+)\/capture$/, { run: capturePaymentIntent }],
  ['POST', /^\/v1\/payment_intents\/([^/]+)\/cancel$/, { run: cancelPaymentIntent }],
  ['POST', /^\/v1\/setup_intents$/, { run: createSetupIntent }],
  ['GET', /^\/v1\/setup_intents$/, { run: listSetupIntents }],
  ['GET', /^\/v1\/setup_intents\/([^/]+)$/, { run: retrieveSetupIntent, publishable: true }],
  ['POST', /^\/v1\/setup_intents\/([^/]+)\/cancel$/, { run: cancelSetupIntent }],
  ['GET', /^\/v1\/payment_methods$/, { run: listPaymentMethods }],
  ['GET', /^\/v1\/payment_methods\/([^/]+)$/, { run: retrievePaymentMethod }],
  ['POST', /^\/v1\/payment_methods\/([^/]+)\/detach$/, { run: detachPaymentMethod }],
  ['GET', /^\/v1\/charges$/, { run: listCharges }],
  ['GET', /^\/v1\/charges\/([^/]+)$/, { run: retrieveCharge }],
  ['POST', /^\/v1\/refunds$/, { run: createRefund }],
  ['GET', /^\/v1\/refunds$/, { run: listRefunds }],
  ['GET', /^\/v1\/refunds\/([^/]+)$/, { run: retrieveRefund }],
  ['GET', /^\/v1\/balance_transactions$/, { run: listBalanceTransactions }],
  ['GET', /^\/v1\/balance_transactions\/([^/]+)$/, { run: retrieveBalanceTransaction }],
  ['GET', /^\/v1\/disputes$/, { run: listDisputes }],
  ['GET', /^\/v1\/disputes\/([^/]+)$/, { run: retrieveDispute }],
  ['POST', /^\/v1\/disputes\/([^/]+)$/, { run: updateDispute }],
  ['POST', /^\/v1\/disputes\/([^/]+)\/close$/, { run: closeDispute }],
  ['POST', /^\/v1\/files$/, { run: createFile, bodyBytesMax: 6_000_000 }],
  ['GET', /^\/v1\/files\/([^/]+)$/, { run: retrieveFile }],
  ['GET', /^\/v1\/events$/, { run: listEvents }],
  ['GET', /^\/v1\/events\/([^/]+)$/, { run: retrieveEvent }],
  ['POST', /^\/_test\/forget$/, { run: controlForgetting }],
  ['POST', /^\/_test\/settlement$/, { run: controlSettlement }],
  ['POST', /^\/_test\/balance_transactions$/, { run: controlTransaction }],
  ['POST', /^\/_test\/disputes$/, { run: controlDispute }],
  ['POST', /^\/_test\/disputes\/([^/]+)\/resolve$/, { run: controlResolution }],
  ['GET', /^\/_test\/books$/, { run: books }],
];

export function findOperation(
  method: string,
  path: string,
): { operation: Operation; objectId: string } | null {
  for (const [wanted, pattern, operation] of operations) {
    const match = wanted === method ? pattern.exec(path) : null;
    if (match !== null) return { operation, objectId: readId(match[1]) };
  }
  return null;
}
