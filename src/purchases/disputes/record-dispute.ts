import { isDeepStrictEqual } from 'node:util';
import { type DisputeState, OutcomeUnknown } from '#gateway/gateway.ts';
import type { GatewayName } from '#gateway/gateway-name.ts';
import type { Gateways } from '#gateway/gateways.ts';
import { StatusUnknown } from '#gateway/status-unknown.ts';
import type { Merchant } from '#merchants/merchant.ts';
import type { Database, Handle } from '#platform/database/database.ts';
import { released } from '#platform/database/due-work.sql.ts';
import { transaction } from '#platform/database/transaction.ts';
import type { AlertKind } from '#platform/shared/alert-kinds.ts';
import { type Clock, type Timestamp, timestamp } from '#platform/shared/clock.ts';
import type { Logger } from '#platform/shared/logger.ts';
import { showMoney } from '#platform/shared/money.ts';
import type { Random } from '#platform/shared/random.ts';
import { queueCheckoutEvent } from '#purchases/callbacks/queue-events.ts';
import { lockCheckout } from '#purchases/checkouts/checkout.sql.ts';
import type { Checkout } from '#purchases/checkouts/checkout.ts';
import { lockInstalments } from '#purchases/instalments/instalment.sql.ts';
import type { Instalment } from '#purchases/instalments/instalment.ts';
import { pauseForDispute, resumeCollecting } from '#purchases/instalments/pause-collecting.ts';
import type { MerchantMailDeps } from '#purchases/messages/mail-merchant.ts';
import { hasAlert } from '#record/alerts/alert.sql.ts';
import { raiseAlert } from '#record/alerts/raise-alert.ts';
import { postEntries } from '#record/ledger/post-entries.ts';
import { postMovements } from '#record/ledger/post-movements.ts';
import { listDisputePositions } from '#record/ledger/posting.sql.ts';
import { findBooks } from '#record/ledger/settlement.sql.ts';
import { disputeFeeAmounts } from '#record/ledger/settlement.ts';
import { disputeResource } from './dispute.schema.ts';
import { findDisputeByRef, hasOpenRefund, insertDispute, moveDispute } from './dispute.sql.ts';
import {
  type Dispute,
  isBookingLate,
  isOver,
  isToBeWarned,
  nextCheckAt,
  spread,
} from './dispute.ts';

export type DisputeDeps = MerchantMailDeps & {
  database: Database;
  clock: Clock;
  random: Random;
  log: Logger;
  gateways: Gateways;
};

/** A dispute about one of our payments. */
export type OwnDispute = DisputeState & { payment_ref: string };

/** A dispute as it was before the gateway was asked. A new one has no reads. */
type Found = Pick<Dispute, 'checkout_id' | 'gateway'> & Partial<Pick<Dispute, 'reads'>>;

/** Each further round means that another process has recorded an answer in the meantime. */
const roundsMax = 5;

/**
 * Records what the gateway says about a dispute, and the consequences. If another answer has been
 * recorded since the dispute was found, this one may be older, so the gateway is asked again.
 */
export async function recordDispute(
  deps: DisputeDeps,
  merchant: Merchant,
  found: Found,
  state: OwnDispute,
): Promise<Dispute> {
  let answer = state;
  let reads = found.reads ?? 0;
  for (let round = 0; round < roundsMax; round += 1) {
    const { dispute, isRecorded } = await recordAnswer(deps, merchant, { ...found, reads }, answer);
    if (isRecorded) return dispute;
    reads = dispute.reads;
    answer = await readDispute(deps, merchant, dispute);
  }
  throw new OutcomeUnknown(`other processes are recording dispute ${state.dispute_ref}`);
}

/** Asks the gateway about a dispute that we know. */
export async function readDispute(
  deps: DisputeDeps,
  merchant: Merchant,
  { gateway, dispute_ref, payment_ref }: Dispute,
): Promise<OwnDispute> {
  const state = await deps.gateways.of(gateway).dispute(merchant.forGateway(), dispute_ref);
  if (state.unknown_status !== undefined) {
    throw new StatusUnknown('the dispute', state.unknown_status);
  }
  return { ...state, payment_ref };
}

/**
 * Records an answer in one transaction under the checkout's lock. It posts only the difference
 * between what was posted and what the gateway says, so a repeated answer posts nothing.
 */
