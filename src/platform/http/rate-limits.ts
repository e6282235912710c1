import type { Clock } from '#platform/shared/clock.ts';
import type { Limit } from '#platform/shared/limit.ts';
import { RateLimited } from './errors.ts';
import type { Quota } from './quota.ts';

/** The contract's limits. An operator can set others per integration (decision 0007). */
export const endpointLimits = {
  'GET /api/config': { max_requests: 5, window_seconds: 3600 },
  'GET /api/merchants/{merchant_id}/config': { max_requests: 5, window_seconds: 3600 },
  'POST /api/checkouts': { max_requests: 1, window_seconds: 1 },
  'GET /api/checkouts': { max_requests: 1, window_seconds: 60 },
  'GET /api/checkouts/{id}': { max_requests: 5, window_seconds: 60 },
  'POST /api/refunds': { max_requests: 1, window_seconds: 1 },
  'GET /api/refunds': { max_requests: 1, window_seconds: 60 },
  'GET /api/refunds/{id}': { max_requests: 5, window_seconds: 60 },
  // Payment links are ours, not the contract's. They have the same limits as checkouts.
  'POST /api/payment-links': { max_requests: 1, window_seconds: 1 },
  'GET /api/payment-links': { max_requests: 1, window_seconds: 60 },
  'GET /api/payment-links/{id}': { max_requests: 5, window_seconds: 60 },
  // Payouts are ours, not the contract's. They have the same limits as refunds (decision 0081).
  'GET /api/payouts': { max_requests: 1, window_seconds: 60 },
  'GET /api/payouts/{id}': { max_requests: 5, window_seconds: 60 },
  // A v1 endpoint. The contract sets no limit; ours fits a plugin that logs in for each checkout
  // (decision 0040).
  'POST /login': { max_requests: 60, window_seconds: 60 },
} as const satisfies Record<string, Limit>;

export type Endpoint = keyof typeof endpointLimits;

/**
 * Large bodies from an intermediary, whatever merchants they name. An intermediary's POST is
 * counted after its body is parsed, because the body names the merchant, so this limit bounds the
 * parsing (decision 0007).
 */
const largeBodies: Limit = { max_requests: 10, window_seconds: 1 };

/** Requests that fail authentication, per client address. */
const failedAuthentications: Limit = { max_requests: 60, window_seconds: 60 };

/** v1 logins that fail, per client address and per `client_id` (decision 0040). */
export const failedLogins: Limit = { max_requests: 10, window_seconds: 60 };

/** Refusals that show the expected signature, per integration (decision 0005). */
const shownSignatures: Limit = { max_requests: 30, window_seconds: 3600 };

// Other people may know a shopper's link. Their requests from their own addresses must not use up
// the shopper's limit (decision 0007).

/** Requests for a one-time link: per plan and client address, and per client address. */
const planLinks: Limit = { max_requests: 3, window_seconds: 900 };
const planLinksOfAddress: Limit = { max_requests: 20, window_seconds: 900 };

/** Mails with a one-time link to one shopper. Several links can be valid at once. */
const planMails: Limit = { max_requests: 10, window_seconds: 900 };

/**
 * One-time links that are unknown, used or expired. No one can guess a link; this limit keeps the
 * cost of guesses low.
 */
const unknownPlanLinks: Limit = { max_requests: 20, window_seconds: 900 };

/** Messages from a shopper about a plan. A person reads each one. */
const planReports: Limit = { max_requests: 10, window_seconds: 24 * 3600 };

/** A shopper's attempts on a plan. Each asks the gateway for money or a card. */
const planAttempts: Limit = { max_requests: 20, window_seconds: 3600 };

/**
 * Requests from the payment page (decision 0007). A page that waits for an outcome asks about
 * twenty times a minute. Mobile networks put thousands of shoppers behind one address, so a link
 * that exists is counted by itself: no other link uses up its requests.
 */
const pageRequests = {
  ofLink: { max_requests: 240, window_seconds: 60 },
  /** Whole pages, which cost the most, per link and network. */
  wholeOfLink: { max_requests: 60, window_seconds: 60 },
  /** Documents, which cost as much as ten pages, per link and network. */
  documentsOfLink: { max_requests: 10, window_seconds: 60 },
  /** Links that do not exist, per network. */
  unknown: { max_requests: 600, window_seconds: 60 },
} satisfies Record<string, Limit>;

