import type { ListedCheckout, ListedRefund, Operation } from './history.ts';
import { findMisfit, type Step } from './linearize.ts';

// Judges a history from outside: it knows the format in README.md and nothing of the service.

export type Verdict = {
  operations: number;
  checkouts: number;
  refunds: number;
  problems: string[];
  /** Checkouts that this checker cannot judge, with the reason. */
  undecided: string[];
};

type State = { isMade: boolean; isPaid: boolean; remainder: number; refunds: readonly number[] };
/** The outcome of a payment is a step of its own, without an operation. */
type SaleStep = Step<State> & { operation: Operation | null };

/** One order of a merchant, from which at most one checkout may come. */
type Sale = {
  name: string;
  merchant: string;
  amount: number;
  ids: Set<string>;
  begin: number;
  /** When it was first known to exist. */
  known: number;
  /** When its first payment began. */
  paying: number;
  hasFailedRefund: boolean;
  steps: SaleStep[];
};

/**
 * Refund requests with one key, or one request without a key. At most one refund may come from it.
 */
type Request = {
  sale: Sale;
  number: number;
  amount: number;
  ids: Set<string>;
  begin: number;
  known: number;
  isUnanswered: boolean;
};

const never = Number.POSITIVE_INFINITY;
const remainderTold = /exceeds the refundable remainder of (\d+) cents/;

export function checkHistory(operations: readonly Operation[]): Verdict {
  const problems: string[] = [];
  const undecided: string[] = [];
  const sales = collectSales(operations, problems);
  const saleOf = new Map(
    [...sales.values()].flatMap((sale) => [...sale.ids].map((id) => [id, sale])),
  );
  const requests = collectRequests(operations, saleOf, problems);
  const requestOf = new Map(
    [...requests.values()].flatMap((one) => [...one.ids].map((id) => [id, one])),
  );
  addSaleSteps(operations, sales, saleOf);
  addRefundSteps(operations, requests, requestOf);
  const merchants = new Set([...sales.values()].map(({ merchant }) => merchant));
  for (const merchant of merchants) {
    const own = [...sales.values()].filter((sale) => sale.merchant === merchant);
    addAbsences(ofCheckouts(operations, merchant), own, problems, (sale, operation) =>
      sale.steps.push(reads(operation, (state) => !state.isMade)),
    );
    const refunds = [...requests.values()].filter(({ sale }) => sale.merchant === merchant);
    addAbsences(ofRefunds(operations, merchant), refunds, problems, ({ sale, number }, operation) =>
      sale.steps.push(reads(operation, (state) => !state.refunds.includes(number))),
    );
  }
  for (const sale of sales.values()) {
    if (sale.hasFailedRefund) {
      undecided.push(`${sale.name}: a refund failed, and a failed refund may return its amount`);
      continue;
    }
    const start = { isMade: false, isPaid: false, remainder: sale.amount, refunds: [] };
    const misfit = findMisfit<State, SaleStep>(sale.steps, start, (state) => JSON.stringify(state));
    if (misfit === 'undecided') undecided.push(`${sale.name}: too many orders are possible`);
    else if (misfit?.operation)
      problems.push(`${sale.name}: ${tell(misfit.operation)} fits into no order`);
  }
  return {
    operations: operations.length,
    checkouts: saleOf.size,
    refunds: requestOf.size,
    problems,
    undecided,
  };
}

function tell({ client, call, input, output, begin, end }: Operation): string {
  const times = `${Math.round(begin)}–${end === null ? '?' : Math.round(end)} ms`;
  return `${call} ${JSON.stringify(input)} of ${client} (${times}), answered ${JSON.stringify(output).slice(0, 300)},`;
}

function collectSales(operations: readonly Operation[], problems: string[]): Map<string, Sale> {
  const sales = new Map<string, Sale>();
  const keys = new Map<string, Set<string>>();
  for (const { call, input, output, begin, end } of operations) {
    if (call !== 'create') continue;
    const { merchant, reference, amount, key } = input;
    const name = `${merchant} ${reference}`;
    const sale: Sale = sales.get(name) ?? {
      ...{ name, merchant, amount, ids: new Set(), begin, known: never },
      ...{ paying: never, hasFailedRefund: false, steps: [] },
    };
    sales.set(name, sale);
    sale.begin = Math.min(sale.begin, begin);
    if (output?.id === undefined) continue;
    sale.ids.add(output.id);
    sale.known = Math.min(sale.known, end ?? never);
    if (key !== null)
      keys.set(`${merchant} ${key}`, (keys.get(`${merchant} ${key}`) ?? new Set()).add(output.id));
  }
  for (const [key, ids] of keys) {
    if (ids.size > 1)
      problems.push(`the key ${key} made ${ids.size} checkouts: ${[...ids].join(' ')}`);
  }
  for (const { merchant, checkout, end } of shownCheckouts(operations)) {
    const sale = sales.get(`${merchant} ${checkout.reference}`);
    if (sale === undefined || checkout.amount !== sale.amount) {
      problems.push(`no request made the checkout ${JSON.stringify(checkout)}`);
      continue;
    }
    sale.ids.add(checkout.id);
    sale.known = Math.min(sale.known, end);
  }
  for (const { name, ids } of sales.values()) {
    if (ids.size > 1) problems.push(`${name} has ${ids.size} checkouts: ${[...ids].join(' ')}`);
  }
  return sales;
}

