import { checkLedger } from '#checks/books/audit-books.ts';
import { plural, writeCount } from '#platform/shared/plural.ts';
import { type Command, command } from './command.ts';
import { withMigrated } from './connect.ts';
import { fill } from './terminal.ts';

const shownMax = 20;

const check = command({
  name: 'ledger check',
  help: `Compares the books of every checkout with its payments, collections and refunds, and what
every merchant is owed with its payouts, to the cent. It changes nothing, and the service may run
meanwhile. If anything differs, it says what, and the exit code is 1. The service makes the same
check continuously, a few checkouts or merchants at a time, and raises an alert if it finds a
difference.

  tranche ledger check`,
  async run(context) {
    const { terminal } = context;
    const result = await withMigrated(context, (connection) =>
      checkLedger(connection, (done, all) =>
        terminal.progress(`${writeCount(done)} of ${writeCount(all)} checkouts`),
      ),
    ).finally(() => terminal.endProgress());
    const { checkouts, differences } = result;
    context.print(result, () => {
      const of = plural(checkouts, 'checkout');
      if (differences.length === 0) return `${of}, no differences.`;
      const shown = differences
        .slice(0, shownMax)
        .map(({ name, description, row }) =>
          [
            fill(`${terminal.accent(name)} ${description}:`),
            ...Object.entries(row).map(([member, value]) => `  ${member} ${value}`),
          ].join('\n'),
        );
      const more = differences.length - shown.length;
      return [
        `${of}, ${plural(differences.length, 'difference')}:`,
        ...shown,
        ...(more > 0 ? [`And at least ${writeCount(more)} more. --json prints them all.`] : []),
      ].join('\n\n');
    });
    return differences.length === 0 ? 0 : 1;
  },
});

export const commands: Command[] = [check];
