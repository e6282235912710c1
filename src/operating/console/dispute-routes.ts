import Type from 'typebox';
import { DisputeDetails, SubmitEvidence } from '#operating/operations/dispute.schema.ts';
import { disputeList, mustSeeDispute, readDispute } from '#operating/operations/disputes.ts';
import { IdParams } from '#operating/operations/list.schema.ts';
import { reading } from '#platform/database/transaction.ts';
import {
  acceptDispute,
  readEvidence,
  resumePlan,
  stageEvidence,
  submitEvidence,
} from '#purchases/disputes/answer-dispute.ts';
import { writeEvidenceHtml } from '#purchases/disputes/evidence.ts';
import { answerFile, listRoutes } from './pages.ts';
import { actionRoute, type ConsoleRoute, type Context, consoleRoute } from './route.ts';

type Change = (context: Context, id: string) => Promise<unknown>;

/** An action on one dispute, which answers with the dispute afterwards. */
const actionOn = (verb: string, change: Change) =>
  actionRoute({
    method: 'POST',
    url: `/api/disputes/:id/${verb}`,
    permission: 'disputes.answer',
    fresh: true,
    schema: { params: IdParams, response: DisputeDetails },
    async run(context, { params }) {
      const { id } = await mustSeeDispute(context, params.id);
      await change(context, id);
      return () => readDispute(context, id);
    },
  });

export const disputeRoutes: ConsoleRoute[] = [
  ...listRoutes(disputeList),
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
  actionOn('stage', ({ deps, operator }, id) => stageEvidence(deps, operator, id)),
  actionRoute({
    method: 'POST',
    url: '/api/disputes/:id/submit',
    permission: 'disputes.answer',
    fresh: true,
    schema: { params: IdParams, body: SubmitEvidence, response: DisputeDetails },
    async run(context, { params, body }) {
      const { deps, operator } = context;
      const { id } = await mustSeeDispute(context, params.id);
      await submitEvidence(deps, operator, id, body.evidence_hash);
      return () => readDispute(context, id);
    },
  }),
  actionOn('accept', ({ deps, operator }, id) => acceptDispute(deps, operator, id)),
  actionOn('resume', ({ deps, operator }, id) => resumePlan(deps, operator, id)),
];
