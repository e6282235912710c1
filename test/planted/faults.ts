// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the texts are parts of sources.

// One-line faults in SQL and in use cases, where no test of a pure function reaches. `npm run
// planted` applies each to a copy of the program: the tests that it names must fail.

export type Fault = {
  name: string;
  /** The file, and the text in it that is replaced. The text occurs once. */
  file: string;
  from: string;
  to: string;
  /** Parts of the paths of the test files that notice it. */
  tests: string[];
};

const refunds = 'src/purchases/refunds';
const payments = 'src/purchases/payments';
const instalments = 'src/purchases/instalments';
const callbacks = 'src/purchases/callbacks';
const payouts = 'src/purchases/payouts';

export const faults: Fault[] = [
  {
    name: 'a checkout is read without its lock',
    file: 'src/purchases/checkouts/checkout.sql.ts',
    from: 'selectCheckout(db, merchant_id, id).forNoKeyUpdate(),',
    to: 'selectCheckout(db, merchant_id, id),',
    tests: ['api/create-refund'],
  },
  {
    name: 'a lease that runs is taken over',
    file: 'src/platform/database/due-work.sql.ts',
    from: '(leased_until is null or leased_until <= ${now}::timestamptz)',
    to: '(leased_until is null or leased_until is not null or ${now}::timestamptz is null)',
    tests: ['callbacks/kills'],
  },
  {
    name: 'the outcome of an attempt counts without its lease',
    file: `${payments}/record-outcome.ts`,
    from: 'current.lease !== attempt.lease || ',
    to: '',
    tests: ['payments/payments'],
  },
  {
    name: 'the outcome of a refund counts without its lease',
    file: `${refunds}/record-refund.ts`,
    from: "current.lease !== refund.lease || current.status !== 'pending'",
    to: "current.status !== 'pending'",
    tests: ['money/refund-processing'],
  },
  {
    name: 'every retry of a collection uses one key',
    file: `${instalments}/instalment.ts`,
    from: "derivedId('collection', checkout_id, instalment, number)",
    to: "derivedId('collection', checkout_id, instalment, 1)",
    tests: ['money/collections'],
  },
  {
    name: 'every round of a refund uses one key',
    file: `${refunds}/refund.ts`,
    from: "derivedId('refund part', refund_id, round, instalment)",
    to: "derivedId('refund part', refund_id, 1, instalment)",
    tests: ['money/refund-processing'],
  },
  {
    name: 'a capture is not posted whole',
    file: `${instalments}/record-collections.ts`,
    from: "{ ...of, kind: 'used', amount: instalment.amount },",
    to: '',
    tests: ['money/ledger', 'money/collections'],
  },
  {
    name: 'a refund to the card is posted a cent short',
    file: `${refunds}/record-refund.ts`,
    from: "kind: 'refunded', amount };",
    to: "kind: 'refunded', amount: amount - 1 };",
    tests: ['money/ledger', 'money/refund-processing'],
  },
  {
    name: 'day 100 is too late for a refund',
    file: `${refunds}/refund.ts`,
    from: 'Temporal.PlainDate.compare(local.toPlainDate(), lastDate) > 0',
    to: 'Temporal.PlainDate.compare(local.toPlainDate(), lastDate) >= 0',
    tests: ['src/purchases/refunds/refund', 'api/create-refund'],
  },
  {
    name: 'refunds of the purchase day are automatic',
    file: `${refunds}/refund.ts`,
    from: 'Temporal.ZonedDateTime.compare(local, opens) < 0',
    to: 'Temporal.ZonedDateTime.compare(local, opens) < -1',
    tests: ['src/purchases/refunds/refund', 'api/create-refund'],
  },
  {
    name: 'the kept part of a failed refund can be refunded again',
    file: `${refunds}/refund.sql.ts`,
    from: "when 'failed' then kept else amount end",
    to: "when 'failed' then 0 else amount end",
    tests: ['money/refund-processing', 'money/refund-watch'],
  },
  {
    name: 'a disputed amount can be refunded',
    file: `${refunds}/create-refund.ts`,
    from: 'Math.max(0, unrefunded - disputed)',
    to: 'Math.max(0, unrefunded)',
    tests: ['money/disputes'],
  },
  {
    name: 'a part that was refunded is refunded again by a retry',
    file: `${refunds}/start-refund.ts`,
    from: 'const rest = refund.amount - moved;',
    to: 'const rest = refund.amount;',
    tests: ['money/refund-processing'],
  },
  {
    name: 'small refunds pass for a large one',
    file: `${refunds}/refund.ts`,
    from: 'agreedTo(refund).length === 0 && needsSecondPerson(alone + refund.amount, above)',
    to: 'agreedTo(refund).length === 0 && needsSecondPerson(refund.amount, above)',
    tests: ['console/two-people', 'console/insider', 'console/second-person'],
  },
  {
    name: 'refunds that one person approved do not count as alone',
    file: `${refunds}/refund.sql.ts`,
    from: 'num_nonnulls(requested_by_name, first_approved_by_name, approved_by_name) < 2',
    to: 'num_nonnulls(requested_by_name, first_approved_by_name, approved_by_name) < 1',
    tests: ['console/two-people', 'console/insider', 'console/second-person'],
  },
  {
    name: 'one person counts as two',
    file: 'src/record/actions/second-person.ts',
    from: 'if (own) throw new OperatorError(own.refusal);',
    to: 'void own;',
    tests: ['money/payouts', 'console/two-people'],
  },
  {
    name: 'a new passkey counts at once',
    file: 'src/record/actions/second-person.ts',
    from: 'if (counts_from <= timestamp(clock.now())) return null;',
    to: 'return null;',
    tests: ['console/second-person', 'console/insider'],
  },
  {
    name: 'a second address of a merchant’s administrator counts',
    file: 'src/operating/people/console-session.ts',
    from: "person.unconfirmed_since === null ? aged : 'unconfirmed'",
    to: 'aged',
    tests: ['console/two-people', 'console/insider'],
  },
  {
    name: 'the console does not ask for the permission',
    file: 'src/operating/console/server.ts',
    from: "if (permission !== 'signed-in' && !context.may(permission)) throw forbidden();",
    to: '',
    tests: ['console/api-actions', 'console/identity-matrix'],
  },
  {
    name: 'the console does not ask for a recent re-authentication',
    file: 'src/operating/console/server.ts',
    from: 'if (route.fresh) requireReauthentication(context);',
    to: '',
    tests: ['console/api-actions', 'console/identity-passkeys'],
  },
  {
    name: 'a scope of several merchants is not applied',
    file: 'src/operating/search/scope.sql.ts',
    from: '`${sql.ref(column)} = any(${merchant_ids}::uuid[])`',
    to: '`${sql.ref(column)} is not null or ${merchant_ids}::uuid[] is null`',
    tests: ['console/api-lists', 'console/identity-matrix'],
  },
  {
    name: 'a merchant outside of the scope can be asked for',
    file: 'src/operating/search/scope.sql.ts',
    from: 'return isWithin(scope, wanted) ? { merchant_ids: [wanted] } : nothing;',
    to: 'return { merchant_ids: [wanted] };',
    tests: ['console/api-lists', 'console/identity-matrix'],
  },
  {
    name: 'a session that ended still acts',
    file: 'src/record/actions/operator-chain.sql.ts',
    from: 'and s.ended_at is null and p.revoked_at is null and p.roles',
    to: 'and p.roles',
    tests: ['console/insider', 'console/identity', 'database/operator-chain'],
  },
  {
    name: 'the signature of a callback does not cover its body',
    file: `${callbacks}/delivery/callback-headers.ts`,
    from: "'x-signature': sign(key, payload),",
    to: "'x-signature': sign(key, payload.subarray(1)),",
    tests: ['callbacks/delivery'],
  },
  {
    name: 'a redirect counts as a delivery',
    file: `${callbacks}/delivery/send-callback.ts`,
    from: 'status >= 200 && status < 300',
    to: 'status >= 200 && status < 400',
    tests: ['callbacks/delivery'],
  },
  {
    name: 'an attempt whose process died begins again at once',
    file: `${callbacks}/delivery/deliver-callback.ts`,
    from: "const mustWait = callback.sent_attempt === number || before?.outcome === 'unknown';",
    to: 'const mustWait = before === undefined;',
    tests: ['callbacks/kills'],
  },
  {
    name: 'a callback gets one attempt too many',
    file: `${callbacks}/delivery/deliver-callback.ts`,
    from: 'if (callback.run_attempts >= runAttemptsMax) {',
    to: 'if (callback.run_attempts > runAttemptsMax) {',
    tests: ['callbacks/kills', 'callbacks/delivery'],
  },
  {
    name: 'two collections of one payment can be open',
    file: 'migrations/0005_instalments.sql',
    from: 'create unique index collections_open on',
    to: 'create index collections_open on',
    tests: ['database/tables'],
  },
  {
    name: 'two attempts of one checkout can be in flight',
    file: 'migrations/0004_payments.sql',
    from: 'create unique index payment_attempts_in_flight on',
    to: 'create index payment_attempts_in_flight on',
    tests: ['database/tables'],
  },
  {
    name: 'COMMIT is not awaited',
    file: 'src/platform/database/transaction.ts',
    from: '      await commit();\n',
    to: '      void commit();\n',
    tests: ['faults/commit', 'faults/dead-connection'],
  },
  {
    name: 'an amount at the upper end of a band is refused',
    file: 'src/merchants/merchant.ts',
    from: 'rule.from_amount <= amount && amount <= rule.to_amount',
    to: 'rule.from_amount <= amount && amount < rule.to_amount',
    tests: ['api/create-checkout'],
  },
  {
    name: 'a payment may begin after the checkout expired',
    file: `${payments}/start-payment.ts`,
    from: "if (checkout.status !== 'received' || !isOpen(checkout, now)) return null;",
    to: "if (checkout.status !== 'received') return null;",
    tests: ['payments/payments', 'payments/hosted-page'],
  },
  {
    name: 'a second payment begins while the first starts',
    file: `${payments}/start-payment.ts`,
    from: "attempts.some(({ status }) => status === 'starting') || ",
    to: '',
    tests: ['payments/payments'],
  },
  {
    name: 'a challenge that the shopper left stays open',
    file: `${payments}/start-payment.ts`,
    from: 'if (attempts.some(isInFlight)) await moveInFlightToVoiding(db, key, timestamp(now));',
    to: '',
    tests: ['payments/payments'],
  },
  {
    name: 'a challenge is cancelled at a gateway that cannot end it',
    file: 'src/gateway/hyperswitch/holds.ts',
    from: ' || mayBeApproved(payment, merchant.now)',
    to: '',
    tests: ['payments/card-sessions'],
  },
  {
    name: 'a hold after the end of a checkout is kept',
    file: `${payments}/choose-step.ts`,
    from: "return isLive && (attempt.status === 'voiding' || isOver(attempt, checkout, now));",
    to: "return isLive && attempt.status === 'voiding';",
    tests: ['choose-step', 'payments/no-late-holds'],
  },
  {
    name: 'the month end moves',
    file: `${instalments}/instalment.ts`,
    from: 'days.push(date.add({ months: days.length }).toString())',
    to: 'days.push(date.add({ days: 30 * days.length }).toString())',
    tests: ['src/purchases/instalments'],
  },
  {
    name: 'a decline for good is retried',
    file: `${instalments}/record-collections.ts`,
    from: "const isOver = !may_retry || reason === 'authentication_failed';",
    to: "const isOver = reason === 'authentication_failed';",
    tests: ['money/collections'],
  },
  {
    name: 'another amount than ours counts as collected',
    file: `${instalments}/ask-gateway.ts`,
    from: 'if (taken === wanted) return;',
    to: 'if (taken > 0 || wanted > 0) return;',
    tests: ['money/collections'],
  },
  {
    name: 'an idempotency key answers another request',
    file: 'src/platform/http/idempotency.ts',
    from: 'if (!first.fingerprint.equals(keyed.fingerprint)) {',
    to: 'if (first.fingerprint.length !== keyed.fingerprint.length) {',
    tests: ['api/idempotency'],
  },
  {
    name: 'a page of a list has a row too few',
    file: 'src/platform/database/merchant-lists.sql.ts',
    from: ".where('number', '<=', last)",
    to: ".where('number', '<', last)",
    tests: ['api/list-checkouts', 'api/list-refunds'],
  },
  {
    name: 'a list shows the rows of all merchants',
    file: 'src/platform/database/merchant-lists.sql.ts',
    from: "    .selectFrom(list as 'checkouts')\n    .selectAll()\n    .where('merchant_id', '=', merchant_id)\n    .where('number', '>', last - page.items)",
    to: "    .selectFrom(list as 'checkouts')\n    .selectAll()\n    .where('number', '>', last - page.items)",
    tests: ['api/list-checkouts', 'api/list-refunds', 'api/intermediary'],
  },
  {
    name: 'an approval counts for another bank account',
    file: `${payouts}/review-payout.ts`,
    from: "else if (!isForAccount(payout, account)) leave('to_approve_again', payout);",
    to: '',
    tests: ['money/payouts'],
  },
  {
    name: 'a payout is paid again after a restore',
    file: `${payouts}/review-payout.ts`,
    from: "if (payout.compare_since !== null) leave('to_compare', payout);\n      else if",
    to: 'if',
    tests: ['console/api-actions'],
  },
  {
    name: 'money moves although the gateway is ahead',
    file: 'src/checks/reconciliation/money-guard.ts',
    from: 'if (reason !== null || verifiedServer !== null) return reason;',
    to: 'return verifiedServer !== null ? reason : null;',
    tests: ['money/restore', 'reconciliation/money-stop'],
  },
];
