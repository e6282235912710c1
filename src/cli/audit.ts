import { auditList } from '#operating/operations/audit.ts';
import { plural } from '#platform/shared/plural.ts';
import type { OperatorAction } from '#record/actions/operator-action.sql.ts';
import { type Anchor, verifyOperatorChain } from '#record/actions/verify-operator-chain.ts';
import { type Command, command, UsageError } from './command.ts';
import { withMigrated } from './connect.ts';
import { listCommand } from './list-command.ts';
import { byDay, fill } from './terminal.ts';

const list = listCommand(auditList, {
  name: 'audit list',
  help: `Lists changes by operators, the newest first, with times in UTC. --subject selects one
merchant, integration, checkout or refund, --operator one operator, --person one person at the
console. --merchant selects what a merchant's own people did. --json has the details of each change.

A change from the command line has user@host, and before it the name in TRANCHE_OPERATOR, if any.`,
  example: 'tranche audit list --subject 0199a8f0-7c1e-7d62-9a1f-4a2b8f0c6d11',
  json: ({ number: _, name: __, ...row }) => row,
  show: (terminal, rows) =>
    byDay(
      terminal,
      rows.map((row) => ({
        at: row.at,
        cells: [row.subject_id ?? '', `${row.action} by ${actorOf(row)}`],
      })),
    ),
});

const verify = command({
  name: 'audit verify',
  usage: ['[--since NUMBER:HASH]'],
  help: `Checks the hashes that chain the operators' actions: each hash covers the action before it
and the texts that people wrote. An erased text keeps its digest. The command changes nothing. If an
action or a text was changed or deleted, it says which, and the exit code is 1. The last line names
the end of the chain, NUMBER:HASH. Store that outside the database, and pass it as --since next
time: without it, a chain that was rewritten as a whole looks correct.

  tranche audit verify --since 128:4f0c…`,
  options: { since: { type: 'string' } },
  async run(context) {
    const { since } = context.values;
    const result = await withMigrated(context, (connection) =>
      verifyOperatorChain(connection, since === undefined ? [] : [readAnchor(since)]),
    );
    const { actions, textsErased: texts_erased, differences } = result;
    const end = `${result.end.number}:${result.end.hash}`;
    context.print({ actions, texts_erased, end, differences }, () =>
      [
        `${plural(actions, 'action')}, ${differences.length === 0 ? 'nothing changed' : 'changed'}.`,
        ...(texts_erased === 0
          ? []
          : [`${plural(texts_erased, 'text was', 'texts were')} erased.`]),
        ...differences.map(({ kind, detail }) =>
          fill(`${context.terminal.accent(kind)} ${detail}`),
        ),
        `The end is ${end}.`,
      ].join('\n'),
    );
    return differences.length === 0 ? 0 : 1;
  },
});

/** Reads an end of the chain that an operator kept outside the database. */
export function readAnchor(text: string): Anchor {
  const [, number, hash = ''] = /^(\d{1,15}):([0-9a-f]{64})$/.exec(text) ?? [];
  if (number === undefined)
    throw new UsageError('--since must be NUMBER:HASH, as `audit verify` prints it.');
  return { number: Number(number), hash };
}

/** `root@host`, or `nomsa [root@host]` if TRANCHE_OPERATOR states another name. */
export function actorOf(
  action: Pick<OperatorAction, 'operator' | 'os_user' | 'host' | 'roles' | 'address'>,
): string {
  const { operator, os_user, host, roles, address } = action;
  if (roles !== null) return `${operator} [console, ${roles.join(' ')}, ${address}]`;
  if (os_user === null) return operator;
  const fact = `${os_user}@${host}`;
  return operator === os_user ? fact : `${operator} [${fact}]`;
}

export const commands: Command[] = [list, verify];
