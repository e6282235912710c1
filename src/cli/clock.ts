import { readConfig } from '../config.ts';
import { findMerchant } from '../merchants/merchant.sql.ts';
import { merchantNow } from '../merchants/merchant.ts';
import { OperatorError } from '../operators/operate.ts';
import { advanceClock, type ClockDeps, findNextEvent } from '../sandbox/advance-clock.ts';
import { timestamp } from '../shared/clock.ts';
import { isUuid } from '../shared/uuid.ts';
import { type CommandGroup, command, required, UsageError } from './command.ts';
import { withSealing } from './connect.ts';
import { readDuration } from './duration.ts';
import { withWorker } from './sandbox-gateway.ts';
import { fields, showTime, type Terminal } from './terminal.ts';

const show = command({
  name: 'clock show',
  summary: "a sandbox merchant's time and its next event",
  usage: ['--merchant ID'],
  help: `In a sandbox each merchant has its own clock. This shows a merchant's time, and when
something falls due next.

  tranche clock show --merchant 0199a8f0-7c1e-7d62-9a1f-4a2b8f0c6d11`,
  options: { merchant: { type: 'string' } },
  async run(context) {
    const id = required(context.values.merchant, 'merchant');
    refuseProduction(context.env);
    const answer = await withSealing(context, async (connection) => {
      const { db } = connection.database;
      const merchant = isUuid(id) ? await findMerchant(db, id) : null;
      if (!merchant) throw new OperatorError(`There is no merchant ${id}.`);
      return {
        merchant_id: id,
        now: timestamp(merchantNow(context.clock, merchant)),
        next_event_at: await findNextEvent(connection, id),
      };
    });
    context.print(answer, () => describe(context.terminal, answer));
  },
});

const advance = command({
  name: 'clock advance',
  summary: "move a sandbox merchant's clock forward",
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
    const answer = await withWorker(context, async (deps: ClockDeps & { operator: string }) =>
      advanceClock(deps, deps.operator, id, wanted, (now) => terminal.progress(showTime(now))),
    );
    terminal.endProgress();
    context.print(answer, () => describe(terminal, answer));
  },
});

/** Checked first, so that production needs no further settings to get this answer. */
function refuseProduction(env: NodeJS.ProcessEnv): void {
  if (readConfig(env, 'command').environment === 'production') {
    throw new OperatorError('Only a sandbox has clocks. Production runs on real time.');
  }
}

function describe(
  terminal: Terminal,
  answer: { merchant_id: string; now: string; next_event_at: string | null },
): string {
  return fields(terminal, [
    ['Merchant', answer.merchant_id],
    ['Its time', showTime(answer.now)],
    [
      'Next event',
      answer.next_event_at === null ? 'nothing is due' : showTime(answer.next_event_at),
    ],
  ]);
}

export const clock: CommandGroup = {
  name: 'clock',
  summary: "a sandbox merchant's clock",
  commands: [show, advance],
};
