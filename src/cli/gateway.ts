import { pino } from 'pino';
import { importFees } from '#checks/reconciliation/import-fees.ts';
import { reconcile } from '#checks/reconciliation/reconcile.ts';
import { recordLost } from '#checks/reconciliation/record-lost.ts';
import { releaseCheckout } from '#checks/reconciliation/release-checkout.ts';
import { capabilitiesOf } from '#gateway/adapters/read-settings.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { plural, writeCount } from '#platform/shared/plural.ts';
import { type Command, command, required, UsageError } from './command.ts';
import { withMigrated } from './connect.ts';
import { readDate } from './merchant-fee.ts';
import { readLines } from './read-lines.ts';
import { findGatewayNamed, withGateway } from './sandbox-gateway.ts';
import { fill } from './terminal.ts';

const reconcileCommand = command({
  name: 'gateway reconcile',
  usage: ['[--from DATE] [--to DATE] [--gateway NAME]', '--record'],
  help: `Reads the gateway's payments, charges, refunds, disputes and balance transactions and
compares each with our rows, then looks for rows of ours that the gateway does not have. The
gateway's fees are posted. --from and --to are dates in UTC; without them it reads everything. Each
difference raises an alert, which \`tranche alerts close\` closes with a reason. If there are any,
the exit code is 1. Disputes are read from 180 days before --from, and a known one that changed after
its end is read again and recorded. The service does the same once a day for the last 40 days. A run
that was interrupted continues where it stopped if it is started again within a day with the same
dates. It reads every gateway, or the one that --gateway names.

--record is for the time after a restore from a backup: it also records what the gateway did and the
database does not know, and lets money move again. What it cannot record is a difference, which
blocks its checkout until \`tranche gateway release\`. It chooses the dates itself.

  tranche gateway reconcile --from 2026-11-01
  tranche gateway reconcile --record`,
  options: {
    from: { type: 'string' },
    to: { type: 'string' },
    gateway: { type: 'string' },
    record: { type: 'boolean' },
  },
  async run(context) {
    const { terminal } = context;
    const range = {
      from: startOf(readDate(context.values.from, 'from')),
      to: startOf(readDate(context.values.to, 'to')),
    };
    const records = context.values.record === true;
    const { gateway: named } = context.values;
    if (records && (range.from !== null || range.to !== null || named !== undefined)) {
      throw new UsageError(
        '--record chooses the dates itself and reads every gateway: leave out --from, --to and --gateway.',
      );
    }
    const progress = (checked: number) => terminal.progress(plural(checked, 'gateway record'));
    const answer = await withGateway(
      context,
      async (deps) => {
        const gateway = named && (await findGatewayNamed(deps.config, named)).name;
        const read = gateway ? [gateway] : deps.gateways.names;
        const blind = read.filter((name) => !deps.gateways.of(name).capabilities.knowsFees);
        for (const name of blind) terminal.warn(feesUnknown(name));
        return {
          ...(records
            ? await recordLost(deps, deps.operator, progress)
            : await reconcile(deps, { ...range, ...(gateway && { gateway }) }, progress)),
          not_compared: blind.length === 0 ? [] : ['charges', 'transactions'],
        };
      },
      { whileStopped: true },
    ).finally(() => terminal.endProgress());
    const { checked, differences, recorded, not_compared } = answer;
    context.print(records ? answer : { checked, differences, not_compared }, () => {
      const ending = records ? `, ${writeCount(recorded)} recorded` : '';
      const of = `${plural(checked, 'gateway record')}${ending}`;
      if (differences.length === 0) return `${of}, no differences.`;
      return [
        `${of}, ${plural(differences.length, 'difference')}:`,
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

const feesUnknown = (name: string) =>
  `The gateway ${name} reports neither its fees nor the movements of its balance: they are not compared.`;

const startOf = (date: string | null) =>
  date === null
    ? null
    : timestamp(Temporal.PlainDate.from(date).toZonedDateTime({ timeZone: 'UTC' }).toInstant());

const releaseCommand = command({
  name: 'gateway release',
  usage: ['CHECKOUT_ID --reason TEXT'],
  help: `If the gateway did something for a checkout that \`tranche gateway reconcile --record\`
could not record, nothing of that checkout is charged or refunded any more. First compare the
checkout with the gateway, and correct what is wrong there. Then release it: its plan and its
refunds continue.

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
      () => `Checkout ${answer.checkout_id} is released: its payments and refunds continue.`,
    );
  },
});

const feesCommand = command({
  name: 'gateway fees',
  usage: ['FILE [--gateway NAME]'],
  help: `Posts the fees of an acquirer's settlement report, for a gateway that does not report them.
FILE is CSV in UTF-8, or - for standard input. Its first line names the columns transaction_id,
payment_id, type, amount, currency and created_at, in any order; others are ignored. The amount is
in cents, negative for a fee that was returned. A fee without a payment_id belongs to the account.
Each transaction_id counts once, so the same file can be read again after an interruption. A row
with the transaction_id of another fee is not posted: the command names it, and the exit code is 1.
--gateway names the gateway that the report is about, by default the first one in the settings.

  tranche gateway fees settlement-2026-11.csv`,
  positionals: ['FILE'],
  options: { gateway: { type: 'string' } },
  async run(context) {
    const [file = ''] = context.positionals;
    const { terminal } = context;
    const progress = (rows: number) => terminal.progress(plural(rows, 'row'));
    const answer = await withMigrated(context, async (deps) => {
      const log = pino({ level: 'silent' });
      const settings = await findGatewayNamed(deps.config, context.values.gateway);
      const gateway = { name: settings.name, capabilities: capabilitiesOf(settings) };
      const lines = readLines(file, context.stdin);
      return await importFees({ ...deps, log, gateway }, deps.operator, lines, progress);
    }).finally(() => terminal.endProgress());
    const { rows, posted, unknown, unknown_payments } = answer;
    const { conflicting, conflicting_transactions } = answer;
    context.print(answer, () =>
      [
        `${plural(rows, 'row')}, ${plural(posted, 'fee')} posted.`,
        ...(unknown === 0
          ? []
          : [
              fill(
                `${plural(unknown, 'fee belongs', 'fees belong')} to payments that are unknown here, not collected yet, or in another currency: ${unknown_payments.join(', ')}. Read the file again once those payments are recorded here.`,
              ),
            ]),
        ...(conflicting === 0
          ? []
          : [
              fill(
                `${plural(conflicting, 'row has', 'rows have')} the transaction_id of another fee: ${conflicting_transactions.join(', ')}. They are not posted. Give each fee a transaction_id of its own, and read the file again.`,
              ),
            ]),
      ].join('\n\n'),
    );
    return unknown + conflicting === 0 ? 0 : 1;
  },
});

export const commands: Command[] = [reconcileCommand, feesCommand, releaseCommand];
