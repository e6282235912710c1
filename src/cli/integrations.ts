import { refundModes } from '#merchants/integrations/integration.ts';
import {
  integrationActions,
  integrationList,
  managedMerchantList,
  mustSeeIntegration,
  readRefusedRequests,
} from '#operating/operations/integrations.ts';
import { mustSeeMerchant } from '#operating/operations/merchants.ts';
import { actionCommand, runAction } from './action-command.ts';
import { type Command, command, idsOf, oneOf, required, UsageError } from './command.ts';
import { withMigrated, withSealing } from './connect.ts';
import { revoke, rotate, v1 } from './integration-credentials.ts';
import {
  describeDetails,
  describeEvents,
  describeLimit,
  exampleId,
  integrationMembers,
  presentDetails,
} from './integration-details.ts';
import { listCommand } from './list-command.ts';
import { withDelivery } from './sandbox-gateway.ts';
import { showCommand } from './show-command.ts';
import { fields, showTime, table } from './terminal.ts';

const create = command({
  name: 'integrations create',
  usage: [
    '--merchant ID [--refunds manual|auto]',
    '--intermediary --manages ID,ID [--refunds manual|auto]',
  ],
  help: `Issues a client secret and a signing key and prints them once. The service keeps a hash of
the secret and an encrypted form of the key, and cannot show them again.

An integration belongs to one merchant, or is an intermediary that acts for several. With manual
refunds an operator reviews each one; with auto they are approved automatically.

  tranche integrations create --refunds auto \\
    --merchant 019a8f3e-6f0c-7a51-9d0e-5b1c7f0a2b3c`,
  options: {
    merchant: { type: 'string' },
    intermediary: { type: 'boolean', default: false },
    manages: { type: 'string', multiple: true },
    refunds: { type: 'string', default: 'manual' },
  },
  async run(context) {
    const { values, terminal, print } = context;
    const refund_mode = oneOf(values.refunds, refundModes, 'refunds');
    const managed_merchant_ids = idsOf(values.manages);
    if (values.intermediary === (values.merchant !== undefined)) {
      throw new UsageError('Give either --merchant ID or --intermediary.');
    }
    if (values.intermediary !== managed_merchant_ids.length > 0) {
      throw new UsageError(
        values.intermediary
          ? 'Name the merchants that the intermediary acts for: --manages ID,ID.'
          : '--manages is for an intermediary. Add --intermediary and leave out --merchant.',
      );
    }
    const wanted =
      values.merchant === undefined
        ? { managed_merchant_ids }
        : { merchant_id: required(values.merchant, 'merchant') };
    const issued = await withSealing(context, (deps) =>
      runAction(deps, integrationActions.create, { body: { refund_mode, ...wanted } }),
    );
    print(
      issued,
      () => `${fields(terminal, [
        ['ID', issued.id],
        ['Client secret', terminal.accent(issued.client_secret)],
        ['Signing key', terminal.accent(issued.signing_key)],
      ])}

Both are shown only once. Hand them over safely. To replace a lost one, use
\`tranche integrations rotate\`.`,
    );
  },
});

const list = listCommand(integrationList, {
  name: 'integrations list',
  help: `Lists integrations, the oldest first. --merchant selects the merchant's own integrations
and the intermediaries that manage it.`,
  example: 'tranche integrations list --merchant 019a8f3e-6f0c-7a51-9d0e-5b1c7f0a2b3c',
  fixed: { order: 'oldest first' },
  check: async (viewer, { merchant }) =>
    merchant === undefined ? null : await mustSeeMerchant(viewer, merchant),
  json: integrationMembers,
  empty: 'There are no integrations yet. Add one with `tranche integrations create`.',
  show: (terminal, rows) =>
    table(
      terminal,
      ['ID', 'Owner', 'Refunds', 'Signing', 'State'],
      rows.map((one) => [
        one.id,
        one.merchant_name ?? 'intermediary',
        one.refund_mode,
        one.signing_required_at === null ? 'optional' : 'required',
        one.revoked_at === null ? 'active' : 'revoked',
      ]),
      'Owner',
    ),
});

const show = showCommand({
  name: 'integrations show',
  help: `Shows an integration: the merchants that it acts for, its limits, since when it must sign,
and which credentials are in force. It never shows the credentials themselves.

  tranche integrations show ${exampleId}`,
  read: async (viewer, id) => presentDetails(await mustSeeIntegration(viewer, id)),
  json: (details) => details,
  show: describeDetails,
});

const refused = showCommand({
  name: 'integrations refused',
  help: `Lists the newest requests of an integration whose signature was refused: what was received
and what was expected. They are kept for three days.

  tranche integrations refused ${exampleId}`,
  read: readRefusedRequests,
  json: ({ data }) => ({ data }),
  show: (terminal, { data }) =>
    data.length === 0
      ? 'No signature was refused in the last three days.'
      : data
          .map((one) =>
            fields(terminal, [
              ['At', showTime(one.at)],
              ['Request', one.request],
              ['Mistake', one.mistake],
              ['X-Signature', one.header],
              ['Expected', one.expected],
              ['Body', one.body],
            ]),
          )
          .join('\n\n'),
});

