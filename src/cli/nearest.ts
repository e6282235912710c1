/** The known word closest to a mistyped one, or null. */
export function nearest(word: string, known: string[]): string | null {
  const candidates = known
    .map((candidate) => ({
      candidate,
      distance:
        word.length > 1 && candidate.startsWith(word) ? 0 : distanceBetween(word, candidate),
    }))
    .filter(({ candidate, distance }) => distance <= allowance(candidate))
    .sort((a, b) => a.distance - b.distance);
  return candidates[0]?.candidate ?? null;
}

/** Two swapped letters count as two mistakes, so all but the shortest words allow two. */
function allowance(word: string): number {
  return word.length < 4 ? 1 : Math.max(2, Math.floor(word.length / 3));
}

/** How many letters must be added, removed or changed. */
function distanceBetween(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (const [row, letter] of [...a].entries()) {
    const current = [row + 1];
    for (const [column, other] of [...b].entries()) {
      current.push(
        Math.min(
          (current[column] ?? 0) + 1,
          (previous[column + 1] ?? 0) + 1,
          (previous[column] ?? 0) + (letter === other ? 0 : 1),
        ),
      );
    }
    previous = current;
  }
  return previous.at(-1) ?? 0;
}
