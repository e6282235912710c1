import { type Gateway, OutcomeUnknown } from './gateway.ts';
import type { GatewayName } from './gateway-name.ts';
import { eachGateway, type Gateways } from './gateways.ts';

/** A request must not be sent now. Nothing was sent, and the row stays due. */
export class MoneyStopped extends OutcomeUnknown {}

/** Calls that move money, or that cannot be undone at the gateway. */
const movesMoney = new Set<keyof Gateway>([
  'begin',
  'capture',
  'void',
  'charge',
  'refund',
  'detachCard',
  'deleteCustomer',
  'acceptDispute',
]);

/**
 * Calls that do not need the right account: the heartbeats show whether it is the right one, and
 * `readEvent` sends nothing.
 */
const asksAnyAccount = new Set<keyof Gateway>(['listHeartbeats', 'writeHeartbeat', 'readEvent']);

/** Whether requests may be sent (decision 0097). */
export type MoneyProblem = {
  /**
   * Why no money may move at one gateway, or at all of them; null if money may move. A shopper's
   * attempt asks before it begins.
   */
  problem(gateway?: GatewayName): Promise<string | null>;
  /**
   * Why nothing may be sent to the account behind a gateway's name; null if requests may be sent. A
   * wrong account knows none of our payments, and its answers would mislead us.
   */
  accountProblem(gateway: GatewayName): Promise<string | null>;
};

/**
 * Whether a shopper's payment must not begin now: money is stopped, or this is not known, because
 * the gateway does not answer. A new attempt could duplicate one that the database has lost. If the
 * database does not answer, the payment continues: the guard asks again before the gateway is
 * called. A refused API key does not count here: the attempt gets the same refusal and raises an
 * alert.
 */
export async function isMoneyStopped(money: MoneyProblem, gateway: GatewayName): Promise<boolean> {
  try {
    return (await money.problem(gateway)) !== null;
  } catch (error) {
    return error instanceof OutcomeUnknown && error.why !== 'undecided';
  }
}

/**
 * Checks before each call whether the account is the right one and, if the call moves money,
 * whether money may move. Throws `MoneyStopped` if not.
 */
export const guardGateways = (gateways: Gateways, money: MoneyProblem): Gateways =>
  eachGateway(gateways, (gateway, name) => {
    const guarded = Object.entries(gateway).map(([key, member]) => {
      const call = key as keyof Gateway;
      const isFree = typeof member !== 'function' || call === 'isAnswering';
      if (isFree || asksAnyAccount.has(call)) return [key, member];
      const holdsToVerify =
        call === 'beginVerification' && gateway.capabilities.verificationAmount > 0;
      const isMoney = movesMoney.has(call) || holdsToVerify;
      const problem = isMoney ? money.problem : money.accountProblem;
      const send = member as (...args: unknown[]) => Promise<unknown>;
      return [
        key,
        async (...args: unknown[]) => {
          mustSend(await problem(name));
          return await send(...args);
        },
      ];
    });
    return Object.fromEntries(guarded) as Gateway;
  });

function mustSend(problem: string | null): void {
  if (problem !== null) throw new MoneyStopped(problem);
}

/** Throws `MoneyStopped` if one of the names leads to the account of another gateway. */
export async function refuseOtherAccounts(
  money: Pick<MoneyProblem, 'accountProblem'>,
  gateways: readonly GatewayName[],
): Promise<void> {
  for (const name of gateways) mustSend(await money.accountProblem(name));
}
