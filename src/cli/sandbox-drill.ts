import { findCheckoutCallback, listCallbackAttempts } from '../callbacks/callback.sql.ts';
import { callbackPayload } from '../callbacks/callback.ts';
import { callbackHeaders } from '../callbacks/delivery/callback-headers.ts';
import type { DeliveryDeps } from '../callbacks/delivery/deliver-callback.ts';
import { explainBadNotifyUrl } from '../callbacks/delivery/destination.ts';
import { findCheckout, findNewestCheckout } from '../checkouts/checkout.sql.ts';
import type { Checkout } from '../checkouts/checkout.ts';
import { checkoutCommits, createCheckout } from '../checkouts/create-checkout.ts';
import { openSigningKeys } from '../integrations/callback-key.ts';
import { findIntegration, listIntegrations } from '../integrations/integration.sql.ts';
import {
  currentSigningKey,
  type Integration,
  newSigningKey,
  type SigningKey,
} from '../integrations/integration.ts';
import { findMerchant } from '../merchants/merchant.sql.ts';
import { type Merchant, merchantNow } from '../merchants/merchant.ts';
import { OperatorError } from '../operators/operate.ts';
import {
  type DrillAnswer,
  type DrillCheck,
  type DrillName,
  drillChecks,
  isAccepted,
  judge,
  toAnswer,
} from '../sandbox/drill.ts';
import { timestamp } from '../shared/clock.ts';
import { showMoney } from '../shared/money.ts';
import { isUuid } from '../shared/uuid.ts';
import { type Context, command, required, UsageError } from './command.ts';
import type { Connection } from './connect.ts';
import { withDelivery } from './sandbox-gateway.ts';
import { approvedCard, cancelCheckout, payCheckout } from './sandbox-pay.ts';
import { fill, type Terminal } from './terminal.ts';

export const sandboxDrill = command({
  name: 'sandbox drill',
  summary: 'try a callback endpoint before going live',
  usage: ['--merchant ID --notify-url URL [--reference ORDER] [--order-url URL] [--strict]'],
  help: `Sends a merchant's callback endpoint what production will send it, and worse: forged and
repeated callbacks, a wrong amount, an unknown order, a slow network, both keys of a rotation, a
cancellation before the payment and one after it. Says of each whether it passed, why it matters and
what to do. The exit code is 0 when nothing failed and something was accepted, else 1. With --strict
what was not tried counts as failed.

It needs an order that waits for payment in your shop: --reference names it, otherwise it is the
newest open checkout that has this notify_url. The drill pays it. Without any it makes a checkout
of its own, which your shop does not know: a receiver that answers 404 to it has not been tried.

Whether an order was fulfilled twice cannot be seen from outside. --order-url is an address of
yours that tells: {reference} in it is replaced, and what it answers must change when the order is
paid, may change when it is cancelled before, and must not at any other time.

  tranche sandbox drill --merchant 0199a8f0-7c1e-7d62-9a1f-4a2b8f0c6d11 \\
    --notify-url http://localhost:4000/callback`,
  options: {
    merchant: { type: 'string' },
    'notify-url': { type: 'string' },
    reference: { type: 'string' },
    'order-url': { type: 'string' },
    strict: { type: 'boolean', default: false },
  },
  async run(context) {
    const { reference, 'order-url': orderUrl, strict } = context.values;
    const merchant_id = required(context.values.merchant, 'merchant');
    const notify_url = required(context.values['notify-url'], 'notify-url');
    for (const [url, option] of [
      [notify_url, 'notify-url'],
      [orderUrl ?? notify_url, 'order-url'],
    ] as const) {
      if (!URL.canParse(url)) throw new UsageError(`--${option} is "${url}" and must be a URL.`);
    }
    const report = await withDelivery(context, async (deps) => {
      if (deps.config.environment === 'production') {
        throw new OperatorError('The drill forges callbacks: it runs in a sandbox only.');
      }
      const fault = explainBadNotifyUrl(new URL(notify_url), deps.config.callbackAllow);
      if (fault !== null) throw new OperatorError(`--notify-url ${fault}.`);
      const merchant = isUuid(merchant_id)
        ? await findMerchant(deps.database.db, merchant_id)
        : null;
      if (merchant === null) throw new OperatorError(`There is no merchant ${merchant_id}.`);
      const order = await findOrder(deps, merchant, notify_url, reference);
      const drill: Drill = { context, deps, merchant, notify_url, ...order };
      return await runDrill(drill, orderUrl, strict);
    });
    context.print(report, () => describe(context.terminal, report));
    return report.passed ? 0 : 1;
  },
});

type Deps = Connection & DeliveryDeps;

