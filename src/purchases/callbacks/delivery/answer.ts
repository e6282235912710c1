import type { Timestamp } from '#platform/shared/clock.ts';
import {
  deadlineSeconds,
  postponeMinutesMax,
  redirectUrlLengthMax,
  retryMinutes,
} from './limits.ts';

// How a receiver's answer affects its callback and the shopper.

/** Whether the shopper's page is still waiting for the answer, which may redirect the shopper. */
export function isAwaited(
  { created_at }: { created_at: Timestamp },
  at: Temporal.Instant,
): boolean {
  return at.epochMilliseconds < Date.parse(created_at) + deadlineSeconds * 1000;
}

/**
 * When to retry: `retryMinutes` after the last attempt began. There is no fixed timetable, so the
 * attempts that an outage of ours prevented are not all due when it ends. A receiver may ask for a
 * longer pause, up to `postponeMinutesMax`, but not for a shorter one.
 */
export function nextAttemptAt(
  startedAt: Temporal.Instant,
  asked: Temporal.Instant | null = null,
): Temporal.Instant {
  const regular = startedAt.add({ minutes: retryMinutes });
  if (asked === null || Temporal.Instant.compare(asked, regular) <= 0) return regular;
  const latest = startedAt.add({ minutes: postponeMinutesMax });
  return Temporal.Instant.compare(asked, latest) > 0 ? latest : asked;
}

const httpDate = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;

/**
 * The pause in seconds that a 429 or a 503 asks for, or null. The header holds a number or a date
 * in HTTP's format. A date is a time on the real clock, not on the merchant's.
 */
export function readRetryAfter(
  status: number | null,
  header: string | string[] | undefined,
  now: Temporal.Instant,
): number | null {
  if ((status !== 429 && status !== 503) || typeof header !== 'string') return null;
  const text = header.trim();
  if (/^\d+$/.test(text)) return Math.min(Number(text), postponeMinutesMax * 60);
  const milliseconds = httpDate.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(milliseconds) ? null : (milliseconds - now.epochMilliseconds) / 1000;
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * The absolute http or https URL that an answer sends the shopper to, or null (decision 0011). A
 * URL whose encoding is broken is ignored: browsers would replace what they cannot read, and open a
 * page that the merchant did not mean. v1 calls the member `redirect`.
 */
export function readRedirectUrl(
  body: Buffer,
  member: 'redirect_url' | 'redirect' = 'redirect_url',
): string | null {
  if (body.length === 0) return null;
  try {
    const { [member]: redirect_url } = JSON.parse(utf8.decode(body));
    if (typeof redirect_url !== 'string' || redirect_url.length > redirectUrlLengthMax) return null;
    const isAbsolute = /^https?:\/\/[^\s\p{Cc}\\/][^\s\p{Cc}]*$/iu.test(redirect_url);
    const isEncoded = redirect_url.isWellFormed() && !/%(?![0-9a-f]{2})/i.test(redirect_url);
    return isAbsolute && isEncoded && URL.canParse(redirect_url) ? redirect_url : null;
  } catch {
    return null;
  }
}
