/** From this date on, new plugins use v2. */
export const deprecatedSince = Temporal.Instant.from('2026-11-01T00:00:00Z');

/**
 * The end of v1 that every answer announces, unless the operator sets another date. Nothing is
 * switched off on that date: an operator disables v1 for each integration (decision 0040).
 */
export const defaultSunset = '2027-11-01';

/** The headers of every v1 answer (decision 0040), from RFC 9745, RFC 8594 and RFC 5829. */
export function deprecationHeaders(about: {
  baseUrl: string;
  /** A date in UTC. */
  legacySunset: string;
}): Record<'deprecation' | 'sunset' | 'link', string> {
  return {
    deprecation: `@${deprecatedSince.epochMilliseconds / 1000}`,
    sunset: httpDate(Temporal.PlainDate.from(about.legacySunset)),
    link: `<${about.baseUrl}/docs/api/v2>; rel="successor-version"`,
  };
}

/** The start of a day as an HTTP date: `Mon, 01 Nov 2027 00:00:00 GMT`. */
function httpDate(date: Temporal.PlainDate): string {
  // biome-ignore lint/plugin: the time is given, and JavaScript's format is that of HTTP.
  return new Date(date.toZonedDateTime('UTC').epochMilliseconds).toUTCString();
}
