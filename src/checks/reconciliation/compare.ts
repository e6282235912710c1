import type pg from 'pg';
import type { GatewayRecord, RecordKind } from '#gateway/gateway.ts';
import type { GatewayName } from '#gateway/gateway-name.ts';
import {
  type ComparedKind,
  listOwnRows,
  type NewDifference,
  type OwnRow,
  sumCollected,
} from './reconciliation.sql.ts';

/** How our rows differ from the gateway's records, and what an operator does about it. */
export const remedies = {
  unknown_to_us:
    'Find out what made it. If it is not ours, refund or void it at the gateway; after a restore, `tranche gateway reconcile --record` records it.',
  missing_there:
    'Look the reference up at the gateway. If it never existed there, the money did not move: agree with the merchant what happens to the order.',
  other_amount:
    'Compare both amounts. Refund the difference at the gateway, or agree with the merchant what happens to the order.',
  other_state:
    'Look at the checkout and at the gateway. The service itself does what is still due; anything else needs a refund or a void at the gateway.',
  held_too_long:
    'Find out why the hold was not captured (`tranche checkouts show`). The service keeps retrying the capture.',
} as const;
export type DifferenceKind = keyof typeof remedies;

const disputeRemedy =
  'Look the dispute up at the gateway. `tranche gateway reconcile` reads it again and records what became of it. If the difference stays, ask the gateway how much it has withdrawn.';

type Differing = { kind: string; record_kind: string };

/** Whether we know a dispute, and the gateway has withdrawn another amount by now. */
export const isKnownDispute = ({ kind, record_kind }: Differing) =>
  record_kind === 'dispute' && (kind === 'other_amount' || kind === 'other_state');

export const remedyOf = (difference: Differing): string =>
  isKnownDispute(difference) ? disputeRemedy : remedies[difference.kind as DifferenceKind];

/** The text that follows the name of the gateway's record in an alert. */
export const descriptions: Record<DifferenceKind, string> = {
  unknown_to_us: 'is unknown to us.',
  missing_there: 'is in our rows, but not at the gateway.',
  other_amount: 'has a different amount from our row.',
  other_state: 'has a different state from our row.',
  held_too_long: 'is a hold that should have been captured more than a day ago.',
};

/** How long a capture may be late before it is reported: the gateway may be down. */
const captureGraceHours = 24;

/**
 * Says that differences are recorded, and whether money is stopped. Null if they are only reported.
 */
export type Recording = { isStopped: boolean } | null;
export type Comparing = {
  /** The gateway that the records come from. Rows about another gateway's payments do not count. */
  gateway: GatewayName;
  nowOf: (merchant_id: string) => Temporal.Instant;
  recorder: Recording;
};

/** The differences between records of the gateway and our rows about them. */
export async function compareWithRows(
  client: Pick<pg.ClientBase, 'query'>,
  kind: ComparedKind,
  all: GatewayRecord[],
  { gateway, nowOf, recorder }: Comparing,
): Promise<NewDifference[]> {
  const records = kind === 'payments' ? await leaveOutCollected(client, gateway, all) : all;
  if (records.length === 0) return [];
  const rows = await listOwnRows(client, gateway, kind, records);
  const byId = Map.groupBy(rows, ({ own_id }) => own_id);
  const byReference = Map.groupBy(rows, ({ reference }) => reference);
  return records.flatMap((record) => {
    const own = [
      ...new Set([
        ...(byReference.get(record.reference) ?? []),
        ...(byId.get(record.own_id ?? '') ?? []).filter((row) => isAbout(row, record)),
      ]),
    ];
    const found = compareToRecord(kind, record, own, recorder) ?? compare(record, own, nowOf);
    return found === null ? [] : [differenceOf(kind, record, found, own[0] ?? null)];
  });
}

