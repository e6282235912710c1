import { type Gateway, OutcomeUnknown } from './gateway.ts';
import type { GatewayName } from './gateway-name.ts';
import { eachGateway, type Gateways } from './gateways.ts';

/** Money may not move now. Nothing was sent, and the row stays due. */
export class MoneyStopped extends OutcomeUnknown {}

/** Calls that move money, or that cannot be undone at the gateway. */
const guarded = new Set<keyof Gateway>([
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
 * Whether money may move at one gateway, or at all of them. A shopper's attempt asks before it
 * begins (decision 0097).
 */
export type MoneyProblem = { problem(gateway?: GatewayName): Promise<string | null> };

/**
 * Whether a shopper's payment must not begin now: money is stopped, or the gateway does not say
 * whether it is. A new attempt could duplicate one that the database has lost. If the database does
 * not answer, the payment continues: the guard asks again before the gateway is called. A refused
 * API key does not count here: the attempt gets the same refusal and raises an alert.
 */
export async function isMoneyStopped(money: MoneyProblem, gateway: GatewayName): Promise<boolean> {
  try {
    return (await money.problem(gateway)) !== null;
  } catch (error) {
    return error instanceof OutcomeUnknown && error.why !== 'undecided';
  }
}

/** Checks before every call that moves money whether it may, and throws `MoneyStopped` if not. */
export const guardGateways = (gateways: Gateways, money: MoneyProblem): Gateways =>
  eachGateway(gateways, (gateway, name) => guardGateway(gateway, () => money.problem(name)));

function guardGateway(gateway: Gateway, problem: () => Promise<string | null>): Gateway {
  const calls = Object.entries(gateway).map(([name, member]) => {
    if (!guarded.has(name as keyof Gateway)) return [name, member];
    const call = member as (...args: unknown[]) => Promise<unknown>;
    return [
      name,
      async (...args: unknown[]) => {
        const reason = await problem();
        if (reason !== null) throw new MoneyStopped(reason);
        return await call(...args);
      },
    ];
  });
  return Object.fromEntries(calls) as Gateway;
}
