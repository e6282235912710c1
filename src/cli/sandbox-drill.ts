import { explainBadNotifyUrl } from '#purchases/callbacks/delivery/destination.ts';
import { OperatorError, operate } from '#record/actions/operate.ts';
import { command, required, UsageError } from './command.ts';
import { type Drill, findOrder } from './drill-order.ts';
import { describeReport } from './drill-report.ts';
import { runDrill } from './drill-run.ts';
import { mustFindMerchant } from './reference.ts';
import { withDelivery } from './sandbox-gateway.ts';

export const sandboxDrill = command({
  name: 'sandbox drill',
  usage: ['--merchant ID --notify-url URL [--reference ORDER] [--order-url URL] [--strict]'],
  help: `Sends a merchant's callback endpoint what production sends, and worse: forged and repeated
callbacks, a wrong amount, an unknown order, a slow network, both keys of a rotation, a cancellation
before the payment and one after it. It prints for each check whether it passed, why it matters and
what to do. The exit code is 0 if no check failed and at least one callback was accepted, otherwise
1. With --strict a check that was not tried counts as failed.

The drill pays an unpaid order of your shop: the one that --reference names, or the newest unpaid
checkout with this notify_url. If there is none, it creates its own checkout. Your shop does not know
that order; if your receiver answers 404 to it, the check counts as not tried.

The drill cannot see from outside whether an order was fulfilled twice. --order-url is an address of
your shop that shows the order; {reference} in it is replaced. Its answer must change when the order
is paid, may change when the order is cancelled before that, and must not change at any other time.

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
        throw new OperatorError('The drill forges callbacks, so it runs only in a sandbox.');
      }
      const fault = explainBadNotifyUrl(new URL(notify_url), deps.config.callbackAllow);
      if (fault !== null) throw new OperatorError(`--notify-url ${fault}.`);
      const merchant = await mustFindMerchant(deps, merchant_id);
      const order = await findOrder(deps, merchant, notify_url, reference);
      const drill: Drill = { context, deps, merchant, notify_url, ...order };
      const report = await runDrill(drill, orderUrl, strict);
      // The console reads this action for the merchant's list of steps before going live.
      await operate(deps, deps.operator, 'sandbox drill', async () => {
        const details = { passed: report.passed, strict };
        return { subject_id: merchant.id, details, result: undefined };
      });
      return report;
    });
    context.print(report, () => describeReport(context.terminal, report));
    return report.passed ? 0 : 1;
  },
});