async function recordAnswer(
  deps: DisputeDeps,
  merchant: Merchant,
  { checkout_id, gateway, reads }: Required<Found>,
  state: OwnDispute,
): Promise<{ dispute: Dispute; isRecorded: boolean }> {
  const id = deps.random.uuid();
  return await transaction(deps, async ({ db }) => {
    const key = { merchant_id: merchant.id, checkout_id };
    const checkout = await lockCheckout(db, merchant.id, checkout_id);
    if (checkout) refuseOther(checkout, gateway, state);
    const plan = await lockInstalments(db, key);
    // The instalments that the disputed payment paid. A shopper may pay several at once.
    const payments = plan.filter((one) => one.payment_ref === state.payment_ref);
    const now = merchant.now();
    const at = timestamp(now);
    const known = await findDisputeByRef(db, merchant.id, gateway, state.dispute_ref);
    if (known && known.reads !== reads) return { dispute: known, isRecorded: false };
    const before = known ?? (await open(db, { ...key, gateway, id }, payments, state, at));
    // A status that this version does not know is not an answer. It counts as a failed attempt,
    // which keeps the alert about it open.
    const attempts = state.unknown_status === undefined ? 0 : 1;
    const checked = { ...released, attempts, reads: before.reads + 1 };
    if (isReversed(known, state)) {
      const due_at = dueAt(nextCheckAt(before, now));
      return { dispute: await moveDispute(db, before, { ...checked, due_at }), isRecorded: true };
    }
    await postMoney(deps, db, before, payments, state, at);
    // After an inquiry or an ended stage the bank asks again, with a new deadline. What was submitted
    // before does not answer the dispute.
    const reopened = isReopened(before, state);
    const isEscalated =
      reopened || (before.status === 'inquiry' && state.status === 'needs_response');
    const asked = isEscalated ? { ...before, ...unanswered } : before;
    const over = isOver(state.status);
    const { amount, reason, network_reason_code, status, due_by, withdrawn, fee } = state;
    const submitted_at = asked.submitted_at ?? (state.has_answer ? at : null);
    const warns = isToBeWarned({ ...asked, due_by, status, submitted_at }, now);
    const warned_at = warns ? at : asked.warned_at;
    const ended_at = before.status === status ? before.closed_at : null;
    const closed_at = over ? (ended_at ?? at) : null;
    const next = nextCheckAt({ status, withdrawn, closed_at, due_by, warned_at }, now);
    const after = await moveDispute(db, before, {
      ...checked,
      ...{ amount, reason, network_reason_code, status, due_by, withdrawn, fee },
      ...(isEscalated && unanswered),
      submitted_at,
      warned_at,
      is_pausing: !over || (status === 'lost' && (await isUndecided(db, before, plan))),
      closed_at,
      due_at: dueAt(next),
    });
    if (after.is_pausing) await pauseForDispute(db, key);
    else await resumeCollecting(db, key);
    await alert(deps, db, known, after, warns);
    if (isBookingLate(after, now)) await alertUnbooked(deps, db, merchant, after);
    if (state.other_currency !== null) await alertCurrency(deps, db, after, state.other_currency);
    await announce(deps, db, merchant, known, after);
    if (known === null ? !over : isEscalated) {
      const event = known === null ? after.id : stageEvent(after, reopened);
      const reference = checkout?.client_reference_id ?? '';
      await mailOpened(deps, db, merchant, after, { event, reference });
    }
    return { dispute: after, isRecorded: true };
  });
}

/**
 * After a loss an operator decides about the rest of the plan, if any is left. A refund that is not
 * complete may fail, which restores the payments that it cancelled.
 */
async function isUndecided(db: Handle, before: Dispute, plan: Instalment[]): Promise<boolean> {
  if (before.status === 'lost' && !before.is_pausing) return false;
  const isLeft = plan.some(({ status }) => status !== 'collected' && status !== 'cancelled');
  return isLeft || (await hasOpenRefund(db, before));
}

/** Refuses a dispute that cannot belong to this checkout. */
function refuseOther(
  checkout: Pick<Checkout, 'gateway' | 'currency'>,
  gateway: GatewayName,
  { dispute_ref, currency }: OwnDispute,
): void {
  if (checkout.gateway !== gateway) {
    throw new Error(
      `dispute ${dispute_ref} is at ${gateway}, but its payment is at ${checkout.gateway}`,
    );
  }
  if (checkout.currency !== currency) {
    throw new Error(
      `dispute ${dispute_ref} is in ${currency}, but its payment is in ${checkout.currency}`,
    );
  }
}

const dueAt = (time: Temporal.Instant | null) => time && timestamp(time);

