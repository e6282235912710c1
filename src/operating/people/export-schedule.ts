import type { ExportKind } from '#purchases/messages/merchant-mail.ts';

// Exports on a schedule: after each week or month, a person gets mail with a link to that period's
// orders or refunds in the console, where they download the file. So the rules for every file
// apply: limits, re-authentication and audit (decision 0076). No mail names a shopper.

type Period = { from: Temporal.PlainDate; to: Temporal.PlainDate };

const isMonthly = (kind: ExportKind) => kind === 'orders_month' || kind === 'refunds_month';

/** The first day of the week or month that a day belongs to. Weeks begin on Monday. */
const beginOf = (kind: ExportKind, day: Temporal.PlainDate): Temporal.PlainDate =>
  isMonthly(kind) ? day.with({ day: 1 }) : day.subtract({ days: day.dayOfWeek - 1 });

/** The day after the period that today belongs to. */
export const nextExportOn = (kind: ExportKind, today: Temporal.PlainDate): Temporal.PlainDate =>
  beginOf(kind, today).add(isMonthly(kind) ? { months: 1 } : { weeks: 1 });

/** The last whole period before today. */
export function exportPeriod(kind: ExportKind, today: Temporal.PlainDate): Period {
  const to = beginOf(kind, today).subtract({ days: 1 });
  return { from: beginOf(kind, to), to };
}
