import { readConfig } from '#config.ts';
import { advanceClock, type ClockDeps } from '#operating/clock/advance-clock.ts';
import { findNextDueRow } from '#platform/database/due-work.sql.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { findCheckout } from '#purchases/checkouts/checkout.sql.ts';
import { OperatorError } from '#record/actions/operate.ts';
import { type MerchantWork, merchantWork } from '#worker.ts';
import { type Command, command, required, UsageError } from './command.ts';
import { type Connection, withSealing } from './connect.ts';
import { readDuration } from './duration.ts';
import { mustFindMerchant } from './reference.ts';
import { withWorker } from './sandbox-gateway.ts';
import { fields, showTime, type Terminal } from './terminal.ts';

const show = command({
  name: 'clock show',
  usage: ['--merchant ID'],
  help: `In a sandbox each merchant has its own clock. This shows a merchant's time, when something
falls due next, and what that is.

  tranche clock show --merchant 0199a8f0-7c1e-7d62-9a1f-4a2b8f0c6d11`,
  options: { merchant: { type: 'string' } },
  async run(context) {
    const id = required(context.values.merchant, 'merchant');
    refuseProduction(context.env);
    const answer = await withSealing(context, async (connection) => {
      const merchant = await mustFindMerchant(connection, id);
      const next = await findNext(connection, id);
      return {
        merchant_id: id,
        now: timestamp(merchant.now()),
        next_event_at: next?.at ?? null,
        next_event: next,
      };
    });
    context.print(answer, () => describe(context.terminal, answer));
  },
});

const advance = command({
  name: 'clock advance',
  usage: ['--merchant ID --by DURATION', '--merchant ID --to-next-event'],
  help: `Moves one merchant's clock forward. Everything that falls due on the way is done at its own
time and in order; the command returns when all of it is done. A clock never moves back, and
production has none. A duration is, for example, 90m, 36h or 99d.

  tranche clock advance --merchant 0199a8f0-7c1e-7d62-9a1f-4a2b8f0c6d11 --by 36h`,
  options: {
    merchant: { type: 'string' },
    by: { type: 'string' },
    'to-next-event': { type: 'boolean' },
  },
  async run(context) {
    const { values, terminal } = context;
    const id = required(values.merchant, 'merchant');
    if ((values.by === undefined) === (values['to-next-event'] !== true)) {
      throw new UsageError('Give either --by DURATION or --to-next-event.');
    }
    refuseProduction(context.env);
    const wanted =
      values.by === undefined
        ? ('next event' as const)
        : { by: Temporal.Duration.from({ seconds: readDuration(values.by, 'by') }) };
    const answer = await withWorker(context, async (connection) => {
      const deps: ClockDeps & { operator: string } = { ...connection, merchantWork };
      const progress = (now: string) => terminal.progress(showTime(now));
      const advanced = await advanceClock(deps, deps.operator, id, wanted, progress);
      return { ...advanced, next_event: await findNext(deps, id) };
    }).finally(() => terminal.endProgress());
    context.print(answer, () => describe(terminal, answer));
  },
});

/** This is checked first, so that production needs no other settings to get this answer. */
function refuseProduction(env: NodeJS.ProcessEnv): void {
  if (readConfig(env, 'command').environment === 'production') {
    throw new OperatorError('Only a sandbox has clocks. Production runs on real time.');
  }
}

/** The row of due work that comes next, with its kind of work in `what`. */
type NextEvent = {
  at: string;
  what: string;
  /** Null if the work belongs to the merchant and not to one checkout. */
  checkout_id: string | null;
  client_reference_id: string;
};

const workNames: Record<MerchantWork['due']['table'], string> = {
  payment_attempts: 'look up the outcome of a payment',
  callbacks: 'send a callback',
  instalments: 'collect a payment',
  refund_requests: 'continue a refund',
  messages: 'send a message to the shopper',
  disputes: 'check a dispute',
  payout_days: "make the day's payout",
  statement_months: "make the month's statement",
  statement_mails: 'send a statement to the merchant',
  replaced_cards: 'remove a replaced card',
  retention_dates: 'find checkouts to erase',
  erasures: 'erase a shopper',
  deleted_customers: 'delete a shopper at the gateway',
};

async function findNext(
  { database: { db } }: Pick<Connection, 'database'>,
  merchant_id: string,
): Promise<NextEvent | null> {
  const found = await Promise.all(
    merchantWork.map(async ({ due }) => {
      const row = await findNextDueRow(db, due, merchant_id);
      return row && { ...row, what: workNames[due.table] };
    }),
  );
  const [next] = found.filter((row) => row !== null).sort((a, b) => (a.at < b.at ? -1 : 1));
  if (!next) return null;
  const checkout =
    next.checkout_id === null ? null : await findCheckout(db, merchant_id, next.checkout_id);
  return { ...next, client_reference_id: checkout?.client_reference_id ?? '' };
}

function describe(
  terminal: Terminal,
  answer: { merchant_id: string; now: string; next_event: NextEvent | null },
): string {
  const { next_event: next } = answer;
  return fields(terminal, [
    ['Merchant', answer.merchant_id],
    ["Merchant's time", showTime(answer.now)],
    [
      'Next event',
      next === null
        ? 'nothing is due'
        : [
            `${showTime(next.at)}: ${next.what}`,
            ...(next.checkout_id === null
              ? []
              : [`order ${next.client_reference_id}, checkout ${next.checkout_id}`]),
          ],
    ],
  ]);
}

export const commands: Command[] = [show, advance];
