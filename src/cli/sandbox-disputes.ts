import type { Config } from '#config.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import { findCheckoutMerchant } from '#purchases/checkouts/checkout.sql.ts';
import { mustFindToAnswer } from '#purchases/disputes/answer-dispute.ts';
import { findNewDisputes, readAgain } from '#purchases/disputes/check-disputes.ts';
import { findDisputeOfAny } from '#purchases/disputes/dispute.sql.ts';
import type { Dispute } from '#purchases/disputes/dispute.ts';
import { findInstalment } from '#purchases/instalments/instalment.sql.ts';
import { OperatorError } from '#record/actions/operate.ts';
import { type Context, command, UsageError } from './command.ts';
import { readSandboxFile, withGateway } from './sandbox-gateway.ts';
import { fields } from './terminal.ts';

const id = '0199a8f0-7c1e-7d62-9a1f-4a2b8f0c6d11';

export const sandboxGateway = command({
  name: 'sandbox gateway',
  summary: 'play the cardholder and the bank in a dispute',
  usage: ['dispute CHECKOUT_ID:NUMBER', 'resolve DISPUTE_ID --won|--lost'],
  help: `Plays the cardholder and the bank at the test gateway. dispute disputes a payment that was
collected. resolve decides a dispute. The service learns of both at once.

  tranche sandbox gateway dispute ${id}:1`,
  positionals: ['dispute|resolve', 'ID'],
  options: { won: { type: 'boolean' }, lost: { type: 'boolean' } },
  async run(context) {
    const [verb = '', subject = ''] = context.positionals;
    if (verb !== 'dispute' && verb !== 'resolve') {
      throw new UsageError(`"${verb}" must be dispute or resolve.`);
    }
    const { won, lost } = context.values;
    if (verb === 'resolve' && !won === !lost) throw new UsageError('Give --won or --lost.');
    const dispute = await (verb === 'dispute'
      ? open(context, subject)
      : resolve(context, subject, won ? 'won' : 'lost'));
    const { checkout_id, instalment, amount, status, due_by } = dispute;
    context.print({ id: dispute.id, checkout_id, instalment, amount, status, due_by }, () =>
      fields(context.terminal, [
        ['Dispute', dispute.id],
        ['Payment', `${checkout_id}:${instalment}`],
        ['Status', status],
      ]),
    );
  },
});

async function open(context: Context, subject: string): Promise<Dispute> {
  return await withGateway(context, async (deps) => {
    const { db } = deps.database;
    const [checkout_id = '', digits = ''] = subject.toLowerCase().split(':');
    const merchant_id = isUuid(checkout_id) ? await findCheckoutMerchant(db, checkout_id) : null;
    const number = /^[1-9]\d{0,2}$/.test(digits) ? Number(digits) : 0;
    const payment = merchant_id && (await findInstalment(db, { merchant_id, checkout_id }, number));
    if (!payment) {
      throw new OperatorError(
        `There is no payment ${subject}. Its ID is the checkout's and its number: CHECKOUT_ID:2.`,
      );
    }
    if (payment.status !== 'collected' || payment.payment_ref === null) {
      throw new OperatorError(
        `Payment ${subject} is ${payment.status}: only a collected one can be disputed.`,
      );
    }
    const { payment_ref } = payment;
    const made = await control(deps.config, '/_test/disputes', { payment_intent: payment_ref });
    await findNewDisputes(deps);
    const dispute = await findDisputeOfAny(db, { dispute_ref: made.id });
    if (!dispute) throw new OperatorError('The service did not find the dispute.');
    return dispute;
  });
}

async function resolve(context: Context, text: string, outcome: 'won' | 'lost'): Promise<Dispute> {
  return await withGateway(context, async (deps) => {
    const { dispute, merchant } = await mustFindToAnswer(deps, text);
    await control(deps.config, `/_test/disputes/${dispute.dispute_ref}/resolve`, { outcome });
    return await readAgain(deps, merchant, dispute);
  });
}

/** Calls a control of the test gateway, which Stripe does not have. */
async function control(
  config: Config,
  path: string,
  form: Record<string, string>,
): Promise<{ id: string }> {
  const { url, secretKey } = await findTestGateway(config);
  const response = await fetch(`${url}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${secretKey}` },
    body: new URLSearchParams(form),
  });
  const body = (await response.json()) as { id: string; error?: { message?: string } };
  if (response.ok) return body;
  throw new OperatorError(body.error?.message ?? `The test gateway answered ${response.status}.`);
}

async function findTestGateway(config: Config): Promise<{ url: string; secretKey: string }> {
  if (config.gateway?.testGateway && config.gateway.apiUrl) {
    return { url: config.gateway.apiUrl, secretKey: config.gateway.secretKey };
  }
  if (config.gateway) {
    throw new OperatorError('Only the test gateway can play the bank, and Stripe is configured.');
  }
  const { gateway_url, gateway_secret_key } = await readSandboxFile(config);
  if (gateway_url === null) throw new OperatorError('The sandbox does not use the test gateway.');
  return { url: gateway_url, secretKey: gateway_secret_key };
}
