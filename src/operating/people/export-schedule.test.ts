import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ExportKind } from '#purchases/messages/merchant-mail.ts';
import { exportPeriod, nextExportOn } from './export-schedule.ts';

test('an export covers the last whole week or month, and the next one is due when the current one ends', () => {
  const cases: [ExportKind, string, string, string, string][] = [
    ['orders_week', '2026-11-16', '2026-11-09', '2026-11-15', '2026-11-23'],
    ['orders_week', '2026-11-22', '2026-11-09', '2026-11-15', '2026-11-23'],
    ['orders_week', '2027-01-01', '2026-12-21', '2026-12-27', '2027-01-04'],
    ['orders_month', '2026-03-01', '2026-02-01', '2026-02-28', '2026-04-01'],
    ['refunds_week', '2026-11-16', '2026-11-09', '2026-11-15', '2026-11-23'],
    ['refunds_month', '2026-03-01', '2026-02-01', '2026-02-28', '2026-04-01'],
    ['orders_month', '2026-12-31', '2026-11-01', '2026-11-30', '2027-01-01'],
  ];
  for (const [kind, today, from, to, next] of cases) {
    const day = Temporal.PlainDate.from(today);
    const period = exportPeriod(kind, day);
    const found = [period.from, period.to, nextExportOn(kind, day)].map(String);
    assert.deepEqual(found, [from, to, next], `${kind} ${today}`);
  }
});
