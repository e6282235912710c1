import { reconcile } from '#checks/reconciliation/reconcile.ts';
import { recordLost } from '#checks/reconciliation/record-lost.ts';
import { releaseCheckout } from '#checks/reconciliation/release-checkout.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { type CommandGroup, command, required, UsageError } from './command.ts';
import { withMigrated } from './connect.ts';
import { readDate } from './merchant-fee.ts';
import { withGateway } from './sandbox-gateway.ts';
import { fill } from './terminal.ts';

const count = new Intl.NumberFormat('en-GB');

const reconcileCommand = command({
  name: 'gateway reconcile',
  summary: "compare the gateway's records with our rows",
  usage: ['[--from DATE] [--to DATE]', '--record'],
  help: `Reads the gateway's payments, charges, refunds, disputes and balance transactions and compares each
with our rows, then looks for rows of ours that the gateway does not have. The gateway's fees are
posted. --from and --to are dates in UTC; without them it reads everything. Each difference is an
alert: \`tranche alerts close\` closes it with a reason. If there are any, the exit code is 1. The
service does the same once a day for the last 40 days. A run that was interrupted continues where it
was if it is started again within a day with the same dates.

--record also records what the gateway did and the database does not know, after a restore from a
backup, and lets money move again. What cannot be recorded is a difference that blocks its checkout
until \`tranche gateway release\`. It chooses the dates itself.

  tranche gateway reconcile --from 2026-11-01
  tranche gateway reconcile --record`,
  options: { from: { type: 'string' }, to: { type: 'string' }, record: { type: 'boolean' } },
  async run(context) {
    const { terminal } = context;
    const range = {
      from: startOf(readDate(context.values.from, 'from')),
      to: startOf(readDate(context.values.to, 'to')),
    };
    const records = context.values.record === true;
    if (records && (range.from !== null || range.to !== null)) {
      throw new UsageError('--record chooses the dates itself: leave out --from and --to.');
    }
    const progress = (checked: number) =>
      terminal.progress(`${count.format(checked)} records of the gateway`);
    const answer = await withGateway(
      context,
      (deps) =>
        records ? recordLost(deps, deps.operator, progress) : reconcile(deps, range, progress),
      { whileStopped: true },
    ).finally(() => terminal.endProgress());
    const { checked, differences, recorded } = answer;
    context.print(records ? answer : { checked, differences }, () => {
      const ending = records ? `, ${count.format(recorded)} recorded` : '';
      const of = `${count.format(checked)} records of the gateway${ending}`;
      if (differences.length === 0) return `${of}, no differences.`;
      return [
        `${of}, ${count.format(differences.length)} differences:`,
        ...differences.map(({ id, kind, reference, checkout_id, remedy }) =>
          [
            terminal.accent(`${kind} ${reference}`),
            fill(`alert ${id}${checkout_id ? `, checkout ${checkout_id}` : ''}`),
            fill(remedy),
          ].join('\n'),
        ),
      ].join('\n\n');
    });
    return differences.length === 0 ? 0 : 1;
  },
});

const startOf = (date: string | null) =>
  date === null
    ? null
    : timestamp(Temporal.PlainDate.from(date).toZonedDateTime({ timeZone: 'UTC' }).toInstant());

const releaseCommand = command({
  name: 'gateway release',
  summary: 'release a checkout that a difference blocks',
  usage: ['CHECKOUT_ID --reason TEXT'],
  help: `After \`tranche gateway reconcile --record\`, nothing is charged or refunded of a checkout for which the
gateway did something that could not be recorded. Compare the checkout with the gateway first and
correct there what is wrong. Then release it: its plan and its refunds go on.

  tranche gateway release 0199… --reason "refunded at the gateway by hand"`,
  options: { reason: { type: 'string' } },
  positionals: ['CHECKOUT_ID'],
  async run(context) {
    const [id = ''] = context.positionals;
    const reason = required(context.values.reason, 'reason');
    const answer = await withMigrated(context, (deps) =>
      releaseCheckout(deps, deps.operator, id, reason),
    );
    context.print(
      answer,
      () => `Checkout ${answer.checkout_id} is released: its payments and refunds go on.`,
    );
  },
});

export const gateway: CommandGroup = {
  name: 'gateway',
  summary: 'what the card gateway has on record',
  commands: [reconcileCommand, releaseCommand],
};
