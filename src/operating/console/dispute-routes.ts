import Type from 'typebox';
import type { Evidence } from '#gateway/gateway.ts';
import { type Column, decimal, whoseColumns } from '#operating/operations/csv.ts';
import {
  DisputeDetails,
  type DisputeRow,
  DisputesPage,
  DisputesQuery,
  SubmitEvidence,
} from '#operating/operations/dispute.schema.ts';
import { IdParams } from '#operating/operations/list.schema.ts';
import {
  findDisputeWithin,
  type ListedDispute,
  listDisputes,
} from '#operating/operations/lists.ts';
import { listActionsOn } from '#operating/operations/registers.ts';
import { reading } from '#platform/database/transaction.ts';
import {
  acceptDispute,
  readEvidence,
  resumePlan,
  stageEvidence,
  submitEvidence,
} from '#purchases/disputes/answer-dispute.ts';
import { isAnswerable } from '#purchases/disputes/dispute.ts';
import { evidenceNames, writeEvidenceHtml } from '#purchases/disputes/evidence.ts';
import { presentActions } from './audit-routes.ts';
import { notFound } from './errors.ts';
import { answerFile, listRoutes, presentWhose, scopeOf } from './pages.ts';
import { actRoute, type ConsoleRoute, type Context, consoleRoute } from './route.ts';

type Page = { after: string | null; limit: number };

const readList =
  (context: Context, query: Type.Static<typeof DisputesQuery>) => async (page: Page) => {
    const scope = scopeOf(context, query);
    const { data, next } = await listDisputes(context.deps, scope, query.status ?? null, page);
    return { data: data.map(presentRow), next };
  };

const columns: Column<DisputeRow>[] = [
  ['Opened', (row) => row.created_at],
  ...whoseColumns,
  ['Payment', (row) => row.instalment],
  ['Of', (row) => row.number_of_payments],
  ['Amount', (row) => Number(decimal(row.amount))],
  ['Withdrawn', (row) => Number(decimal(row.withdrawn))],
  ['Fee', (row) => Number(decimal(row.fee))],
  ['Currency', (row) => row.currency],
  ['Reason', (row) => row.reason],
  ['Network code', (row) => row.network_reason_code],
  ['Status', (row) => row.status],
  ['Evidence until', (row) => row.due_by],
  ['Submitted', (row) => row.submitted_at],
  ['Ended', (row) => row.closed_at],
  ['Checkout', (row) => row.checkout_id],
  ['Gateway', (row) => row.dispute_ref],
  ['ID', (row) => row.id],
];

type Change = (context: Context, id: string) => Promise<unknown>;

/** An action on one dispute, which answers with the dispute afterwards. */
const actOn = (verb: string, change: Change) =>
  actRoute({
    method: 'POST',
    url: `/api/disputes/:id/${verb}`,
    permission: 'disputes.answer',
    fresh: true,
    schema: { params: IdParams, response: DisputeDetails },
    async act(context, { params }) {
      const { id } = await mustSeeDispute(context, params.id);
      await change(context, id);
      return () => readDispute(context, id);
    },
  });

export const disputeRoutes: ConsoleRoute[] = [
  ...listRoutes({
    name: 'disputes',
    permission: 'disputes.read',
    query: DisputesQuery,
    page: DisputesPage,
    columns,
    read: readList,
  }),
  consoleRoute({
    method: 'GET',
    url: '/api/disputes/:id',
    permission: 'disputes.read',
    schema: { params: IdParams, response: DisputeDetails },
    handle: (context, { params }) => readDispute(context, params.id),
  }),
  consoleRoute({
    method: 'GET',
    url: '/api/disputes/:id/evidence.html',
    permission: 'disputes.read',
    schema: { params: IdParams, response: Type.String() },
    async handle(context, { params }) {
      const { id } = await mustSeeDispute(context, params.id);
      const found = await reading(context.deps, (db) => readEvidence(db, id));
      const page = writeEvidenceHtml(found.dispute, found.pack.evidence, found.merchant);
      return answerFile(context, `evidence-${id}.html`, page);
    },
  }),
  actOn('stage', ({ deps, operator }, id) => stageEvidence(deps, operator, id)),
  actRoute({
    method: 'POST',
    url: '/api/disputes/:id/submit',
    permission: 'disputes.answer',
    fresh: true,
    schema: { params: IdParams, body: SubmitEvidence, response: DisputeDetails },
    async act(context, { params, body }) {
      const { deps, operator } = context;
      const { id } = await mustSeeDispute(context, params.id);
      await submitEvidence(deps, operator, id, body.evidence_hash);
      return () => readDispute(context, id);
    },
  }),
  actOn('accept', ({ deps, operator }, id) => acceptDispute(deps, operator, id)),
  actOn('resume', ({ deps, operator }, id) => resumePlan(deps, operator, id)),
];

async function mustSeeDispute({ deps, person }: Context, id: string): Promise<ListedDispute> {
  const dispute = await findDisputeWithin(deps, person.scope, id);
  if (!dispute) throw notFound();
  return dispute;
}

async function readDispute(context: Context, id: string): Promise<DisputeDetails> {
  const dispute = await mustSeeDispute(context, id);
  const { pack, actions } = await reading(context.deps, async (db) => ({
    pack: (await readEvidence(db, dispute.id)).pack,
    actions: await listActionsOn(db, dispute.id),
  }));
  return {
    ...presentRow(dispute),
    evidence_hash: pack.hash,
    is_staged: pack.is_staged,
    is_outdated: pack.is_outdated,
    evidence: Object.entries(pack.evidence).map(([name, text]) => ({
      name: evidenceNames[name as keyof Evidence],
      text: text ?? '',
    })),
    audit: await presentActions(context, actions),
  };
}

/** The members of a row that people see. Its lease and the stored evidence are not for lists. */
function presentRow(row: ListedDispute): DisputeRow {
  return {
    id: row.id,
    checkout_id: row.checkout_id,
    ...presentWhose(row),
    dispute_ref: row.dispute_ref,
    instalment: row.instalment,
    number_of_payments: row.number_of_payments,
    payment_ref: row.payment_ref,
    amount: row.amount,
    currency: row.currency,
    reason: row.reason,
    network_reason_code: row.network_reason_code,
    status: row.status,
    is_answerable: isAnswerable(row),
    is_pausing: row.is_pausing,
    withdrawn: row.withdrawn,
    fee: row.fee,
    created_at: row.created_at,
    due_by: row.due_by,
    staged_at: row.staged_at,
    staged_hash: row.staged_hash,
    submitting_at: row.submitting_at,
    submitted_at: row.submitted_at,
    closed_at: row.closed_at,
  };
}
