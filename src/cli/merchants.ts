import type { Static } from 'typebox';
import { chooseGateways } from '#merchants/choose-gateway.ts';
import { listIntegrations } from '#merchants/integrations/integration.sql.ts';
import type { OwnThreshold, Rule } from '#merchants/merchant.ts';
import { Page } from '#operating/operations/merchant.schema.ts';
import {
  type ListedMerchant,
  merchantActions,
  merchantList,
  mustSeeMerchant,
} from '#operating/operations/merchants.ts';
import { languageNames } from '#platform/shared/language.ts';
import { showMoney } from '#platform/shared/money.ts';
import { logoBounds } from '#platform/shared/uploads.ts';
import { OperatorError } from '#record/actions/operate.ts';
import { runAction } from './action-command.ts';
import { type Command, type Context, command, required, UsageError } from './command.ts';
import { withMigrated } from './connect.ts';
import { readInteger } from './duration.ts';
import { listCommand } from './list-command.ts';
import { balance } from './merchant-balance.ts';
import { bank } from './merchant-bank.ts';
import { fee } from './merchant-fee.ts';
import { readUpload } from './read-upload.ts';
import { findGatewayNamed } from './sandbox-gateway.ts';
import { optionsOf, pick, readOptions } from './schema-options.ts';
import { showCommand } from './show-command.ts';
import { fields, showTime, type Terminal, table } from './terminal.ts';

const rulesHelp = `Rules are a JSON list of amount bands in cents. Bands include both ends, ascend
and do not overlap. Each has its terms in months, ascending; 1 means once-off.`;
const preselectHelp = `--preselect TERM is the number of payments that the payment page selects at
first. If an amount does not have that term, the page selects the next shorter one. Without
--preselect it selects the shortest.`;
const fourEyesHelp = `Refunds above --four-eyes-above CENTS need two people: one who asks for the
refund or approves it first, and another who approves it. Without this option the setting
FOUR_EYES_ABOVE applies. With \`none\` one person is enough for any refund.`;
const rulesExample = `'[{"from_amount":10000,"to_amount":2000000,"terms":[1,3,6]}]'`;

/** The members of a merchant in --json. */
const members = [
  'id',
  'name',
  'short_name',
  'territory',
  'currency',
  'rules',
  'preselected_term',
  'no_fees',
  'language',
  'contact',
  'address',
  'vat_number',
  'logo',
  'four_eyes_above',
  'four_eyes_default',
  'gateway',
  'second_gateway',
  'created_at',
] as const;

const create = command({
  name: 'merchants create',
  usage: [
    '--name NAME --rules JSON [--territory ZA] [--preselect TERM] [--four-eyes-above CENTS|none]',
  ],
  help: `Adds a merchant. Shoppers see the name. The territory gives the currency and the local
time. To let the merchant call the API, create an integration next.

${rulesHelp}

${preselectHelp}

${fourEyesHelp}

  tranche merchants create --name 'Bean There' \\
    --rules ${rulesExample}`,
  options: {
    name: { type: 'string' },
    rules: { type: 'string' },
    territory: { type: 'string', default: 'ZA' },
    preselect: { type: 'string' },
    'four-eyes-above': { type: 'string' },
  },
  async run(context) {
    const { values, terminal, print } = context;
    const body = {
      name: required(values.name, 'name'),
      territory: values.territory,
      rules: readRules(values.rules),
      preselected_term: readTerm(values.preselect) ?? null,
      four_eyes_above: readThreshold(values['four-eyes-above']) ?? null,
    };
    const merchant = await withMigrated(context, (deps) =>
      runAction(deps, merchantActions.create, { body }),
    );
    print(
      present(merchant),
      () => `${describe(terminal, merchant)}

Next, its credentials:
  ${terminal.accent(`tranche integrations create --merchant ${merchant.id}`)}`,
    );
  },
});

const list = listCommand(merchantList, {
  name: 'merchants list',
  help: `Lists the merchants, the oldest first, with the range of amounts that they accept. To find
one by the beginning of its name, use \`tranche find\`.`,
  example: 'tranche merchants list --json',
  fixed: { order: 'oldest first' },
  json: members,
  empty: 'There are no merchants yet. Add one with `tranche merchants create`.',
  show: (terminal, rows) =>
    table(
      terminal,
      ['ID', 'Name', 'Accepts'],
      rows.map((row) => [row.id, row.name, amountsOf(row.rules, row)]),
      'Name',
    ),
});

