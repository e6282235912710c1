import { explainFailure } from '#purchases/callbacks/delivery/explain-failure.ts';
import type { Exchange } from '#purchases/callbacks/delivery/send-callback.ts';

/**
 * The go-live drill: the callbacks that a merchant's receiver must handle. Each check says which
 * answers pass, why it matters and how to fix the receiver.
 *
 * The forged callbacks come first, while the order is unpaid. After it is paid, a receiver treats
 * every callback as a duplicate, and a wrong amount goes unnoticed.
 */
export const drillChecks = [
  {
    name: 'wrong_signature',
    title: 'Wrong or missing signature',
    expects: 'refused',
    why: 'Anyone can post to your address. Only the signature shows that a callback is ours.',
    fix: 'Compute Base64(HMAC-SHA512(signing key, raw body)), compare it with X-Signature in constant time, and answer 401 before you parse the body. Refuse a callback without the header as well.',
  },
  {
    name: 'reserialised_body',
    title: 'Signature over re-serialised JSON',
    expects: 'refused',
    why: 'If a receiver verifies a body that it has parsed and serialised again, it accepts bytes that were never signed. It also refuses real callbacks as soon as its serialiser writes anything differently.',
    fix: 'Verify over the raw bytes as they arrived, before a JSON parser or a framework touches them.',
  },
  {
    name: 'changed_amount',
    title: 'Right signature, wrong amount',
    expects: 'not accepted',
    why: 'A genuine callback says what was paid, which may not be what the order costs: a shopper may have paid an older, cheaper cart under the same reference.',
    fix: 'Compare amount and currency with your own order, and answer 422 when they differ, so that the delivery counts as failed and an operator sees it.',
  },
  {
    name: 'unknown_reference',
    title: 'Order that does not exist',
    expects: 'answered',
    why: 'Callbacks for orders that you have deleted, or for another of your shops, do arrive. If your receiver answers 5xx, we send the callback 18 more times.',
    fix: 'Answer 404, or 200 and ignore it. Never 5xx.',
  },
  {
    name: 'cancelled',
    title: 'Cancelled order',
    expects: 'accepted',
    why: 'A shopper with two tabs cancels in one of them. The service sent this callback itself.',
    fix: 'Once the signature and the amount are right, mark a pending order as cancelled, or leave it pending, and answer 2xx without asking for a login or redirecting.',
  },
  {
    name: 'successful_after_cancelled',
    title: 'Paid order, cancelled earlier',
    expects: 'accepted',
    why: 'This is how you learn that an order is paid. Another tab may have cancelled it earlier, but the shopper has paid, so the order must be fulfilled. The drill has just paid it through the payment page, and the service sent the callback itself.',
    fix: 'A signed callback with status successful and the right amount always makes the order paid, whatever it was before. Answer 2xx.',
  },
  {
    name: 'duplicate',
    title: 'The same callback again',
    expects: 'accepted',
    why: 'Delivery is at least once: if your answer is lost on the way, we send the callback again.',
    fix: 'Deduplicate on client_reference_id plus status, and answer 2xx to a duplicate without fulfilling again.',
  },
  {
    name: 'slow_network',
    title: 'The same callback in small pieces',
    expects: 'accepted',
    why: 'A body may come in pieces, over seconds. A receiver that verifies the first piece, or gives up early, loses the callback.',
    fix: 'Read the whole body before you verify it, and allow ten seconds to read it.',
  },
  {
    name: 'both_keys',
    title: 'Both keys of a rotation',
    expects: 'accepted',
    why: 'While a signing key is being replaced, callbacks come signed with the old one or with the new one.',
    fix: 'Verify against a list of keys, and keep the old one in it until the overlap has ended.',
  },
  {
    name: 'cancelled_after_successful',
    title: 'Cancelled, after it was paid',
    expects: 'accepted',
    why: 'A shopper with two tabs pays in one and cancels in the other: both outcomes carry your reference, in either order.',
    fix: 'Keep a paid order paid, whatever comes later, and answer 2xx. Otherwise we send the callback 18 more times.',
  },
] as const;

export type DrillCheck = (typeof drillChecks)[number];
export type DrillName = DrillCheck['name'];

/** A receiver's answer, to the drill itself or to a callback that the service sent. */
export type DrillAnswer = {
  status: number | null;
  reason: string | null;
  /**
   * The time until the answer. If `sent_in` is present, the time begins after the last byte was
   * sent.
   */
  milliseconds: number | null;
  /** How long the body took to send, if it was sent in pieces and no answer came before the end. */
  sent_in?: number;
};

export function toAnswer({ status, reason, timings }: Exchange): DrillAnswer {
  const { total, sent } = timings;
  if (sent === undefined) return { status, reason, milliseconds: total ?? null };
  // The drill itself sent the body slowly. That time does not count against the receiver.
  return { status, reason, milliseconds: (total ?? sent) - sent, sent_in: sent };
}

export const isAccepted = ({ status }: DrillAnswer) =>
  status !== null && status >= 200 && status < 300;

/**
 * The contract asks for answers "well under 10 seconds". We take that to mean half of that time.
 */
const slowMilliseconds = 5_000;

/**
 * Returns what is wrong with an answer, or null.
 *
 * `accepted` means 2xx, because anything else is retried for three hours. `refused` means a 4xx
 * other than 408 and 429, which only postpone the delivery: a forged callback must not crash the
 * receiver. `not accepted` also allows a 5xx, because a signed callback with a wrong amount may
 * well raise an exception. For an unknown order, both 2xx and 4xx pass.
 */
export function judge(expects: DrillCheck['expects'], answer: DrillAnswer): string | null {
  const { status, reason, milliseconds } = answer;
  if (status === null) return explainFailure(reason) ?? `No answer came (${reason}).`;
  const isRefused = status >= 400 && status < 500 && status !== 408 && status !== 429;
  // The status was read, but the rest of the answer did not arrive.
  if (isAccepted(answer) && reason !== null)
    return explainFailure(reason) ?? `Answered ${status}, then ${reason}.`;
  if (milliseconds !== null && milliseconds > slowMilliseconds) {
    return `Answered ${status} after ${Math.round(milliseconds / 100) / 10} seconds. After ten, a delivery counts as failed.`;
  }
  switch (expects) {
    case 'accepted':
      if (isAccepted(answer)) return null;
      return status >= 300 && status < 400
        ? `Answered ${status}: redirects are not followed. Expected a 2xx.`
        : `Answered ${status}, expected a 2xx.`;
    case 'refused':
      return isRefused ? null : `Answered ${status}, expected a 4xx such as 401.`;
    case 'not accepted':
      return isRefused || status >= 500 ? null : `Answered ${status}, expected a 4xx such as 422.`;
    case 'answered':
      return isAccepted(answer) || isRefused
        ? null
        : `Answered ${status}, expected a 2xx or a 4xx.`;
  }
}