type Known = Pick<Dispute, 'status' | 'withdrawn'>;

/** Whether the bank takes an ended dispute to a later stage: it withdraws the money again. */
const isReopened = (known: Known, { status, withdrawn }: DisputeState) =>
  isOver(known.status) && !isOver(status) && withdrawn > known.withdrawn;

/**
 * Whether an answer takes back what is recorded. An ended dispute reopens only if money is
 * withdrawn again, and a dispute that is no longer an inquiry never becomes one again.
 */
const isReversed = (known: Known | null, state: DisputeState) =>
  known !== null &&
  ((isOver(known.status) && !isOver(state.status) && !isReopened(known, state)) ||
    (known.status !== 'inquiry' && state.status === 'inquiry'));

/**
 * Whether an answer would change the recorded status or the withdrawn amount. A status that we do
 * not know decides nothing.
 */
export const isNews = (known: Known, state: DisputeState) =>
  (known.status !== state.status || known.withdrawn !== state.withdrawn) &&
  state.unknown_status === undefined &&
  !isReversed(known, state);

/** Sends the merchant an event if the dispute is new, or if events now present it differently. */
async function announce(
  deps: DisputeDeps,
  db: Handle,
  merchant: Merchant,
  known: Dispute | null,
  after: Dispute,
): Promise<void> {
  const data = disputeResource(after);
  if (known && isDeepStrictEqual(disputeResource(known), data)) return;
  const { checkout_id } = after;
  await queueCheckoutEvent(deps, db, 'disputes', { merchant, checkout_id, data });
}

/** Each event begins with the dispute's id, because an erasure finds its mails by that id. */
const stageEvent = ({ id, reads }: Dispute, reopened: boolean) =>
  reopened ? `${id} reopened ${reads}` : `${id} escalated`;

async function mailOpened(
  deps: DisputeDeps,
  db: Handle,
  { id: merchant_id, name, territory }: Merchant,
  { amount, currency, due_by }: Dispute,
  { event, reference }: { event: string; reference: string },
): Promise<void> {
  const money = showMoney(amount, { currency, locale: territory.locale });
  await deps.mailMerchant(db, {
    ...{ merchant_id, kind: 'dispute_opened', event, at: timestamp(deps.clock.now()) },
    facts: { merchant: name, amount: money, reference, ...(due_by !== null && { until: due_by }) },
  });
}

/**
 * No answer to the bank is known or in flight, and the merchant has not been asked. Staged evidence
 * is kept.
 */
const unanswered = {
  submitting_at: null,
  submitting_until: null,
  submitted_at: null,
  warned_at: null,
  asked_at: null,
  asked_until: null,
};

async function open(
  db: Handle,
  key: Pick<Dispute, 'merchant_id' | 'checkout_id' | 'gateway' | 'id'>,
  payments: Instalment[],
  state: OwnDispute,
  at: Timestamp,
): Promise<Dispute> {
  const { dispute_ref, payment_ref, amount, currency, reason, network_reason_code } = state;
  const dispute = {
    ...key,
    ...{ dispute_ref, payment_ref, amount, currency, reason, network_reason_code },
    instalment: payments[0]?.number ?? 1,
    status: 'inquiry' as const,
    created_at: at,
    due_by: state.due_by,
    withdrawn: 0,
    fee: 0,
    reads: 0,
    is_pausing: true,
    warned_at: null,
    supplied: null,
    supplied_at: null,
    asked_at: null,
    asked_until: null,
    staged_at: null,
    staged_evidence: null,
    staged_files: null,
    staged_hash: null,
    submitting_at: null,
    submitting_until: null,
    submitted_at: null,
    closed_at: null,
    due_at: at,
    attempts: 0,
    lease: null,
    leased_until: null,
  };
  await insertDispute(db, dispute);
  return dispute;
}

