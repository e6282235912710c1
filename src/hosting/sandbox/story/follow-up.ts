import type { Merchant } from '#merchants/merchant.ts';
import {
  acceptDispute,
  stageEvidence,
  submitEvidence,
} from '#purchases/disputes/answer-dispute.ts';
import { findNewDisputes, readAgain } from '#purchases/disputes/check-disputes.ts';
import { listCheckoutDisputes } from '#purchases/disputes/dispute.sql.ts';
import { approveRefund, declineRefund } from '#purchases/refunds/review-refund.ts';
import { addNote } from '#record/notes/add-note.ts';
import { controlGateway } from '../control-gateway.ts';
import type { Shopper } from '../shopper.ts';
import { payLate, proveAddress } from './plan-visit.ts';
import type { Story } from './play-story.ts';
import { firstOperator, secondOperator } from './prepare-merchant.ts';
import type { Course, PlannedOrder } from './season.ts';

export type PaidOrder = PlannedOrder & { id: string; payment_url: string; shopper: Shopper };

type FollowUp = (story: Story, order: PaidOrder) => Promise<void> | void;

/** Plans the events after an order is paid. Courses that are not listed have none. */
export const followUps: Partial<Record<Course, FollowUp>> = {
  // The bank declines the next charge once; a later attempt succeeds.
  async 'late once'(story, { id }) {
    await controlGateway(story.gateway, '/_test/faults', {
      fault: 'decline',
      method: 'POST',
      path: '/v1/payment_intents',
      key_contains: id,
      decline_code: 'insufficient_funds',
    });
  },
  'late, paid by shopper': (story, order) => visitPlan(story, order, order.day + 34, payLate),
  'late for good': (story, { id, day }) =>
    story.later(day + 40, () => note(story, id, 'Telephoned the shopper. Will pay on Friday.')),
  'refunded whole': (story, order) => refund(story, order, 1, 'one person'),
  'refunded in part': (story, order) => refund(story, order, 0.3, 'one person'),
  'refund declined': (story, order) => refund(story, order, 1, 'declined'),
  'refund by two': (story, order) => refund(story, order, 1, 'two people'),
  'refund waits': (story, order) => refund(story, order, 0.5, 'waits'),
  'refund waits for the second': (story, order) => refund(story, order, 1, 'one of two'),
  'refund pending': (story, order) => refund(story, order, 1, 'one person', 0),
  'refund fails': (story, order) => refund(story, order, 0.4, 'one person'),
  'dispute won': (story, order) => dispute(story, order, 'won'),
  'dispute lost': (story, order) => dispute(story, order, 'lost'),
  'dispute open': (story, order) => dispute(story, order, 'open'),
  inquiry: (story, order) => dispute(story, order, 'open'),
  question: (story, order) =>
    visitPlan(story, order, order.day, (shopper) =>
      shopper.post('report', { text: questions[order.customer.language] }),
    ),
};

function visitPlan(
  { later, mailboxUrl }: Story,
  { shopper, payment_url, customer: { email } }: PaidOrder,
  day: number,
  visit: (shopper: Shopper) => Promise<unknown>,
): void {
  later(day, async () => {
    await proveAddress(shopper, { mailboxUrl, payment_url, email });
    await visit(shopper);
  });
}

const questions = {
  en: 'The second payment shows twice in my banking app. Did you take it twice?',
  af: 'My pakkie het nog nie aangekom nie. Moet ek nou al betaal?',
  zu: 'Ngicela ukushintsha usuku lokukhokha lwenyanga ezayo.',
};

type Decision = 'one person' | 'two people' | 'one of two' | 'declined' | 'waits';

function refund(
  story: Story,
  { id, day, amount }: PaidOrder,
  part: number,
  decision: Decision,
  afterDays = 3,
): void {
  story.later(day + afterDays, async () => {
    const refund_id = await story.shop.requestRefund(id, Math.round(amount * part));
    if (decision === 'waits') return;
    story.later(day + afterDays + 1, () => review(story, refund_id, decision));
  });
}

async function review({ deps }: Story, id: string, decision: Decision): Promise<void> {
  if (decision === 'declined') {
    await declineRefund(deps, firstOperator, id, 'The shop has already sent a replacement.');
    return;
  }
  await approveRefund(deps, firstOperator, id);
  if (decision === 'two people') await approveRefund(deps, secondOperator, id);
}

/**
 * The test gateway opens the dispute, because of the card's number, once the payment is captured.
 */
function dispute(story: Story, { id, day }: PaidOrder, ending: 'won' | 'lost' | 'open'): void {
  const { deps } = story;
  const find = async () => {
    await findNewDisputes(deps);
    const [found] = await listCheckoutDisputes(deps.database.db, {
      merchant_id: story.merchant.id,
      checkout_id: id,
    });
    return found;
  };
  story.later(day + 1, async () => {
    const found = await find();
    if (!found || ending === 'open') return;
    if (ending === 'lost') {
      await acceptDispute(deps, firstOperator, found.id);
      return;
    }
    await stageEvidence(deps, firstOperator, found.id);
    await submitEvidence(deps, firstOperator, found.id);
    story.later(day + 12, () => decide(story, story.merchant, id));
  });
}

async function decide(story: Story, merchant: Merchant, checkout_id: string): Promise<void> {
  const { deps, gateway } = story;
  const key = { merchant_id: merchant.id, checkout_id };
  const [found] = await listCheckoutDisputes(deps.database.db, key);
  if (!found) return;
  const path = `/_test/disputes/${found.dispute_ref}/resolve`;
  await controlGateway(gateway, path, { outcome: 'won' });
  await readAgain(deps, merchant, found);
}

async function note({ deps, merchant }: Story, id: string, text: string): Promise<void> {
  await addNote(deps, firstOperator, { merchant_id: merchant.id, id }, text);
}
