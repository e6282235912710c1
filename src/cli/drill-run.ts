import {
  type DrillAnswer,
  type DrillCheck,
  type DrillName,
  drillChecks,
  isAccepted,
  judge,
} from '#hosting/sandbox/drill.ts';
import { showMoney } from '#platform/shared/money.ts';
import { OperatorError } from '#record/actions/operate.ts';
import { actions } from './drill-actions.ts';
import type { Drill } from './drill-order.ts';
import type { Report, Result } from './drill-report.ts';

export async function runDrill(
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
    context.terminal.progress(`${index + 1} of ${drillChecks.length}: ${check.title}…`);
    const { name, title, expects, why, fix } = check;
    const result = { name, title, why, fix };
    const obstacle = findObstacle(drill, name);
    if (obstacle !== null) {
      checks.push({ ...result, result: 'not_tried', answers: [], problem: obstacle });
      continue;
    }
    const answers = await actions[name](drill);
    if (index === 0) assertReachable(notify_url, answers);
    if (expects === 'accepted' && answers.some(isAccepted)) isEverAccepted = true;
    // A 404 for the drill's own order may come from a correct receiver or from a wrong URL.
    const isUnknown = ({ status }: DrillAnswer) =>
      !isKnownOrder && expects === 'accepted' && status === 404;
    const conclusive = answers.filter((one) => !isUnknown(one));
    const watched = conclusive.length > 0 ? order : null;
    const fault = findFault(check, conclusive) ?? (await watched?.judge(name)) ?? null;
    if (fault !== null) {
      checks.push({ ...result, result: 'fail', answers, problem: fault });
    } else if (conclusive.length < answers.length) {
      checks.push({ ...result, result: 'not_tried', answers, problem: unknownOrder });
    } else {
      checks.push({ ...result, result: 'pass', answers, problem: null });
    }
  }
  context.terminal.endProgress();
  const untried = checks.filter(({ result }) => result === 'not_tried').length;
  const problems = [
    ...(isEverAccepted ? [] : [nothingAccepted]),
    ...(isStrict && untried > 0
      ? [`With --strict the checks that were not tried (${untried}) count as failed.`]
      : []),
  ];
  return {
    passed: problems.length === 0 && checks.every(({ result }) => result !== 'fail'),
    problem: problems.length === 0 ? null : problems.join(' '),
    notify_url,
    client_reference_id: checkout.client_reference_id,
    amount: showMoney(checkout.amount, merchant.territory),
    is_known_order: isKnownOrder,
    checks,
  };
}

const unknownOrder =
  "Answered 404: either your shop does not know the drill's own order, or there is no receiver at this address. Name an order of your shop with --reference.";

const nothingAccepted =
  'No callback was accepted, so the drill has shown nothing. Check the address in --notify-url. Let your shop create an order, leave it unpaid, and name it with --reference.';

/** Why a check cannot be made, or null. */
function findObstacle({ keys, integration, isKnownOrder }: Drill, name: DrillName): string | null {
  if (name === 'both_keys' && keys.length < 2) {
    return `No rotation is in progress. Start one with \`tranche integrations rotate ${integration.id} --credential signing_key\`, give your receiver both keys, and run the drill again.`;
  }
  if (name === 'changed_amount' && !isKnownOrder) {
    return "Your shop does not know the price of the drill's own order. Name an order of your shop with --reference.";
  }
  return null;
}

/** Ends the drill if nothing can be sent. Otherwise ten checks would report the same fault. */
function assertReachable(notify_url: string, [first]: DrillAnswer[]): void {
  const reason = first?.reason ?? '';
  if (!['connect', 'dns', 'tls', 'blocked_address'].includes(reason)) return;
  throw new OperatorError(
    `Nothing can be sent to ${notify_url} (${reason}). Start your receiver, and run the drill again.`,
  );
}

function findFault({ expects }: DrillCheck, answers: DrillAnswer[]): string | null {
  return answers.map((one) => judge(expects, one)).find((one) => one !== null) ?? null;
}

/** Watches the shop's page of the order, which must change exactly when the order is paid. */
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
      // A shop may accept the callback first and do the work a moment later.
      const end = context.clock.monotonic() + (isPaid ? 3_000 : 1_000);
      let now = await look();
      while (now === last && context.clock.monotonic() < end) {
        await context.clock.sleep(250);
        now = await look();
      }
      const isChanged = now !== last;
      last = now;
      // A shop may or may not cancel its order when the shopper cancels in one tab.
      if (isChanged === isPaid || name === 'cancelled') return null;
      return isChanged
        ? `The order changed: ${url} answers differently now.`
        : `The order did not change: ${url} answers as before.`;
    },
  };
}
