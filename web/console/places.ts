import type { Counts } from '#operating/console/overview.schema.ts';
import type { IconName } from './icons.tsx';

// The pages of the navigation.

export type Place = {
  href: string;
  label: string;
  icon: IconName;
  permission: string;
  key: string;
  count?: keyof Counts;
  urgent?: boolean;
};

export type Group = { title: string | null; places: Place[] };

export const groups: Group[] = [
  {
    title: null,
    places: [
      { href: '/', label: 'Overview', icon: 'overview', permission: 'overview.read', key: 'o' },
    ],
  },
  {
    title: 'Payments',
    places: [
      {
        href: '/checkouts',
        label: 'Checkouts',
        icon: 'checkouts',
        permission: 'checkouts.read',
        key: 'c',
      },
      {
        href: '/payment-links',
        label: 'Payment links',
        icon: 'links',
        permission: 'links.read',
        key: 'l',
      },
      {
        href: '/messages',
        label: 'Messages',
        icon: 'messages',
        permission: 'messages.read',
        key: 'e',
        count: 'messages_to_answer',
      },
      {
        href: '/refunds',
        label: 'Refunds',
        icon: 'refunds',
        permission: 'refunds.read',
        key: 'r',
        count: 'refunds_to_review',
      },
      {
        href: '/overdue',
        label: 'Overdue',
        icon: 'overdue',
        permission: 'instalments.read',
        key: 'd',
        count: 'overdue',
      },
      {
        href: '/callbacks',
        label: 'Callbacks',
        icon: 'callbacks',
        permission: 'callbacks.read',
        key: 'b',
        count: 'callbacks_exhausted',
      },
    ],
  },
  {
    title: 'Money',
    places: [
      {
        href: '/disputes',
        label: 'Disputes',
        icon: 'disputes',
        permission: 'disputes.read',
        key: 's',
        count: 'disputes_to_answer',
      },
      {
        href: '/payouts',
        label: 'Payouts',
        icon: 'payouts',
        permission: 'payouts.read',
        key: 'y',
        count: 'payouts_to_approve',
      },
      {
        href: '/statements',
        label: 'Statements',
        icon: 'statements',
        permission: 'payouts.read',
        key: 't',
      },
      {
        href: '/balance',
        label: 'What is owed',
        icon: 'balance',
        permission: 'payouts.read',
        key: 'w',
      },
      {
        href: '/money',
        label: 'Money by day',
        icon: 'money',
        permission: 'money.read',
        key: 'f',
      },
      {
        href: '/reconciliation',
        label: 'Reconciliation',
        icon: 'reconciliation',
        permission: 'differences.read',
        key: 'n',
      },
    ],
  },
  {
    title: 'Set-up',
    places: [
      {
        href: '/merchants',
        label: 'Merchants',
        icon: 'merchants',
        permission: 'merchants.read',
        key: 'm',
      },
      {
        href: '/integrations',
        label: 'Integrations',
        icon: 'integrations',
        permission: 'integrations.read',
        key: 'i',
      },
    ],
  },
  {
    title: 'Oversight',
    places: [
      {
        href: '/alerts',
        label: 'Alerts',
        icon: 'alerts',
        permission: 'alerts.read',
        key: 'a',
        count: 'alerts',
        urgent: true,
      },
      { href: '/audit', label: 'Audit', icon: 'audit', permission: 'audit.read', key: 'u' },
      { href: '/people', label: 'People', icon: 'people', permission: 'people.read', key: 'p' },
    ],
  },
];

/** A shop's own titles, where they differ from the service's. */
const shopTitles: Record<string, string> = {
  Payments: 'Sales',
  'Set-up': 'Your shop',
  Oversight: 'Your people',
};

/** The pages in a shop's own words. Null if a shop does not have the page. */
export const shopPages: Record<string, { label?: string; about?: string } | null> = {
  '/': { label: 'Home' },
  '/checkouts': { label: 'Orders', about: 'Every order of your shop, the newest first.' },
  '/callbacks': { about: 'What the service sent to your server, and what it answered.' },
  '/payouts': { about: 'What you are paid for each business day, the newest first.' },
  '/balance': { label: 'What you are owed' },
  '/money': null,
  '/reconciliation': null,
  '/merchants': { label: 'Settings', about: 'Your shops, and the terms on which they sell.' },
  '/integrations': {
    label: 'Keys and callbacks',
    about: 'The credentials that your server calls the API with.',
  },
  '/audit': { label: 'What people did' },
};

/**
 * The navigation of the merchants' console, with texts worded for shops. Its settings lead straight
 * to the page of `shop`, or to a list of shops if none is chosen.
 */
export const inShopWords = (all: Group[], shop: string | null): Group[] =>
  all.map(({ title, places }) => ({
    title: title && (shopTitles[title] ?? title),
    places: places.flatMap((place) => {
      const page = shopPages[place.href];
      if (page === null) return [];
      const isSettings = place.href === '/merchants' && shop !== null;
      const href = isSettings ? `${place.href}/${shop}` : place.href;
      return [{ ...place, href, label: page?.label ?? place.label }];
    }),
  }));
