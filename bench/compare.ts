import { readFileSync, writeFileSync } from 'node:fs';

// The ratios of the last release are stored beside this file, so that a bench shows what got worse.
// Only ratios are stored, because absolute times depend on the machine.

/** A ratio from one run, and whether a higher value is better. */
export type Figure = { value: number; better: 'less' | 'more' };

const file = new URL('last-release.json', import.meta.url);

/** A ratio counts as worse beyond this fraction, because two runs on one machine differ by less. */
const toleratedPart = 0.1;

/** Lists the ratios that are worse than in the last release. */
export function listWorse(figures: Map<string, Figure>): string[] {
  const kept = readKept();
  return [...figures].flatMap(([name, { value, better }]) => {
    const before = kept[name];
    if (before === undefined) return [];
    const worse = better === 'less' ? value / before : before / value;
    return worse > 1 + toleratedPart
      ? [`${name}: ${value.toFixed(2)}, ${before.toFixed(2)} in the last release`]
      : [];
  });
}

/** Stores ratios as those of the release being made now. */
export function keepFigures(figures: Map<string, Figure>): void {
  const kept = readKept();
  for (const [name, { value }] of figures) {
    if (Number.isFinite(value)) kept[name] = Number(value.toFixed(3));
  }
  const sorted = Object.fromEntries(Object.entries(kept).sort(([a], [b]) => a.localeCompare(b)));
  writeFileSync(file, `${JSON.stringify(sorted, null, 2)}\n`);
}

const readKept = (): Record<string, number> => JSON.parse(readFileSync(file, 'utf8'));
