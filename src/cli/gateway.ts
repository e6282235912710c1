import { reconcile } from '../audit/reconciliation/reconcile.ts';
import { timestamp } from '../shared/clock.ts';
import { type CommandGroup, command } from './command.ts';
import { readDate } from './merchant-fee.ts';
import { withGateway } from './sandbox-gateway.ts';
import { fill } from './terminal.ts';

const count = new Intl.NumberFormat('en-GB');

const reconcileCommand = command({
  name: 'gateway reconcile',
  summary: "compare the gateway's records with our rows",
  usage: ['[--from DATE] [--to DATE]'],
  help: `Reads the gateway's payments, refunds and disputes and compares each with our rows, then looks
for rows of ours that the gateway does not have. --from and --to are dates in UTC; without them it
reads everything. Each difference is an alert: \`tranche alerts close\` closes it with a reason. If
there are any, the exit code is 1. The service does the same once a day for the last 40 days.

  tranche gateway reconcile --from 2026-11-01`,
  options: { from: { type: 'string' }, to: { type: 'string' } },
  async run(context) {
    const { terminal } = context;
    const range = {
      from: startOf(readDate(context.values.from, 'from')),
      to: startOf(readDate(context.values.to, 'to')),
    };
    const answer = await withGateway(context, (deps) =>
      reconcile(deps, range, (checked) =>
        terminal.progress(`${count.format(checked)} records of the gateway`),
      ),
    ).finally(() => terminal.endProgress());
    const { checked, findings } = answer;
    context.print(answer, () => {
      const of = `${count.format(checked)} records of the gateway`;
      if (findings.length === 0) return `${of}, no differences.`;
      return [
        `${of}, ${count.format(findings.length)} differences:`,
        ...findings.map(({ id, kind, reference, checkout_id, remedy }) =>
          [
            terminal.accent(`${kind} ${reference}`),
            fill(`alert ${id}${checkout_id ? `, checkout ${checkout_id}` : ''}`),
            fill(remedy),
          ].join('\n'),
        ),
      ].join('\n\n');
    });
    return findings.length === 0 ? 0 : 1;
  },
});

const startOf = (date: string | null) =>
  date === null
    ? null
    : timestamp(Temporal.PlainDate.from(date).toZonedDateTime({ timeZone: 'UTC' }).toInstant());

export const gateway: CommandGroup = {
  name: 'gateway',
  summary: 'what the card gateway has on record',
  commands: [reconcileCommand],
};
