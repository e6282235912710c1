import { evidenceFileKinds } from '#gateway/evidence.ts';
import {
  disputeActions,
  disputeList,
  type ListedDispute,
  mustSeeDispute,
} from '#operating/operations/disputes.ts';
import { showMoney } from '#platform/shared/money.ts';
import { evidenceFileBytesMax } from '#platform/shared/uploads.ts';
import { readEvidence, submitEvidence } from '#purchases/disputes/answer-dispute.ts';
import { askMerchant } from '#purchases/disputes/ask-merchant.ts';
import type { Dispute } from '#purchases/disputes/dispute.ts';
import { writeEvidenceHtml } from '#purchases/disputes/evidence.ts';
import { megabytes, suppliedNames } from '#purchases/disputes/supplied.ts';
import { cancelRest } from '#purchases/refunds/cancel-rest.ts';
import { actionCommand, runAction } from './action-command.ts';
import { type Command, type Context, command, oneOf, UsageError } from './command.ts';
import { type Connection, viewerOf, withMigrated } from './connect.ts';
import { readSupply, supply } from './dispute-supply.ts';
import { listCommand } from './list-command.ts';
import { idOf } from './reference.ts';
import { withGateway } from './sandbox-gateway.ts';
import { pick } from './schema-options.ts';
import { showCommand } from './show-command.ts';
import { fields, showTime, type Terminal, table } from './terminal.ts';

const example = '0199a8f0-7c1e-7d62-9a1f-4a2b8f0c6d11';

/** The members of a dispute in --json. `disputes evidence` prints what was staged. */
const members = [
  'merchant_id',
  'id',
  'gateway',
  'dispute_ref',
  'checkout_id',
  'instalment',
  'payment_ref',
  'amount',
  'currency',
  'reason',
  'network_reason_code',
  'status',
  'created_at',
  'due_by',
  'withdrawn',
  'fee',
  'is_pausing',
  'warned_at',
  'asked_at',
  'asked_until',
  'supplied',
  'supplied_at',
  'staged_at',
  'staged_hash',
  'submitting_at',
  'submitted_at',
  'closed_at',
] as const satisfies (keyof Dispute)[];
const present = (dispute: Dispute) => pick(dispute, members);

const list = listCommand(disputeList, {
  name: 'disputes list',
  help: 'Lists disputes, the newest first, with the time until which evidence can be submitted.',
  example: 'tranche disputes list --status needs_response',
  json: members,
  show: (terminal, rows) =>
    table(
      terminal,
      ['ID', 'Status', 'Amount', 'Reason'],
      rows.map((row) => ({
        cells: [row.id, row.status, showMoney(row.amount, row), row.reason],
        below: [
          `${row.checkout_id}:${row.instalment}`,
          row.due_by && row.submitted_at === null ? `due by ${showTime(row.due_by)}` : null,
        ],
      })),
    ),
});

const show = showCommand({
  name: 'disputes show',
  of: 'dispute',
  help: `Shows a dispute by its ID or by the gateway's reference.

  tranche disputes show ${example}`,
  read: mustSeeDispute,
  json: present,
  show: describe,
});

