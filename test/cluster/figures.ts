import type { Call } from './load.ts';

// How the events affected clients.

export type Row = { name: string; calls: Call[]; pause: number };

/** A time in which events closed connections without an answer. */
export type Cut = { begun: number; ended: number };

/** The longest time in which no create was acknowledged, in seconds. */
export function pauseOf(calls: Call[], begun: number, ended: number): number {
  const times = calls
    .filter(({ kind, isAcknowledged }) => kind === 'create' && isAcknowledged)
    .map((call) => call.ended ?? 0)
    .filter((time) => time > begun && time < ended)
    .sort((one, other) => one - other);
  const all = [begun, ...times, ended];
  return Math.max(...all.slice(1).map((time, index) => time - (all[index] ?? 0))) / 1_000;
}

const isDuring = ({ begun, ended }: Call, cuts: Cut[]) =>
  cuts.some((cut) => begun < cut.ended && (ended ?? begun) > cut.begun);

export function figuresOf({ calls }: Row, cuts: Cut[]) {
  const statuses = calls.flatMap((call) => call.statuses);
  const cut = statuses.filter((status) => status === 0).length;
  const errors = statuses.filter((status) => status >= 500).length;
  // A node that is killed cannot answer. Without a key a client must not send the request again,
  // and HAProxy must not either; a shopper's page asks for the state. So such a request is not a
  // failure of the service. With a key it has to succeed.
  const isFailed = (call: Call) => {
    const { isAcknowledged, ended, hasKey, statuses } = call;
    if (isAcknowledged || ended === null) return false;
    return !(isDuring(call, cuts) && !hasKey && statuses.at(-1) === 0);
  };
  const failed = calls.filter(isFailed);
  const abandoned = calls.filter(
    (call) => !call.isAcknowledged && call.ended !== null && !isFailed(call),
  ).length;
  const slowest = Math.max(0, ...calls.map((call) => (call.ended ?? call.begun) - call.begun));
  return { cut, errors, failed, abandoned, slowest: (slowest / 1_000).toFixed(1) };
}

/** Finds the figures of a row that are not allowed. */
export function findFailures(row: Row, cuts: Cut[]): string[] {
  const { failed, errors } = figuresOf(row, cuts);
  const damage: string[] = [];
  if (failed.length > 0) {
    const say = ({ kind, statuses, detail }: Call) => `${kind} ${statuses.join()} ${detail}`;
    const reasons = [...new Set(failed.map(say))].slice(0, 5);
    damage.push(`${row.name}: ${failed.length} failed (${reasons.join('; ')})`);
  }
  // Only the death of a node may close a connection without an answer. At any other time that is a
  // failure, even if the client repeated the request and then got an answer.
  const stray = row.calls.filter((call) => call.statuses.includes(0) && !isDuring(call, cuts));
  if (stray.length > 0) damage.push(`${row.name}: ${stray.length} were cut without an answer`);
  if (errors > 0) damage.push(`${row.name}: ${errors} answers were errors of the service`);
  return damage;
}

/** A table of all rows, and what was acknowledged. */
export function report(rows: Row[], cuts: Cut[], calls: Call[]): string[] {
  const lines = rows.map((row) => {
    const { errors, cut, abandoned, failed, slowest } = figuresOf(row, cuts);
    const pause = row.pause.toFixed(1);
    const cells = [
      ...[row.name, row.calls.length, `${pause} s`, errors, cut],
      ...[abandoned, failed.length, `${slowest} s`],
    ];
    return `| ${cells.join(' | ')} |`;
  });
  const of = (kind: Call['kind']) =>
    calls.filter((call) => call.kind === kind && call.isAcknowledged).length;
  return [
    '',
    '| event | requests | creates paused | 5xx | cut | not repeatable | failed | slowest |',
    '|---|---|---|---|---|---|---|---|',
    ...lines,
    '',
    `Acknowledged: ${of('create')} creates, ${of('pay')} payments, ${of('refund')} refunds.`,
  ];
}
