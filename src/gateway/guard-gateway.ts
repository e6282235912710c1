import { type Gateway, OutcomeUnknown } from './gateway.ts';

/** Money may not move now. Nothing was sent, and the row stays due. */
export class MoneyStopped extends OutcomeUnknown {}

/** What moves money, or cannot be undone at the gateway. */
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
