import type { Exchange } from '../callbacks/delivery/send-callback.ts';

/**
 * The go-live drill: what a merchant's receiver must be able to take, each thing with what counts
 * as taken, why it matters and what to do about it.
 *
 * The forged ones come first, while the order is still unpaid: a receiver that has seen an order
 * paid takes everything after it for a repetition, and then a wrong amount goes unnoticed.
 */
export const drillChecks = [
  {
    name: 'wrong_signature',
    title: 'Wrong signature, and none',
    expects: 'refused',
    why: 'Anybody can post to your address. The signature is all that tells us from them.',
    fix: 'Compute Base64(HMAC-SHA512(signing key, raw body)), compare it with X-Signature in constant time, and answer 401 before you look at the body. No header is no signature.',
  },
  {
    name: 'reserialised_body',
    title: 'Signature over re-serialised JSON',
    expects: 'refused',
    why: 'A receiver that parses the body and writes it anew before it verifies accepts bytes that nobody signed, and refuses real callbacks as soon as a serialiser spells something differently.',
    fix: 'Verify over the raw bytes as they arrived, before a JSON parser or a framework touches them.',
  },
  {
    name: 'changed_amount',
    title: 'Right signature, another amount',
    expects: 'not accepted',
    why: 'A genuine callback says what was paid, not that it is what the order costs: a shopper may have paid an older, cheaper cart under the same reference.',
    fix: 'Compare amount and currency with your own order, and answer 422 when they differ, so that the delivery shows up as failed and somebody looks at it.',
  },
  {
    name: 'unknown_reference',
    title: 'Order that does not exist',
    expects: 'answered',
    why: 'Callbacks for orders that you have deleted, or of another shop of yours, do arrive. A receiver that crashes over one is sent it 18 times more.',
    fix: 'Answer 404, or 200 and ignore it. Never 5xx.',
  },
  {
    name: 'cancelled',
    title: 'Cancelled order',
    expects: 'accepted',
    why: 'A shopper with two tabs cancels in one of them. The service sent this callback itself.',
    fix: 'Once the signature and the amount are right mark a pending order as cancelled, or leave it pending, and answer 2xx without asking for a login or redirecting.',
  },
  {
    name: 'successful_after_cancelled',
    title: 'Paid order, cancelled before',
    expects: 'accepted',
    why: 'This is how you learn that an order is paid, and the other tab may have cancelled it before: then the money is there, and the order must be too. It was paid through the payment page just now, and the service sent the callback itself.',
    fix: 'A signed callback with status successful and the right amount always makes the order paid, whatever it was before. Answer 2xx.',
  },
  {
    name: 'duplicate',
    title: 'The same callback again',
    expects: 'accepted',
    why: 'Delivery is at least once: an answer that is lost on the way makes us send again.',
    fix: 'Deduplicate on client_reference_id plus status, and answer 2xx to a repetition without fulfilling again.',
  },
  {
    name: 'slow_network',
    title: 'The same in small pieces',
    expects: 'accepted',
    why: 'A body may come in pieces, over seconds. A receiver that verifies the first piece, or gives up early, loses the callback.',
    fix: 'Read the whole body before you verify it, and allow ten seconds for that.',
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
    fix: 'Keep a paid order paid, whatever comes later, and answer 2xx, or it is sent 18 times more.',
  },
] as const;

export type DrillCheck = (typeof drillChecks)[number];
export type DrillName = DrillCheck['name'];

/** What came back: from our own sender, or from the record of what the service sent. */
export type DrillAnswer = {
  status: number | null;
  reason: string | null;
  /** From the last byte that was sent. */
  milliseconds: number | null;
  /** How long the body took when it was sent in pieces, unless the answer came before its end. */
  sent_in?: number;
};

export function toAnswer({ status, reason, timings }: Exchange): DrillAnswer {
  const { total, sent } = timings;
  if (sent === undefined) return { status, reason, milliseconds: total ?? null };
  // The sender's slowness is not the receiver's.
  return { status, reason, milliseconds: (total ?? sent) - sent, sent_in: sent };
}

export const isAccepted = ({ status }: DrillAnswer) =>
  status !== null && status >= 200 && status < 300;

/** The spec asks for answers "well under 10 seconds": half of it is what we call well. */
const slowMilliseconds = 5_000;

/**
 * What is wrong with an answer, or null.
 *
 * Accepted is a 2xx: anything else is sent again for three hours. Refused is a 4xx, which says
 * that the receiver looked and said no; strangers must not be able to make it crash, and 408 and
 * 429 only put us off. Not accepted is a 5xx as well: what we signed and the shop does not believe
 * is somebody's fault, and an exception says so. For an order that nobody knows a 2xx and a 4xx are
 * as good.
 */
export function judge(expects: DrillCheck['expects'], answer: DrillAnswer): string | null {
  const { status, reason, milliseconds } = answer;
  if (status === null) return reasons[reason ?? ''] ?? `No answer came (${reason}).`;
  const isRefused = status >= 400 && status < 500 && status !== 408 && status !== 429;
  // A status that we read before the rest of the answer failed to come.
  if (isAccepted(answer) && reason !== null)
    return reasons[reason] ?? `Answered ${status}, then ${reason}.`;
  if (milliseconds !== null && milliseconds > slowMilliseconds) {
    return `Answered ${status} after ${Math.round(milliseconds / 100) / 10} seconds: at ten it counts as failed.`;
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

const reasons: Record<string, string> = {
  timeout: 'No answer came within ten seconds.',
  connection_closed: 'The connection was closed without an answer.',
  connect: 'Nobody listens at this address.',
  dns: 'The name of the host was not found.',
  tls: 'The certificate was not accepted.',
  blocked_address: 'Callbacks may not be sent to this address.',
  invalid_response: 'The answer was not HTTP.',
  response_too_large: 'The headers of the answer were too large.',
};
