import { ProposeAccount } from '#operating/operations/payee.schema.ts';
import {
  confirmAccount,
  type Payee,
  proposeAccount,
  readPayee,
  type ShownAccount,
  setStatementAddress,
} from '#purchases/payouts/set-bank-account.ts';
import { command, required, UsageError } from './command.ts';
import { withMigrated, withSealing } from './connect.ts';
import { readInteger } from './duration.ts';
import { optionsOf, readOptions } from './schema-options.ts';
import { fields, showTime, type Terminal } from './terminal.ts';

const example = '019a8f3e-6f0c-7a51-9d0e-5b1c7f0a2b3c';

export const bank = command({
  name: 'merchants bank',
  usage: [
    'ID',
    'ID --holder NAME --bank NAME --branch-code CODE --account-number N [--replaces NUMBER]',
    'ID --confirm NUMBER --account-number N',
    'ID --statements-to EMAIL|none',
  ],
  help: `Proposes a bank account for a merchant. Payouts go there once another operator has
confirmed it with the whole account number, as the merchant gave it; until then
the previous account stays in use. In production a new account is first paid
after a business day (NEW_ACCOUNT_BUSINESS_DAYS).
Ask the merchant by telephone before you confirm: a forged letter with a new
account is how payouts are stolen. The account number is kept encrypted, and
only its last four digits are shown. Payouts without an account are not exported.

The merchant's own administrator can propose the account in the console. While a
proposal is waiting, a new one needs --replaces with the number of the first. The merchant's
administrators get an e-mail about every step.

--statements-to sets the address that gets the statement of each payout and of each
month by mail.
Without options the command shows what is set.

  tranche merchants bank ${example} \\
    --holder 'Bean There (Pty) Ltd' --bank 'Standard Bank' \\
    --branch-code 051001 --account-number 0123456789`,
  positionals: ['ID'],
  options: {
    ...optionsOf(ProposeAccount.properties, {}),
    confirm: { type: 'string' },
    'statements-to': { type: 'string' },
  },
  async run(context) {
    const [id = ''] = context.positionals;
    const { terminal, print } = context;
    const values = context.values as Record<string, string | undefined>;
    const account_number = values['account-number'];
    const given = [values.holder, values.bank, values['branch-code']];
    const confirms = values.confirm !== undefined;
    const proposes =
      given.some((value) => value !== undefined) || (account_number !== undefined && !confirms);
    const to = values['statements-to'];
    const actions = [proposes, confirms, to !== undefined].filter(Boolean);
    if (actions.length > 1) {
      throw new UsageError(
        'Propose an account, confirm it, or set --statements-to: one at a time.',
      );
    }
    if (proposes) {
      const wanted = readOptions(ProposeAccount.properties, values, {});
      // No alert is posted from here: the command itself prints what happened.
      await withSealing(context, (connection) =>
        proposeAccount(connection, connection.operator, id, wanted),
      );
    } else if (values.confirm !== undefined) {
      const wanted = {
        number: readInteger(values.confirm, 'confirm'),
        account_number: required(account_number, 'account-number'),
      };
      await withSealing(context, (deps) => confirmAccount(deps, deps.operator, id, wanted));
    } else if (to !== undefined) {
      const email = to === 'none' ? null : to;
      await withMigrated(context, (deps) => setStatementAddress(deps, deps.operator, id, email));
    }
    const payee = await withMigrated(context, (deps) => readPayee(deps, id));
    const { merchant, ...shown } = payee;
    print({ merchant_id: merchant.id, ...shown }, () => describe(terminal, payee));
  },
});

function describe(
  terminal: Terminal,
  { merchant, account, proposed, statement_email }: Payee,
): string {
  return fields(terminal, [
    ['Merchant', `${merchant.name} (${merchant.id})`],
    ['Account', account ? say(account) : 'none: payouts are not exported'],
    [
      'Confirmed',
      account?.confirmed_at && `${account.confirmed_by}, ${showTime(account.confirmed_at)}`,
    ],
    [
      'Proposed',
      proposed && [
        `${say(proposed)}, by ${proposed.proposed_by}`,
        `another operator confirms it: tranche merchants bank ${merchant.id} --confirm ${proposed.number} --account-number …`,
      ],
    ],
    ['Statements to', statement_email ?? 'no address: none are sent'],
  ]);
}

const say = ({ holder, bank, branch_code, last4 }: ShownAccount) =>
  `${holder}, ${bank}, branch ${branch_code}, account … ${last4}`;