/**
 * Finds records that `recordLost` must record although they are not differences. A refund in flight
 * without a row was sent by the lost database, and would be requested again. A payment that a
 * shopper can still approve at their bank could be charged a second time on its date. While money
 * is stopped, no process settles an attempt whose hold or capture the gateway has.
 */
function compareToRecord(
  kind: ComparedKind,
  { state, own_id, number_of_payments }: GatewayRecord,
  own: OwnRow[],
  recorder: Recording,
): DifferenceKind | null {
  if (recorder === null) return null;
  const isLost = state === 'in_flight' && own.length === 0;
  const isLostRefund = kind === 'refunds' && isLost;
  // Only payments that a shopper makes on the plan page, and cards stored there, have no term.
  // Others in flight need no recording: a hold takes nothing, and a charge is looked up.
  const isOfShopper = kind === 'payments' && own_id !== null && number_of_payments === null;
  const isEnded = state === 'taken' || state === 'held';
  const isUnsettled = recorder.isStopped && isEnded && own.some(({ attempt }) => attempt !== null);
  return isLostRefund || (isLost && isOfShopper) || isUnsettled ? 'unknown_to_us' : null;
}

/**
 * Whether a row that has the id in a gateway's record is really about that record. If a restore
 * lost a request that was declined, the next request got the same id, and the row names the
 * payment of that next request.
 */
const isAbout = ({ reference }: OwnRow, record: GatewayRecord) =>
  record.state !== 'nothing' || reference === null || reference === record.reference;

/**
 * Leaves out payments that were collected for exactly what the gateway took. Most are, and nothing
 * else about them matters.
 */
async function leaveOutCollected(
  client: Pick<pg.ClientBase, 'query'>,
  gateway: GatewayName,
  records: GatewayRecord[],
): Promise<GatewayRecord[]> {
  const taken = records.filter(({ state }) => state === 'taken');
  if (taken.length === 0) return records;
  const sums = await sumCollected(
    client,
    gateway,
    taken.map(({ reference }) => reference),
  );
  return records.filter(
    ({ state, reference, amount }) => state !== 'taken' || sums.get(reference) !== amount,
  );
}

export const differenceOf = (
  kind: RecordKind,
  record: GatewayRecord,
  found: DifferenceKind,
  own: OwnRow | null,
): NewDifference => ({
  record_kind: kind.slice(0, -1),
  reference: record.reference,
  kind: found,
  merchant_id: own?.merchant_id ?? null,
  checkout_id: own?.checkout_id ?? record.checkout_id,
  record,
});

/** How a record differs from our rows about it, or null. */
export function compare(
  record: Pick<GatewayRecord, 'amount' | 'state'>,
  own: Pick<OwnRow, 'amount' | 'state' | 'captures_at' | 'merchant_id'>[],
  nowOf: (merchant_id: string) => Temporal.Instant,
): DifferenceKind | null {
  const isLive = record.state === 'taken' || record.state === 'held';
  if (own.length === 0) return isLive ? 'unknown_to_us' : null;
  // The service will find out the outcome by itself.
  if (record.state === 'in_flight' || own.some(({ state }) => state === 'in_flight')) return null;
  const taken = own.filter(({ state }) => state === 'taken');
  const held = own.find(({ state }) => state === 'held');
  const state = taken.length > 0 ? 'taken' : held ? 'held' : 'nothing';
  if (state !== record.state) return 'other_state';
  if (state === 'taken') {
    // A shopper may pay several payments at once.
    const sum = taken.reduce((total, { amount }) => total + amount, 0);
    return sum === record.amount ? null : 'other_amount';
  }
  if (state === 'held' && held) {
    if (held.amount !== record.amount) return 'other_amount';
    const { captures_at, merchant_id } = held;
    if (captures_at === null) return null;
    const late = Temporal.Instant.from(captures_at).add({ hours: captureGraceHours });
    return Temporal.Instant.compare(late, nowOf(merchant_id)) < 0 ? 'held_too_long' : null;
  }
  return null;
}