type Drill = {
  context: Context;
  deps: Deps;
  merchant: Merchant;
  notify_url: string;
  checkout: Checkout;
  integration: Integration;
  keys: SigningKey[];
  /** Whether the shop made the order: then its receiver has to know it. */
  isKnownOrder: boolean;
};

type Order = Pick<Drill, 'checkout' | 'integration' | 'keys' | 'isKnownOrder'>;

/** The order to be paid in the drill: one of the shop's that waits for it, or one of our own. */
async function findOrder(
  deps: Deps,
  merchant: Merchant,
  notify_url: string,
  reference: string | undefined,
): Promise<Order> {
  const { db } = deps.database;
  const openAt = timestamp(merchantNow(deps.clock, merchant));
  const named = reference === undefined ? {} : { client_reference_id: reference };
  const checkout = await findNewestCheckout(db, merchant.id, { ...named, notify_url, openAt });
  if (checkout !== null) {
    const integration = await findIntegration(db, checkout.integration_id);
    if (integration === null) throw new OperatorError('The integration of this order is gone.');
    const keys = await findKeys(deps, integration);
    return { checkout, integration, keys, isKnownOrder: true };
  }
  if (reference !== undefined) {
    const other = await findNewestCheckout(db, merchant.id, named);
    throw new OperatorError(explainUnusable(reference, notify_url, other));
  }
  const integration = (await listIntegrations(db, merchant.id)).findLast(
    (one) => one.revoked_at === null && one.merchant_id === merchant.id,
  );
  if (!integration) {
    throw new OperatorError(
      `This merchant has no credentials. Create some with \`tranche integrations create --merchant ${merchant.id}\`.`,
    );
  }
  const keys = await findKeys(deps, integration);
  const band = merchant.rules.at(-1) as Merchant['rules'][number];
  const own = {
    client_reference_id: `drill-${deps.random.bytes(4).toString('hex')}`,
    amount: Math.min(Math.max(band.from_amount, 150_000), band.to_amount),
  };
  const made = await makeCheckout({ deps, merchant, integration, keys, notify_url }, own);
  return { checkout: made, integration, keys, isKnownOrder: false };
}

function explainUnusable(reference: string, notify_url: string, checkout: Checkout | null): string {
  if (checkout === null) {
    return `No checkout of this merchant has the reference ${reference}. Let your shop create it, as for a shopper who is about to pay; the drill pays it.`;
  }
  if (checkout.notify_url !== notify_url) {
    return `The callbacks of ${reference} go to ${checkout.notify_url}, not to ${notify_url}.`;
  }
  return checkout.status === 'received'
    ? `The payment page of ${reference} has expired. Name an order that waits for payment.`
    : `${reference} has ended already (${checkout.status}), and a receiver that has seen that takes everything for a repetition. Name an order that waits for payment.`;
}

async function findKeys(deps: Deps, integration: Integration): Promise<SigningKey[]> {
  const now = timestamp(deps.clock.now());
  const keys = await openSigningKeys(deps, deps.database.db, integration.id, now);
  if (keys.length === 0) {
    throw new OperatorError(
      `The integration has no signing key. Issue one with \`tranche integrations rotate ${integration.id} --credential signing_key\`.`,
    );
  }
  return keys;
}

const currentKey = (keys: SigningKey[]) => currentSigningKey(keys) as SigningKey;

/** A checkout as the merchant's server creates it, apart from the HTTP. */
async function makeCheckout(
  drill: Pick<Drill, 'deps' | 'merchant' | 'integration' | 'keys' | 'notify_url'>,
  order: { client_reference_id: string; amount: number },
): Promise<Checkout> {
  const { deps, merchant, integration, keys, notify_url } = drill;
  const { id } = await createCheckout(
    { ...deps, commitCheckout: checkoutCommits(deps) },
    {
      caller: integration,
      // The drill must not be what makes signing mandatory.
      key: integration.signing_required_at === null ? null : currentKey(keys),
      keyed: null,
    },
    merchant,
    {
      checkout: {
        ...order,
        currency: merchant.territory.currency,
        notify_url,
        success_url: notify_url,
        cancel_url: notify_url,
        customer: { email: 'drill@example.com' },
      },
    },
  );
  return (await findCheckout(deps.database.db, merchant.id, id)) as Checkout;
}

type Result = {
  name: DrillName;
  title: string;
  result: 'pass' | 'fail' | 'not_tried';
  answers: DrillAnswer[];
  /** What was wrong, or why it was not tried. */
  finding: string | null;
  why: string;
  fix: string;
};

type Report = {
  passed: boolean;
  /** Why the drill as a whole failed, beside the checks that did. */
  finding: string | null;
  notify_url: string;
  client_reference_id: string;
  amount: string;
  is_known_order: boolean;
  checks: Result[];
};

