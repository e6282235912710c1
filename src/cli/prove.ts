import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import {
  notCompared,
  type Proof,
  proveBooks,
  proveCallbacks,
  proveGateway,
  provePayouts,
  proveRecord,
} from '#checks/proof/prove.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { plural, writeCount } from '#platform/shared/plural.ts';
import { OperatorError } from '#record/actions/operate.ts';
import { readAnchor } from './audit.ts';
import { command } from './command.ts';
import { type Connection, withMigrated } from './connect.ts';
import { withGateway } from './sandbox-gateway.ts';
import { fill, showTime, type Terminal } from './terminal.ts';

export const prove = command({
  name: 'prove',
  usage: ['[--since NUMBER:HASH] [--bank-file FILE …] [--without-gateway]'],
  help: `Compares everything that can be compared, in a running installation or in a restored copy:
the books with the rows, the rows with the gateway's records, the payouts with the files for the
bank, the record of operators' actions with the ends that were posted daily, and delivered callbacks
with the answers to them. It says what it compared, how many, since when, and what it cannot
compare. The exit code is 1 if anything differs or was not compared, except what --without-gateway
left out.

--since is an end of the record that you kept: the alert \`record_end\` posts one a day, statements
have one, and this command prints one. --bank-file is a file as it was exported; give it several
times for several files. With --without-gateway the gateway is not asked and nothing is written.
Otherwise fees are posted, and each difference raises an alert, as with \`tranche gateway
reconcile\`.

  tranche prove --since 128:4f0c… --bank-file payouts.csv`,
  options: {
    since: { type: 'string', multiple: true },
    'bank-file': { type: 'string', multiple: true },
    'without-gateway': { type: 'boolean' },
  },
  async run(context) {
    const { terminal, clock } = context;
    const anchors = (context.values.since ?? []).map(readAnchor);
    const bankFiles = await Promise.all((context.values['bank-file'] ?? []).map(readBankFile));
    const withoutGateway = context.values['without-gateway'] === true;
    const at = timestamp(clock.now());
    const proofs: Proof[] = [];
    let end = '';
    const collect = async (deps: Connection) => {
      const books = (done: number, all: number) =>
        terminal.progress(`books: ${writeCount(done)} of ${writeCount(all)} checkouts`);
      proofs.push(await proveBooks(deps, books));
      proofs.push(await provePayouts(deps, bankFiles));
      const { end: reached, ...record } = await proveRecord(deps, anchors);
      end = reached;
      proofs.push(record);
      terminal.progress('callbacks');
      proofs.push(await proveCallbacks(deps));
    };
    try {
      await withMigrated(context, collect);
      const progress = (checked: number) =>
        terminal.progress(`gateway: ${plural(checked, 'record')}`);
      const gateway = withoutGateway
        ? notCompared("The gateway's records: --without-gateway was given.")
        : await withGateway(context, (deps) => proveGateway(deps, progress), {
            whileStopped: true,
          });
      proofs.splice(1, 0, gateway);
    } finally {
      terminal.endProgress();
    }
    const fails = ({ outcome }: Proof) =>
      outcome === 'differs' || (outcome === 'not compared' && !withoutGateway);
    const proved = !proofs.some(fails);
    context.print({ proved, at, end, proofs }, () => writePage(terminal, proofs, { proved, end }));
    return proved ? 0 : 1;
  },
});

async function readBankFile(path: string): Promise<{ name: string; content: Buffer }> {
  try {
    return { name: basename(path), content: await readFile(path) };
  } catch {
    throw new OperatorError(`The file ${path} cannot be read.`);
  }
}

const signs = { holds: '✓', differs: '✗', 'not compared': '–' } as const;

function writePage(
  terminal: Terminal,
  proofs: Proof[],
  { proved, end }: { proved: boolean; end: string },
): string {
  const parts = proofs.map(({ claim, outcome, compared, since, differences, cannot_compare }) => {
    const counts = Object.entries(compared).map(([name, value]) => `${writeCount(value)} ${name}`);
    return [
      terminal.accent(`${signs[outcome]} ${claim}`),
      ...(counts.length > 0
        ? [`  ${counts.join(', ')}${since === null ? '' : `, since ${showTime(since)}`}.`]
        : []),
      ...differences.map((difference) => fill(`  Differs: ${difference}`)),
      ...cannot_compare.map((limit) => fill(`  Not compared: ${limit}`)),
    ].join('\n');
  });
  const verdict = proved
    ? 'Everything that was compared agrees.'
    : 'Something differs or was not compared.';
  return [...parts, `${verdict}\nThe record ends with ${end}`].join('\n\n');
}