/**
 * New checkouts from a payment link: as many as a merchant may create, and fewer for one network. A
 * till and its shoppers may share an address. Each network's first checkouts are counted separately
 * (`firstOfLink`), so that strangers with a few addresses cannot lock out a till's shoppers
 * (decision 0007).
 */
const linkCheckouts = {
  ofNetwork: { max_requests: 20, window_seconds: 60 },
  ofLink: { max_requests: 60, window_seconds: 60 },
  firstOfLink: { max_requests: 300, window_seconds: 60 },
} satisfies Record<string, Limit>;
const firstOfNetwork = 3;

/**
 * How often shoppers may return from the bank's challenge, per link and network. Each return makes
 * a request to the gateway.
 */
const returns: Limit = { max_requests: 20, window_seconds: 60 };

/** How many cards may be declined, from one network address and at one merchant. */
export const declineLimits = {
  ofNetwork: { max_requests: 20, window_seconds: 3600 },
  ofMerchant: { max_requests: 100, window_seconds: 600 },
} satisfies Record<string, Limit>;

/** Console requests per client address: a busy person makes a few a second. */
const consoleRequests: Limit = { max_requests: 1_200, window_seconds: 60 };
/** How many pages and rows that name people one person may open before it is reading in bulk. */
const bulkReads = {
  /** Different pages of lists, or of a row that names many people. */
  pages: { max_requests: 100, window_seconds: 3600 },
  /** Different rows that name one shopper. Support opens far fewer, even in a busy hour. */
  rows: { max_requests: 300, window_seconds: 3600 },
} satisfies Record<string, Limit>;
/** Attempts to sign in to the console, per client address. An office may share an address. */
const consoleSignIns: Limit = { max_requests: 60, window_seconds: 60 };

/**
 * Daily limits on actions of a merchant's own people, per merchant: each action makes a row, an
 * alert and mails. The service's staff has no such limits.
 */
const ofMerchantADay = {
  /** Invitations, and changes of people's access. */
  access: { max_requests: 50, window_seconds: 24 * 3600 },
  /** Bank accounts that are proposed. */
  account: { max_requests: 10, window_seconds: 24 * 3600 },
  /** Statements that are issued again. */
  correction: { max_requests: 20, window_seconds: 24 * 3600 },
  /** Rotations of client secrets and signing keys. A leak cannot wait, so the limit is generous. */
  rotation: { max_requests: 100, window_seconds: 24 * 3600 },
} satisfies Record<string, Limit>;

const tooManyToday = {
  access:
    'People of this merchant were invited or changed 50 times today. Continue tomorrow, or ask the payment service. You can still revoke a person.',
  account:
    'Ten bank accounts were proposed for this merchant today. Propose the right one tomorrow, or ask the payment service to propose it.',
  correction:
    'Twenty corrections of this merchant’s statements were asked for today. Continue tomorrow, or ask the payment service to correct the others.',
  rotation:
    'Secrets and keys of this merchant were rotated 100 times today. If one leaked, revoke its integration now, or ask the payment service to rotate it.',
} satisfies Record<keyof typeof ofMerchantADay, string>;

/**
 * Test callbacks, per person who sends them, and per merchant or intermediary's integration. Each
 * is a request to a URL that a person typed.
 */
const testCallbacks = {
  ofPerson: { max_requests: 20, window_seconds: 600 },
  ofMerchant: { max_requests: 60, window_seconds: 3600 },
} satisfies Record<string, Limit>;
const tooManyTests = 'Too many test callbacks were sent. Wait a few minutes and send the next one.';

export type Count = { count: number; resetsInMilliseconds: number };

/** Where the counts are stored. A window begins at its first hit, which sets its length. */
export type RateLimitStore = {
  /** Counts `weight` hits; a weight of 0 only reads the count. */
  hit(key: string, windowSeconds: number, weight?: number): Promise<Count>;
  close?(): Promise<void>;
};

/**
 * The caller whose requests are counted: an integration, with the limits that an operator set for
 * it.
 */
type CountedCaller = { id: string; intermediary: boolean; limits: Record<string, Limit> };

