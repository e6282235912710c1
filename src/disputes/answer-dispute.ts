import { lockCheckout } from '../checkouts/checkout.sql.ts';
import type { Handle } from '../database/database.ts';
import type { Evidence } from '../gateway/gateway.ts';
import { resumeCollecting } from '../instalments/pause-collecting.ts';
import { findMerchant } from '../merchants/merchant.sql.ts';
import { type Merchant, merchantNow, merchantTime } from '../merchants/merchant.ts';
import { type OperatorDeps, OperatorError, operate } from '../operators/operate.ts';
import { timestamp } from '../shared/clock.ts';
import { isUuid } from '../shared/uuid.ts';
import type { DisputeDeps } from './check-disputes.ts';
import { findDisputeOfAny, moveDispute } from './dispute.sql.ts';
import { type Dispute, isAnswerable } from './dispute.ts';
import { findFacts } from './evidence.sql.ts';
import { writeEvidence } from './evidence.ts';
import { recordDispute } from './record-dispute.ts';

type AnswerDeps = DisputeDeps & OperatorDeps;

/** A dispute by our id or by the gateway's. */
export async function mustFindDispute(
  db: Handle,
  text: string,
): Promise<{ dispute: Dispute; merchant: Merchant }> {
  const by = isUuid(text) ? { id: text } : { dispute_ref: text };
  const dispute = await findDisputeOfAny(db, by);
  const merchant = dispute && (await findMerchant(db, dispute.merchant_id));
  if (!dispute || !merchant) {
    throw new OperatorError(`There is no dispute ${text}. \`tranche disputes list\` lists them.`);
  }
  return { dispute, merchant };
}

export async function readEvidence(
  db: Handle,
  text: string,
): Promise<{ dispute: Dispute; merchant: Merchant; evidence: Evidence }> {
  const { dispute, merchant } = await mustFindDispute(db, text);
  const facts = await findFacts(db, dispute);
  return { dispute, merchant, evidence: writeEvidence(dispute, facts, merchant) };
}

/**
 * Stages the evidence at the gateway, or submits it. The act is written before the gateway is called:
 * evidence can be submitted once, so it must be known who did it.
 */
export async function answerDispute(
  deps: AnswerDeps,
  operator: string,
  text: string,
  what: 'stage' | 'submit',
): Promise<Dispute> {
  const { dispute, merchant, evidence } = await readEvidence(deps.database.db, text);
  const { id, merchant_id, dispute_ref, checkout_id, payment_ref } = dispute;
  refuseUnlessAnswerable(dispute);
  if (what === 'submit' && dispute.staged_at === null) {
    throw new OperatorError(
      `The evidence of dispute ${id} was not staged yet. Look at it first: \`tranche disputes evidence ${id} --stage\`.`,
    );
  }
  await operate(deps, operator, `disputes ${what}`, async (db) => {
    if (what === 'stage') {
      const staged_at = timestamp(merchantNow(deps.clock, merchant));
      await moveDispute(db, { merchant_id, id }, { staged_at });
    }
    return { subject_id: id, details: { dispute_ref }, result: null };
  });
  const call = what === 'stage' ? deps.gateway.stageEvidence : deps.gateway.submitEvidence;
  // Evidence may be staged again. It is submitted once.
  const at = what === 'stage' ? `:${timestamp(deps.clock.now())}` : '';
  const key = `dispute:${dispute_ref}:${what}${at}`;
  const time = merchantTime(deps.clock, merchant);
  const state = await call({ key, merchant: time, dispute_ref, evidence });
  return await recordDispute(deps, merchant, checkout_id, { ...state, payment_ref });
}

/** An operator gives a dispute up: it is lost at once. */
export async function acceptDispute(
  deps: AnswerDeps,
  operator: string,
  text: string,
): Promise<Dispute> {
  const { dispute, merchant } = await mustFindDispute(deps.database.db, text);
  const { id, dispute_ref, checkout_id, payment_ref } = dispute;
  refuseUnlessAnswerable(dispute);
  await operate(deps, operator, 'disputes accept', async () => ({
    subject_id: id,
    details: { dispute_ref },
    result: null,
  }));
  const merchantNow = merchantTime(deps.clock, merchant);
  const key = `dispute:${dispute_ref}:accept`;
  const state = await deps.gateway.acceptDispute({ key, merchant: merchantNow, dispute_ref });
  return await recordDispute(deps, merchant, checkout_id, { ...state, payment_ref });
}

/** After a loss an operator lets the plan go on: what is left of it stays due. */
export async function resumePlan(
  deps: OperatorDeps,
  operator: string,
  text: string,
): Promise<Dispute> {
  const { dispute } = await mustFindDispute(deps.database.db, text);
  const { id, merchant_id, checkout_id } = dispute;
  return await operate(deps, operator, 'disputes rest', async (db) => {
    await lockCheckout(db, merchant_id, checkout_id);
    const { dispute: current } = await mustFindDispute(db, id);
    if (current.closed_at === null) {
      throw new OperatorError(`Dispute ${id} is ${current.status}: decide when it is over.`);
    }
    const result = await endPause(db, current);
    return { subject_id: id, details: { rest: 'due' }, result };
  });
}

/** The rest of the plan is decided. In a transaction that holds the checkout's lock. */
export async function endPause(db: Handle, dispute: Dispute): Promise<Dispute> {
  const ended = await moveDispute(db, dispute, { is_pausing: false });
  await resumeCollecting(db, dispute);
  return ended;
}

function refuseUnlessAnswerable(dispute: Dispute): void {
  if (isAnswerable(dispute)) return;
  const why =
    dispute.submitted_at !== null ? 'its evidence was submitted' : `it is ${dispute.status}`;
  throw new OperatorError(`Dispute ${dispute.id} takes no answer: ${why}.`);
}
