import type { Scope } from '#operating/search/scope.sql.ts';
import type { Handle } from '#platform/database/database.ts';
import { reading } from '#platform/database/transaction.ts';
import { evidenceFileBytesMax } from '#platform/shared/uploads.ts';
import {
  acceptDispute,
  readEvidence,
  resumePlan,
  stageEvidence,
  submitEvidence,
} from '#purchases/disputes/answer-dispute.ts';
import { askMerchant } from '#purchases/disputes/ask-merchant.ts';
import { type Dispute, isAnswerable } from '#purchases/disputes/dispute.ts';
import { findFileContent, listFiles } from '#purchases/disputes/dispute-file.sql.ts';
import { namedEvidence } from '#purchases/disputes/evidence.ts';
import type { DisputeDeps } from '#purchases/disputes/record-dispute.ts';
import { type DisputeFile, wantedFacts } from '#purchases/disputes/supplied.ts';
import { addFile, removeFile, supplyEvidence } from '#purchases/disputes/supply-evidence.ts';
import type { QueueDeps } from '#purchases/messages/queue-messages.ts';
import { actionsOn } from './action.ts';
import { listActionsOn, presentActions } from './audit.ts';
import { ownerColumns } from './csv.ts';
import {
  AcceptDispute,
  AddFile,
  DisputeDetails,
  DisputeRow,
  DisputesQuery,
  RemoveFile,
  SubmitEvidence,
  SupplyEvidence,
} from './dispute.schema.ts';
import { listDisputesNamed, listDisputesPage } from './disputes.sql.ts';
import { defineList, readList } from './list.ts';
import { findOwners } from './owner.sql.ts';
import { NotFound, scopeOf, type Viewer, type ViewerDeps } from './viewer.ts';

/** The newest disputes first. */
export const disputeList = defineList({
  name: 'disputes',
  permission: 'disputes.read',
  query: DisputesQuery,
  row: DisputeRow,
  read(viewer, query, page) {
    const scope = scopeOf(viewer, query);
    return readList(
      viewer.deps,
      page,
      (db, range) => listDisputesPage(db, scope, query, range),
      (db, rows) => presentDisputes(db, scope, rows),
    );
  },
  columns: [
    ['Opened', (row) => row.created_at],
    ...ownerColumns,
    ['Payment', (row) => row.instalment],
    ['Of', (row) => row.number_of_payments],
    ['Amount', (row) => ({ cents: row.amount })],
    ['Withdrawn', (row) => ({ cents: row.withdrawn })],
    ['Fee', (row) => ({ cents: row.fee })],
    ['Currency', (row) => row.currency],
    ['Reason', (row) => row.reason],
    ['Network code', (row) => row.network_reason_code],
    ['Status', (row) => row.status],
    ['Evidence until', (row) => row.due_by],
    ['Submitted', (row) => row.submitted_at],
    ['Ended', (row) => row.closed_at],
    ['Checkout', (row) => row.checkout_id],
    ['Gateway', (row) => row.gateway],
    ['Reference', (row) => row.dispute_ref],
    ['ID', (row) => row.id],
  ],
});

async function presentDisputes(db: Handle, scope: Scope, rows: Dispute[]) {
  const describe = await findOwners(db, scope, rows);
  return rows.map((row) => {
    const { checkout, owner } = describe(row);
    const { number_of_payments } = checkout;
    return {
      ...row,
      ...owner,
      number_of_payments: number_of_payments ?? 1,
      is_answerable: isAnswerable(row),
    };
  });
}

export type ListedDispute = Awaited<ReturnType<typeof mustSeeDispute>>;

/** A dispute in the viewer's scope, by our id or by the gateway's. */
export async function mustSeeDispute({ deps, scope }: Viewer, text: string) {
  const [dispute] = await reading(deps, async (db) =>
    presentDisputes(db, scope, await listDisputesNamed(db, scope, text)),
  );
  if (dispute) return dispute;
  throw new NotFound(`There is no dispute ${text}. \`tranche disputes list\` lists them.`);
}

