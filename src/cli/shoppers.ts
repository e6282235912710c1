import { type Erasure, eraseShopper, previewErasure } from '#purchases/shoppers/erase-shopper.ts';
import { exportShopper, readEmail } from '#purchases/shoppers/export-shopper.ts';
import { type Command, command, UsageError } from './command.ts';
import { withMigrated } from './connect.ts';

function readAddress([text = '']: string[]): string {
  const email = readEmail(text);
  if (!/^\S+@\S+$/.test(email)) throw new UsageError('EMAIL must be an e-mail address.');
  return email;
}

const exportCommand = command({
  name: 'shoppers export',
  usage: ['EMAIL'],
  help: `Prints everything that Tranche stores about the shopper with this e-mail address, for every
merchant: checkouts, payments, refunds, callbacks with the receivers' answers, messages, alerts and
what operators did. An operator can run one export at a time. The output is always JSON; --json
prints it on one line. It contains the personal data of this shopper alone: check who is asking
before you hand it over.

  tranche shoppers export thandi@example.com > thandi.json`,
  positionals: ['EMAIL'],
  async run(context) {
    const email = readAddress(context.positionals);
    const { json, terminal } = context;
    await withMigrated(context, (connection) =>
      exportShopper(connection, connection.operator, email, terminal.writeJson, json ? '' : '  '),
    );
    await terminal.writeJson('\n');
  },
});

const erase = command({
  name: 'shoppers erase',
  usage: ['EMAIL [--dry-run]'],
  help: `Erases the personal data of the shopper with this e-mail address in finished checkouts of
every merchant. Amounts, dates, statuses, the books and the gateway's references stay. A checkout
that is still open is refused, with the reason, and the exit code is 1: repeat the command later.
The audit row does not name the shopper. This cannot be undone. --dry-run shows what would be done
and changes nothing.

  tranche shoppers erase thandi@example.com --dry-run`,
  positionals: ['EMAIL'],
  options: { 'dry-run': { type: 'boolean' } },
  async run(context) {
    const email = readAddress(context.positionals);
    const isDry = context.values['dry-run'] === true;
    const answer = await withMigrated(context, (connection) =>
      isDry
        ? previewErasure(connection, email)
        : eraseShopper(connection, connection.operator, email),
    );
    context.print({ dry_run: isDry, ...answer }, () => describeErasure(answer, isDry));
    return answer.refused.length > 0 ? 1 : 0;
  },
});

function describeErasure(
  { erased, refused, payment_links, refused_requests, kept }: Erasure,
  isDry: boolean,
): string {
  const done = isDry ? 'Would erase' : 'Erased';
  const others = Object.entries({
    'payment links': payment_links,
    'refused requests': refused_requests,
  }).filter(([, count]) => count > 0);
  if (erased.length + refused.length + others.length === 0) {
    return 'No data is stored for this address.';
  }
  const lines = [
    ...erased.map((id) => `${done} checkout ${id}.`),
    ...others.map(([what, count]) => `${done} the shopper in ${what}: ${count}.`),
    ...refused.map(({ checkout_id, reason }) => `Refused checkout ${checkout_id}: ${reason}.`),
    ...kept.map(
      ({ checkout_id, count }) =>
        `Checkout ${checkout_id}: idempotency keys that name the shopper and expire within a day: ${count}.`,
    ),
  ];
  return lines.join('\n');
}

export const commands: Command[] = [exportCommand, erase];