const managed = listCommand(managedMerchantList, {
  name: 'integrations managed',
  help: `Lists the merchants that an intermediary acts for, the oldest merchant first.`,
  example: `tranche integrations managed --integration ${exampleId}`,
  json: ['id', 'name', 'added_at'],
  empty: 'It acts for no merchants.',
  show: (terminal, rows) =>
    table(
      terminal,
      ['ID', 'Name'],
      rows.map(({ id, name }) => [id, name]),
      'Name',
    ),
});

const manage = command({
  name: 'integrations manage',
  usage: ['ID [--add ID,ID] [--remove ID,ID]'],
  help: `Adds and removes merchants of an intermediary, all of them or none. Both options take a
comma-separated list and may be repeated.

  tranche integrations manage ${exampleId} \\
    --add 019a8f3e-6f0c-7a51-9d0e-5b1c7f0a2b3c`,
  positionals: ['ID'],
  options: {
    add: { type: 'string', multiple: true },
    remove: { type: 'string', multiple: true },
  },
  async run(context) {
    const [id = ''] = context.positionals;
    const { values, terminal, print } = context;
    const body = { add: idsOf(values.add), remove: idsOf(values.remove) };
    if (body.add.length + body.remove.length === 0) {
      throw new UsageError('Give --add ID, --remove ID, or both.');
    }
    const managed = await withMigrated(context, (deps) =>
      runAction(deps, integrationActions.manage, { params: { id }, body }),
    );
    const ids = (changed: string[]) => (changed.length > 0 ? changed : 'no merchants');
    print(managed, () =>
      fields(terminal, [
        ['ID', managed.id],
        ['Added', ids(managed.added)],
        ['Removed', ids(managed.removed)],
      ]),
    );
  },
});

const requireSigning = actionCommand(integrationActions.requireSigning, {
  name: 'integrations require-signing',
  help: `Makes signatures mandatory for an integration. In production they are mandatory from the
start, and in a sandbox from the first signed POST. This cannot be undone.

  tranche integrations require-signing ${exampleId}`,
  open: withMigrated,
  json: (set) => set,
  show: (_, set) => `Signatures have been mandatory since ${showTime(set.signing_required_at)}.`,
});

const refunds = actionCommand(integrationActions.setRefundMode, {
  name: 'integrations refunds',
  help: `Sets whether an operator reviews each refund that an integration asks for (manual), or each
is approved at once (auto). Refunds that were requested earlier do not change.

  tranche integrations refunds ${exampleId} --mode auto`,
  rename: { refund_mode: 'mode' },
  open: withMigrated,
  json: (set) => set,
  show: (_, { refund_mode }) =>
    refund_mode === 'auto'
      ? 'New refunds are approved at once.'
      : 'An operator reviews each new refund.',
});

const events = actionCommand(integrationActions.setEvents, {
  name: 'integrations events',
  help: `Chooses which events an integration gets besides the results of payments: changes to
refunds, disputes and payouts, each in a signed callback with an \`event\`. They go to --url or,
without one, to the checkout's notify_url; payouts go to the notify_url of the newest order. --url
none removes the address. Earlier changes are not sent.

  tranche integrations events ${exampleId} \\
    --enable refunds,disputes,payouts --url https://shop.example/tranche/events`,
  open: withMigrated,
  json: (set) => set,
  show: (terminal, set) =>
    fields(terminal, [
      ['ID', set.id],
      ['Events', describeEvents(set)],
    ]),
});

const testCallback = actionCommand(integrationActions.testCallback, {
  name: 'integrations test-callback',
  help: `Sends one test callback to an address and shows the answer. It is signed like a real one.
It says \`"test": true\` and \`cancelled\`, about an order that does not exist, and is not repeated.

  tranche integrations test-callback ${exampleId} \\
    --url https://shop.example/tranche/callback`,
  open: withDelivery,
  json: (tested) => tested,
  show: (terminal, tested) =>
    fields(terminal, [
      ['Sent', tested.payload],
      ['To', tested.url],
      ['Outcome', tested.summary],
      ['Status', tested.response_status === null ? null : String(tested.response_status)],
      ['Took', tested.milliseconds === null ? null : `${Math.round(tested.milliseconds)} ms`],
      ['Answer', firstLine(tested.response_body)],
    ]),
});

const answerWidth = 60;

/** The beginning of a receiver's answer on one line, escaped as in JSON. */
const firstLine = (body: string | null) =>
  body ? JSON.stringify(body.slice(0, answerWidth)).slice(1, -1) : null;

const limit = actionCommand(integrationActions.setLimit, {
  name: 'integrations limit',
  help: `Sets how many requests an integration may make to an endpoint within a window of seconds,
instead of the API's own limit. For an intermediary the limit counts per merchant. It takes effect
within a second; a window that has begun keeps its end.

  tranche integrations limit ${exampleId} \\
    --endpoint 'POST /api/checkouts' --limit 20 --window 1`,
  rename: { max_requests: 'limit', window_seconds: 'window' },
  open: withMigrated,
  json: (set) => set,
  show: (_, set) => `${set.endpoint}: ${describeLimit(set)}.`,
});

export const commands: Command[] = [
  create,
  list,
  show,
  refused,
  managed,
  manage,
  refunds,
  requireSigning,
  events,
  testCallback,
  limit,
  rotate,
  v1,
  revoke,
];