/** A dispute with its evidence and people's actions on it. */
export async function readDispute(viewer: Viewer, id: string) {
  const dispute = await mustSeeDispute(viewer, id);
  const { pack, files, actions } = await reading(viewer.deps, async (db) => ({
    pack: (await readEvidence(db, dispute.id)).pack,
    files: await listFiles(db, dispute),
    actions: await listActionsOn(db, dispute.id),
  }));
  return {
    ...dispute,
    wanted: [...wantedFacts(dispute.reason)],
    files: files.filter(({ removed_at }) => removed_at === null),
    evidence_hash: pack.hash,
    is_staged: pack.is_staged,
    is_outdated: pack.is_outdated,
    evidence: namedEvidence(pack.evidence),
    evidence_files: pack.files,
    audit: await presentActions(viewer, actions),
  };
}

/** A file of a dispute in the viewer's scope. `open` reads its content. */
export async function mustSeeFile(
  viewer: Viewer,
  id: string,
  file_id: string,
): Promise<DisputeFile & { dispute_id: string; merchant_id: string; open(): Promise<Buffer> }> {
  const dispute = await mustSeeDispute(viewer, id);
  const files = await reading(viewer.deps, (db) => listFiles(db, dispute));
  const file = files.find((one) => one.id === file_id.toLowerCase());
  if (!file) throw noFile();
  const open = async () => {
    const content = await reading(viewer.deps, (db) => findFileContent(db, dispute, file.id));
    if (content === null) throw noFile();
    return content;
  };
  return { ...file, dispute_id: dispute.id, merchant_id: dispute.merchant_id, open };
}

const noFile = () => new NotFound('The dispute does not have this file.');

const on = actionsOn({
  name: 'disputes',
  response: DisputeDetails,
  see: mustSeeDispute,
  read: (viewer, { id }) => readDispute(viewer, id),
});

type Answer = Viewer<ViewerDeps & DisputeDeps>;
const answer = { permission: 'disputes.answer', fresh: true } as const;

const supply = { permission: 'disputes.supply' } as const;

export const disputeActions = {
  supply: on('supply', {
    ...supply,
    body: SupplyEvidence,
    change: ({ deps, operator }, { id }, { seen_at, ...supplied }) =>
      supplyEvidence(deps, operator, id, supplied, seen_at),
  }),
  addFile: on('add-file', {
    ...supply,
    body: AddFile,
    bodyBytesMax: Math.ceil(evidenceFileBytesMax / 3) * 4 + 1_024,
    change: ({ deps, operator }, { id }, { content, ...file }) =>
      addFile(deps, operator, id, { ...file, content: Buffer.from(content, 'base64') }),
  }),
  removeFile: on('remove-file', {
    ...supply,
    body: RemoveFile,
    change: ({ deps, operator }, { id }, { kind }) => removeFile(deps, operator, id, kind),
  }),
  ask: on('ask', {
    ...answer,
    change: ({ deps, operator }: Viewer<ViewerDeps & QueueDeps>, { id }) =>
      askMerchant(deps, operator, id),
  }),
  stage: on('stage', {
    ...answer,
    change: ({ deps, operator }: Answer, { id }) => stageEvidence(deps, operator, id),
  }),
  submit: on('submit', {
    ...answer,
    body: SubmitEvidence,
    change: ({ deps, operator }: Answer, { id }, { evidence_hash }) =>
      submitEvidence(deps, operator, id, evidence_hash),
  }),
  accept: on('accept', {
    ...answer,
    body: AcceptDispute,
    change: ({ deps, operator }: Answer, { id }, { was }) => acceptDispute(deps, operator, id, was),
  }),
  resume: on('resume', {
    ...answer,
    change: ({ deps, operator }, { id }) => resumePlan(deps, operator, id),
  }),
};
