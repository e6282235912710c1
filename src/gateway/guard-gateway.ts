import { type Gateway, OutcomeUnknown } from './gateway.ts';

/** Money may not move now. Nothing was sent, and the row stays due. */
export class MoneyStopped extends OutcomeUnknown {}

/** Calls that move money, or that cannot be undone at the gateway. */
const guarded = new Set<keyof Gateway>([
  'authorise',
  'capture',
  'void',
  'charge',
  'pay',
  'refund',
  'detachCard',
  'deleteCustomer',
  'acceptDispute',
]);

/** Whether money may move, as a shopper's attempt asks before it begins (decision 0097). */
export type MoneyProblem = { problem(): Promise<string | null> };

/**
 * Whether a shopper's payment must not begin now: money is stopped, or the gateway does not say
 * whether it is. An attempt that began could meet one that the database has lost. If the database
 * does not answer, the payment goes on and waits for it: the guard asks again before the gateway is
 * called. A refused API key does not count here: the attempt gets the same refusal and raises an
 * alert.
 */
export async function isMoneyStopped(money: MoneyProblem): Promise<boolean> {
  try {
    return (await money.problem()) !== null;
  } catch (error) {
    return error instanceof OutcomeUnknown && error.why !== 'undecided';
  }
}

/** Asks before every call that moves money whether it may, and throws `MoneyStopped` if not. */
export function guardGateway(gateway: Gateway, problem: () => Promise<string | null>): Gateway {
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
