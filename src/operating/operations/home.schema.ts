import Type from 'typebox';
import { BoundedCount, Cents, Day, Id, nullable, oneOf, Time } from './list.schema.ts';

/** Null if the person may not read what is counted. */
const Count = nullable(BoundedCount);
const Sales = Type.Object({ sold: Cents, paid: Type.Integer() });

/** GET /api/home: the first page that a merchant's people see. */
export const Home = Type.Object({
  merchant_id: Id,
  merchant_name: Type.String(),
  currency: Type.String(),
  locale: Type.String(),
  time_zone: Type.String(),
  clock_ahead_ms: Type.Integer(),
  today: Day,
  refunds_to_review: Count,
  callbacks_exhausted: Count,
  messages_to_answer: Count,
  disputes_to_answer: Count,
  /** The earliest deadline of those disputes. */
  dispute_due_by: nullable(Time),
  /**
   * Keys and secrets that will expire, the next one first. Null if the person may not read
   * integrations.
   */
  ending_keys: nullable(
    Type.Array(
      Type.Object({
        integration_id: Id,
        kind: oneOf(['client_secret', 'signing_key'] as const),
        expires_at: Time,
      }),
    ),
  ),
  /**
   * The next payout, from the open entries. Null if none is planned, or if the person may not read
   * payouts.
   */
  next_payout: nullable(Type.Object({ business_on: Day, amount: Cents })),
  /** The payouts that were made and not paid yet. Null if the person may not read payouts. */
  unpaid_payouts: nullable(Type.Object({ count: Type.Integer(), amount: Cents })),
  /** Sales of the last seven days including today, and of the seven days before. */
  week: Sales,
  week_before: Sales,
  /**
   * The steps before real money moves. Each is true once the service has seen it. Steps that need a
   * server are null for a shop that sells only by link.
   */
  go_live: Type.Object({
    signed_request: nullable(Type.Boolean()),
    callback_delivered: nullable(Type.Boolean()),
    refund_requested: Type.Boolean(),
    /** Whether the drill was passed. Also null in production, where the drill cannot run. */
    drill_passed: nullable(Type.Boolean()),
    bank_account: Type.Boolean(),
  }),
});
export type Home = Type.Static<typeof Home>;

export const HomeQuery = Type.Object({ merchant: Id });