const show = showCommand({
  name: 'merchants show',
  help: `Shows a merchant, its rules, and how many integrations act for it.

  tranche merchants show 019a8f3e-6f0c-7a51-9d0e-5b1c7f0a2b3c`,
  async read(viewer, id) {
    const merchant = await mustSeeMerchant(viewer, id);
    const acting = await listIntegrations(viewer.deps.database.db, merchant.id);
    return { merchant, acting: acting.length };
  },
  json: ({ merchant }) => present(merchant),
  show: (terminal, { merchant, acting }) => `${describe(terminal, merchant)}

${acting} ${acting === 1 ? 'integration acts' : 'integrations act'} for it:
  ${terminal.accent(`tranche integrations list --merchant ${merchant.id}`)}`,
});

const rules = command({
  name: 'merchants rules',
  usage: ['ID [--rules JSON] [--preselect TERM] [--four-eyes-above CENTS|none|default]'],
  help: `Replaces a merchant's rules. Existing checkouts keep the terms that they were created with.

${rulesHelp}

${preselectHelp} \`--preselect none\` removes the choice.

${fourEyesHelp} With \`default\` the setting applies again.

  tranche merchants rules 019a8f3e-6f0c-7a51-9d0e-5b1c7f0a2b3c \\
    --rules ${rulesExample}`,
  positionals: ['ID'],
  options: {
    rules: { type: 'string' },
    preselect: { type: 'string' },
    'four-eyes-above': { type: 'string' },
  },
  async run(context) {
    const { values } = context;
    const preselected_term = readTerm(values.preselect);
    const four_eyes_above = readThreshold(values['four-eyes-above']);
    const isOnlyRules = preselected_term === undefined && four_eyes_above === undefined;
    const body = {
      ...((values.rules !== undefined || isOnlyRules) && { rules: readRules(values.rules) }),
      ...(preselected_term !== undefined && { preselected_term }),
      ...(four_eyes_above !== undefined && { four_eyes_above }),
    };
    await change(context, body);
  },
});

const gateway = command({
  name: 'merchants gateway',
  usage: ['ID NAME [--second NAME]', 'ID none'],
  help: `Chooses the gateway for a merchant's new checkouts. Existing checkouts keep the gateway
that they began with: their payments, refunds and disputes stay there. With \`none\` the merchant
uses the default, which is the first gateway in the settings.

--second NAME takes over while the gateway does not answer, for shoppers who have not begun to pay.

  tranche merchants gateway 019a8f3e-6f0c-7a51-9d0e-5b1c7f0a2b3c peach`,
  positionals: ['ID', 'NAME'],
  options: { second: { type: 'string' } },
  async run(context) {
    const [id = '', text = ''] = context.positionals;
    const { second } = context.values;
    const merchant = await withMigrated(context, async (deps) => {
      const nameOf = async (given: string) => {
        const { name, isClosed } = await findGatewayNamed(deps.config, given);
        if (!isClosed) return name;
        throw new OperatorError(
          `The gateway ${name} is closed for new checkouts. Choose another one, or open it in the settings first.`,
        );
      };
      return await chooseGateways(deps, deps.operator, {
        id,
        gateway: text === 'none' ? null : await nameOf(text),
        second_gateway: second === undefined ? null : await nameOf(second),
      });
    });
    const answer = pick(merchant, ['id', 'name', 'gateway', 'second_gateway']);
    context.print(answer, () =>
      fields(context.terminal, [
        ['Merchant', `${merchant.id}  ${merchant.name}`],
        ['Gateway', merchant.gateway ?? 'the default'],
        ['Second gateway', merchant.second_gateway ?? 'none'],
      ]),
    );
  },
});

const page = command({
  name: 'merchants page',
  usage: [
    'ID [--short-name NAME] [--no-fees yes|no] [--contact TEXT] [--address TEXT] [--vat-number TEXT] [--logo FILE] [--language en|af|zu]',
  ],
  help: `Changes what shoppers read about a merchant. The change applies from the next page and the
next charge.

--short-name NAME is the merchant's name on card statements, which have room for about ten
characters. A merchant without one (\`none\`) has the beginning of its name there. --no-fees yes
lets the payment page say "No interest. No fees." Say yes only if it is true. --contact, --address
and --vat-number appear on pages, mails and receipts. A contact is an e-mail address, a phone number
or an https address; an address has up to six lines. \`none\` removes one. --logo FILE is a PNG of
at most ${logoBounds.widthMax} × ${logoBounds.heightMax} pixels and ${logoBounds.bytesMax / 1_000}
kB, or \`none\`. The console makes other images fit. --language is the language of the merchant's
monthly statements.

  tranche merchants page 019a8f3e-6f0c-7a51-9d0e-5b1c7f0a2b3c --short-name Bean --no-fees yes`,
  positionals: ['ID'],
  options: optionsOf(Page, {}),
  async run(context) {
    const { logo, ...values } = context.values as Record<string, string | undefined>;
    const body = {
      ...readOptions(Page, values, {}),
      ...(logo !== undefined && { logo: await readLogo(logo) }),
    };
    if (Object.keys(body).length === 0) {
      throw new UsageError(
        'Give --short-name, --no-fees, --contact, --address, --vat-number, --logo or --language.',
      );
    }
    await change(context, body);
  },
});

