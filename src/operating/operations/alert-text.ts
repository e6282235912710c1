import type { Scope } from '#operating/search/scope.sql.ts';
import { type FoundCheckout, listFoundCheckouts } from '#operating/search/search.sql.ts';
import type { Handle } from '#platform/database/database.ts';
import type { Clock } from '#platform/shared/clock.ts';
import { showMoney } from '#platform/shared/money.ts';
import { plural } from '#platform/shared/plural.ts';
import type { Alert } from '#record/alerts/alert.sql.ts';
import { listOverdueOf, listSubjects, type Subject } from './alert-subjects.sql.ts';
import { presentOverdue } from './instalments.ts';
import type { MerchantName } from './owner.sql.ts';

type Late = Awaited<ReturnType<typeof presentOverdue>>;

/** The order that an alert is about, and one sentence for a person. */
export type AlertText = {
  text: string;
  checkout_id: string | null;
  client_reference_id: string | null;
  /** A late payment of the order that a retry may charge. */
  late: Late[number] | null;
};

/** Reads what alerts are about, and returns a function that writes the sentence for one of them. */
export async function describeAlerts(
  clock: Clock,
  db: Handle,
  scope: Scope,
  rows: Alert[],
  merchants: Map<string, MerchantName>,
): Promise<(alert: Alert) => AlertText> {
  const subjects = await listSubjects(db, scope, rows);
  const keys = rows.flatMap(({ merchant_id, subject_id }) =>
    merchant_id !== null && subject_id !== null
      ? [{ merchant_id, checkout_id: subjects.get(subject_id)?.checkout_id ?? subject_id }]
      : [],
  );
  const checkouts = await listFoundCheckouts(db, scope, keys);
  const overdue = rows.filter(({ kind }) => kind === 'payment_overdue');
  const late = await presentOverdue(clock, db, scope, await listOverdueOf(db, scope, overdue));
  return (alert) => {
    const subject = subjects.get(alert.subject_id ?? '');
    const checkout = checkouts.get(subject?.checkout_id ?? alert.subject_id ?? '');
    const merchant = merchants.get(alert.merchant_id ?? '');
    if (!checkout || !merchant) {
      return { text: alert.detail, checkout_id: null, client_reference_id: null, late: null };
    }
    const own = late.filter((one) => one.checkout_id === checkout.id);
    return {
      text: textOf(alert, { checkout, merchant, subject, late: own }),
      checkout_id: checkout.id,
      client_reference_id: checkout.client_reference_id,
      late: own.find((one) => one.is_retry_sensible) ?? null,
    };
  };
}

type About = {
  checkout: FoundCheckout;
  merchant: MerchantName;
  subject: Subject | undefined;
  late: Late;
};

function textOf(alert: Alert, { checkout, merchant, subject, late }: About): string {
  const money = (cents: number) => showMoney(cents, { ...merchant, currency: checkout.currency });
  const { first_name, last_name, email } = checkout.customer;
  const shopper = [first_name, last_name].filter(Boolean).join(' ') || email;
  const order = checkout.client_reference_id;
  const amount = money(subject?.amount ?? checkout.amount);
  if (alert.kind === 'payment_overdue' && late.length > 0) {
    const days = Math.max(...late.map(({ days_late }) => days_late));
    const sum = late.reduce((total, one) => total + one.amount, 0);
    return days === 0
      ? `${order}: ${money(sum)} from ${shopper} was due today and was not collected.`
      : `${order}: ${money(sum)} from ${shopper} is ${plural(days, 'day')} late.`;
  }
  const sentences: Record<string, string> = {
    payment_overdue: `a payment from ${shopper} was late.`,
    refund_failed: `the refund of ${amount} to ${shopper} failed.`,
    callback_exhausted: subject?.event
      ? `the shop was not informed about a ${subject.event.replace('.updated', '')} that changed.`
      : `the shop was not informed about the outcome of its order of ${amount}.`,
    message_refused: `an e-mail to ${shopper} was refused.`,
    dispute_opened: `${shopper} disputes ${amount}.`,
    dispute_deadline: `the dispute of ${amount} has not been answered yet.`,
    dispute_closed: `the dispute of ${amount} has ended. Decide on the rest of the plan.`,
  };
  return `${order}: ${sentences[alert.kind] ?? alert.detail}`;
}
