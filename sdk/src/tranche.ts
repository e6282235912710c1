import type {
  Checkout,
  CheckoutCreateRequest,
  CreatedCheckout,
  Links,
  Merchant,
  RefundCreateRequest,
  RefundRequest,
} from './api.ts';
import { type CallOptions, createSend, type Send, type TrancheOptions } from './request.ts';

export type CreateOptions = CallOptions & {
  /**
   * 1 to 255 printable ASCII characters. The same key with the same content within 24 hours creates
   * nothing new and gives the first answer again. One is made up for each call unless given. Where
   * your program may die and ask again, give one for each attempt (`order-1001/1`) and store it with
   * the attempt before you ask. After a 422, or when the page has expired, the next attempt needs a
   * new one.
   */
  idempotencyKey?: string | undefined;
};

export type ListOptions = CallOptions & {
  /** Of one request; 100, which is the most, unless given: a list may be asked once a minute. */
  itemsPerPage?: number | undefined;
};

export type CheckoutFields = CheckoutCreateRequest['checkout'];

/** What there is to do for one merchant. */
export type MerchantClient = {
  readonly checkouts: {
    /** Keep the id beside your order, and send the shopper to `payment_url`. */
    create(checkout: CheckoutFields, options?: CreateOptions): Promise<CreatedCheckout>;
    get(id: string, options?: CallOptions): Promise<Checkout>;
    /** All of them, newest first, page by page as they are asked for. */
    list(options?: ListOptions): AsyncGenerator<Checkout, void, undefined>;
  };
  readonly refunds: {
    create(refund: RefundCreateRequest, options?: CreateOptions): Promise<RefundRequest>;
    get(id: string, options?: CallOptions): Promise<RefundRequest>;
    list(options?: ListOptions): AsyncGenerator<RefundRequest, void, undefined>;
  };
  /** Name, amount bands and terms. It may be asked five times an hour: keep what you were told. */
  config(options?: CallOptions): Promise<Merchant>;
};

/** The API of one integration, for a merchant's server. */
export class Tranche implements MerchantClient {
  readonly checkouts: MerchantClient['checkouts'];
  readonly refunds: MerchantClient['refunds'];
  readonly config: MerchantClient['config'];
  readonly #send: Send;

  constructor(options: TrancheOptions) {
    this.#send = createSend(options);
    const { checkouts, refunds, config } = clientOf(this.#send, null);
    this.checkouts = checkouts;
    this.refunds = refunds;
    this.config = config;
  }

  /** For an intermediary: the same for one of the merchants that it manages. */
  forMerchant(merchantId: string): MerchantClient {
    if (typeof merchantId !== 'string' || merchantId === '') {
      throw new TypeError('merchantId must be the id of a merchant that you manage.');
    }
    return clientOf(this.#send, merchantId);
  }
}

function clientOf(send: Send, merchant_id: string | null): MerchantClient {
  const target = merchant_id === null ? {} : { merchant_id };
  return {
    checkouts: {
      async create(checkout, options) {
        // The merchant that was chosen counts, also where the fields come from somewhere else.
        const body = { checkout: { ...checkout, ...target } };
        return (await send('POST /api/checkouts', { ...keyed(options), body })).data;
      },
      get: async (id, options) =>
        (await send('GET /api/checkouts/{id}', { ...options, parameter: id })).data,
      list: (options) =>
        walk<Checkout>((page) => send('GET /api/checkouts', page), merchant_id, options),
    },
    refunds: {
      create: async (body, options) =>
        (await send('POST /api/refunds', { ...keyed(options), body })).data,
      get: async (id, options) =>
        (await send('GET /api/refunds/{id}', { ...options, parameter: id })).data,
      list: (options) =>
        walk<RefundRequest>((page) => send('GET /api/refunds', page), merchant_id, options),
    },
    config: async (options) =>
      merchant_id === null
        ? (await send('GET /api/config', { ...options })).data
        : (
            await send('GET /api/merchants/{merchant_id}/config', {
              ...options,
              parameter: merchant_id,
            })
          ).data,
  };
}

function keyed({ idempotencyKey, ...options }: CreateOptions = {}) {
  return { ...options, ...(idempotencyKey !== undefined && { idempotencyKey }) };
}

/** The contract allows one page a minute, so that is how long it may take to get the next. */
const pageWaitMs = 90_000;

type AskForPage<Item> = (
  request: CallOptions & { query: string; usualWaitMs: number },
) => Promise<{ data: Item[]; links: Links }>;

async function* walk<Item extends { id: string }>(
  askForPage: AskForPage<Item>,
  merchant_id: string | null,
  { itemsPerPage = 100, ...options }: ListOptions = {},
): AsyncGenerator<Item, void, undefined> {
  const filter = merchant_id === null ? {} : { 'filter[merchant_id]': merchant_id };
  const first = new URLSearchParams({ ...filter, 'page[items]': String(itemsPerPage) });
  // What is created meanwhile moves the rest to later pages, and would make us meet it twice.
  const seen = new Set<string>();
  let next: string | null = `?${first}`;
  while (next !== null) {
    const page = await askForPage({ ...options, usualWaitMs: pageWaitMs, query: next });
    for (const item of page.data) {
      if (seen.has(item.id)) continue;
      seen.add(item.id);
      yield item;
    }
    // The rest of a link is not followed: our secret goes to our own base address only.
    next = page.links.next === null ? null : new URL(page.links.next).search;
  }
}
