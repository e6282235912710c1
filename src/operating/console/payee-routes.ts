import { decidersFor } from '#operating/operations/actors.ts';
import { IdParams } from '#operating/operations/list.schema.ts';
import { mustSeeMerchant } from '#operating/operations/merchants.ts';
import {
  AccountParams,
  ConfirmAccount,
  Payee,
  ProposeAccount,
  StatementsTo,
} from '#operating/operations/payee.schema.ts';
import { reading } from '#platform/database/transaction.ts';
import { isSamePerson } from '#platform/shared/approver.ts';
import {
  confirmAccount,
  proposeAccount,
  readPayee,
  type ShownAccount,
  setStatementAddress,
} from '#purchases/payouts/set-bank-account.ts';
import { actionRoute, type ConsoleRoute, type Context, countOfDay } from './route.ts';

/** The account that a merchant is paid to: one person proposes it, and another confirms it. */
export const payeeRoutes: ConsoleRoute[] = [
  actionRoute({
    url: '/api/merchants/:id/bank-accounts',
    permission: 'bank.propose',
    fresh: true,
    schema: { params: IdParams, body: ProposeAccount, response: Payee },
    run: (context, { params, body }) =>
      change(context, params.id, async (id) => {
        await countOfDay(context, 'account', [id]);
        await proposeAccount(context.deps, context.operator, id, body);
      }),
  }),
  actionRoute({
    url: '/api/merchants/:id/bank-accounts/:number/confirm',
    permission: 'bank.confirm',
    fresh: true,
    schema: { params: AccountParams, body: ConfirmAccount, response: Payee },
    run: (context, { params, body }) =>
      change(context, params.id, (id) =>
        confirmAccount(context.deps, context.operator, id, { number: params.number, ...body }),
      ),
  }),
  actionRoute({
    url: '/api/merchants/:id/statements-to',
    permission: 'merchants.change',
    fresh: true,
    schema: { params: IdParams, body: StatementsTo, response: Payee },
    run: (context, { params, body }) =>
      change(context, params.id, (id) =>
        setStatementAddress(context.deps, context.operator, id, body.email),
      ),
  }),
];

/** Changes one merchant, and answers with the account to which the merchant is now paid. */
async function change(
  context: Context,
  merchant_id: string,
  write: (id: string) => Promise<unknown>,
): Promise<() => Promise<Payee>> {
  const { id } = await mustSeeMerchant(context, merchant_id);
  await write(id);
  return () => presentPayee(context, id);
}

export async function presentPayee(
  { deps, operator, person, scope }: Context,
  id: string,
): Promise<Payee> {
  const { account, proposed, statement_email } = await readPayee(deps, id);
  const ids = [account, proposed].flatMap((one) =>
    one ? [one.proposed_person_id, one.confirmed_person_id] : [],
  );
  const show = await reading(deps, (db) => decidersFor({ scope }, db, ids));
  const present = (one: ShownAccount) => ({
    ...one,
    // A name from the command line stays as it was given (decision 0072).
    proposed_by: show(one.proposed_person_id, one.proposed_by).name,
    confirmed_by: one.confirmed_by && show(one.confirmed_person_id, one.confirmed_by).name,
  });
  return {
    account: account && present(account),
    proposed: proposed && present(proposed),
    is_own_proposal:
      proposed !== null &&
      isSamePerson(
        { person_id: proposed.proposed_person_id, name: proposed.proposed_by },
        { person_id: person.id, name: operator },
      ),
    statement_email,
  };
}
