import type { DisputeDetails } from '#operating/operations/dispute.schema.ts';

type Show = (cents: number) => string;
type Moved = Pick<DisputeDetails, 'status' | 'withdrawn'>;

/** How an ended dispute stands. The gateway may move the money days after the bank has decided. */
export function endOf({ status, withdrawn }: Moved, show: Show): string | null {
  if (status === 'won') {
    return withdrawn === 0
      ? 'The bank decided for the merchant and returned the money.'
      : `The bank decided for the merchant. The gateway has not returned ${show(withdrawn)} yet.`;
  }
  if (status !== 'lost') return null;
  return withdrawn === 0
    ? 'The bank decided for the cardholder. The gateway has not withdrawn the money yet.'
    : `The cardholder keeps ${show(withdrawn)}.`;
}

/** The texts of giving up. An inquiry has withdrawn nothing, so nothing is lost yet. */
export function acceptTexts(
  { status, amount }: Pick<DisputeDetails, 'status' | 'amount'>,
  show: Show,
) {
  return status === 'inquiry'
    ? {
        title: 'Close the inquiry',
        what: `Close the inquiry about ${show(amount)}`,
        text: 'The bank gets no evidence, and may withdraw the money. This cannot be undone.',
      }
    : {
        title: 'Accept the loss',
        what: `Accept the loss of ${show(amount)}`,
        text: 'The dispute is lost at once and the cardholder keeps the money. This cannot be undone.',
      };
}

/** The outcome for a dispute that a person gave up. */
export function acceptedOf(answer: Moved, show: Show): string {
  if (answer.status !== 'lost') return 'The inquiry is closed.';
  return `The dispute is lost. ${endOf(answer, show)}`;
}