function* shownCheckouts(operations: readonly Operation[]) {
  for (const { call, input, output, end } of operations) {
    if (call !== 'get' && call !== 'list') continue;
    if (output === null || end === null) continue;
    const shown =
      'checkouts' in output ? output.checkouts : 'checkout' in output ? [output.checkout] : [];
    for (const checkout of (shown ?? []) as ListedCheckout[]) {
      yield { merchant: input.merchant, checkout, end };
    }
  }
}

function collectRequests(
  operations: readonly Operation[],
  saleOf: Map<string, Sale>,
  problems: string[],
): Map<string, Request> {
  const requests = new Map<string, Request>();
  for (const [index, { call, input, output, begin, end }] of operations.entries()) {
    if (call !== 'refund') continue;
    const sale = saleOf.get(input.checkout);
    if (sale === undefined) continue;
    const name = requestName(input, index);
    const request: Request = requests.get(name) ?? {
      ...{ sale, number: requests.size, amount: input.amount, ids: new Set() },
      ...{ begin, known: never, isUnanswered: false },
    };
    requests.set(name, request);
    request.begin = Math.min(request.begin, begin);
    if (output === null) request.isUnanswered = true;
    if (output?.id === undefined) continue;
    request.ids.add(output.id);
    request.known = Math.min(request.known, end ?? never);
  }
  const known = new Set([...requests.values()].flatMap(({ ids }) => [...ids]));
  for (const { refund, end } of shownRefunds(operations)) {
    const sale = saleOf.get(refund.checkout);
    if (sale && refund.status === 'failed') sale.hasFailedRefund = true;
    if (known.has(refund.id)) continue;
    // Its answer was lost. Equal requests cannot be told apart, so the earliest one stands for it.
    const lost = [...requests.values()]
      .filter((one) => one.sale === sale && one.amount === refund.amount && one.begin < end)
      .filter((one) => one.isUnanswered && one.ids.size === 0)
      .sort((one, other) => one.begin - other.begin)[0];
    if (lost === undefined) problems.push(`no request made the refund ${JSON.stringify(refund)}`);
    else lost.ids.add(refund.id);
    known.add(refund.id);
  }
  for (const { sale, ids } of requests.values()) {
    if (ids.size > 1)
      problems.push(`${sale.name}: one request made ${ids.size} refunds: ${[...ids].join(' ')}`);
  }
  return requests;
}

const requestName = (input: { merchant: string; key: string | null }, index: number) =>
  input.key === null ? String(index) : `${input.merchant} ${input.key}`;

function* shownRefunds(operations: readonly Operation[]) {
  for (const { call, output, end } of operations) {
    if (call !== 'refunds' || end === null) continue;
    for (const refund of output?.refunds ?? []) yield { refund, end };
  }
}

const reads = (operation: Operation, isTrue: (state: State) => boolean): SaleStep => ({
  operation,
  begin: operation.begin,
  end: operation.end ?? never,
  isOptional: false,
  apply: (state) => (isTrue(state) ? state : null),
});

const shows = (operation: Operation, { status }: ListedCheckout): SaleStep =>
  reads(operation, ({ isMade, isPaid }) =>
    status === 'received' ? isMade && !isPaid : status === 'successful' && isMade && isPaid,
  );

function addSaleSteps(
  operations: readonly Operation[],
  sales: Map<string, Sale>,
  saleOf: Map<string, Sale>,
): void {
  for (const operation of operations) {
    const { call, input, output, begin, end } = operation;
    if (call === 'create') {
      if (output !== null && output.status !== 200) continue;
      const isOptional = output === null;
      sales.get(`${input.merchant} ${input.reference}`)?.steps.push({
        ...{ operation, begin, end: end ?? never, isOptional },
        apply: (state) => {
          if (!state.isMade) return { ...state, isMade: true };
          return input.key === null ? null : state;
        },
      });
    } else if (call === 'get') {
      const sale = saleOf.get(input.checkout);
      if (output?.checkout) sale?.steps.push(shows(operation, output.checkout));
      if (output?.status === 404) sale?.steps.push(reads(operation, ({ isMade }) => !isMade));
    } else if (call === 'list') {
      for (const one of output?.checkouts ?? [])
        saleOf.get(one.id)?.steps.push(shows(operation, one));
    } else if (call === 'state' || call === 'pay') {
      const sale = saleOf.get(input.checkout);
      if (sale === undefined) continue;
      if (output?.page !== undefined) {
        const { page } = output;
        sale.steps.push(
          reads(operation, ({ isMade, isPaid }) =>
            page === 'successful' ? isPaid : isMade && (page !== 'open' || !isPaid),
          ),
        );
      }
      const mayPay = call === 'pay' && (output === null || output.status === 200);
      if (mayPay) sale.paying = Math.min(sale.paying, begin);
    }
  }
  for (const sale of sales.values()) {
    if (sale.paying === never) continue;
    // The outcome of a payment may be recorded long after its answer.
    sale.steps.push({
      ...{ operation: null, begin: sale.paying, end: never, isOptional: true },
      apply: (state) => (state.isMade && !state.isPaid ? { ...state, isPaid: true } : null),
    });
  }
}