async function runDrill(
  drill: Drill,
  orderUrl: string | undefined,
  isStrict: boolean,
): Promise<Report> {
  const { context, checkout, isKnownOrder, merchant, notify_url } = drill;
  const order = orderUrl === undefined ? null : watchOrder(drill, orderUrl);
  await order?.read();
  const checks: Result[] = [];
  let isEverAccepted = false;
  for (const [index, check] of drillChecks.entries()) {
    context.terminal.progress(`${index + 1} of ${drillChecks.length}: ${check.title} …`);
    const { name, title, expects, why, fix } = check;
    const result = { name, title, why, fix };
    const obstacle = findObstacle(drill, name);
    if (obstacle !== null) {
      checks.push({ ...result, result: 'not_tried', answers: [], finding: obstacle });
      continue;
    }
    const answers = await actions[name](drill);
    if (index === 0) mustListen(notify_url, answers);
    if (expects === 'accepted' && answers.some(isAccepted)) isEverAccepted = true;
    // It may be right not to know the drill's own order. It may also be no receiver at all.
    const isUnknown = ({ status }: DrillAnswer) =>
      !isKnownOrder && expects === 'accepted' && status === 404;
    const telling = answers.filter((one) => !isUnknown(one));
    const watched = telling.length > 0 ? order : null;
    const fault = findFault(check, telling) ?? (await watched?.judge(name)) ?? null;
    if (fault !== null) {
      checks.push({ ...result, result: 'fail', answers, finding: fault });
    } else if (telling.length < answers.length) {
      checks.push({ ...result, result: 'not_tried', answers, finding: unknownOrder });
    } else {
      checks.push({ ...result, result: 'pass', answers, finding: null });
    }
  }
  context.terminal.endProgress();
  const untried = checks.filter(({ result }) => result === 'not_tried').length;
  const findings = [
    ...(isEverAccepted ? [] : [nothingAccepted]),
    ...(isStrict && untried > 0 ? [`With --strict what was not tried (${untried}) fails.`] : []),
  ];
  return {
    passed: findings.length === 0 && checks.every(({ result }) => result !== 'fail'),
    finding: findings.length === 0 ? null : findings.join(' '),
    notify_url,
    client_reference_id: checkout.client_reference_id,
    amount: showMoney(checkout.amount, merchant.territory),
    is_known_order: isKnownOrder,
    checks,
  };
}

const unknownOrder =
  "Answered 404: either your shop does not know the drill's own order, or nothing is at this address. Name an order of your shop with --reference.";

const nothingAccepted =
  'No callback was ever accepted, so the drill has shown nothing. Check the address in --notify-url; let your shop create an order, leave it unpaid, and name it with --reference.';

/** Why a check would tell nothing, or null. */
function findObstacle({ keys, integration, isKnownOrder }: Drill, name: DrillName): string | null {
  if (name === 'both_keys' && keys.length < 2) {
    return `No rotation is under way. Start one with \`tranche integrations rotate ${integration.id} --credential signing_key\`, give your receiver both keys, and run the drill again.`;
  }
  if (name === 'changed_amount' && !isKnownOrder) {
    return "Your shop does not know the drill's own order, and so not what it costs. Name an order of your shop with --reference.";
  }
  return null;
}

/** Ten times the same complaint would say less than one. */
function mustListen(notify_url: string, [first]: DrillAnswer[]): void {
  const reason = first?.reason ?? '';
  if (!['connect', 'dns', 'tls', 'blocked_address'].includes(reason)) return;
  throw new OperatorError(
    `Nothing can be sent to ${notify_url} (${reason}). Start your receiver, and run the drill again.`,
  );
}

function findFault({ expects }: DrillCheck, answers: DrillAnswer[]): string | null {
  return answers.map((one) => judge(expects, one)).find((one) => one !== null) ?? null;
}

const actions: Record<DrillName, (drill: Drill) => Promise<DrillAnswer[]>> = {
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
        `The order could not be paid: it is ${status}. Run the drill with another one.`,
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

/** The shopper's other tab: a second checkout of the same order. */
async function cancelAnother(drill: Drill): Promise<DrillAnswer[]> {
  const { client_reference_id, amount } = drill.checkout;
  const second = await makeCheckout(drill, { client_reference_id, amount });
  await cancelCheckout(drill.context, second.id);
  return [await firstDelivery(drill, second.id)];
}

/** What the receiver would be told if the order were paid as it is. */
function paid({ checkout }: Drill, changes: Partial<Checkout> = {}): Buffer {
  const [number_of_payments = 1] = checkout.terms;
  return callbackPayload({ ...checkout, status: 'successful', number_of_payments, ...changes });
}

/** What it was told, byte for byte. */
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
    key: how.key ?? currentKey(keys).key,
    now: deps.clock.now(),
  });
  if (how.without !== undefined) delete headers[how.without];
  const { dribble } = how;
  return toAnswer(
    await deps.sendCallback({ url: notify_url, headers, body, ...(dribble && { dribble }) }),
  );
}

