import Type from 'typebox';
import { badRequest } from './errors.ts';

export type Page = { number: number; items: number };

const defaultItems = 10;
const itemsMax = 100;

export const PageQuery = {
  'page[number]': Type.Optional(
    Type.Integer({ minimum: 1, default: 1, description: 'Page, the newest first.' }),
  ),
  'page[items]': Type.Optional(
    Type.Integer({
      minimum: 1,
      default: defaultItems,
      description: `Items on a page. More than ${itemsMax} is treated as ${itemsMax}.`,
    }),
  ),
};

const link = (description: string) => Type.String({ format: 'uri', description });

export const Links = Type.Object(
  {
    first: link('The first page.'),
    last: link('The last page.'),
    prev: Type.Union([link('The page before.'), Type.Null()], {
      description: 'The page before; null on the first.',
    }),
    next: Type.Union([link('The page after.'), Type.Null()], {
      description: 'The page after; null on the last.',
    }),
  },
  { title: 'Links', description: 'Addresses of other pages of the same list.' },
);

export function readPage(
  query: Record<string, unknown>,
  limits = { itemsDefault: defaultItems, itemsMax },
): Page {
  return {
    number: readCount(query, 'page[number]', 1),
    items: Math.min(readCount(query, 'page[items]', limits.itemsDefault), limits.itemsMax),
  };
}

function readCount(query: Record<string, unknown>, name: string, byDefault: number): number {
  const text = query[name];
  if (text === undefined) return byDefault;
  if (Array.isArray(text)) throw givenTwice(name);
  if (typeof text !== 'string' || !/^\d+$/.test(text) || Number(text) < 1) {
    throw badRequest(`The query parameter ${name} must be an integer of at least 1.`);
  }
  return Number(text);
}

export const givenTwice = (name: string) =>
  badRequest(`The query parameter ${name} is given more than once: give it once.`);

/** Absolute links that keep the page size in use and the caller's filters (decision 0009). */
export function presentLinks(
  address: string,
  filter: Record<string, string>,
  total: number,
  page: Page,
): Type.Static<typeof Links> {
  const last = Math.max(1, Math.ceil(total / page.items));
  const to = (number: number) => {
    const query = new URLSearchParams({
      ...filter,
      'page[number]': String(number),
      'page[items]': String(page.items),
    });
    return `${address}?${query}`;
  };
  return {
    first: to(1),
    last: to(last),
    prev: page.number > 1 ? to(Math.min(page.number - 1, last)) : null,
    next: page.number < last ? to(page.number + 1) : null,
  };
}
