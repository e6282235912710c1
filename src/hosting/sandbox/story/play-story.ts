import { checkLedger } from '#checks/books/audit-books.ts';
import { rotateCredential } from '#merchants/integrations/rotate-credential.ts';
import type { Merchant } from '#merchants/merchant.ts';
import { type ClockDeps, moveClock } from '#operating/clock/advance-clock.ts';
import { rollUp, rollUpOverdue } from '#operating/rollups/roll-up.ts';
import { type Timestamp, timestamp } from '#platform/shared/clock.ts';
import type { ReviewDeps } from '#purchases/refunds/review-refund.ts';
import { OperatorError } from '#record/actions/operate.ts';
import type { ControlledGateway } from '../control-gateway.ts';
import {
  approvedCard,
  cancelAs,
  payAs,
  type Shopper,
  shopperAt,
  TooManyRequests,
} from '../shopper.ts';
import { followUps } from './follow-up.ts';
import { approveFirst, type PayMerchantDeps, payMerchant } from './pay-merchant.ts';
import { firstOperator, type PrepareDeps, prepareMerchant } from './prepare-merchant.ts';
import { cardOf, outageDay, type PlannedOrder, ruleOf, type Season } from './season.ts';
import { openStoryShop, type StoryShop } from './shop.ts';

export type StoryDeps = ClockDeps & PrepareDeps & ReviewDeps & PayMerchantDeps;

export type Story = {
  deps: StoryDeps;
  merchant: Merchant;
  gateway: ControlledGateway;
  mailboxUrl: string;
  shop: StoryShop;
  /**
   * Schedules work for a later day of the season, or for later on the same day. Work after the last
   * day is dropped.
   */
  later(day: number, work: () => Promise<void>): void;
};

export type StoryPlaces = {
  baseUrl: string;
  shopUrl: string;
  mailboxUrl: string;
  gateway: ControlledGateway;
};

export type StoryProgress = (day: number, days: number, orders: number) => void;

const rotationDay = 78;
const overlapSeconds = 7 * 24 * 3600;
const daysOfWeek = 7;

/**
 * Plays a season of a small shop through the interfaces that merchants, shoppers and operators use:
 * the API, the payment page's protocol, the use cases of the commands, and the merchant's clock.
 */
export async function playStory(
  deps: StoryDeps,
  merchant: Merchant,
  places: StoryPlaces,
  season: Season,
  progress: StoryProgress,
): Promise<{ checkouts: number; differences: number; now: Timestamp }> {
  const credentials = await prepareMerchant(deps, merchant);
  const shop = await openStoryShop({ ...places, credentials });
  let now: Timestamp;
  try {
    now = await playSeason(deps, merchant, places, { season, shop, credentials, progress });
  } finally {
    await shop.stop();
  }
  const { differences } = await checkLedger(deps);
  // Show the season in the console at once. The worker would wait until the rows are older.
  while ((await rollUp(deps, 500)) > 0);
  await rollUpOverdue(deps);
  return { checkouts: season.orders, differences: differences.length, now };
}

async function playSeason(
  deps: StoryDeps,
  merchant: Merchant,
  { gateway, mailboxUrl }: StoryPlaces,
  played: {
    season: Season;
    shop: StoryShop;
    credentials: { id: string };
    progress: StoryProgress;
  },
): Promise<Timestamp> {
  const { season, shop, credentials, progress } = played;
  const work = new Map<number, (() => Promise<void>)[]>();
  const last = season.days.length - 1;
  const later: Story['later'] = (day, run) => {
    if (day <= last) work.set(day, [...(work.get(day) ?? []), run]);
  };
  later(rotationDay, async () => {
    const wanted = { id: credentials.id, credential: 'signing_key', overlapSeconds } as const;
    await rotateCredential(deps, firstOperator, wanted);
  });
  const start = merchant.now().toZonedDateTimeISO(merchant.territory.time_zone).startOfDay();
  let count = 0;
  let now = start.toInstant();
  for (const { day, hour, orders } of season.days) {
    shop.isDown = day === outageDay;
    now = start.add({ days: day + 1, hours: hour }).toInstant();
    const story: Story = {
      ...{ deps, gateway, mailboxUrl, shop, later },
      merchant: await moveClock(deps, merchant.id, now),
    };
    await Promise.all(orders.map((order) => withinLimits(() => playOrder(story, order))));
    // Work may add more work for the same day.
    for (const run of listOf(work, day)) await withinLimits(run);
    if (day % daysOfWeek === daysOfWeek - 2 && day < last - 2) await payMerchant(story);
    if (day === last) await approveFirst(story);
    count += orders.length;
    progress(day + 1, season.days.length, count);
  }
  return timestamp(now);
}

/**
 * The shoppers of several stories share one network address and its rate limits. A shopper who is
 * refused gives up.
 */
async function withinLimits(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof TooManyRequests)) throw error;
  }
}

function* listOf(work: Map<number, (() => Promise<void>)[]>, day: number) {
  for (let i = 0; i < (work.get(day)?.length ?? 0); i += 1) {
    yield (work.get(day) as (() => Promise<void>)[])[i] as () => Promise<void>;
  }
}

async function playOrder(story: Story, order: PlannedOrder): Promise<void> {
  const { shop, deps, gateway, merchant } = story;
  const { course, customer } = order;
  const { id, payment_url } = await shop.create(order, merchant.territory.currency);
  if (course === 'not opened') return;
  const cards = { gateway_url: gateway.url, gateway_secret_key: gateway.secretKey };
  const shopper = shopperAt({ clock: deps.clock, gateway: cards }, payment_url);
  await shopper.open(customer.language);
  if (course === 'abandoned') return;
  if (course === 'cancelled') {
    await cancelAs(shopper);
    return;
  }
  if (await pay(shopper, order)) {
    await followUps[course]?.(story, { ...order, id, payment_url, shopper });
  }
}

/** Returns whether the order is paid. */
async function pay(shopper: Shopper, order: PlannedOrder): Promise<boolean> {
  const { course, customer, termChoice } = order;
  const { plans } = await shopper.state();
  const { terms } = ruleOf(course);
  const offered = plans
    .map(({ number_of_payments }) => number_of_payments)
    .filter((term) => terms === undefined || (terms === 'one') === (term === 1));
  const term = offered[Math.floor(termChoice * offered.length)] ?? null;
  const challenge = course === 'challenge abandoned' ? 'abandon' : 'approve';
  const how = { term, challenge, language: customer.language } as const;
  let { status } = await payAs(shopper, { ...how, card: cardOf(order) });
  if (course === 'another card')
    ({ status } = await payAs(shopper, { ...how, card: approvedCard }));
  const isExpected =
    status === 'successful' || ['declined', 'challenge abandoned', 'data refused'].includes(course);
  if (!isExpected) {
    throw new OperatorError(`Order ${order.reference} could not be paid: it is ${status}.`);
  }
  return status === 'successful';
}