/** What became of the delivery that the running sandbox made itself. */
async function firstDelivery(
  { deps, merchant, context }: Drill,
  checkout_id: string,
): Promise<DrillAnswer> {
  const { db } = deps.database;
  for (let tries = 0; tries < 150; tries += 1) {
    const callback = await findCheckoutCallback(db, merchant.id, checkout_id);
    const [attempt] = callback ? await listCallbackAttempts(db, callback) : [];
    if (attempt?.finished_at) {
      const { response_status, reason, timings } = attempt;
      return { status: response_status, reason, milliseconds: timings?.total ?? null };
    }
    await context.clock.sleep(100);
  }
  throw new OperatorError('The sandbox did not send the callback. Is it running? Try npm start.');
}

/** The shop's own word on the order: it changes when the order is paid, not when it is told again. */
function watchOrder({ context, checkout }: Drill, orderUrl: string) {
  const url = orderUrl.replaceAll('{reference}', encodeURIComponent(checkout.client_reference_id));
  let last = '';

  async function look(): Promise<string> {
    const response = await fetch(url, { signal: AbortSignal.timeout(10_000) }).catch((error) => {
      throw new OperatorError(`--order-url ${url} does not answer (${error.message}).`);
    });
    return `${response.status} ${await response.text()}`;
  }

  return {
    async read(): Promise<void> {
      last = await look();
    },
    async judge(name: DrillName): Promise<string | null> {
      const isPaid = name === 'successful_after_cancelled';
      // A shop may take the callback in and do the work a moment later.
      const end = context.clock.monotonic() + (isPaid ? 3_000 : 1_000);
      let now = await look();
      while (now === last && context.clock.monotonic() < end) {
        await context.clock.sleep(250);
        now = await look();
      }
      const isChanged = now !== last;
      last = now;
      // Whether an order is given up when one tab cancels is the shop's own affair.
      if (isChanged === isPaid || name === 'cancelled') return null;
      return isChanged
        ? `The order changed: ${url} says something else now.`
        : `The order did not change: ${url} says what it said before.`;
    },
  };
}

const words = { pass: 'pass', fail: 'FAIL', not_tried: 'not tried' };

function describe(terminal: Terminal, report: Report): string {
  const { checks, client_reference_id, amount, is_known_order, finding: whole } = report;
  const width = Math.max(...checks.map(({ title }) => title.length));
  const lines = checks.map(({ result, title, answers, finding, why, fix }) => {
    const word = words[result].padEnd(9);
    const codes = answers
      .map(({ status, reason, sent_in }) => {
        const slowly = sent_in === undefined ? '' : `, sent in ${(sent_in / 1000).toFixed(1)} s`;
        return `${status ?? reason}${slowly}`;
      })
      .join(', ');
    const head = `${result === 'pass' ? terminal.accent(word) : word}  ${title.padEnd(width)}  ${codes}`;
    if (result === 'pass') return `${head.trimEnd()}\n${below(terminal, [why])}`;
    const rest = result === 'fail' ? [`${finding} ${why}`, `Do: ${fix}`] : [finding ?? ''];
    return `${head.trimEnd()}\n${below(terminal, rest)}`;
  });
  const count = (wanted: Result['result']) =>
    checks.filter(({ result }) => result === wanted).length;
  const sum = [
    `${count('pass')} passed`,
    `${count('fail')} failed`,
    ...(count('not_tried') > 0 ? [`${count('not_tried')} not tried`] : []),
  ].join(', ');
  const look = is_known_order
    ? `Now look at ${client_reference_id} in your shop: it has to be paid, once, and not cancelled.`
    : `${client_reference_id} is the drill's own order, which your shop does not know. For the whole drill let your shop create an order, leave it unpaid, and run this again.`;
  return `${terminal.accent('▮▯▯')} Go-live drill of ${report.notify_url}
    with ${client_reference_id}, ${amount}

${lines.join('\n\n')}

${sum}.
${whole === null ? '' : `${fill(`The drill failed. ${whole}`)}\n`}${fill(look)}`;
}

function below(terminal: Terminal, paragraphs: string[]): string {
  const indent = ' '.repeat(11);
  return paragraphs
    .flatMap((text) => fill(text, 69).split('\n'))
    .map((line) => indent + terminal.quiet(line))
    .join('\n');
}