/** Posts the difference between what is in the books and what the gateway says. */
async function postMoney(
  deps: DisputeDeps,
  db: Handle,
  before: Dispute,
  payments: Instalment[],
  state: OwnDispute,
  at: Timestamp,
): Promise<void> {
  const { merchant_id, checkout_id, currency, id: dispute_id } = before;
  const change = state.withdrawn - before.withdrawn;
  if (change !== 0) {
    const kind = change > 0 ? ('withdrawn' as const) : ('reinstated' as const);
    const positions = await listDisputePositions(db, before, dispute_id);
    const rooms = payments.map(({ number }) => {
      const position = positions.find(({ instalment }) => instalment === number);
      return { number, room: position?.[kind === 'withdrawn' ? 'collected' : 'withdrawn'] ?? 0 };
    });
    const parts = spread(rooms, Math.abs(change));
    await postMovements(
      deps,
      db,
      at,
      parts.map((part) => ({ ...part, kind, merchant_id, checkout_id, currency, dispute_id })),
    );
  }
  const charged = state.fee - before.fee;
  if (charged === 0) return;
  // The merchant bears the gateway's fee plus VAT, if the service settles the order.
  const books = await findBooks(db, { merchant_id, checkout_ids: [checkout_id], at });
  if (books.terms === null || books.sales.length === 0) return;
  const earlier = books.dispute_fees.filter((one) => one.dispute_id === dispute_id);
  const amounts = disputeFeeAmounts(books.terms, earlier, charged);
  if (amounts === null) return;
  const entry = { ...amounts, kind: 'dispute_fee' as const, checkout_id, dispute_id };
  await postEntries(deps, db, { merchant_id, currency, at }, [entry]);
}

/** Raises one alert about a dispute whose money the gateway moved in the currency `other`. */
async function alertCurrency(
  deps: DisputeDeps,
  db: Handle,
  { merchant_id, id, currency }: Dispute,
  other: string,
): Promise<void> {
  const kind = 'gateway_currency';
  const detail = `The gateway moved the money of dispute ${id} in ${other}, but the payment was in ${currency}. The dispute fee is not posted, and the disputed amount is posted as the amount withdrawn. The gateway's account must settle in ${currency}.`;
  if (await hasAlert(db, kind, detail)) return;
  await raiseAlert(deps, db, { kind, merchant_id, subject_id: id, detail });
}

/** Raises one alert about money that the gateway has not moved since the dispute ended. */
async function alertUnbooked(
  deps: DisputeDeps,
  db: Handle,
  { territory }: Merchant,
  { merchant_id, id, instalment, status, closed_at, withdrawn, currency }: Dispute,
): Promise<void> {
  const kind = 'dispute_unbooked';
  const money = showMoney(withdrawn, { currency, locale: territory.locale });
  const detail = `The dispute of payment ${instalment} was ${status} on ${closed_at}, but the gateway's balance transactions say that it has withdrawn ${money}. Ask the gateway. The dispute is read again every week, and whenever an event about it arrives.`;
  if (await hasAlert(db, kind, detail)) return;
  await raiseAlert(deps, db, { kind, merchant_id, subject_id: id, detail });
}

/**
 * Alerts operators when a dispute is opened or reopened, when an inquiry becomes a dispute, before
 * the deadline, and at the end.
 */
async function alert(
  deps: DisputeDeps,
  db: Handle,
  known: Dispute | null,
  after: Dispute,
  warns: boolean,
): Promise<void> {
  const { merchant_id, id, instalment } = after;
  const about = `The dispute of payment ${instalment}`;
  const raise = (kind: AlertKind, detail: string, isNotice = false) =>
    raiseAlert(deps, db, { kind, merchant_id, subject_id: id, detail, isNotice });
  const until = after.due_by === null ? '' : ` Evidence is due by ${after.due_by}.`;
  if (known === null && !isOver(after.status)) {
    await raise('dispute_opened', `${about} was opened (${after.reason}).${until}`);
  } else if (known?.status === 'inquiry' && after.status === 'needs_response') {
    await raise(
      'dispute_opened',
      `${about} is no longer an inquiry: the money has been withdrawn, and the bank needs evidence.${until}`,
    );
  } else if (known && isOver(known.status) && !isOver(after.status)) {
    const needs = after.status === 'needs_response' ? ', and the bank needs evidence' : '';
    await raise(
      'dispute_opened',
      `${about} was reopened: the money has been withdrawn${needs}.${until}`,
    );
  } else if (warns) {
    await raise('dispute_deadline', `${about} has no evidence yet.${until}`);
  }
  // A lost dispute needs a decision about the rest of its plan.
  const isLost = after.status === 'lost' && known?.status !== 'lost';
  if (isLost || (isOver(after.status) && !(known && isOver(known.status)))) {
    const ended = isLost ? 'Nothing is left on its plan.' : 'The plan continues.';
    const rest = after.is_pausing
      ? 'The plan stays paused until an operator decides about the rest of it.'
      : ended;
    await raise('dispute_closed', `${about} was ${after.status}. ${rest}`, !after.is_pausing);
  }
}
