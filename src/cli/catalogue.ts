import assert from 'node:assert/strict';
import type { Command } from './command.ts';

// Names and summaries of all commands. A command's file is loaded only when the command runs or its
// help is requested, because loading files takes most of a program's start-up time.

export type ListedCommand = {
  /** The words after `tranche`: `merchants create`. */
  name: string;
  /** A phrase for the list of commands. */
  summary: string;
  load(): Promise<Command>;
};

/** Commands that share their first word. */
export type ListedGroup = { name: string; summary: string; commands: ListedCommand[] };

function group(
  name: string,
  summary: string,
  file: () => Promise<{ commands: Command[] }>,
  summaries: Record<string, string>,
): ListedGroup {
  const commands = Object.entries(summaries).map(([word, summary]) => {
    const own = `${name} ${word}`;
    const load = async () => {
      const found = (await file()).commands.find((command) => command.name === own);
      assert(found, `${own} is listed, but its file does not define it`);
      return found;
    };
    return { name: own, summary, load };
  });
  return { name, summary, commands };
}

export const catalogue: (ListedCommand | ListedGroup)[] = [
  {
    name: 'sandbox',
    summary: 'run a sandbox with a demo merchant (npm start)',
    load: async () => (await import('./sandbox.ts')).sandbox,
  },
  {
    name: 'sandbox pay',
    summary: 'pay a checkout without a browser',
    load: async () => (await import('./sandbox-pay.ts')).sandboxPay,
  },
  {
    name: 'sandbox cancel',
    summary: 'cancel a checkout without a browser',
    load: async () => (await import('./sandbox-pay.ts')).sandboxCancel,
  },
  {
    name: 'sandbox drill',
    summary: 'test a callback endpoint before going live',
    load: async () => (await import('./sandbox-drill.ts')).sandboxDrill,
  },
  {
    name: 'sandbox gateway',
    summary: 'play the cardholder and the bank in a dispute',
    load: async () => (await import('./sandbox-disputes.ts')).sandboxGateway,
  },
  {
    name: 'sandbox story',
    summary: 'fill a sandbox with a story of twelve weeks',
    load: async () => (await import('./sandbox-story.ts')).sandboxStory,
  },
  group('clock', "a sandbox merchant's clock", () => import('./clock.ts'), {
    show: "a sandbox merchant's time and its next event",
    advance: "move a sandbox merchant's clock forward",
  }),
  {
    name: 'serve',
    summary: 'run the service',
    load: async () => (await import('./serve.ts')).serve,
  },
  group('merchants', 'shops and what they accept', () => import('./merchants.ts'), {
    create: 'add a shop',
    list: 'all shops, the oldest first',
    show: 'one shop with its rules',
    rules: "change a shop's amount bands and terms",
    page: 'change what shoppers read about a shop',
    gateway: "choose the gateway for a shop's new checkouts",
    fee: 'the fee that a shop pays from a given date',
    bank: 'where a shop is paid and gets its statements',
    balance: 'what a shop is owed now, by reason',
  }),
  group('integrations', 'credentials and their limits', () => import('./integrations.ts'), {
    create: 'issue credentials for a shop or an intermediary',
    list: 'all integrations, or those that act for one shop',
    managed: 'the merchants that an intermediary acts for',
    show: 'one integration: limits, merchants, keys',
    refused: 'requests whose signature was wrong',
    manage: "change an intermediary's merchants",
    refunds: 'whether an operator reviews each refund',
    'require-signing': 'from now on accept only signed POSTs',
    events: 'events that an integration gets besides payments',
    'test-callback': 'send a test callback to an address',
    limit: 'set a rate limit for one endpoint',
    rotate: 'replace a client secret or a signing key',
    v1: 'issue or withdraw credentials of the v1 API',
    revoke: 'end an integration permanently',
  }),
  {
    name: 'find',
    summary: 'find a checkout by what is known about it',
    load: async () => (await import('./find.ts')).find,
  },
  group('checkouts', 'checkouts and what happened to them', () => import('./checkouts.ts'), {
    list: 'checkouts, the newest first',
    show: 'everything that happened to a checkout',
  }),
  group(
    'payment-links',
    'links and QR codes that shoppers open to pay',
    () => import('./payment-links.ts'),
    {
      create: 'make a link for one payment, or for a till',
      list: 'payment links, the newest first',
      show: 'one link: addresses, status, who paid',
      mail: 'send a link to its shopper by mail',
      cancel: 'end a link',
    },
  ),
  group('refunds', 'refund requests: review, retry, preview', () => import('./refunds.ts'), {
    list: 'refund requests',
    show: 'one refund, and what it is taken from',
    approve: 'approve a refund and carry it out',
    decline: 'decline a refund, with a reason',
    retry: 'retry a failed refund',
    preview: 'which payments a refund would be taken from',
  }),
  group('instalments', 'the payments of successful checkouts', () => import('./instalments.ts'), {
    list: 'payments that could not be collected',
    retry: 'charge an overdue payment once more',
  }),
  group('gateway', 'what the card gateway has on record', () => import('./gateway.ts'), {
    reconcile: "compare the gateway's records with our rows",
    fees: "post the fees of an acquirer's settlement report",
    release: 'release a checkout that a difference blocks',
  }),
  group(
    'disputes',
    'disputed payments: evidence, outcome, the plan',
    () => import('./disputes.ts'),
    {
      list: 'payments that cardholders dispute',
      show: 'one dispute',
      evidence: 'the evidence pack: stage it, submit it',
      accept: 'accept a dispute as lost',
      rest: 'decide on the plan after a lost dispute',
    },
  ),
  group(
    'payouts',
    'what merchants are paid: approve, export, statements',
    () => import('./payouts.ts'),
    {
      list: 'payouts to merchants',
      show: 'one payout with its lines',
      approve: 'approve a payout (it takes two operators)',
      confirm: 'record that the bank has not paid a payout',
      export: 'approved payouts, as a file for the bank',
      paid: 'record that the bank has paid a payout',
      returned: 'record that the bank returned a payout',
      statement: 'a statement as CSV, JSON or a page to print',
    },
  ),
  group(
    'statements',
    'monthly statements and tax invoices of merchants',
    () => import('./statements.ts'),
    {
      list: 'statements, the newest first',
      show: 'one statement, also as a PDF or a CSV file',
      correct: 'issue a statement again, with the current names',
    },
  ),
  group('money', 'money that moved, by merchant', () => import('./money-day.ts'), {
    day: 'money that moved on one day, by merchant',
  }),
  {
    name: 'prove',
    summary: 'prove that books, gateway, bank and record agree',
    load: async () => (await import('./prove.ts')).prove,
  },
  group('ledger', 'the books', () => import('./ledger.ts'), {
    check: 'prove that all books add up',
  }),
  group('legacy', 'the v1 plugin API and its retirement', () => import('./legacy.ts'), {
    preview: 'translate a v1 request to v2',
    usage: 'v1 traffic per integration',
  }),
  group('shoppers', 'export and erase the data of a shopper', () => import('./shoppers.ts'), {
    export: 'all data of a shopper, as JSON',
    erase: 'erase the personal data of a shopper',
  }),
  group('callbacks', 'notifications of outcomes to merchants', () => import('./callbacks.ts'), {
    list: 'callbacks, the newest first',
    show: 'one callback with all its attempts',
    retry: 'deliver one callback now, or all exhausted ones',
  }),
  group('alerts', 'what an operator must look at', () => import('./alerts.ts'), {
    list: 'what an operator must look at',
    take: 'tell others that you are handling an alert',
    close: 'close an alert, with a reason',
  }),
  group('operators', 'the people who may use the console', () => import('./operators.ts'), {
    invite: 'invite a person to the console',
    release: 'release an invitation that is waiting',
    list: 'the people who may use the console',
    revoke: "revoke a person's access to the console",
    confirm: 'confirm a person, or access after a restore',
    'alert-mails': 'which events a merchant’s people get by mail',
  }),
  group('console', "the operators' console", () => import('./operators.ts'), {
    'sign-in': "a one-time link to a sandbox's console",
  }),
  group('bulk-actions', 'actions on many rows', () => import('./bulk-actions.ts'), {
    stop: 'stop an action on many rows',
  }),
  group('audit', 'who changed what', () => import('./audit.ts'), {
    list: 'who changed what',
    verify: 'prove that no action was changed or deleted',
  }),
  group('keys', 'the master key and what it protects', () => import('./keys.ts'), {
    reencrypt: 're-encrypt signing keys and bank accounts',
  }),
  group('database', 'migrations, roles, and more than one server', () => import('./database.ts'), {
    migrate: 'bring the database up to this version',
    grant: 'give a role the rights to serve or to read',
    distribute: 'spread the tables over a Citus cluster',
    'repair-clock': 'undo what a node with a wrong clock did',
    archive: 'archive the messages of finished checkouts',
  }),
];
