import type Stripe from 'stripe';
import type { Context } from '../books/context.ts';
import type { Kept, Kind } from '../store.ts';
import { invalidRequest, missing } from './errors.ts';
import { type Form, readForm, type Shape } from './form.ts';
import { type Answer, ok } from './operation.ts';

const pageShape = {
  limit: 'integer',
  starting_after: 'string',
  ending_before: 'string',
  created: { gt: 'integer', gte: 'integer', lt: 'integer', lte: 'integer' },
  expand: 'strings',
} as const;

/**
 * Answers one page of a list as Stripe does: newest first, with a cursor in either direction.
 * `filters` are the members of the object by which the caller may filter.
 */
export function answerList<K extends Kind>(
  context: Context,
  form: Form,
  list: {
    kind: K;
    url: string;
    filters: string[];
    /** Presents an object. Refuses members that it cannot expand. */
    present: (kept: Kept<K>, expand: string[] | undefined) => object;
    isExpandable?: boolean;
  },
): Answer {
  const { store } = context;
  const own: Shape = Object.fromEntries(list.filters.map((name) => [name, 'string' as const]));
  const given = readForm(form, { ...own, ...pageShape }) as {
    limit?: number;
    starting_after?: string;
    ending_before?: string;
    created?: Record<string, number>;
    expand?: string[];
  } & Record<string, unknown>;
  if (given.expand !== undefined && !list.isExpandable) {
    throw invalidRequest('Nothing of this list can be expanded.', { param: 'expand' });
  }
  const limit = given.limit ?? 10;
  if (limit < 1 || limit > 100) {
    throw invalidRequest('Invalid limit: it must be between 1 and 100.', { param: 'limit' });
  }
  if (given.starting_after !== undefined && given.ending_before !== undefined) {
    throw invalidRequest('Pass starting_after or ending_before, not both.', {
      code: 'parameters_exclusive',
      param: 'ending_before',
    });
  }
  for (const cursor of ['starting_after', 'ending_before'] as const) {
    const id = given[cursor];
    if (id !== undefined && store.find(list.kind, id) === null) {
      throw missing(list.kind, id, cursor);
    }
  }
  const members = list.filters.flatMap((name) =>
    given[name] === undefined ? [] : [[name, String(given[name])] as const],
  );
  const found = store.page(list.kind, {
    members,
    created: given.created ?? {},
    after: given.starting_after,
    before: given.ending_before,
    limit: limit + 1,
  });
  const has_more = found.length > limit;
  const page = found.slice(0, limit);
  if (given.ending_before !== undefined) page.reverse();
  const body: Stripe.ApiList<object> = {
    object: 'list',
    data: page.map((kept) => list.present(kept, given.expand)),
    has_more,
    url: list.url,
  };
  return ok(body);
}
