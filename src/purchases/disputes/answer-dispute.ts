import type { Evidence, EvidenceFileKind } from '#gateway/evidence.ts';
import { type DisputeState, RequestRefused } from '#gateway/gateway.ts';
import { findMerchantRow } from '#merchants/merchant.sql.ts';
import { type Merchant, type MerchantRow, onOwnClock } from '#merchants/merchant.ts';
import type { Handle } from '#platform/database/database.ts';
import { secondsAfter, timestamp } from '#platform/shared/clock.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import { lockCheckout } from '#purchases/checkouts/checkout.sql.ts';
import { lockInstalments } from '#purchases/instalments/instalment.sql.ts';
import { resumeCollecting } from '#purchases/instalments/pause-collecting.ts';
import { type OperatorDeps, OperatorError, operate } from '#record/actions/operate.ts';
import { refuseStale } from '#record/actions/refuse-stale.ts';
import { readAgain } from './check-disputes.ts';
import {
  listDisputesOfAny,
  lockDispute,
  moveDispute,
  updateStagedEvidence,
  updateSubmitting,
} from './dispute.sql.ts';
import { type Dispute, isAnswerable } from './dispute.ts';
import {
  deleteRemovedFiles,
  findFileContent,
  listFiles,
  updateFileRef,
} from './dispute-file.sql.ts';
import { findFacts } from './evidence.sql.ts';
import { hashEvidence, writeEvidence } from './evidence.ts';
import { type DisputeDeps, recordDispute } from './record-dispute.ts';
import type { DisputeFile } from './supplied.ts';

type AnswerDeps = DisputeDeps & OperatorDeps;

/** Finds a dispute by our id or by the gateway's. */
export async function mustFindDispute(
  db: Handle,
  text: string,
): Promise<{ dispute: Dispute; merchant: MerchantRow }> {
  const by = isUuid(text) ? { id: text } : { dispute_ref: text };
  const [dispute, other] = await listDisputesOfAny(db, by);
  if (other) {
    throw new OperatorError(
      `More than one dispute has the reference ${text}. Use its own id: \`tranche disputes list\` shows the ids.`,
    );
  }
  const merchant = dispute && (await findMerchantRow(db, dispute.merchant_id));
  if (!dispute || !merchant) {
    throw new OperatorError(`There is no dispute ${text}. \`tranche disputes list\` lists them.`);
  }
  return { dispute, merchant };
}

/** Finds a dispute to answer, with its merchant on the merchant's own clock. */
export async function mustFindToAnswer(
  deps: DisputeDeps,
  text: string,
): Promise<{ dispute: Dispute; merchant: Merchant }> {
  const { dispute, merchant } = await mustFindDispute(deps.database.db, text);
  return { dispute, merchant: onOwnClock(deps.clock, merchant) };
}

/** The evidence pack as an operator sees it. */
export type EvidencePack = {
  evidence: Evidence;
  files: DisputeFile[];
  hash: string;
  /**
   * Whether the evidence is staged. If so, exactly this pack is submitted. If not, staging would
   * store this pack.
   */
  is_staged: boolean;
  /**
   * Whether our evidence has changed since it was staged. Staging it again would include the
   * changes.
   */
  is_outdated: boolean;
};

export async function readEvidence(
  db: Handle,
  text: string,
): Promise<{ dispute: Dispute; merchant: MerchantRow; pack: EvidencePack }> {
  const { dispute, merchant } = await mustFindDispute(db, text);
  return { dispute, merchant, pack: await packOf(db, dispute, merchant) };
}

async function packOf(db: Handle, dispute: Dispute, merchant: MerchantRow): Promise<EvidencePack> {
  const all = await listFiles(db, dispute);
  const held = await writeHeld(db, dispute, merchant, all);
  const { staged_evidence: evidence, staged_files, staged_hash: hash } = dispute;
  if (evidence === null || hash === null) return { ...held, is_staged: false, is_outdated: false };
  const files = all.filter(({ id }) => staged_files?.includes(id));
  const is_outdated = isAnswerable(dispute) && held.hash !== hash;
  return { evidence, files, hash, is_staged: true, is_outdated };
}

async function writeHeld(db: Handle, dispute: Dispute, merchant: MerchantRow, all: DisputeFile[]) {
  const evidence = writeEvidence(dispute, await findFacts(db, dispute), merchant);
  const files = all.filter(({ removed_at }) => removed_at === null);
  return { evidence, files, hash: hashEvidence(evidence, files) };
}

/**
 * Stages the evidence: stores it with the dispute and, if the gateway can stage evidence, at the
 * gateway too, without sending it to the bank. Staging again replaces it. The action is recorded
 * before the gateway is called.
 */
