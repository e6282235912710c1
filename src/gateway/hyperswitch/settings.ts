import { commonRefundMin } from '#gateway/capabilities.ts';
import { type AdapterSettings, commonProblems } from '#gateway/settings.ts';

/** Acquirers void a hold after about a week, and few of them say when. */
export const holdDays = 7;

/**
 * The limit for the amount of a verification. A larger hold would surprise a shopper who only
 * enters another card.
 */
const verificationAmountMax = 10_000;

export const hyperswitchSettings: AdapterSettings = {
  names: {
    secretKey: 'HYPERSWITCH_API_KEY',
    publicKey: 'HYPERSWITCH_PUBLISHABLE_KEY',
    statementPrefix: 'HYPERSWITCH_STATEMENT_PREFIX',
    /** The profile's `payment_response_hash_key`. */
    webhookSecret: 'HYPERSWITCH_WEBHOOK_SECRET',
    apiUrl: 'HYPERSWITCH_API_URL',
    scriptUrl: 'HYPERSWITCH_SCRIPT_URL',
    frameOrigins: 'HYPERSWITCH_FRAME_ORIGINS',
    verificationAmount: 'HYPERSWITCH_VERIFICATION_AMOUNT',
  },

  problems(settings) {
    const problems: string[] = [];
    const { environment, secretKey, publicKey, apiUrl, scriptUrl } = settings;
    const { verificationAmount = 0 } = settings;
    if (!Number.isInteger(verificationAmount) || verificationAmount < 0) {
      problems.push('HYPERSWITCH_VERIFICATION_AMOUNT must be an amount in cents.');
    } else if (verificationAmount > verificationAmountMax) {
      problems.push(
        `HYPERSWITCH_VERIFICATION_AMOUNT must be at most ${verificationAmountMax} cents.`,
      );
    }
    // Each company that runs the protocol has its own addresses, so there is no default.
    if (apiUrl === undefined || scriptUrl === undefined) {
      problems.push('HYPERSWITCH_API_URL and HYPERSWITCH_SCRIPT_URL must be set.');
    }
    if (environment === 'production' && !(secretKey !== '' && publicKey.startsWith('pk_prd_'))) {
      problems.push('Production needs the keys of a live account (pk_prd_…).');
    }
    if (environment === 'sandbox' && publicKey.startsWith('pk_prd_')) {
      problems.push('The sandbox does not accept a live public gateway key.');
    }
    return [...problems, ...commonProblems(settings, hyperswitchSettings)];
  },

  /** The documentation states no limit. An operator's proxy may have one, and then answers 429. */
  limits: ({ testGateway }) => ({ requestsPerSecond: testGateway ? null : 50 }),

  /** The server's defaults, which its operator may raise. */
  capabilities: ({ webhookSecret, verificationAmount = 0 }) => ({
    holdDays,
    refundMin: commonRefundMin,
    refundsMax: 10,
    refundDays: 365,
    knowsFees: false,
    lookUpsPerMinute: 2,
    verificationAmount,
    stagesEvidence: false,
    sendsEvents: webhookSecret !== undefined,
  }),

  testScript: '/v1/HyperLoader.js',
};
