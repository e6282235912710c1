import { showMoney } from '#platform/shared/money.ts';

/** The settings for South Africa, for rows without settings of their own. */
export const home = { currency: 'ZAR', locale: 'en-ZA', time_zone: 'Africa/Johannesburg' };

export function money(cents: number, currency = home.currency, locale = home.locale): string {
  return showMoney(cents, { currency, locale });
}

/** An amount without cents, for figures and axes: `R 12 500`; from a million on, `R 1,2 m`. */
export function roundMoney(cents: number, currency = home.currency, locale = home.locale): string {
  const compact = Math.abs(cents) >= 1_000_000_00;
  return new Intl.NumberFormat(locale, {
    style: 'currency',
    currency,
    maximumFractionDigits: compact ? 1 : 0,
    ...(compact && { notation: 'compact' }),
  }).format(cents / 100);
}

export const count = (value: number) => new Intl.NumberFormat('en-ZA').format(value);

const countries = new Intl.DisplayNames('en', { type: 'region' });

/** `South Africa` for `ZA`. An operator may have named a territory that is not a country. */
export const countryName = (code: string) => (/^[A-Z]{2}$/.test(code) ? countries.of(code) : code);

export function percent(share: number | null): string {
  if (share === null) return '–';
  // A rate just below 100 % must not be shown as 100 %.
  const shown = share < 1 ? Math.min(share * 100, 99.9) : share * 100;
  const digits = (share > 0 && share < 0.1) || (share > 0.99 && share < 1) ? 1 : 0;
  return `${shown.toFixed(digits).replace('.', ',')} %`;
}

const dates = new Map<string, Intl.DateTimeFormat>();
function dateFormat(key: string, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  let format = dates.get(key);
  if (!format) {
    format = new Intl.DateTimeFormat('en-GB', options);
    dates.set(key, format);
  }
  return format;
}

/** `15 November 2026, 14:02:31`, for tooltips. */
export function exactTime(at: string, timeZone = home.time_zone): string {
  return dateFormat(`exact ${timeZone}`, {
    dateStyle: 'long',
    timeStyle: 'medium',
    timeZone,
  })
    .format(new Date(at))
    .replace(' at ', ', ');
}

/** `15 November 2026, 14:02`, for sentences. */
export const longTime = (at: string, timeZone = home.time_zone) =>
  exactTime(at, timeZone).replace(/:\d\d$/, '');

/** `15 Nov, 14:02`, with the year if it is not the year of `now`. */
export function shortTime(at: string, timeZone = home.time_zone, now = Date.now()): string {
  const date = new Date(at);
  const withYear = date.getUTCFullYear() !== new Date(now).getUTCFullYear();
  return dateFormat(`short ${timeZone} ${withYear}`, {
    day: 'numeric',
    month: 'short',
    ...(withYear && { year: 'numeric' }),
    hour: '2-digit',
    minute: '2-digit',
    timeZone,
  }).format(date);
}

/** A local date such as `2026-12-15` as `15 December 2026`. */
export const longDate = (day: string) =>
  dateFormat('long', { dateStyle: 'long', timeZone: 'UTC' }).format(new Date(`${day}T00:00:00Z`));

/** A month such as `2026-12` as `December 2026`. */
export const monthName = (month: string) =>
  dateFormat('month', { month: 'long', year: 'numeric', timeZone: 'UTC' }).format(
    new Date(`${month}-01T00:00:00Z`),
  );

/** A local date such as `2026-12-15` as `15 Dec 2026`. */
export const shortDate = (day: string) =>
  dateFormat('day', { day: 'numeric', month: 'short', year: 'numeric', timeZone: 'UTC' }).format(
    new Date(`${day}T00:00:00Z`),
  );

/** `15 Dec`, for axes. */
export const dayAndMonth = (day: string) =>
  dateFormat('axis', { day: 'numeric', month: 'short', timeZone: 'UTC' }).format(
    new Date(`${day}T00:00:00Z`),
  );

const steps: [number, Intl.RelativeTimeFormatUnit][] = [
  [60, 'second'],
  [60, 'minute'],
  [24, 'hour'],
  [30, 'day'],
  [12, 'month'],
  [Number.POSITIVE_INFINITY, 'year'],
];
const relative = new Intl.RelativeTimeFormat('en-GB', { numeric: 'auto', style: 'short' });
const relativeMonth = new Intl.RelativeTimeFormat('en-GB', { numeric: 'auto' });

/** `3 min ago`, `in 2 days`. */
export function relativeTime(at: string, now = Date.now()): string {
  let value = (new Date(at).getTime() - now) / 1000;
  if (Math.abs(value) < 45) return value < 0 ? 'just now' : 'now';
  for (const [size, unit] of steps) {
    // The short style says "last mo".
    const format = unit === 'month' ? relativeMonth : relative;
    if (Math.abs(value) < size) return format.format(Math.round(value), unit);
    value /= size;
  }
  return at;
}

/** How long something took or lasts: `850 ms`, `2,4 s`, `3 min`, `2 h`. */
export function duration(milliseconds: number): string {
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  const seconds = milliseconds / 1000;
  if (seconds < 60) {
    return `${Number(seconds.toFixed(seconds < 10 ? 1 : 0))
      .toString()
      .replace('.', ',')} s`;
  }
  const minutes = seconds / 60;
  if (minutes < 60) return `${Math.round(minutes)} min`;
  const hours = minutes / 60;
  return hours < 48 ? `${Math.round(hours)} h` : `${Math.round(hours / 24)} days`;
}

/**
 * The last characters of an id, for tables. Ids begin with their time, so rows of one day begin
 * alike.
 */
export const shortId = (id: string) => `…${id.slice(-8)}`;

/**
 * A reason's code in words: `http_502` becomes `HTTP 502`, `insufficient_funds` becomes
 * `insufficient funds`.
 */
export const reasonWords = (reason: string) =>
  /^[a-z0-9_]+$/.test(reason) ? words(reason).replace(/^http (?=\d)/, 'HTTP ') : reason;

/** `not_enough_funds` as `not enough funds`. */
export const words = (code: string) => code.replaceAll(/[_.-]/g, ' ');

export const sentence = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

export const plural = (amount: number, one: string, many = `${one}s`) =>
  `${count(amount)} ${amount === 1 ? one : many}`;
