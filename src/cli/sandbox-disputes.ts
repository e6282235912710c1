import type { Config } from '#config.ts';
import type { GatewayName } from '#gateway/gateway-name.ts';
import { type ControlledGateway, controlGateway } from '#hosting/sandbox/control-gateway.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import { findCheckoutMerchant } from '#purchases/checkouts/checkout.sql.ts';
import { mustFindToAnswer } from '#purchases/disputes/answer-dispute.ts';
import { findNewDisputes, readAgain } from '#purchases/disputes/check-disputes.ts';
import { findDisputeOfAny } from '#purchases/disputes/dispute.sql.ts';
import type { Dispute } from '#purchases/disputes/dispute.ts';
import { findInstalment } from '#purchases/instalments/instalment.sql.ts';
import { OperatorError } from '#record/actions/operate.ts';
import { type Context, command, UsageError } from './command.ts';
import { findGatewayNamed, withGateway } from './sandbox-gateway.ts';
import { fields } from './terminal.ts';

const id = '0199a8f0-7c1e-7d62-9a1f-4a2b8f0c6d11';

export const sandboxGateway = command({
  name: 'sandbox gateway',
  usage: ['dispute CHECKOUT_ID:NUMBER', 'resolve DISPUTE_ID --won|--lost'],
  help: `Plays the cardholder and the bank at the test gateway. \`dispute\` disputes a
collected payment, and \`resolve\` decides a dispute. The service learns of both at once.

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
        `There is no payment ${subject}. A payment's ID is the checkout's ID and its number: CHECKOUT_ID:2.`,
      );
    }
    if (payment.status !== 'collected' || payment.payment_ref === null) {
      throw new OperatorError(
        `Payment ${subject} is ${payment.status}: only a collected payment can be disputed.`,
      );
    }
    const { payment_ref, gateway } = payment;
    const bank = await findTestGateway(deps.config, gateway);
    const made = await controlGateway(bank, '/_test/disputes', {
      payment_intent: payment_ref,
    });
    await findNewDisputes(deps);
    const dispute = await findDisputeOfAny(db, { dispute_ref: made.id, gateway });
    if (!dispute) throw new OperatorError('The service did not find the dispute.');
    return dispute;
  });
}

async function resolve(context: Context, text: string, outcome: 'won' | 'lost'): Promise<Dispute> {
  return await withGateway(context, async (deps) => {
    const { dispute, merchant } = await mustFindToAnswer(deps, text);
    const path = `/_test/disputes/${dispute.dispute_ref}/resolve`;
    await controlGateway(await findTestGateway(deps.config, dispute.gateway), path, { outcome });
    return await readAgain(deps, merchant, dispute);
  });
}

/**
 * Finds the test gateway with this name, or the default gateway. Throws if it is a real gateway.
 */
export async function findTestGateway(
  config: Config,
  name?: GatewayName,
): Promise<ControlledGateway> {
  const { apiUrl, secretKey, testGateway } = await findGatewayNamed(config, name);
  if (testGateway && apiUrl) return { url: apiUrl, secretKey };
  throw new OperatorError(
    'Only the test gateway can play the bank, but a real gateway is configured.',
  );
}
