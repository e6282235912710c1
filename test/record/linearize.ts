// Decides whether the operations on one object can be put into one order: each takes effect at one
// moment between its begin and its end, and each answer is right at that moment (Wing and Gong).

export type Step<S> = {
  begin: number;
  /**
   * Infinity for an operation without an answer: it may take effect at any later time, or never.
   */
  end: number;
  /** Whether the order may leave the operation out. */
  isOptional: boolean;
  /**
   * Returns the state after the operation: the same object if it changes nothing, or null if it
   * cannot happen now.
   */
  apply(state: S): S | null;
};

const statesMax = 200_000;

/** Null if there is such an order; otherwise the step that fits into none, or 'undecided'. */
export function findMisfit<S, T extends Step<S>>(
  steps: readonly T[],
  start: S,
  keyOf: (state: S) => string,
): T | 'undecided' | null {
  const all = [...steps].sort((one, other) => one.begin - other.begin);
  const places = new Map(all.map((step, index) => [step, index]));
  const seen = new Set<string>();
  const stack = [{ left: all, state: start }];
  let fewest = { required: Number.POSITIVE_INFINITY, next: null as T | null };
  for (let place = stack.pop(); place !== undefined; place = stack.pop()) {
    const { left, state } = read(place.left, place.state);
    const required = left.filter(({ isOptional }) => !isOptional);
    if (required.length === 0) return null;
    const key = `${keyOf(state)} ${left.map((step) => places.get(step)).join()}`;
    if (seen.has(key)) continue;
    seen.add(key);
    if (seen.size > statesMax) return 'undecided';
    const next = firstToEnd(required);
    if (required.length < fewest.required) fewest = { required: required.length, next };
    for (const step of left) {
      if (step.begin > next.end) break;
      const after = step.apply(state);
      if (after !== null && after !== state) {
        stack.push({ left: left.filter((other) => other !== step), state: after });
      }
    }
  }
  return fewest.next;
}

/** Takes every step that may come now and changes nothing: no other order could need it later. */
function read<S, T extends Step<S>>(left: readonly T[], state: S): { left: T[]; state: S } {
  for (let rest = [...left]; ; ) {
    const required = rest.filter(({ isOptional }) => !isOptional);
    const bound = required.length === 0 ? Number.POSITIVE_INFINITY : firstToEnd(required).end;
    const kept = rest.filter(
      (step) => step.isOptional || step.begin > bound || step.apply(state) !== state,
    );
    if (kept.length === rest.length) return { left: kept, state };
    rest = kept;
  }
}

function firstToEnd<T extends { end: number }>(steps: readonly T[]): T {
  return steps.reduce((first, step) => (step.end < first.end ? step : first));
}
