import { playStory } from '#hosting/sandbox/story/play-story.ts';
import { planSeason, type Season, weeksMax } from '#hosting/sandbox/story/season.ts';
import { plural } from '#platform/shared/plural.ts';
import { OperatorError, operate } from '#record/actions/operate.ts';
import { merchantWork } from '#worker.ts';
import { type Context, command, UsageError } from './command.ts';
import { readInteger } from './duration.ts';
import { mustFindMerchant } from './reference.ts';
import { findTestGateway } from './sandbox-disputes.ts';
import { readSandboxFile, type SandboxFile, withWorker } from './sandbox-gateway.ts';
import { fields, showTime } from './terminal.ts';

const seedMax = 9_999;

export const sandboxStory = command({
  name: 'sandbox story',
  usage: ['[--seed N] [--weeks N] [--merchant ID]'],
  help: `Plays twelve weeks of a small shop in the running sandbox: about three hundred orders from
forty shoppers, late payments, refunds, disputes, payouts and a receiver that is down for a day. All
of it goes through the API, the payment page and the commands, while the merchant's clock moves
forward. The same seed (1 by default) plays the same story, and --weeks only its beginning.
--merchant names a merchant other than the demo merchant.

It takes about a minute, and ends by comparing the books. The exit code is 1 if they differ.

  tranche sandbox story --seed 7`,
  options: {
    seed: { type: 'string', default: '1' },
    weeks: { type: 'string', default: String(weeksMax) },
    merchant: { type: 'string' },
  },
  async run(context) {
    const { values, clock, terminal } = context;
    const seed = readNumber(values.seed, 'seed', seedMax);
    const season = planSeason(seed, readNumber(values.weeks, 'weeks', weeksMax));
    const begun = clock.now();
    const played = await play(context, seed, season).finally(() => terminal.endProgress());
    const seconds = Math.round(clock.now().since(begun).total('seconds'));
    const { checkouts, differences, now } = played;
    const books = differences === 0 ? 'sound' : plural(differences, 'difference');
    context.print({ checkouts, seconds, books }, () =>
      fields(terminal, [
        ['Checkouts', String(checkouts)],
        ['Took', `${seconds} s`],
        ['Books', differences === 0 ? books : `${books}: see tranche ledger check`],
        ["The merchant's time", showTime(now)],
      ]),
    );
    return differences === 0 ? 0 : 1;
  },
});

function readNumber(text: string, option: string, max: number): number {
  const number = readInteger(text, option);
  if (number >= 1 && number <= max) return number;
  throw new UsageError(`--${option} is ${number} and must be from 1 to ${max}.`);
}

async function play(context: Context, seed: number, season: Season) {
  const { terminal } = context;
  terminal.progress('Preparing the merchant…');
  return await withWorker(context, async (deps) => {
    if (deps.config.environment === 'production') {
      throw new OperatorError('A story is played in a sandbox only, never in production.');
    }
    const sandbox = await readSandboxFile(deps.config);
    const id = (context.values.merchant as string | undefined) ?? sandbox.merchant.id;
    const merchant = await mustFindMerchant(deps, id);
    await operate(deps, deps.operator, 'sandbox story', async () => ({
      subject_id: merchant.id,
      details: { seed },
      result: null,
    }));
    const console = {
      ...deps.config.console,
      url: sandbox.console_url ?? deps.config.console.url,
      merchantUrl: sandbox.merchant_console_url ?? null,
    };
    const gateway = await findTestGateway(deps.config, deps.gateways.choose(merchant));
    const storyDeps = { ...deps, console, merchantWork };
    return await playStory(
      storyDeps,
      merchant,
      { ...addressesOf(sandbox), gateway },
      season,
      (day, days, orders) => terminal.progress(`Day ${day} of ${days}: ${plural(orders, 'order')}`),
    );
  });
}

function addressesOf({ base_url, shop_url, mailbox_url }: SandboxFile) {
  if (mailbox_url === null) {
    throw new OperatorError(
      'This sandbox sends its mails to MAIL_URL, and a story reads them in the mailbox. Start the sandbox without MAIL_URL.',
    );
  }
  return { baseUrl: base_url, shopUrl: shop_url ?? base_url, mailboxUrl: mailbox_url };
}
