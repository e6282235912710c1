import Type from 'typebox';
import { languages } from '#platform/shared/language.ts';
import { correctable } from '#purchases/payouts/monthly-statement.ts';
import { Cents, Day, Id, nullable, oneOf, paging, Time } from './list.schema.ts';

/** A month such as 2026-11. */
export const Month = Type.String({ pattern: '^2[01]\\d{2}-(0[1-9]|1[0-2])$' });

/** GET /api/statements. The newest first. */
export const StatementsQuery = Type.Object({ ...paging, month: Type.Optional(Month) });

const Version = Type.Object({ id: Id, reference: Type.String() });

export const StatementRow = Type.Object({
  id: Id,
  merchant_id: Id,
  /** The merchant's name as it is printed on the statement. */
  merchant_name: Type.String(),
  time_zone: Type.String(),
  clock_ahead_ms: Type.Integer(),
  locale: Type.String(),
  number: Type.Integer(),
  reference: Type.String(),
  /** The first day of the month. */
  month: Day,
  created_at: Time,
  /** The statement that this one replaces, and the one that replaces it. */
  corrects: nullable(Version),
  corrected_by: nullable(Version),
  currency: Type.String(),
  line_count: Type.Integer(),
  /** The amount that the merchant was owed before the month and after it. */
  opening: Cents,
  closing: Cents,
  /** The amounts that lead from `opening` to `closing`. */
  sales: Cents,
  refunds: Cents,
  disputes: Cents,
  fees: Cents,
  vat: Cents,
  reserve: Cents,
  paid: Cents,
});
export type StatementRow = Type.Static<typeof StatementRow>;

/** GET /api/statements/:id */
export const StatementDetails = Type.Object({
  ...StatementRow.properties,
  language: oneOf(languages),
  merchant_vat_number: nullable(Type.String()),
  issuer_name: Type.String(),
  issuer_vat_number: nullable(Type.String()),
  /** Facts about the merchant or the service that have changed since. A correction updates them. */
  corrections: Type.Array(
    Type.Object({
      name: oneOf(correctable),
      from: nullable(Type.String()),
      to: nullable(Type.String()),
    }),
  ),
  /** Whether the PDF contains the lines and not only the sums. */
  pdf_has_lines: Type.Boolean(),
});
export type StatementDetails = Type.Static<typeof StatementDetails>;
