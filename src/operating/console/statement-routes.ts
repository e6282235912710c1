import Type from 'typebox';
import { IdParams } from '#operating/operations/list.schema.ts';
import { StatementDetails } from '#operating/operations/statement.schema.ts';
import {
  correctionAction,
  mustSeeStatement,
  readStatement,
  statementList,
} from '#operating/operations/statements.ts';
import {
  type MonthlyFormat,
  monthlyFileName,
  monthlyFormats,
  writeMonthlyStatement,
} from '#purchases/payouts/write-monthly-statement.ts';
import { answerDownload } from './download.ts';
import { listRoutes } from './pages.ts';
import {
  actionRoute,
  type ConsoleRoute,
  type Context,
  consoleRoute,
  countOfDay,
  detailRoute,
} from './route.ts';

const fileRoute = (format: MonthlyFormat) =>
  consoleRoute({
    url: `/api/statements/:id/statement.${format}`,
    permission: 'payouts.read',
    schema: { params: IdParams, response: Type.String() },
    async handle(context, { params }) {
      const statement = await mustSeeStatement(context, params.id);
      const { id: subject_id, merchant_id } = statement;
      const name = monthlyFileName(statement, format);
      return await answerDownload(
        context,
        { name, subject_id, merchant_id, filters: {} },
        async () => writeMonthlyStatement(context.deps, statement, format),
      );
    },
  });

export const statementRoutes: ConsoleRoute[] = [
  ...listRoutes(statementList),
  detailRoute('statements', 'payouts.read', StatementDetails, readStatement),
  ...monthlyFormats.map(fileRoute),
  actionRoute({
    ...correctionAction,
    async run(context: Context, input) {
      const { merchant_id } = await mustSeeStatement(context, input.params.id);
      await countOfDay(context, 'correction', [merchant_id]);
      return await correctionAction.run(context, input);
    },
  }),
];
