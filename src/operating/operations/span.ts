import { isOne, type Scope } from '#operating/search/scope.sql.ts';
import type { Handle } from '#platform/database/database.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { listMerchantNames } from './owner.sql.ts';
import type { Span } from './range.sql.ts';
import { plainDay } from './viewer.ts';

/** The time zone for lists of several merchants. The console shows it beside the date fields. */
const homeZone = 'Africa/Johannesburg';

/** Converts days, both included, to instants in the time zone in which the list shows its times. */
export async function spanOf(
  db: Handle,
  scope: Scope,
  { from, to }: { from?: string | undefined; to?: string | undefined },
): Promise<Span> {
  if (from === undefined && to === undefined) return {};
  const of = isOne(scope) ? scope.merchant_ids : [];
  const [merchant] = (await listMerchantNames(db, scope, of)).values();
  const zone = merchant?.time_zone ?? homeZone;
  const startOf = (day: string, days: number) =>
    timestamp(plainDay(day).add({ days }).toZonedDateTime(zone).toInstant());
  return {
    from: from === undefined ? undefined : startOf(from, 0),
    until: to === undefined ? undefined : startOf(to, 1),
  };
}