function addRefundSteps(
  operations: readonly Operation[],
  requests: Map<string, Request>,
  requestOf: Map<string, Request>,
): void {
  for (const [index, operation] of operations.entries()) {
    const { call, input, output, begin, end } = operation;
    if (call === 'refunds') {
      for (const { id } of output?.refunds ?? []) {
        const request = requestOf.get(id);
        request?.sale.steps.push(
          reads(operation, ({ refunds }) => refunds.includes(request.number)),
        );
      }
    }
    if (call !== 'refund') continue;
    const request = requests.get(requestName(input, index));
    if (request === undefined) continue;
    const { sale, number } = request;
    if (output === null || output.status === 200) {
      sale.steps.push({
        ...{ operation, begin, end: end ?? never, isOptional: output === null },
        apply: (state) => {
          if (state.refunds.includes(number)) return input.key === null ? null : state;
          if (!state.isPaid || input.amount > state.remainder) return null;
          const remainder = state.remainder - input.amount;
          const refunds = [...state.refunds, number].sort((one, other) => one - other);
          return { ...state, remainder, refunds };
        },
      });
    } else if (output.status === 422) {
      const told = remainderTold.exec(output.detail ?? '')?.[1];
      sale.steps.push(
        reads(operation, ({ isPaid, remainder, refunds }) =>
          told === undefined
            ? !isPaid
            : isPaid &&
              !refunds.includes(number) &&
              remainder === Number(told) &&
              input.amount > remainder,
        ),
      );
    }
  }
}

type Page = { operation: Operation; ids: string[]; page: number; items: number; more: boolean };

const ofCheckouts = (operations: readonly Operation[], merchant: string): Page[] =>
  operations.flatMap((operation) =>
    operation.call === 'list' &&
    operation.input.merchant === merchant &&
    operation.output?.checkouts
      ? [toPage(operation, operation.input, operation.output.checkouts, operation.output.more)]
      : [],
  );
const ofRefunds = (operations: readonly Operation[], merchant: string): Page[] =>
  operations.flatMap((operation) =>
    operation.call === 'refunds' &&
    operation.input.merchant === merchant &&
    operation.output?.refunds
      ? [toPage(operation, operation.input, operation.output.refunds, operation.output.more)]
      : [],
  );
const toPage = (
  operation: Operation,
  { page, items }: { page: number; items: number },
  shown: (ListedCheckout | ListedRefund)[],
  more = false,
): Page => ({ operation, ids: shown.map(({ id }) => id), page, items, more });

/**
 * A list is newest first and complete, so a page shows everything that is newer than its last item.
 * The last reading of all pages tells which items are newer.
 */
function addAbsences<T extends { ids: Set<string>; begin: number; known: number }>(
  pages: Page[],
  things: T[],
  problems: string[],
  add: (thing: T, operation: Operation) => void,
): void {
  const reading = findReading(pages);
  const order = reading.flatMap(({ ids }) => ids);
  const thingOf = new Map(things.flatMap((thing) => [...thing.ids].map((id) => [id, thing])));
  if (new Set(order).size < order.length) problems.push('the pages of a list show a row twice');
  const places = new Map(order.map((id, place) => [id, place]));
  const lastRead = reading.at(-1)?.operation;
  if (lastRead !== undefined) {
    for (const [id, thing] of thingOf) if (!places.has(id)) add(thing, lastRead);
  }
  for (const { operation, ids, page, more } of pages) {
    if (page !== 1) continue;
    const shown = new Set(ids);
    const last = more ? places.get(ids.at(-1) ?? '') : order.length;
    if (last === undefined) continue;
    for (const id of order.slice(0, last)) {
      const thing = thingOf.get(id);
      if (thing && !shown.has(id) && thing.begin < (operation.end ?? never)) add(thing, operation);
    }
  }
  let begun = Number.NEGATIVE_INFINITY;
  for (const id of order.toReversed()) {
    const thing = thingOf.get(id);
    if (thing === undefined) continue;
    if (thing.known < begun)
      problems.push(`${id} is listed as newer than a row that was made later`);
    begun = Math.max(begun, thing.begin);
  }
}

/** The last reading from page 1 to the last page by one client, or nothing. */
function findReading(pages: Page[]): Page[] {
  const end = pages.findLast(({ more }) => !more);
  if (end === undefined) return [];
  const reading = [end];
  for (let page = end.page - 1; page >= 1; page -= 1) {
    const after = reading[0] as Page;
    const before = pages.findLast(
      (one) =>
        one.page === page &&
        one.items === end.items &&
        one.operation.client === end.operation.client &&
        one.operation.begin < after.operation.begin,
    );
    if (before === undefined) return [];
    reading.unshift(before);
  }
  return reading;
}