type Hit = (key: string, limit: Limit, refusal?: string) => Promise<Quota>;

export function createRateLimits(store: RateLimitStore) {
  const hit: Hit = async (key, limit, refusal) => {
    const { count, resetsInMilliseconds } = await store.hit(key, limit.window_seconds);
    const quota = {
      limit: limit.max_requests,
      remaining: Math.max(0, limit.max_requests - count),
      resetSeconds: Math.max(1, Math.ceil(resetsInMilliseconds / 1000)),
    };
    if (count > limit.max_requests) throw new RateLimited(limit.window_seconds, quota, refusal);
    return quota;
  };
  return {
    ...apiLimits(hit),
    ...pageLimits(hit),
    ...consoleLimits(hit),
    /**
     * Counts declined cards, or with a weight of 0 reads how many there were. `network` is null if
     * it is not known.
     */
    async declines(
      network: string | null,
      merchant_id: string,
      weight: 0 | 1,
    ): Promise<{ ofNetwork: Count; ofMerchant: Count }> {
      const { ofNetwork, ofMerchant } = declineLimits;
      const [networkCount, merchantCount] = await Promise.all([
        network === null
          ? { count: 0, resetsInMilliseconds: 0 }
          : store.hit(`declines address ${network}`, ofNetwork.window_seconds, weight),
        store.hit(`declines ${merchant_id}`, ofMerchant.window_seconds, weight),
      ]);
      return { ofNetwork: networkCount, ofMerchant: merchantCount };
    },
    /**
     * Counts a page of a list, or a row, and returns whether the person now reads in bulk. A page
     * that is open refreshes itself, so it is counted only once. Call `noteShown` before you show
     * the page or the row, to remember that it was counted.
     */
    async bulkRead(
      of: keyof typeof bulkReads,
      person_id: string,
      shown: string,
    ): Promise<{ isBulk: boolean; noteShown(): Promise<unknown> }> {
      const { max_requests, window_seconds } = bulkReads[of];
      const key = `console ${of} ${person_id} ${shown}`;
      const noteShown = () => store.hit(key, window_seconds);
      const known = await store.hit(key, window_seconds, 0);
      if (known.count > 0) return { isBulk: false, noteShown };
      const { count } = await store.hit(`console all ${of} ${person_id}`, window_seconds);
      return { isBulk: count > max_requests, noteShown };
    },
    /**
     * Whether the expected signature may be shown, and whether it is shown for the last time in
     * this hour.
     */
    async shownSignature(caller: CountedCaller): Promise<{ show: boolean; last: boolean }> {
      const { count } = await store.hit(`shown ${caller.id}`, shownSignatures.window_seconds);
      return {
        show: count <= shownSignatures.max_requests,
        last: count === shownSignatures.max_requests,
      };
    },
  };
}

const apiLimits = (hit: Hit) => ({
  /** Counts a request per integration, or per managed merchant when an intermediary names one. */
  async request(caller: CountedCaller, endpoint: Endpoint, target: string | null): Promise<Quota> {
    const limit = caller.limits[endpoint] ?? endpointLimits[endpoint];
    const owner = caller.intermediary && target ? `${caller.id} ${target}` : caller.id;
    return await hit(`${owner} ${endpoint}`, limit);
  },
  async largeBody(caller: CountedCaller): Promise<void> {
    await hit(`large ${caller.id}`, largeBodies);
  },
  async failedAuthentication(network: string): Promise<Quota> {
    return await hit(`address ${network}`, failedAuthentications);
  },
  /** Counts a successful login per credentials, merchant and address. */
  async login(
    caller: CountedCaller,
    client_id: string,
    merchant_id: string,
    network: string,
  ): Promise<Quota> {
    const limit = caller.limits['POST /login'] ?? endpointLimits['POST /login'];
    return await hit(`login ${client_id} ${merchant_id} ${network}`, limit);
  },
  /**
   * The network is counted first: once it is over its limit, made-up client IDs open no more
   * windows.
   */
  async failedLogin(network: string, client_id: string | null): Promise<Quota> {
    const quota = await hit(`login address ${network}`, failedLogins);
    if (client_id === null) return quota;
    const ofClient = await hit(`login client ${client_id}`, failedLogins);
    return ofClient.remaining < quota.remaining ? ofClient : quota;
  },
});

