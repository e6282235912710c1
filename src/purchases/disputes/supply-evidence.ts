import { createHash } from 'node:crypto';
import type { EvidenceFileKind } from '#gateway/evidence.ts';
import { onOwnClock } from '#merchants/merchant.ts';
import type { Handle } from '#platform/database/database.ts';
import { type Timestamp, timestamp } from '#platform/shared/clock.ts';
import { type OperatorDeps, OperatorError, operate } from '#record/actions/operate.ts';
import { mustFindDispute, refuseUnlessOpen } from './answer-dispute.ts';
import { lockDispute, moveDispute, updateSupplied } from './dispute.sql.ts';
import type { Dispute } from './dispute.ts';
import { deleteRemovedFiles, insertFile, listFiles, removeFileOf } from './dispute-file.sql.ts';
import {
  checkFile,
  type DisputeFile,
  explainBadSupplied,
  filesBytesMax,
  megabytes,
  type Supplied,
} from './supplied.ts';

/**
 * Stores the facts that the merchant knows about the order, replacing earlier ones. The next
 * staging turns them into evidence. `seen_at` is when the facts that the person saw were supplied:
 * newer facts are not overwritten. The audit has the names of the facts but not their texts, which
 * may name the shopper.
 */
export async function supplyEvidence(
  deps: OperatorDeps,
  operator: string,
  text: string,
  supplied: Supplied,
  seen_at: Timestamp | null,
): Promise<void> {
  const problem = explainBadSupplied(supplied);
  if (problem !== null) throw new OperatorError(problem);
  await change(deps, operator, 'disputes supply', text, async (db, dispute, at) => {
    if (dispute.supplied_at !== seen_at) {
      throw new OperatorError(
        'Another person changed these facts in the meantime. Look at them again.',
      );
    }
    await updateSupplied(db, dispute, supplied, at);
    return { facts: Object.keys(supplied) };
  });
}

/** Adds a file to a dispute, replacing the one of the same kind. */
export async function addFile(
  deps: OperatorDeps,
  operator: string,
  text: string,
  { kind, name, content }: { kind: EvidenceFileKind; name: string; content: Buffer },
): Promise<void> {
  const checked = checkFile(name, content);
  if ('problem' in checked) throw new OperatorError(checked.problem);
  const id = deps.random.uuid();
  const sha256 = createHash('sha256').update(content).digest('hex');
  await change(deps, operator, 'disputes add file', text, async (db, dispute, at) => {
    const others = (await currentFiles(db, dispute)).filter((one) => one.kind !== kind);
    const size = others.reduce((sum, one) => sum + one.size, content.length);
    if (size > filesBytesMax) {
      throw new OperatorError(
        `The files of a dispute may have at most ${megabytes(filesBytesMax)} in all. Make them smaller, or remove one.`,
      );
    }
    await removeFileOf(db, dispute, kind, at);
    await insertFile(db, dispute, { id, kind, name, sha256, content, added_at: at, ...checked });
    await supplyNow(db, dispute, at);
    return { kind, size: content.length, sha256 };
  });
}

export async function removeFile(
  deps: OperatorDeps,
  operator: string,
  text: string,
  kind: EvidenceFileKind,
): Promise<void> {
  await change(deps, operator, 'disputes remove file', text, async (db, dispute, at) => {
    if (!(await removeFileOf(db, dispute, kind, at))) {
      throw new OperatorError(`The dispute has no file of kind ${kind}.`);
    }
    await supplyNow(db, dispute, at);
    return { kind };
  });
}

/** The files that the next staging will use. */
export async function currentFiles(db: Handle, dispute: Dispute): Promise<DisputeFile[]> {
  return (await listFiles(db, dispute)).filter(({ removed_at }) => removed_at === null);
}

/** Records when a file changed, and deletes the removed files that are not staged. */
async function supplyNow(db: Handle, dispute: Dispute, supplied_at: Timestamp): Promise<void> {
  await moveDispute(db, dispute, { supplied_at });
  await deleteRemovedFiles(db, dispute, dispute.staged_files);
}

/**
 * Runs an operator's change to what was supplied, if the evidence can still change. `work` gets the
 * time on the merchant's clock.
 */
async function change(
  deps: OperatorDeps,
  operator: string,
  action: string,
  text: string,
  work: (db: Handle, dispute: Dispute, at: Timestamp) => Promise<object>,
): Promise<void> {
  const { dispute, merchant } = await mustFindDispute(deps.database.db, text);
  await operate(deps, operator, action, async (db) => {
    const current = await lockDispute(db, dispute);
    refuseUnlessOpen(current);
    const details = await work(db, current, timestamp(onOwnClock(deps.clock, merchant).now()));
    const { merchant_id, id, dispute_ref } = current;
    return { subject_id: id, merchant_id, details: { dispute_ref, ...details }, result: null };
  });
}