/** The content of a file in base64; null for `none`. The use case checks it. */
async function readLogo(path: string): Promise<string | null> {
  if (path === 'none') return null;
  return (await readUpload(path, logoBounds.bytesMax)).toString('base64');
}

export const commands: Command[] = [create, list, show, rules, page, gateway, fee, bank, balance];

async function change(
  context: Context,
  body: Static<typeof merchantActions.change.schema.body>,
): Promise<void> {
  const [id = ''] = context.positionals;
  const merchant = await withMigrated(context, (deps) =>
    runAction(deps, merchantActions.change, { params: { id }, body }),
  );
  context.print(present(merchant), () => describe(context.terminal, merchant));
}

/** Reads the rules as JSON. The use case checks them. */
function readRules(text: string | undefined): Rule[] {
  try {
    return JSON.parse(required(text, 'rules'));
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`--rules is not JSON: ${(error as Error).message}. Example:
  --rules ${rulesExample}`);
  }
}

/** Null for `none`, undefined if the option is not given. */
function readTerm(text: string | undefined): number | null | undefined {
  if (text === undefined) return undefined;
  if (text === 'none') return null;
  if (!/^\d{1,4}$/.test(text)) {
    throw new UsageError(
      '--preselect must be a number of payments, or none. Example: --preselect 3',
    );
  }
  return Number(text);
}

/** Null for `default`, undefined if the option is not given. */
function readThreshold(text: string | undefined): OwnThreshold | undefined {
  if (text === undefined) return undefined;
  if (text === 'default') return null;
  return text === 'none' ? 'none' : readInteger(text, 'four-eyes-above');
}

const present = (merchant: ListedMerchant) => pick(merchant, members);

function describeThreshold(merchant: ListedMerchant): string {
  const { four_eyes_above, four_eyes_default } = merchant;
  const above = (cents: number) => `for refunds above ${showMoney(cents, merchant)}`;
  if (four_eyes_above === 'none') return 'for no refunds, set for this merchant';
  if (four_eyes_above !== null) return `${above(four_eyes_above)}, set for this merchant`;
  return four_eyes_default === null
    ? 'for no refunds, the default for all merchants'
    : `${above(four_eyes_default)}, the default for all merchants`;
}

function describe(terminal: Terminal, merchant: ListedMerchant): string {
  const { territory, currency, time_zone, preselected_term } = merchant;
  return fields(terminal, [
    ['ID', merchant.id],
    ['Name', merchant.name],
    ['Territory', `${territory} (${currency}, ${time_zone})`],
    ['Created', showTime(merchant.created_at)],
    ['Rules', describeRules(merchant)],
    ['Preselected term', preselected_term === null ? null : describeTerm(preselected_term)],
    ['On statements', merchant.short_name],
    ['Page says', merchant.no_fees ? 'No interest. No fees.' : null],
    ['Contact', merchant.contact],
    ['Address', merchant.address?.split('\n') ?? null],
    ['VAT number', merchant.vat_number],
    ['Statements in', languageNames[merchant.language]],
    ['Logo', merchant.logo && `${merchant.logo.slice(0, 12)}….png`],
    ['Second approver', describeThreshold(merchant)],
    ['Gateway', merchant.gateway],
    ['Second gateway', merchant.second_gateway],
  ]);
}

function describeRules(merchant: ListedMerchant): string[] {
  const bands = merchant.rules.map((rule) => amountsOf([rule], merchant));
  const width = Math.max(...bands.map((band) => band.length));
  return merchant.rules.map(
    (rule, index) => `${(bands[index] ?? '').padEnd(width)}  ${describeTerms(rule)}`,
  );
}

const describeTerm = (term: number) => (term === 1 ? 'once-off' : `${term} payments`);

/** `once-off, 3, 6 months` */
function describeTerms({ terms }: Rule): string {
  const longest = terms.at(-1) ?? 1;
  return `${terms.map((term) => (term === 1 ? 'once-off' : term)).join(', ')}${longest > 1 ? ' months' : ''}`;
}

function amountsOf(rules: Rule[], territory: Parameters<typeof showMoney>[1]): string {
  const [first, last] = [rules[0], rules.at(-1)];
  if (!first || !last) return '';
  return `${showMoney(first.from_amount, territory)} to ${showMoney(last.to_amount, territory)}`;
}
