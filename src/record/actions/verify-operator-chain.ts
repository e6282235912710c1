import { createHash } from 'node:crypto';
import type { Database } from '#platform/database/database.ts';
import { type ChainEnd, findChainEnd, listChainLinks } from './operator-chain.sql.ts';

export type ChainDifference = {
  /**
   * `changed`: an action does not match its hash. `missing`: an action was deleted from the middle.
   * `text`: a text of an action was changed or added, or is missing without having been erased.
   * `tail`: the last actions were deleted, or the end of the chain was changed or deleted.
   * `anchor`: a hash that was noted earlier is not in the chain.
   */
  kind: 'changed' | 'missing' | 'text' | 'tail' | 'anchor';
  number: number | null;
  detail: string;
};

/** A number in the chain and its hash, to be written down outside of the database. */
export type Anchor = { number: number; hash: string };

const batchSize = 5_000;
/**
 * This many actions that differ in one way are named, and the others are counted. Each way has its
 * own limit, so that differences of one kind cannot hide those of another.
 */
const differencesMax = 20;
const furtherOf = {
  changed: 'More actions that were changed',
  missing: 'More gaps in the numbers of actions',
  text: 'More actions with a text that was changed, added or removed',
} as const;
type LinkKind = keyof typeof furtherOf;

/** The chain begins with the digest of an empty text. */
const start: ChainEnd = { number: 0, hash: createHash('sha256').digest() };

/**
 * Checks that the operators' actions are the ones that were written. Each action's hash covers the
 * action and the hash before it, so any single change shows. An attacker who may rewrite every row
 * can compute a new chain; only an anchor that was noted outside of the database shows that.
 */
export async function verifyOperatorChain(
  deps: { database: Database },
  anchors: Anchor[] = [],
): Promise<{
  actions: number;
  textsErased: number;
  end: Anchor;
  differences: ChainDifference[];
}> {
  const { db: database } = deps.database;
  const snapshot = database.transaction().setIsolationLevel('repeatable read');
  return await snapshot.execute(async (db) => {
    const differences: ChainDifference[] = [];
    const end = await findChainEnd(db);
    const noted = new Map(anchors.map(({ number }) => [number, '']));
    if (noted.has(0)) noted.set(0, start.hash.toString('hex'));
    let last = start;
    let actions = 0;
    let textsErased = 0;
    const counts = { changed: 0, missing: 0, text: 0 };
    const report = (kind: LinkKind, number: number, detail: string) => {
      counts[kind] += 1;
      if (counts[kind] <= differencesMax) differences.push({ kind, number, detail });
    };
    for (;;) {
      const links = await listChainLinks(db, last, batchSize);
      for (const { number, hash, expected, has_own_texts, texts_erased } of links) {
        if (number !== last.number + 1) {
          const from = last.number + 1;
          const which =
            from === number - 1 ? `Action ${from} is` : `Actions ${from} to ${number - 1} are`;
          report('missing', from, `${which} missing.`);
        } else if (!hash.equals(expected)) {
          report(
            'changed',
            number,
            `Action ${number} was changed, or the hash of the action before it was.`,
          );
        } else if (!has_own_texts) {
          report('text', number, `A text of action ${number} was changed, added or removed.`);
        }
        textsErased += texts_erased;
        if (noted.has(number)) noted.set(number, hash.toString('hex'));
        last = { number, hash };
        actions += 1;
      }
      if (links.length < batchSize) break;
    }
    for (const kind of Object.keys(furtherOf) as LinkKind[]) {
      const further = counts[kind] - differencesMax;
      if (further <= 0) continue;
      differences.push({ kind, number: null, detail: `${furtherOf[kind]}: ${further}.` });
    }
    if (end === null) {
      differences.push({ kind: 'tail', number: null, detail: 'The end of the chain was deleted.' });
    } else if (end.number !== last.number || !end.hash.equals(last.hash)) {
      const detail = `The chain ended with action ${end.number}; the last action here is ${last.number}.`;
      differences.push({ kind: 'tail', number: last.number, detail });
    }
    for (const anchor of anchors) {
      if (noted.get(anchor.number) === anchor.hash) continue;
      const detail = `Action ${anchor.number} is missing, or its hash is not the one that was kept or posted.`;
      differences.push({ kind: 'anchor', number: anchor.number, detail });
    }
    const reached = { number: last.number, hash: last.hash.toString('hex') };
    return { actions, textsErased, end: reached, differences };
  });
}
