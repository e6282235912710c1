const format = new Intl.NumberFormat('en-GB');

/** A count with its noun: `1 line`, `1,200 lines`. */
export const plural = (count: number, one: string, many = `${one}s`) =>
  `${format.format(count)} ${count === 1 ? one : many}`;
