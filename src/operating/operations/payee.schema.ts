import Type from 'typebox';
import { nullable, Time } from './list.schema.ts';

const Account = Type.Object({
  /** Numbers the merchant's accounts. A proposal is confirmed by this number. */
  number: Type.Integer(),
  holder: Type.String(),
  bank: Type.String(),
  branch_code: Type.String(),
  /** The last digits of the account number. No answer contains more of it. */
  last4: Type.String(),
  created_at: Time,
  /** People's current names; for an action at the command line, the operator's name. */
  proposed_by: Type.String(),
  confirmed_by: nullable(Type.String()),
  confirmed_at: nullable(Time),
});
export type Account = Type.Static<typeof Account>;

/** Where a merchant is paid, and where its statements go. */
export const Payee = Type.Object({
  /** The account in use. Null if the merchant cannot be paid. */
  account: nullable(Account),
  /** A newer account, which another person has to confirm. */
  proposed: nullable(Account),
  /** Whether the signed-in person proposed it, and so cannot confirm it. */
  is_own_proposal: Type.Boolean(),
  statement_email: nullable(Type.String()),
});
export type Payee = Type.Static<typeof Payee>;

/** POST /api/merchants/:id/bank-accounts */
export const ProposeAccount = Type.Object({
  holder: Type.String({ minLength: 1, maxLength: 100 }),
  bank: Type.String({ minLength: 1, maxLength: 100 }),
  branch_code: Type.String({ minLength: 1, maxLength: 20 }),
  account_number: Type.String({ minLength: 5, maxLength: 20 }),
  /** The number of the waiting proposal that the person has read and is replacing. */
  replaces: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000 })),
});

/** POST /api/merchants/:id/bank-accounts/:number/confirm */
export const AccountParams = Type.Object({
  id: Type.String({ format: 'uuid' }),
  number: Type.Integer({ minimum: 1, maximum: 1_000_000 }),
});

/** The whole account number, as the merchant gave it to the person who confirms. */
export const ConfirmAccount = Type.Object({
  account_number: Type.String({ minLength: 5, maxLength: 20 }),
});

/** POST /api/merchants/:id/statements-to */
export const StatementsTo = Type.Object({ email: nullable(Type.String({ maxLength: 254 })) });