export async function stageEvidence(
  deps: AnswerDeps,
  operator: string,
  text: string,
): Promise<Dispute> {
  const { dispute, merchant } = await mustFindToAnswer(deps, text);
  const { id, dispute_ref, payment_ref } = dispute;
  const { evidence, files } = await operate(deps, operator, 'disputes stage', async (db) => {
    const current = await lockDispute(db, dispute);
    refuseUnlessOpen(current);
    const held = await writeHeld(db, current, merchant, await listFiles(db, current));
    const staged_at = timestamp(merchant.now());
    const { evidence, hash: staged_hash } = held;
    const staged_files = held.files.map((file) => file.id);
    await updateStagedEvidence(db, current, { evidence, staged_files, staged_hash, staged_at });
    await deleteRemovedFiles(db, current, staged_files);
    const details = { dispute_ref, evidence_sha256: held.hash };
    return { subject_id: id, merchant_id: merchant.id, details, result: held };
  });
  const gateway = deps.gateways.of(dispute.gateway);
  const time = merchant.forGateway();
  const refs = await uploadFiles(deps, merchant, dispute, files);
  // If the gateway cannot stage evidence, the evidence is stored only in our rows.
  const key = `dispute:${dispute_ref}:stage:${deps.random.uuid()}`;
  const state = gateway.capabilities.stagesEvidence
    ? await gateway.stageEvidence({ key, merchant: time, dispute_ref, evidence, files: refs })
    : await gateway.dispute(time, dispute_ref);
  return await recordDispute(deps, merchant, dispute, { ...state, payment_ref });
}

/** Uploads the files that the gateway lacks. Returns the gateway's references to all, by kind. */
async function uploadFiles(
  deps: AnswerDeps,
  merchant: Merchant,
  dispute: Dispute,
  files: DisputeFile[],
): Promise<Partial<Record<EvidenceFileKind, string>>> {
  const { db } = deps.database;
  const refs: Partial<Record<EvidenceFileKind, string>> = {};
  for (const { id, kind, name, media_type, file_ref: known } of files) {
    refs[kind] = known ?? (await upload(id, name, media_type));
  }
  return refs;

  async function upload(id: string, name: string, media_type: string): Promise<string> {
    const content = await findFileContent(db, dispute, id);
    if (content === null) throw changedMeanwhile(dispute);
    const { file_ref } = await deps.gateways.of(dispute.gateway).uploadEvidence({
      // An upload that is repeated has the same key, so the gateway stores the file only once.
      key: `dispute:${dispute.dispute_ref}:file:${id}`,
      merchant: merchant.forGateway(),
      ...{ name, media_type, content },
    });
    await updateFileRef(db, dispute, id, file_ref);
    return file_ref;
  }
}

const changedMeanwhile = ({ id }: Dispute) =>
  new OperatorError(`The evidence of dispute ${id} has changed in the meantime. Review it.`);

/** A submission blocks others for this long. A request to the gateway takes less time. */
const submittingSeconds = 120;

/**
 * Submits exactly the evidence that was staged, once. `hash` identifies the evidence that the
 * operator looked at: if evidence has been staged again since then, nothing is submitted. The
 * action is recorded before the gateway is called. If the outcome is unknown, only the same
 * evidence may be submitted again, and the dispute is read first, because the bank may already have
 * the evidence.
 */
