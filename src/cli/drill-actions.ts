import { type DrillAnswer, type DrillName, toAnswer } from '#hosting/sandbox/drill.ts';
import { approvedCard } from '#hosting/sandbox/shopper.ts';
import { currentSigningKey, newSigningKey } from '#merchants/integrations/integration.ts';
import { findCheckoutCallback, listCallbackAttempts } from '#purchases/callbacks/callback.sql.ts';
import { callbackPayload } from '#purchases/callbacks/callback.ts';
import { callbackHeaders } from '#purchases/callbacks/delivery/callback-headers.ts';
import type { Checkout } from '#purchases/checkouts/checkout.ts';
import { OperatorError } from '#record/actions/operate.ts';
import { type Drill, makeCheckout } from './drill-order.ts';
import { cancelCheckout, payCheckout } from './sandbox-pay.ts';

export const actions: Record<DrillName, (drill: Drill) => Promise<DrillAnswer[]>> = {
  async wrong_signature(drill) {
    const stranger = newSigningKey('sandbox', drill.deps.random);
    const forged = await send(drill, paid(drill), { key: stranger });
    return [forged, await send(drill, paid(drill), { without: 'x-signature' })];
  },
  async reserialised_body(drill) {
    const compact = paid(drill);
    const spaced = Buffer.from(JSON.stringify(JSON.parse(compact.toString()), null, 1));
    return [await send(drill, spaced, { signedText: compact })];
  },
  async changed_amount(drill) {
    return [await send(drill, paid(drill, { amount: 1 }))];
  },
  async unknown_reference(drill) {
    const client_reference_id = `unknown-${drill.deps.random.bytes(6).toString('hex')}`;
    return [await send(drill, paid(drill, { client_reference_id }))];
  },
  cancelled: cancelAnother,
  async successful_after_cancelled(drill) {
    const { context, checkout } = drill;
    const how = { term: null, card: approvedCard, challenge: 'approve' } as const;
    const { status } = await payCheckout(context, checkout.id, how);
    if (status !== 'successful') {
      throw new OperatorError(
        `The order could not be paid: it is ${status}. Run the drill with another order.`,
      );
    }
    return [await firstDelivery(drill, checkout.id)];
  },
  async duplicate(drill) {
    return [await send(drill, await payload(drill), { number: 2 })];
  },
  async slow_network(drill) {
    const dribble = { pieces: 8, pauseMilliseconds: 600 };
    return [await send(drill, await payload(drill), { number: 3, dribble })];
  },
  async both_keys(drill) {
    const bytes = await payload(drill);
    const answers: DrillAnswer[] = [];
    for (const { key } of drill.keys) answers.push(await send(drill, bytes, { key, number: 4 }));
    return answers;
  },
  cancelled_after_successful: cancelAnother,
};

/** Cancels a second checkout of the same order, as a shopper with two tabs would. */
async function cancelAnother(drill: Drill): Promise<DrillAnswer[]> {
  const { client_reference_id, amount } = drill.checkout;
  const second = await makeCheckout(drill, { client_reference_id, amount });
  await cancelCheckout(drill.context, second.id);
  return [await firstDelivery(drill, second.id)];
}

/** The callback body that the receiver would get if the order were paid now. */
function paid({ checkout }: Drill, changes: Partial<Checkout> = {}): Buffer {
  const [number_of_payments = 1] = checkout.terms;
  return callbackPayload({ ...checkout, status: 'successful', number_of_payments, ...changes });
}

/** The callback body that the receiver got, byte for byte. */
async function payload({ deps, merchant, checkout }: Drill): Promise<Buffer> {
  const callback = await findCheckoutCallback(deps.database.db, merchant.id, checkout.id);
  if (!callback) throw new OperatorError('The paid order has no callback.');
  return callback.payload;
}

async function send(
  { deps, keys, notify_url }: Drill,
  body: Buffer,
  how: {
    key?: string;
    signedText?: Buffer;
    without?: string;
    number?: number;
    dribble?: { pieces: number; pauseMilliseconds: number };
  } = {},
): Promise<DrillAnswer> {
  const headers = callbackHeaders({
    id: deps.random.uuid(),
    payload: how.signedText ?? body,
    number: how.number ?? 1,
    key: how.key ?? currentSigningKey(keys)?.key ?? '',
    now: deps.clock.now(),
  });
  if (how.without !== undefined) delete headers[how.without];
  const { dribble } = how;
  return toAnswer(
    await deps.sendCallback({ url: notify_url, headers, body, ...(dribble && { dribble }) }),
  );
}

/** The outcome of the delivery that the running sandbox made. */
async function firstDelivery(
  { deps, merchant, context }: Drill,
  checkout_id: string,
): Promise<DrillAnswer> {
  const { db } = deps.database;
  for (let looks = 0; looks < 150; looks += 1) {
    const callback = await findCheckoutCallback(db, merchant.id, checkout_id);
    const [attempt] = callback ? await listCallbackAttempts(db, callback) : [];
    if (attempt?.finished_at) {
      const { response_status, reason, timings } = attempt;
      return { status: response_status, reason, milliseconds: timings?.total ?? null };
    }
    await context.clock.sleep(100);
  }
  throw new OperatorError('The sandbox did not send the callback. Start it with npm start.');
}