const evidence = command({
  name: 'disputes evidence',
  usage: [
    'ID [--format json|html]',
    'ID [--field NAME=TEXT] [--file KIND=PATH]',
    'ID --ask',
    'ID --stage',
    'ID --submit [--hash HASH]',
  ],
  help: `Prints the evidence: as it was staged, or what staging would store. It is made from what we
hold: the order, the shopper's consent, the 3-D Secure result, the plan, refunds and messages.

--field adds what the merchant knows:
  ${suppliedNames.join(', ')}
--file adds a PDF, PNG or JPEG of at most ${megabytes(evidenceFileBytesMax)}, one of each kind:
  ${evidenceFileKinds.join(', ')}
Both may be given several times. Without a text or a path they remove the field or the file. --ask
asks the merchant for them by mail, with a deadline.

--stage stores the evidence and saves it with the dispute at the gateway. --submit sends exactly
what was staged to the bank, once. With --hash it sends only the evidence that you looked at, and
refuses if another operator has staged it again since.

  tranche disputes evidence ${example} --stage`,
  positionals: ['ID'],
  options: {
    format: { type: 'string' },
    field: { type: 'string', multiple: true },
    file: { type: 'string', multiple: true },
    ask: { type: 'boolean' },
    stage: { type: 'boolean' },
    submit: { type: 'boolean' },
    hash: { type: 'string' },
  },
  async run(context) {
    const [text = ''] = context.positionals;
    const { stage, submit, hash, ask, field = [], file = [] } = context.values;
    const supplies = field.length > 0 || file.length > 0;
    if ([stage, submit, ask, supplies].filter(Boolean).length > 1) {
      throw new UsageError('Give --field and --file, or one of --ask, --stage and --submit.');
    }
    if (hash !== undefined && !submit) throw new UsageError('--hash goes with --submit.');
    if (supplies || ask) {
      const changes = supplies ? await readSupply(field, file) : null;
      const dispute = await withMigrated(context, async (deps) => {
        const id = await idOf(deps, 'dispute', text);
        if (changes) await supply(deps, id, changes);
        else await askMerchant(deps, deps.operator, id);
        return await mustSeeDispute(viewerOf(deps), id);
      });
      print(context, dispute);
      return;
    }
    if (stage || submit) {
      const dispute = await withGateway(context, async (deps) => {
        const id = await idOf(deps, 'dispute', text);
        if (stage) return await runAction(deps, disputeActions.stage, { params: { id } });
        // The hash is optional here; the console requires it.
        await submitEvidence(deps, deps.operator, id, hash);
        return await mustSeeDispute(viewerOf(deps), id);
      });
      print(context, dispute);
      return;
    }
    const format = oneOf(context.values.format ?? 'json', ['json', 'html'], 'format');
    const found = await withMigrated(context, async (deps) =>
      readEvidence(deps.database.db, await idOf(deps, 'dispute', text)),
    );
    const { dispute, pack } = found;
    if (pack.is_outdated && !context.json) {
      context.terminal.warn(
        'The evidence has changed since it was staged. Stage it again to see the changes.',
      );
    }
    if (format === 'html' && !context.json) {
      context.terminal.stdout.write(writeEvidenceHtml(dispute, pack, found.merchant));
      return;
    }
    const answer = { id: dispute.id, dispute_ref: dispute.dispute_ref, ...pack };
    context.print(answer, () => JSON.stringify(answer, null, 2));
  },
});

const accept = actionCommand(disputeActions.accept, {
  name: 'disputes accept',
  of: 'dispute',
  without: ['was'],
  help: `Accepts a dispute at the gateway: it is lost, and the cardholder keeps the money. This
cannot be undone. Afterwards, decide on the plan with \`disputes rest\`.

  tranche disputes accept ${example}`,
  open: withGateway,
  json: present,
  show: describe,
});

const rest = command({
  name: 'disputes rest',
  usage: ['ID --due', 'ID --cancel'],
  help: `After a lost dispute the plan is paused. --due resumes it: what is left of it stays due.
--cancel cancels what is left, by a refund that takes nothing from the card. If the merchant's
refunds of that amount need two people, another operator must approve it, and the plan stays paused
until then.

  tranche disputes rest ${example} --due`,
  positionals: ['ID'],
  options: { due: { type: 'boolean' }, cancel: { type: 'boolean' } },
  async run(context) {
    const [text = ''] = context.positionals;
    const { due, cancel } = context.values;
    if (!due === !cancel) throw new UsageError('Give --due or --cancel.');
    if (due) {
      const resume = async (deps: Connection) =>
        runAction(deps, disputeActions.resume, {
          params: { id: await idOf(deps, 'dispute', text) },
        });
      print(context, await withMigrated(context, resume));
      return;
    }
    await withGateway(context, async (deps) => {
      const id = await idOf(deps, 'dispute', text);
      const { dispute, refund } = await cancelRest(deps, deps.operator, id);
      if (refund && dispute.is_pausing && !context.json) {
        context.terminal.warn(`Refund ${refund.id} is ${refund.status}: it is not done yet.`);
      }
      print(context, await mustSeeDispute(viewerOf(deps), id));
    });
  },
});

const print = (context: Pick<Context, 'print' | 'terminal'>, dispute: ListedDispute) =>
  context.print(present(dispute), () => describe(context.terminal, dispute));

function describe(terminal: Terminal, dispute: ListedDispute): string {
  const money = (cents: number) => showMoney(cents, dispute);
  return fields(terminal, [
    ['ID', dispute.id],
    ['Gateway', `${dispute.gateway} ${dispute.dispute_ref}`],
    ['Payment', `${dispute.checkout_id}:${dispute.instalment}`],
    ['Amount', money(dispute.amount)],
    ['Withdrawn', `${money(dispute.withdrawn)}, fee ${money(dispute.fee)}`],
    ['Reason', [dispute.reason, dispute.network_reason_code].filter(Boolean).join(' ')],
    ['Status', dispute.status],
    ['Plan', dispute.is_pausing ? 'paused' : 'continues'],
    ['Answer by', showTime(dispute.due_by)],
    ['Asked until', showTime(dispute.asked_until)],
    ['Supplied', showTime(dispute.supplied_at)],
    ['Staged', showTime(dispute.staged_at)],
    ['Submitted', showTime(dispute.submitted_at)],
    ['Ended', showTime(dispute.closed_at)],
  ]);
}

export const commands: Command[] = [list, show, evidence, accept, rest];
