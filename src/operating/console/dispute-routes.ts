import Type from 'typebox';
import { DisputeDetails } from '#operating/operations/dispute.schema.ts';
import {
  disputeActions,
  disputeList,
  mustSeeDispute,
  readDispute,
} from '#operating/operations/disputes.ts';
import { IdParams } from '#operating/operations/list.schema.ts';
import { reading } from '#platform/database/transaction.ts';
import { readEvidence } from '#purchases/disputes/answer-dispute.ts';
import { writeEvidenceHtml } from '#purchases/disputes/evidence.ts';
import { answerFile, listRoutes } from './pages.ts';
import { actionRoutes, type ConsoleRoute, consoleRoute, detailRoute } from './route.ts';

export const disputeRoutes: ConsoleRoute[] = [
  ...listRoutes(disputeList),
  detailRoute('disputes', 'disputes.read', DisputeDetails, readDispute),
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
  ...actionRoutes(disputeActions),
];
