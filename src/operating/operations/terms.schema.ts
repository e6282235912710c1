import Type from 'typebox';
import { fundings, refundFees } from '#record/ledger/settlement.ts';
import { Day, FilterDay, oneOf, Time } from './list.schema.ts';

const BasisPoints = Type.Integer({ minimum: 0, maximum: 10_000 });
const Fixed = Type.Integer({ minimum: 0, maximum: 1_000_000_000 });
const Days = Type.Integer({ minimum: 0, maximum: 366 });

/** A merchant's prices from a given local date. 100 basis points are 1 %. */
export const TermsRow = Type.Object({
  from: Day,
  funding: oneOf(fundings),
  basis_points: BasisPoints,
  /** An amount in cents for each order. */
  fixed: Fixed,
  vat_basis_points: BasisPoints,
  refund_fee: oneOf(refundFees),
  /** This share of a day's sales is withheld for this many days. */
  reserve_basis_points: BasisPoints,
  reserve_days: Days,
  created_at: Time,
});
export type TermsRow = Type.Static<typeof TermsRow>;

/** POST /api/merchants/:id/terms. Without a date, the terms begin today. */
export const SetTerms = Type.Object({
  from: Type.Optional(FilterDay),
  funding: Type.Optional(oneOf(fundings)),
  basis_points: BasisPoints,
  fixed: Fixed,
  vat_basis_points: BasisPoints,
  refund_fee: Type.Optional(oneOf(refundFees)),
  reserve_basis_points: Type.Optional(BasisPoints),
  reserve_days: Type.Optional(Days),
});
