const format = new Intl.NumberFormat('en-GB');

/** A count as the command line writes it: `1,200`. */
export const writeCount = (count: number) => format.format(count);

/** A count with its noun: `1 line`, `1,200 lines`. */
export const plural = (count: number, one: string, many = `${one}s`) =>
  `${writeCount(count)} ${count === 1 ? one : many}`;
