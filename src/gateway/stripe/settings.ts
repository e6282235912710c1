import { type AdapterSettings, commonProblems } from '#gateway/settings.ts';

const liveKey = /^(sk|rk)_live_/;

/** Most holds last this long. */
export const holdDays = 7;

export const stripeSettings: AdapterSettings = {
  names: {
    secretKey: 'STRIPE_SECRET_KEY',
    publicKey: 'STRIPE_PUBLISHABLE_KEY',
    statementPrefix: 'STRIPE_STATEMENT_PREFIX',
    webhookSecret: 'STRIPE_WEBHOOK_SECRET',
  },

  problems(settings) {
    const problems: string[] = [];
    const { environment, secretKey, publicKey } = settings;
    if (environment === 'sandbox' && liveKey.test(secretKey)) {
      problems.push('The sandbox does not accept a live gateway key.');
    }
    if (environment === 'production') {
      if (!liveKey.test(secretKey)) {
        problems.push('Production needs a live gateway key (sk_live_… or rk_live_…).');
      }
      if (!publicKey.startsWith('pk_live_')) {
        problems.push('Production needs a live public gateway key (pk_live_…).');
      }
    } else if (publicKey.startsWith('pk_live_')) {
      problems.push('The sandbox does not accept a live public gateway key.');
    }
    return [...problems, ...commonProblems(settings, stripeSettings)];
  },

  /**
   * Stripe allows 100 requests a second in live mode and 25 in test mode, and in both 25 to one
   * endpoint. Several processes share these limits. If they exceed one, Stripe answers 429 and they
   * pause.
   */
  limits({ secretKey, testGateway }) {
    if (testGateway) return { requestsPerSecond: null };
    return { requestsPerSecond: liveKey.test(secretKey) ? 80 : 20, requestsPerSecondOfKind: 20 };
  },

  capabilities: ({ webhookSecret }) => ({
    holdDays,
    refundMin: 1,
    refundsMax: null,
    refundDays: null,
    knowsFees: true,
    lookUpsPerMinute: null,
    verificationAmount: 0,
    stagesEvidence: true,
    sendsEvents: webhookSecret !== undefined,
  }),

  testScript: '/v1/tranche.js',
};
