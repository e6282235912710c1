import type { Config } from '#config.ts';
import type { PaymentLinkDetails } from '#operating/operations/payment-link.schema.ts';
import {
  paymentLinkActions,
  paymentLinkList,
  readPaymentLink,
} from '#operating/operations/payment-links.ts';
import { showMoney } from '#platform/shared/money.ts';
import { actionCommand, runAction } from './action-command.ts';
import { type Command, command, mustBeId, required, type Surroundings } from './command.ts';
import { viewerOf, withSealing } from './connect.ts';
import { listCommand } from './list-command.ts';
import { readCents } from './money.ts';
import { readSandboxFile } from './sandbox-gateway.ts';
import { pick } from './schema-options.ts';
import { fields, showShortTime, showTime, type Terminal, table } from './terminal.ts';

const example = '0199c6a1-20b7-7d4e-9f3a-6b5c4d3e2f10';

const members = [
  'id',
  'merchant_id',
  'client_reference_id',
  'status',
  'amount',
  'currency',
  'reusable',
  'created_at',
  'expires_at',
  'cancelled_at',
  'checkouts',
] as const;

type Row = Pick<PaymentLinkDetails, (typeof members)[number] | 'locale'>;

const amountOf = (row: Row) => (row.amount === null ? 'typed' : showMoney(row.amount, row));

/** A sandbox serves its links at its own address, whatever BASE_URL says. */
const baseUrlOf = async (config: Config): Promise<string> =>
  config.databaseUrl === null ? (await readSandboxFile(config)).base_url : config.baseUrl;

const withLinks = <T>(
  context: Surroundings,
  work: (
    deps: Parameters<Parameters<typeof withSealing>[1]>[0] & { baseUrl: string },
  ) => Promise<T>,
): Promise<T> =>
  withSealing(context, async (deps) => work({ ...deps, baseUrl: await baseUrlOf(deps.config) }));

const list = listCommand(paymentLinkList, {
  name: 'payment-links list',
  help: "Lists payment links, the newest first. Times are in UTC, on the merchant's clock.",
  example: 'tranche payment-links list --merchant 0199a8f0-7c1e-7d62-9a1f-4a2b8f0c6d11',
  json: [...members, 'merchant_name'],
  show: (terminal, rows) =>
    table(
      terminal,
      ['ID', 'Created', 'Status', 'Amount'],
      rows.map((row) => ({
        cells: [row.id, showShortTime(row.created_at), row.status, amountOf(row)],
        below: [row.merchant_name, row.client_reference_id, row.reusable ? 'reusable' : null],
      })),
    ),
});

const create = command({
  name: 'payment-links create',
  usage: [
    '--merchant ID --reference TEXT --amount CENTS [--email ADDRESS [--mail]] [--expires-at TIME] [--notify-url URL]',
    '--merchant ID --reference TEXT --reusable [--amount CENTS] [--expires-at TIME] [--notify-url URL]',
  ],
  help: `Creates a link that a shopper opens to pay. It is for one payment and ends after 30 days,
or at --expires-at. A --reusable link is for a till: it makes a checkout for each shopper, who types
the amount unless you give --amount. --mail sends the link to the shopper. Callbacks go where those
of the newest order go, or to --notify-url. With --notify-url none, or if no order has an address
yet, there are no callbacks: \`payment-links show\` lists who paid.

  tranche payment-links create --merchant 0199a8f0-7c1e-7d62-9a1f-4a2b8f0c6d11 \\
    --reference order-1001 --amount 150000`,
  options: {
    merchant: { type: 'string' },
    reference: { type: 'string' },
    amount: { type: 'string' },
    email: { type: 'string' },
    'expires-at': { type: 'string' },
    reusable: { type: 'boolean' },
    mail: { type: 'boolean' },
    'notify-url': { type: 'string' },
  },
  async run(context) {
    const { amount, email, reusable, mail, ...values } = context.values;
    const body = {
      merchant_id: mustBeId(required(values.merchant, 'merchant'), 'merchant'),
      client_reference_id: required(values.reference, 'reference'),
      ...(amount !== undefined && { amount: readCents(amount, 'amount') }),
      ...(email !== undefined && { email }),
      ...(values['expires-at'] !== undefined && { expires_at: values['expires-at'] }),
      ...(reusable && { reusable }),
      ...(mail && { mail }),
      ...(values['notify-url'] !== undefined && { notify_url: values['notify-url'] }),
    };
    const link = await withLinks(context, (deps) =>
      runAction(deps, paymentLinkActions.create, {
        body: { ...body, request_id: deps.random.uuid() },
      }),
    );
    context.print(present(link), () => describe(context.terminal, link));
  },
});

const show = command({
  name: 'payment-links show',
  usage: ['ID'],
  help: `Shows a payment link, its addresses and its newest orders, those that were paid first.

  tranche payment-links show ${example}`,
  positionals: ['ID'],
  async run(context) {
    const [id = ''] = context.positionals;
    const link = await withLinks(context, (deps) => readPaymentLink(viewerOf(deps), id));
    context.print(present(link), () => describe(context.terminal, link));
  },
});

const cancel = actionCommand(paymentLinkActions.cancel, {
  name: 'payment-links cancel',
  help: `Ends a payment link. A shopper who is already on the payment page can still pay there, for
half an hour at most.

  tranche payment-links cancel ${example}`,
  open: withLinks,
  json: present,
  show: describe,
});

const mail = actionCommand(paymentLinkActions.mail, {
  name: 'payment-links mail',
  help: `Sends a payment link to its shopper by mail, or sends it again: at most three times, ten
minutes apart, and at most 100 such mails for a merchant in 24 hours.

  tranche payment-links mail ${example}`,
  open: withLinks,
  json: present,
  show: describe,
});

function present(link: PaymentLinkDetails): object {
  return {
    ...pick(link, members),
    ...pick(link, [
      'url',
      'qr_svg_url',
      'qr_png_url',
      'print_url',
      'notify_url',
      'email',
      'mails',
      'orders',
      'is_cut',
    ]),
  };
}

function describe(terminal: Terminal, link: PaymentLinkDetails): string {
  const facts = fields(terminal, [
    ['ID', link.id],
    ['Merchant', link.merchant_name],
    ['Order', link.client_reference_id],
    ['Amount', amountOf(link)],
    ['Status', link.status],
    ['Callbacks to', link.notify_url ?? 'none'],
    ['For', link.reusable ? 'many shoppers' : (link.email ?? 'one shopper')],
    ...link.mails.map((one): [string, string] => [
      'Mailed',
      `${showShortTime(one.created_at)}, ${one.status}`,
    ]),
    ['Expires', showTime(link.expires_at)],
    ['Link', link.url],
    ['QR code', link.qr_png_url],
    ['To print', link.print_url],
  ]);
  if (link.orders.length === 0) return facts;
  const orders = table(
    terminal,
    ['Checkout', 'Created', 'Status', 'Amount'],
    link.orders.map((order) => ({
      cells: [
        order.id,
        showShortTime(order.created_at),
        order.status,
        showMoney(order.amount, link),
      ],
      below: [order.client_reference_id, order.email],
    })),
  );
  return `${facts}\n\n${orders}`;
}

export const commands: Command[] = [create, list, show, cancel, mail];
