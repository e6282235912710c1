import Type from 'typebox';
import {
  BoundedCount,
  Cents,
  Day,
  Id,
  nullable,
  oneOf,
  Time,
} from '#operating/operations/list.schema.ts';
import { hitKinds, hitMatches } from '#operating/search/search.ts';
import { checkoutStatuses } from '#purchases/checkouts/checkout.ts';

/** Null if the person may not read what is counted. */
const Count = nullable(BoundedCount);

/** GET /api/counts: how many things are waiting, for the navigation. */
export const Counts = Type.Object({
  refunds_to_review: Count,
  overdue: Count,
  callbacks_exhausted: Count,
  alerts: Count,
  disputes_to_answer: Count,
  payouts_to_approve: Count,
  messages_to_answer: Count,
});
export type Counts = Type.Static<typeof Counts>;

/** GET /api/counts: for all merchants that the person sees, or for one. */
export const CountsQuery = Type.Object({ merchant: Type.Optional(Id) });

/** The charts show the last `recentDays`, unless other days or a calendar month are asked for. */
export const OverviewQuery = Type.Object({
  merchant: Type.Optional(Id),
  days: Type.Optional(oneOf(['7', '30', '90'] as const)),
  month: Type.Optional(Type.String({ pattern: '^2[01]\\d{2}-(0[1-9]|1[0-2])$' })),
});

/** GET /api/overview. All sums are in one currency. */
export const Overview = Type.Object({
  counts: Counts,
  /**
   * When the oldest refund that is waiting for review was created. Null if there is none, or if the
   * person may not read refunds.
   */
  oldest_refund_at: nullable(Time),
  /** Null if the person may not read payments. */
  overdue_amount: nullable(Cents),
  currency: Type.String(),
  locale: Type.String(),
  time_zone: Type.String(),
  /** The largest lead of a merchant's clock over the real one, in a sandbox. */
  clock_ahead_ms: Type.Integer(),
  /**
   * The result of the continuous check of the books. `proved_at` is when the check last finished a
   * pass. `books` is null if the person may not read differences, because the check covers all
   * merchants.
   */
  books: nullable(Type.Object({ agree: Type.Boolean(), proved_at: nullable(Time) })),
  /** The current day on whichever merchant's clock is furthest ahead. */
  today: Day,
  /** One entry for each day of the period, oldest first; empty days are zeros. */
  days: Type.Array(
    Type.Object({
      day: Day,
      sold: Cents,
      collected: Cents,
      refunded: Cents,
      created: Type.Integer(),
      opened: Type.Integer(),
      tried: Type.Integer(),
      paid: Type.Integer(),
      approved: Type.Integer(),
      declined: Type.Integer(),
    }),
  ),
  /**
   * The share of the attempts decided in these days that were authorised. Null if there were none.
   */
  approval_rate: nullable(Type.Number()),
  /** The most frequent reasons come first. */
  decline_reasons: Type.Array(Type.Object({ reason: Type.String(), count: Type.Integer() })),
  /**
   * Sums over the same days. A first attempt that was made without the page counts as `opened` too.
   */
  funnel: Type.Object({
    created: Type.Integer(),
    opened: Type.Integer(),
    tried: Type.Integer(),
    paid: Type.Integer(),
  }),
  /** One entry for each of the next `dueDays`, today first: the amount still to be collected. */
  due: Type.Array(Type.Object({ day: Day, amount: Cents })),
  /** The charts include everything up to this time. Counts of waiting work are current. */
  as_of: nullable(Time),
  /**
   * Null unless this is a sandbox that the person may fill, and that has no orders or whose story
   * is being played.
   */
  story: nullable(Type.Object({ is_playing: Type.Boolean() })),
});
export type Overview = Type.Static<typeof Overview>;

/** POST /api/sandbox/story */
export const StoryBegun = Type.Object({ is_playing: Type.Boolean() });

/** GET /api/search?q= */
export const SearchQuery = Type.Object({ q: Type.String({ minLength: 1, maxLength: 320 }) });
export const Hit = Type.Object({
  kind: oneOf(hitKinds),
  id: Id,
  merchant_id: nullable(Id),
  merchant_name: nullable(Type.String()),
  matched: oneOf(hitMatches),
  checkout_id: nullable(Id),
  client_reference_id: nullable(Type.String()),
  email: nullable(Type.String()),
  name: nullable(Type.String()),
  status: nullable(oneOf(checkoutStatuses)),
  amount: nullable(Cents),
  currency: nullable(Type.String()),
  created_at: Time,
  /** How far the clock of `created_at` is ahead of the real one, for a sandbox merchant. */
  clock_ahead_ms: Type.Integer(),
  time_zone: nullable(Type.String()),
});
export type Hit = Type.Static<typeof Hit>;
/** `more` means that there may be more hits than the answer has. */
export const SearchAnswer = Type.Object({ data: Type.Array(Hit), more: Type.Boolean() });
export type SearchAnswer = Type.Static<typeof SearchAnswer>;
