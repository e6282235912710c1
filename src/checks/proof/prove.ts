import { createHash } from 'node:crypto';
import { checkLedger, describeDifference } from '#checks/books/audit-books.ts';
import { type ReconcileDeps, reconcile } from '#checks/reconciliation/reconcile.ts';
import { OutcomeUnknown, RequestRefused } from '#gateway/gateway.ts';
import { MoneyStopped } from '#gateway/guard-gateway.ts';
import type { Database, Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import { digestPayouts } from '#purchases/payouts/bank-file.ts';
import { listExports } from '#purchases/payouts/payout.sql.ts';
import { type Anchor, verifyOperatorChain } from '#record/actions/verify-operator-chain.ts';
import { listPublishedEnds } from '#record/alerts/published-end.sql.ts';
import {
  countCallbacks,
  findFirstSale,
  listRecordedExports,
  listUnrecordedExports,
  type RecordedExport,
} from './proof.sql.ts';

/** One claim about the installation, and how much of it was checked. */
export type Proof = {
  name: 'books' | 'gateway' | 'payouts' | 'record' | 'callbacks';
  claim: string;
  outcome: 'holds' | 'differs' | 'not compared';
  /** How many of each kind of thing were compared. */
  compared: Record<string, number>;
  /** The time of the first thing that was compared. Null if everything was compared. */
  since: Timestamp | null;
  /** The first differences, up to `differencesMax`. */
  differences: string[];
  /** The limits of this proof. */
  cannot_compare: string[];
};

export type ProveInput = {
  /** Ends of the chain of operators' actions that were kept outside of the database. */
  anchors: Anchor[];
  /** Files that went to the bank. */
  bankFiles: { name: string; content: Buffer }[];
};

const differencesMax = 20;

function prove(
  name: Proof['name'],
  claim: string,
  found: Pick<Proof, 'compared' | 'differences' | 'cannot_compare'> & { since?: Timestamp | null },
): Proof {
  const { differences, since = null, ...rest } = found;
  const outcome = differences.length === 0 ? 'holds' : 'differs';
  return {
    name,
    claim,
    outcome,
    ...rest,
    since,
    differences: differences.slice(0, differencesMax),
  };
}

export async function proveBooks(
  deps: { database: Database },
  progress: (done: number, all: number) => void,
): Promise<Proof> {
  const { checkouts, differences } = await checkLedger(deps, progress);
  return prove('books', 'The books agree with the rows, to the cent.', {
    compared: { checkouts },
    since: await findFirstSale(deps.database.db),
    differences: differences.map(describeDifference),
    cannot_compare: [],
  });
}

const gatewayClaim = 'The rows agree with the records of the card gateway.';

/**
 * Compares with the gateway as the daily reconciliation does: fees are posted, and a difference is
 * an alert. If the gateway does not answer, the claim is not compared.
 */
export async function proveGateway(
  deps: ReconcileDeps,
  progress: (checked: number) => void,
): Promise<Proof> {
  try {
    const { names } = deps.gateways;
    const { checked, differences } = await reconcile(deps, { from: null, to: null }, progress);
    return prove('gateway', gatewayClaim, {
      compared: { records: checked },
      differences: differences.map(({ kind, reference }) => `${kind} ${reference}`),
      cannot_compare: [
        'Payments whose outcome the gateway does not know yet.',
        ...names
          .filter((name) => !deps.gateways.of(name).capabilities.knowsFees)
          .map((name) => `Fees and the balance at ${name}, which does not report them.`),
      ],
    });
  } catch (error) {
    if (!(error instanceof OutcomeUnknown || error instanceof RequestRefused)) throw error;
    if (error instanceof MoneyStopped) return notCompared(error.message);
    return notCompared(`The gateway did not answer: ${error.message}`);
  }
}

/** The claim about the gateway for a run that does not ask the gateway. */
export const notCompared = (reason: string): Proof => ({
  name: 'gateway',
  claim: gatewayClaim,
  outcome: 'not compared',
  compared: {},
  since: null,
  differences: [],
  cannot_compare: [reason],
});

/** How many exports are read together. The payouts of an export are limited, so memory is, too. */
const exportsTogether = 20;

export async function provePayouts(
  { database: { db } }: { database: Database },
  bankFiles: ProveInput['bankFiles'],
): Promise<Proof> {
  const files = new Map(
    bankFiles.map(({ name, content }) => [
      createHash('sha256').update(content).digest('hex'),
      name,
    ]),
  );
  const differences: string[] = [];
  const compared = { exports: 0, payouts: 0, files: bankFiles.length };
  let withoutDigest = 0;
  for (let after = 0; ; ) {
    const exports = await listRecordedExports(db, after, exportsTogether);
    const last = exports.at(-1);
    if (last === undefined) break;
    after = last.number;
    const found = await compareExports(db, exports);
    differences.push(...found.differences);
    withoutDigest += found.withoutDigest;
    compared.exports += exports.length;
    compared.payouts += found.payouts;
    for (const { file_sha256 } of exports) files.delete(file_sha256 ?? '');
  }
  for (const reference of await listUnrecordedExports(db, differencesMax)) {
    differences.push(`Payout ${reference} was exported, but no recorded export names it.`);
  }
  for (const name of files.values()) {
    differences.push(`${name} is not a file that was exported here, or it was changed.`);
  }
  return prove('payouts', 'The payouts are the ones in the files for the bank.', {
    compared,
    differences,
    cannot_compare: [
      ...(bankFiles.length === 0 ? ['Files for the bank: none was given with --bank-file.'] : []),
      ...(withoutDigest > 0 ? [`Exports that have no digest: ${withoutDigest}.`] : []),
      'Whether the bank paid: only its own statement shows that.',
    ],
  });
}

async function compareExports(db: Handle, exports: RecordedExport[]) {
  const rows = await listExports(db, [...new Set(exports.map(({ export_id }) => export_id))]);
  const byExport = Map.groupBy(rows, ({ export_id }) => export_id);
  const differences = exports.flatMap(({ export_id, payouts, payouts_sha256 }) => {
    const found = byExport.get(export_id) ?? [];
    const isSame = payouts_sha256 === null || payouts_sha256 === digestPayouts(found);
    if (found.length === payouts && isSame) return [];
    return [`The payouts of export ${export_id} are not the ones in its file.`];
  });
  const withoutDigest = exports.filter(({ payouts_sha256 }) => payouts_sha256 === null).length;
  return { differences, withoutDigest, payouts: rows.length };
}

/**
 * The chain of operators' actions is compared with at most this many of its posted ends, the newest
 * first. One is posted a day.
 */
const publishedMax = 20_000;

export async function proveRecord(
  deps: { database: Database },
  anchors: Anchor[],
): Promise<Proof & { end: string }> {
  const published = await listPublishedEnds(deps.database.db, { limit: publishedMax });
  const posted = published.map(({ number, hash }) => ({ number, hash: hash.toString('hex') }));
  const chain = await verifyOperatorChain(deps, [...anchors, ...posted]);
  const proof = prove(
    'record',
    "The record of operators' actions is whole, and its end was posted.",
    {
      compared: {
        actions: chain.actions,
        'posted ends': published.length,
        'ends that you kept': anchors.length,
      },
      since: published.at(-1)?.at ?? null,
      differences: [
        ...chain.differences.map(({ detail }) => detail),
        ...(published.length === 0 && chain.actions > 0
          ? ['No end of the chain was posted. The service posts one a day.']
          : []),
      ],
      cannot_compare: [
        ...(anchors.length === 0
          ? [
              'A chain that was rewritten as a whole, together with the posted ends: give an end that you kept, with --since.',
            ]
          : []),
        ...(chain.textsErased > 0 ? [`Texts that were erased: ${chain.textsErased}.`] : []),
      ],
    },
  );
  return { ...proof, end: `${chain.end.number}:${chain.end.hash}` };
}

const callbacksTogether = 5_000;
const firstId = '00000000-0000-0000-0000-000000000000';

export async function proveCallbacks({ database: { db } }: { database: Database }): Promise<Proof> {
  const compared = { delivered: 0, waiting: 0, 'given up': 0 };
  const differences: string[] = [];
  let expired = 0;
  for (let after = firstId; ; ) {
    const page = await countCallbacks(db, after, callbacksTogether);
    if (page === null) break;
    after = page.last;
    compared.delivered += page.delivered - page.expired;
    compared.waiting += page.waiting;
    compared['given up'] += page.exhausted;
    expired += page.expired;
    differences.push(
      ...page.unanswered.map((id) => `Callback ${id} counts as delivered without a 2xx answer.`),
    );
  }
  return prove('callbacks', 'Every callback that counts as delivered was answered with 2xx.', {
    compared,
    differences,
    cannot_compare:
      expired > 0
        ? [
            `Delivered callbacks whose attempts were deleted after their retention period: ${expired}.`,
          ]
        : [],
  });
}
