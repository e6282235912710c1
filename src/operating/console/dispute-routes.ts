import Type from 'typebox';
import { DisputeDetails, FileParams } from '#operating/operations/dispute.schema.ts';
import {
  disputeActions,
  disputeList,
  mustSeeDispute,
  mustSeeFile,
  readDispute,
} from '#operating/operations/disputes.ts';
import { IdParams } from '#operating/operations/list.schema.ts';
import { reading } from '#platform/database/transaction.ts';
import { readEvidence } from '#purchases/disputes/answer-dispute.ts';
import { writeEvidenceHtml } from '#purchases/disputes/evidence.ts';
import { answerDownload } from './download.ts';
import { listRoutes, shopperRoute } from './pages.ts';
import { actionRoutes, type ConsoleRoute, consoleRoute } from './route.ts';

export const disputeRoutes: ConsoleRoute[] = [
  ...listRoutes(disputeList),
  shopperRoute('disputes', 'disputes.read', DisputeDetails, readDispute),
  consoleRoute({
    url: '/api/disputes/:id/evidence.html',
    permission: 'disputes.read',
    fresh: true,
    schema: { params: IdParams, response: Type.String() },
    async handle(context, { params }) {
      const { id, merchant_id } = await mustSeeDispute(context, params.id);
      const found = await reading(context.deps, (db) => readEvidence(db, id));
      const page = writeEvidenceHtml(found.dispute, found.pack, found.merchant);
      const file = { name: `evidence-${id}.html`, subject_id: id, merchant_id, filters: {} };
      return await answerDownload(context, file, async () => [page]);
    },
  }),
  consoleRoute({
    url: '/api/disputes/:id/files/:file',
    permission: 'disputes.read',
    fresh: true,
    schema: { params: FileParams, response: Type.Unsafe<Buffer>({}) },
    async handle(context, { params }) {
      const file = await mustSeeFile(context, params.id, params.file);
      const { name, media_type: type, sha256, dispute_id: subject_id, merchant_id } = file;
      // The file's name may contain the shopper's, so the audit has the SHA-256 of the content.
      const download = { name, auditedAs: sha256, type, subject_id, merchant_id, filters: {} };
      return await answerDownload(context, download, async () => [await file.open()]);
    },
  }),
  ...actionRoutes(disputeActions),
];
