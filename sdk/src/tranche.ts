import type {
  Checkout,
  CheckoutCreateRequest,
  CreatedCheckout,
  Links,
  Merchant,
  PaymentLink,
  PaymentLinkCreateRequest,
  Payout,
  PayoutWithLines,
  RefundCreateRequest,
  RefundRequest,
} from './api.ts';
import { type CallOptions, createSend, type Send, type TrancheOptions } from './request.ts';

export type CreateOptions = CallOptions & {
  /**
   * 1 to 255 printable ASCII characters. For 24 hours the same key with the same content creates
   * nothing new and returns the first answer. Without it, the SDK generates a key for each call. If
   * your program may crash and retry, choose a key for each attempt (`order-1001/1`) and store it
   * before the call. After a 422, or when the page has expired, the next attempt needs a new key.
   */
  idempotencyKey?: string | undefined;
};

export type ListOptions = CallOptions & {
  /** Default 100, the maximum, because the API serves one page of a list per minute. */
  itemsPerPage?: number | undefined;
};

export type OrderListOptions = ListOptions & {
  /** Only the checkouts with this reference, or the refund requests of these checkouts. */
  clientReferenceId?: string | undefined;
};

export type PayoutOptions = CallOptions & {
  /** The page of the lines. Default 1. */
  page?: number | undefined;
  /** Default 1000, the maximum. */
  itemsPerPage?: number | undefined;
};

export type CheckoutFields = CheckoutCreateRequest['checkout'];

/** All calls for one merchant. */
export type MerchantClient = {
  readonly checkouts: {
    /** Store the id with your order, and send the shopper to `payment_url`. */
    create(checkout: CheckoutFields, options?: CreateOptions): Promise<CreatedCheckout>;
    get(id: string, options?: CallOptions): Promise<Checkout>;
    /** All checkouts, newest first. Pages are fetched as the loop reaches them. */
    list(options?: OrderListOptions): AsyncGenerator<Checkout, void, undefined>;
  };
  readonly paymentLinks: {
    /** Send `attributes.url` to a shopper, or print its QR code. */
    create(link: PaymentLinkCreateRequest, options?: CreateOptions): Promise<PaymentLink>;
    get(id: string, options?: CallOptions): Promise<PaymentLink>;
    list(options?: ListOptions): AsyncGenerator<PaymentLink, void, undefined>;
  };
  readonly refunds: {
    create(refund: RefundCreateRequest, options?: CreateOptions): Promise<RefundRequest>;
    get(id: string, options?: CallOptions): Promise<RefundRequest>;
    list(options?: OrderListOptions): AsyncGenerator<RefundRequest, void, undefined>;
  };
  readonly payouts: {
    /** A payout with one page of its lines: `itemsPerPage` of them, or 1,000 by default. */
    get(id: string, options?: PayoutOptions): Promise<PayoutWithLines>;
    /** All payouts, newest first, without their lines. */
    list(options?: ListOptions): AsyncGenerator<Payout, void, undefined>;
  };
  /** Name, amount bands and terms. The limit is five calls an hour, so cache the answer. */
  config(options?: CallOptions): Promise<Merchant>;
};

/** The API of one integration, for a merchant's server. */
export class Tranche implements MerchantClient {
  readonly checkouts: MerchantClient['checkouts'];
  readonly paymentLinks: MerchantClient['paymentLinks'];
  readonly refunds: MerchantClient['refunds'];
  readonly payouts: MerchantClient['payouts'];
  readonly config: MerchantClient['config'];
  readonly #send: Send;

  constructor(options: TrancheOptions) {
    this.#send = createSend(options);
    const { checkouts, paymentLinks, refunds, payouts, config } = clientOf(this.#send, null);
    this.checkouts = checkouts;
    this.paymentLinks = paymentLinks;
    this.refunds = refunds;
    this.payouts = payouts;
    this.config = config;
  }

  /** A client for one of the merchants that an intermediary manages. */
  forMerchant(merchantId: string): MerchantClient {
    if (typeof merchantId !== 'string' || merchantId === '') {
      throw new TypeError('merchantId must be the id of a merchant that you manage.');
    }
    return clientOf(this.#send, merchantId);
  }
}

function clientOf(send: Send, merchant_id: string | null): MerchantClient {
  const target = merchant_id === null ? {} : { merchant_id };
  const filter: Record<string, string> =
    merchant_id === null ? {} : { 'filter[merchant_id]': merchant_id };
  /** The id of another merchant's row is then a 404. */
  const own = (id: string, query: Record<string, string> = {}) => {
    const text = new URLSearchParams({ ...filter, ...query }).toString();
    return { parameter: id, ...(text !== '' && { query: `?${text}` }) };
  };
  return {
    checkouts: {
      async create(checkout, options) {
        // The chosen merchant overrides a merchant_id in the fields.
        const body = { checkout: { ...checkout, ...target } };
        return (await send('POST /api/checkouts', { ...keyed(options), body })).data;
      },
      get: async (id, options) =>
        (await send('GET /api/checkouts/{id}', { ...options, ...own(id) })).data,
      list: (options) =>
        listAll<Checkout>((page) => send('GET /api/checkouts', page), filter, options),
    },
    paymentLinks: {
      create: async (link, options) =>
        (await send('POST /api/payment-links', { ...keyed(options), body: { ...link, ...target } }))
          .data,
      get: async (id, options) =>
        (await send('GET /api/payment-links/{id}', { ...options, ...own(id) })).data,
      list: (options) =>
        listAll<PaymentLink>((page) => send('GET /api/payment-links', page), filter, options),
    },
    refunds: {
      create: async (body, options) =>
        (await send('POST /api/refunds', { ...keyed(options), body: { ...body, ...target } })).data,
      get: async (id, options) =>
        (await send('GET /api/refunds/{id}', { ...options, ...own(id) })).data,
      list: (options) =>
        listAll<RefundRequest>((page) => send('GET /api/refunds', page), filter, options),
    },
    payouts: {
      async get(id, { page = 1, itemsPerPage = 1_000, ...options } = {}) {
        const lines = { 'page[number]': String(page), 'page[items]': String(itemsPerPage) };
        return (await send('GET /api/payouts/{id}', { ...options, ...own(id, lines) })).data;
      },
      list: (options) => listAll<Payout>((page) => send('GET /api/payouts', page), filter, options),
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

/** The contract allows one page a minute, so a page may have to wait that long. */
const pageWaitMs = 90_000;

type AskForPage<Item> = (
  request: CallOptions & { query: string; usualWaitMs: number },
) => Promise<{ data: Item[]; links: Links }>;

async function* listAll<Item extends { id: string }>(
  askForPage: AskForPage<Item>,
  merchant: Record<string, string>,
  { itemsPerPage = 100, clientReferenceId, ...options }: OrderListOptions = {},
): AsyncGenerator<Item, void, undefined> {
  const filter = {
    ...merchant,
    ...(clientReferenceId !== undefined && { 'filter[client_reference_id]': clientReferenceId }),
  };
  const first = new URLSearchParams({ ...filter, 'page[items]': String(itemsPerPage) });
  // New checkouts push older ones to later pages, where they would appear a second time.
  const seen = new Set<string>();
  let next: string | null = `?${first}`;
  while (next !== null) {
    const page = await askForPage({ ...options, usualWaitMs: pageWaitMs, query: next });
    for (const item of page.data) {
      if (seen.has(item.id)) continue;
      seen.add(item.id);
      yield item;
    }
    // Only the query of the link is used, because the client secret must go only to the base
    // address.
    next = page.links.next === null ? null : new URL(page.links.next).search;
  }
}
