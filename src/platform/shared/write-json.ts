/** An array in a JSON document that is too long for memory. It is written page by page. */
export class PagedArray {
  readonly pages: AsyncIterable<unknown[]>;
  constructor(pages: AsyncIterable<unknown[]>) {
    this.pages = pages;
  }
}

/**
 * Writes a value as JSON, piece by piece. Members of an object, and of the elements of a paged
 * array, may be paged arrays. They are read in order, each when its turn comes. `indent` is the
 * indentation of one level; without it the text is one line.
 */
export async function* writeJson(
  value: unknown,
  indent = '',
  margin = '\n',
): AsyncGenerator<string> {
  const inner = indent === '' ? '' : margin + indent;
  const outer = indent === '' ? '' : margin;
  if (value instanceof PagedArray) {
    let isFirst = true;
    for await (const page of value.pages) {
      for (const element of page) {
        yield `${isFirst ? '[' : ','}${inner}`;
        isFirst = false;
        yield* writeJson(element, indent, margin + indent);
      }
    }
    yield isFirst ? '[]' : `${outer}]`;
    return;
  }
  if (!hasPaged(value)) {
    yield JSON.stringify(value, null, indent).replaceAll('\n', margin);
    return;
  }
  let before = '{';
  for (const [name, member] of Object.entries(value)) {
    yield `${before}${inner}${JSON.stringify(name)}:${indent === '' ? '' : ' '}`;
    before = ',';
    yield* writeJson(member, indent, margin + indent);
  }
  yield `${outer}}`;
}

const hasPaged = (value: unknown): value is object =>
  typeof value === 'object' &&
  value !== null &&
  Object.values(value).some((member) => member instanceof PagedArray);