export async function submitEvidence(
  deps: AnswerDeps,
  operator: string,
  text: string,
  hash: string | null = null,
): Promise<Dispute> {
  const { dispute, merchant } = await mustFindToAnswer(deps, text);
  const { id, dispute_ref, payment_ref } = dispute;
  const { db } = deps.database;
  const staged = await operate(deps, operator, 'disputes submit', async (tx, at) => {
    const current = await lockDispute(tx, dispute);
    refuseUnlessAnswerable(current);
    const { staged_evidence: evidence, staged_hash, submitting_until } = current;
    if (evidence === null || staged_hash === null) {
      throw new OperatorError(
        `The evidence of dispute ${id} has not been staged yet. Stage it and look at it first (at the command line, \`tranche disputes evidence ${id} --stage\`).`,
      );
    }
    if (hash !== null && hash !== staged_hash) {
      throw new OperatorError(
        `The evidence of dispute ${id} has been staged again since you looked at it. Look at it again.`,
      );
    }
    if (submitting_until !== null && submitting_until > at) throw beingSubmitted(current);
    await updateSubmitting(tx, current, {
      submitting_at: current.submitting_at ?? timestamp(merchant.now()),
      submitting_until: timestamp(secondsAfter(deps.clock.now(), submittingSeconds)),
    });
    const details = { dispute_ref, evidence_sha256: staged_hash };
    const isRetry = current.submitting_at !== null;
    const all = await listFiles(tx, current);
    const files = all.filter((file) => current.staged_files?.includes(file.id));
    const result = { evidence, files, isRetry };
    return { subject_id: id, merchant_id: merchant.id, details, result };
  });
  const time = merchant.forGateway();
  let isAnswered = false;
  const record = (state: DisputeState) => {
    isAnswered = true;
    return recordDispute(deps, merchant, dispute, { ...state, payment_ref });
  };
  try {
    if (staged.isRetry) {
      const known = await deps.gateways.of(dispute.gateway).dispute(time, dispute_ref);
      if (known.has_answer) return await record(known);
    }
    // Use a new key. Under the old one the gateway would repeat its failure.
    const key = `dispute:${dispute_ref}:submit:${deps.random.uuid()}`;
    const { evidence } = staged;
    const files = await uploadFiles(deps, merchant, dispute, staged.files);
    return await record(
      await deps.gateways
        .of(dispute.gateway)
        .submitEvidence({ key, merchant: time, dispute_ref, evidence, files }),
    );
  } catch (error) {
    // If the gateway refused the submission, the bank has nothing, and other evidence may be
    // staged. Otherwise the bank may have this evidence. After an answer, a refusal can only come
    // from reading the dispute again, which `recordDispute` may do.
    const isRefused = !isAnswered && error instanceof RequestRefused;
    const to = { submitting_until: null, ...(isRefused && { submitting_at: null }) };
    await updateSubmitting(db, dispute, to);
    throw error;
  }
}

/**
 * Accepts a dispute for an operator, so that it is lost at once, or closes an inquiry. `was` has
 * the status that the operator read: an inquiry that has become a dispute is not closed, because
 * that would concede the payment. Our row may still show an inquiry when the bank has made it a
 * dispute, so an inquiry is read at the gateway first.
 */
export async function acceptDispute(
  deps: AnswerDeps,
  operator: string,
  text: string,
  was?: Pick<Dispute, 'status'>,
): Promise<Dispute> {
  const { dispute: found, merchant } = await mustFindToAnswer(deps, text);
  const dispute = found.status === 'inquiry' ? await readAgain(deps, merchant, found) : found;
  const { id, dispute_ref, payment_ref } = dispute;
  await operate(deps, operator, 'disputes accept', async (db) => {
    const current = await lockDispute(db, dispute);
    refuseUnlessOpen(current);
    await refuseStale(db, current, was ?? { status: found.status }, deps);
    return { subject_id: id, merchant_id: merchant.id, details: { dispute_ref }, result: null };
  });
  const key = `dispute:${dispute_ref}:accept`;
  const state = await deps.gateways.of(dispute.gateway).acceptDispute({
    key,
    merchant: merchant.forGateway(),
    dispute_ref,
  });
  return await recordDispute(deps, merchant, dispute, { ...state, payment_ref });
}

const beingSubmitted = ({ id }: Dispute) =>
  new OperatorError(
    `The evidence of dispute ${id} is being submitted. Look at the dispute again in a minute.`,
  );

/** Resumes the plan after a lost dispute, for an operator: the rest of the plan stays due. */
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
      throw new OperatorError(`Dispute ${id} is ${current.status}: decide once it has ended.`);
    }
    const result = await endPause(db, current);
    return { subject_id: id, merchant_id, details: { rest: 'due' }, result };
  });
}

/**
 * Ends the pause once the rest of the plan has been decided. Runs in a transaction that holds the
 * checkout's lock.
 */
export async function endPause(
  db: Handle,
  dispute: Pick<Dispute, 'merchant_id' | 'checkout_id' | 'id'>,
): Promise<Dispute> {
  await lockInstalments(db, dispute);
  const ended = await moveDispute(db, dispute, { is_pausing: false });
  await resumeCollecting(db, dispute);
  return ended;
}

/** Refuses a dispute that has ended, or whose evidence the bank may have. */
export function refuseUnlessOpen(dispute: Dispute): void {
  refuseUnlessAnswerable(dispute);
  if (dispute.submitting_at !== null) throw beingSubmitted(dispute);
}

function refuseUnlessAnswerable(dispute: Dispute): void {
  if (isAnswerable(dispute)) return;
  const why =
    dispute.submitted_at !== null ? 'its evidence was submitted' : `it is ${dispute.status}`;
  throw new OperatorError(`Dispute ${dispute.id} can no longer be answered: ${why}.`);
}
