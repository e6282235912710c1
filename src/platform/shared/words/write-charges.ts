import type { PageKey } from './words.ts';

type Charge = { amount: number; due_on: string; status?: string };

type Writer = {
  text(key: PageKey, values: Record<string, string | number>): string;
  money(cents: number): string;
  date(day: string): string;
};

/**
 * `R 500,00 on 15 December 2026 and R 500,00 on 15 January 2027`; null if there are no charges. The
 * shopper agrees to these words, and the bank reads the same ones in a dispute.
 */
export function writeCharges(
  later: Charge[],
  { text, money, date }: Writer,
  many: 'consent_many' | 'consent_monthly',
): string | null {
  const [next] = later;
  const last = later.at(-1);
  if (next === undefined || last === undefined) return null;
  const each = later.map(({ amount, due_on, status }) =>
    status === 'late'
      ? text('consent_late', { amount: money(amount) })
      : text('consent_charge', { amount: money(amount), date: date(due_on) }),
  );
  if (
    later.length > 3 &&
    later.every((one) => one.status !== 'late' && one.amount === next.amount)
  ) {
    return text(many, {
      count: later.length,
      amount: money(next.amount),
      first: date(next.due_on),
      last: date(last.due_on),
    });
  }
  if (each.length === 1) return `${each[0]}`;
  return text('consent_charges', { first: each.slice(0, -1).join(', '), last: `${each.at(-1)}` });
}