const pageLimits = (hit: Hit) => ({
  async planLink(checkout_id: string, address: string): Promise<void> {
    await hit(`plan link address ${address}`, planLinksOfAddress);
    await hit(`plan link ${checkout_id} ${address}`, planLinks);
  },
  /** Whether another link may be mailed. If not, the shopper already has links that work. */
  async mayMailPlanLink(checkout_id: string): Promise<boolean> {
    try {
      await hit(`plan mail ${checkout_id}`, planMails);
      return true;
    } catch (error) {
      if (error instanceof RateLimited) return false;
      throw error;
    }
  },
  /** Call it after the look-up, so that a valid link always works. */
  async unknownPlanLink(address: string): Promise<void> {
    await hit(`plan session address ${address}`, unknownPlanLinks);
  },
  async planReport(checkout_id: string): Promise<void> {
    await hit(`plan report ${checkout_id}`, planReports);
  },
  async planAttempt(checkout_id: string): Promise<void> {
    await hit(`plan attempt ${checkout_id}`, planAttempts);
  },
  /**
   * A request from the payment page. Links that do not exist have a separate window per network, so
   * guesses do not use up the requests of shoppers with the same address.
   */
  async paymentPage(network: string, checkout_id: string | null, isWhole: boolean): Promise<void> {
    if (checkout_id === null) {
      await hit(`page unknown ${network}`, pageRequests.unknown);
      return;
    }
    await Promise.all([
      hit(`page ${checkout_id} ${network}`, pageRequests.ofLink),
      isWhole ? hit(`page whole ${checkout_id} ${network}`, pageRequests.wholeOfLink) : null,
    ]);
  },
  /** A new checkout from a payment link. Call it only before one is made. */
  async linkCheckout(link_id: string, network: string): Promise<void> {
    const { ofNetwork, ofLink, firstOfLink } = linkCheckouts;
    const { limit, remaining } = await hit(`link checkout ${link_id} ${network}`, ofNetwork);
    if (limit - remaining <= firstOfNetwork) await hit(`link first ${link_id}`, firstOfLink);
    else await hit(`link checkout ${link_id}`, ofLink);
  },
  /** A document made for the shopper. The request also counts as one from the page. */
  async document(checkout_id: string, network: string): Promise<void> {
    await hit(`document ${checkout_id} ${network}`, pageRequests.documentsOfLink);
  },
  async returned(checkout_id: string, network: string): Promise<void> {
    await hit(`returned ${checkout_id} ${network}`, returns);
  },
});

const consoleLimits = (hit: Hit) => ({
  async consoleRequest(network: string): Promise<void> {
    await hit(`console address ${network}`, consoleRequests);
  },
  async consoleSignIn(network: string): Promise<void> {
    await hit(`console sign-in address ${network}`, consoleSignIns);
  },
  /** A test callback. `owner` is the merchant, or the integration of an intermediary. */
  async testCallback(person_id: string, owner: string): Promise<void> {
    await hit(`test callback person ${person_id}`, testCallbacks.ofPerson, tooManyTests);
    await hit(`test callback ${owner}`, testCallbacks.ofMerchant, tooManyTests);
  },
  async ofMerchant(merchant_id: string, what: keyof typeof ofMerchantADay): Promise<void> {
    await hit(`console ${what} ${merchant_id}`, ofMerchantADay[what], tooManyToday[what]);
  },
});

export type RateLimits = ReturnType<typeof createRateLimits>;

/** Counts of a single process. */
export function memoryRateLimitStore(clock: Clock): RateLimitStore {
  const windows = new Map<string, { count: number; resetsAt: number }>();
  let sweepAt = 0;
  return {
    async hit(key, windowSeconds, weight = 1) {
      const now = clock.monotonic();
      if (now >= sweepAt) {
        for (const [old, window] of windows) if (window.resetsAt <= now) windows.delete(old);
        sweepAt = now + 60_000;
      }
      let window = windows.get(key);
      if (!window || window.resetsAt <= now) {
        window = { count: 0, resetsAt: now + windowSeconds * 1000 };
        windows.set(key, window);
      }
      window.count += weight;
      return { count: window.count, resetsInMilliseconds: window.resetsAt - now };
    },
  };
}
