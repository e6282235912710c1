// Written by sdk/generate-types.ts from the descriptions that the service gives of itself.

/** One problem with the request. */
export type ErrorObject = {
  /** The HTTP status, as a string. */
  status: string;
  /** The kind of error, for programs. */
  code:
    | 'bad_request'
    | 'unauthorized'
    | 'not_found'
    | 'unprocessable_entity'
    | 'internal_server_error'
    | 'service_unavailable';
  /** The kind of error, for people. */
  title: string;
  /** A sentence that says exactly what is wrong. */
  detail: string;
};

/** Why a request was refused: one error object per problem. */
export type Errors = {
  errors: ErrorObject[];
};

/** Too many requests. The only error without `errors`. */
export type RateLimited = {
  /** Ends in a hint, `Try again in N seconds.`, where N is the whole window. */
  error: string;
};

/** An amount band with its instalment terms. */
export type Rule = {
  /** Band minimum in cents, inclusive. */
  from_amount: number;
  /** Band maximum in cents, inclusive. */
  to_amount: number;
  /** Instalment terms in months available in the band; 1 means once-off. */
  terms: number[];
};

/** A merchant and its rules. */
export type Merchant = {
  /** Merchant identifier. */
  id: string;
  type: 'merchants';
  attributes: {
    /** Merchant display name shown to shoppers. */
    name: string;
    /** Amount bands with instalment terms. */
    rules: Rule[];
  };
};

/** A checkout that was just created. */
export type CreatedCheckout = {
  /** Checkout ID. Keep it: the callback does not carry it. */
  id: string;
  /** Hosted payment page. Can be opened for 30 minutes. */
  payment_url: string;
};

/** The shopper. */
export type Customer = {
  /** Shopper e-mail address. */
  email: string;
  /** First name. */
  first_name?: string | undefined;
  /** Last name. */
  last_name?: string | undefined;
  /** Phone number, without spaces. */
  phone_number?: string | undefined;
  /** Free text. */
  billing_address?: string | undefined;
};

/** One line of the cart. */
export type LineItem = {
  /** Display name. */
  name: string;
  /** Unit price in cents. A discount is a line with a negative amount. */
  amount: number;
  /** Number of units. */
  quantity: number;
};

export type CheckoutCreateRequest = {
  /** Wrapper for all fields. */
  checkout: {
    /** Total payable amount in cents. Must fall inside one band of the merchant config `rules`. */
    amount: number;
    /** ISO 4217 code; must equal the merchant territory currency (`ZAR`). */
    currency: string;
    /** Merchant's identifier for the order; echoed verbatim in the callback. */
    client_reference_id: string;
    /** Public HTTPS endpoint that receives the signed callback. */
    notify_url: string;
    /** Browser destination after successful payment. */
    success_url: string;
    /** Browser destination when the shopper cancels. */
    cancel_url: string;
    customer: Customer;
    /** Cart contents shown on the payment summary. */
    line_items?: LineItem[] | undefined;
  };
};

/** One order to be paid in instalments. */
export type Checkout = {
  /** Checkout ID. */
  id: string;
  type: 'checkouts';
  attributes: {
    /** Amount in cents. */
    amount: number;
    /** ISO 4217 code. */
    currency: string;
    /** Status of the checkout. */
    status: 'received' | 'successful' | 'cancelled' | 'invalid_payload';
    /** Creation time. */
    created_at: string;
    /** As sent on creation. */
    client_reference_id: string;
    /** The instalment term that the shopper chose; null until then. */
    number_of_payments: number | null;
    /** When the payment page expires. */
    expires_at: string;
  };
};

/** Addresses of other pages of the same list. */
export type Links = {
  /** The first page. */
  first: string;
  /** The last page. */
  last: string;
  /** The page before; null on the first. */
  prev: string | null;
  /** The page after; null on the last. */
  next: string | null;
};

/** A request to refund all or part of a checkout. */
export type RefundRequest = {
  /** Refund request ID. */
  id: string;
  type: 'refund_requests';
  attributes: {
    /** Refund amount in cents. */
    amount: number;
    /** ISO 4217 code. */
    currency: string;
    /** Status of the request. */
    status: 'requested' | 'pending' | 'complete' | 'failed';
    /** Creation time. */
    created_at: string;
    /** The refunded checkout. */
    checkout_id: string;
    /** Why the refund failed, in words for people. Only on `failed` requests. */
    reason?: string | undefined;
  };
};

export type RefundCreateRequest = {
  /** The `data.id` of the checkout to refund. */
  checkout_id: string;
  /** Cents; at most the checkout amount minus previously refunded amounts. */
  amount: number;
};

/** A link or QR code that a shopper opens to pay. */
export type PaymentLink = {
  /** Payment link ID. */
  id: string;
  type: 'payment_links';
  attributes: {
    /** The address that shoppers open. */
    url: string;
    /** The same address as a QR code, in an SVG image. */
    qr_svg_url: string;
    /** `active` while a shopper can open it, then `paid`, `cancelled` or `expired`. A reusable link is never `paid`. */
    status: 'active' | 'paid' | 'cancelled' | 'expired';
    /** Amount in cents; null if each shopper types it. */
    amount: number | null;
    /** ISO 4217 code. */
    currency: string;
    /** As sent on creation. */
    client_reference_id: string;
    /** Whether it makes many checkouts. */
    reusable: boolean;
    /** Creation time. */
    created_at: string;
    /** When it expires; null if it never does. */
    expires_at: string | null;
    /** Its newest checkout; null until a shopper presses the button on the link’s page. */
    checkout_id: string | null;
  };
};

export type PaymentLinkCreateRequest = {
  /** Amount in cents, inside one band of the merchant config `rules`. Required, unless the link is reusable: without it each shopper types the amount. */
  amount?: number | undefined;
  /** ISO 4217 code; must equal the merchant territory currency (`ZAR`). */
  currency: string;
  /** Your identifier for the order. Each checkout of a reusable link adds a number to it: `till-1` becomes `till-1-1`, `till-1-2` and so on. */
  client_reference_id: string;
  customer?: Customer | undefined;
  /** When the link expires, at most 30 days from now. Without it a link expires after 30 days, and a reusable one never does. */
  expires_at?: string | undefined;
  /** One link for many checkouts, for example a code at a till. False if absent. */
  reusable?: boolean | undefined;
  /** Whether we send the link to `customer.email`, in your language and with your name. We send at most 100 links per merchant in 24 hours. False if absent. */
  mail?: boolean | undefined;
  /** Public HTTPS endpoint that receives the signed callbacks of its checkouts. Without it there are no callbacks: see in the console, or with GET, who has paid. */
  notify_url?: string | undefined;
  /** Browser destination after successful payment. Without it the shopper stays on the payment page, which is their receipt. */
  success_url?: string | undefined;
  /** Browser destination when the shopper cancels. Without it the shopper returns to the page of the link. */
  cancel_url?: string | undefined;
};

/** The amount that you are paid on one business day. */
export type Payout = {
  /** Payout ID. */
  id: string;
  type: 'payouts';
  attributes: {
    /** The reference on your bank statement. */
    reference: string;
    /** The business day of the payout. */
    business_date: string;
    /** Cents. The `net` amounts of all lines sum to it. */
    amount: number;
    /** ISO 4217 code. */
    currency: string;
    /** `draft` until it is approved, `exported` when the bank has the order, then `paid` or `returned`. */
    status: 'draft' | 'approved' | 'exported' | 'paid' | 'returned';
    /** How many lines it has. */
    number_of_lines: number;
    /** Creation time. */
    created_at: string;
    /** When the bank paid it. Only once it has. */
    paid_at?: string | undefined;
    /** The bank's reference. Only once it was paid. */
    bank_reference?: string | undefined;
  };
};

/** One line of a payout. */
export type PayoutLine = {
  /** `sale`, `refund`, `refund_reversed`, `dispute`, `dispute_reversed`, `dispute_fee`, `reserve`, `reserve_released` or `payout_returned`. More kinds may follow. */
  kind: string;
  /** The checkout that it belongs to, or null. */
  checkout_id: string | null;
  /** Your identifier for the order. */
  client_reference_id: string | null;
  /** Cents before fees; negative if you owe them. */
  gross: number;
  /** Our fee, excluding VAT. */
  fee: number;
  /** The VAT on the fee. */
  vat: number;
  /** `gross` minus `fee` and `vat`. */
  net: number;
  /** When it happened. */
  at: string;
};

/** A payout with one page of its lines. */
export type PayoutWithLines = {
  /** Payout ID. */
  id: string;
  type: 'payouts';
  attributes: {
    /** The reference on your bank statement. */
    reference: string;
    /** The business day of the payout. */
    business_date: string;
    /** Cents. The `net` amounts of all lines sum to it. */
    amount: number;
    /** ISO 4217 code. */
    currency: string;
    /** `draft` until it is approved, `exported` when the bank has the order, then `paid` or `returned`. */
    status: 'draft' | 'approved' | 'exported' | 'paid' | 'returned';
    /** How many lines it has. */
    number_of_lines: number;
    /** Creation time. */
    created_at: string;
    /** When the bank paid it. Only once it has. */
    paid_at?: string | undefined;
    /** The bank's reference. Only once it was paid. */
    bank_reference?: string | undefined;
    /** One page of its lines, in order. */
    lines: PayoutLine[];
  };
};

/** The outcome of a checkout. */
export type Callback = {
  /** How the checkout ended. There is no `failed`. */
  status: 'successful' | 'cancelled';
  /** Full payable amount in cents, as sent on creation. */
  amount: number;
  /** ISO 4217 code, as sent on creation. */
  currency: string;
  /** Merchant's reference, echoed verbatim. */
  client_reference_id: string;
  /** Instalment term that the shopper chose; 1 is once-off. */
  number_of_payments: number;
};

/** Optional. The body may be empty. */
export type CallbackAnswer = {
  /** Absolute http or https URL. The shopper’s browser is sent there instead of `success_url` or `cancel_url`. An empty or malformed URL is ignored. */
  redirect_url?: string | undefined;
};

/** An object changed. */
export type RefundEvent = {
  event: 'refund.updated';
  /** Names the event. Every attempt to deliver it carries the same value. */
  id: string;
  /** Counts the events about this object, beginning with 1. */
  sequence: number;
  /** When the object changed. */
  created_at: string;
  /** The merchant that it belongs to. */
  merchant_id: string;
  data: RefundRequest;
};

/** A payment that the cardholder reverses through the bank. */
export type Dispute = {
  /** Dispute ID. */
  id: string;
  type: 'disputes';
  attributes: {
    /** The disputed amount in cents. */
    amount: number;
    /** ISO 4217 code. */
    currency: string;
    /** `inquiry` while the bank only asks, `needs_response` until evidence is submitted, `under_review` while the bank decides, then `won`, `lost` or `closed`. */
    status: 'inquiry' | 'needs_response' | 'under_review' | 'won' | 'lost' | 'closed';
    /** Why the cardholder disputes it, according to the card network. */
    reason: string;
    /** When the service learned of it. */
    created_at: string;
    /** The disputed checkout. */
    checkout_id: string;
    /** The deadline for evidence. Only if the bank set one. */
    respond_by?: string | undefined;
    /** When it ended. Only once it has. */
    closed_at?: string | undefined;
  };
};

/** An object changed. */
export type DisputeEvent = {
  event: 'dispute.updated';
  /** Names the event. Every attempt to deliver it carries the same value. */
  id: string;
  /** Counts the events about this object, beginning with 1. */
  sequence: number;
  /** When the object changed. */
  created_at: string;
  /** The merchant that it belongs to. */
  merchant_id: string;
  data: Dispute;
};

/** An object changed. */
export type PayoutEvent = {
  event: 'payout.updated';
  /** Names the event. Every attempt to deliver it carries the same value. */
  id: string;
  /** Counts the events about this object, beginning with 1. */
  sequence: number;
  /** When the object changed. */
  created_at: string;
  /** The merchant that it belongs to. */
  merchant_id: string;
  data: Payout;
};

export type IntermediaryCheckoutCreateRequest = {
  /** Wrapper for all fields. */
  checkout: {
    /** The managed merchant that the checkout is for. */
    merchant_id: string;
    /** Total payable amount in cents. Must fall inside one band of the merchant config `rules`. */
    amount: number;
    /** ISO 4217 code; must equal the merchant territory currency (`ZAR`). */
    currency: string;
    /** Merchant's identifier for the order; echoed verbatim in the callback. */
    client_reference_id: string;
    /** Public HTTPS endpoint that receives the signed callback. */
    notify_url: string;
    /** Browser destination after successful payment. */
    success_url: string;
    /** Browser destination when the shopper cancels. */
    cancel_url: string;
    customer: Customer;
    /** Cart contents shown on the payment summary. */
    line_items?: LineItem[] | undefined;
  };
};

export type IntermediaryRefundCreateRequest = {
  /** The `data.id` of the checkout to refund. */
  checkout_id: string;
  /** Cents; at most the checkout amount minus previously refunded amounts. */
  amount: number;
  /** The managed merchant that must own the checkout. If it does not, the answer is a 404. */
  merchant_id?: string | undefined;
};

export type IntermediaryPaymentLinkCreateRequest = {
  /** The managed merchant that the link is for. */
  merchant_id: string;
  /** Amount in cents, inside one band of the merchant config `rules`. Required, unless the link is reusable: without it each shopper types the amount. */
  amount?: number | undefined;
  /** ISO 4217 code; must equal the merchant territory currency (`ZAR`). */
  currency: string;
  /** Your identifier for the order. Each checkout of a reusable link adds a number to it: `till-1` becomes `till-1-1`, `till-1-2` and so on. */
  client_reference_id: string;
  customer?: Customer | undefined;
  /** When the link expires, at most 30 days from now. Without it a link expires after 30 days, and a reusable one never does. */
  expires_at?: string | undefined;
  /** One link for many checkouts, for example a code at a till. False if absent. */
  reusable?: boolean | undefined;
  /** Whether we send the link to `customer.email`, in your language and with your name. We send at most 100 links per merchant in 24 hours. False if absent. */
  mail?: boolean | undefined;
  /** Public HTTPS endpoint that receives the signed callbacks of its checkouts. Without it there are no callbacks: see in the console, or with GET, who has paid. */
  notify_url?: string | undefined;
  /** Browser destination after successful payment. Without it the shopper stays on the payment page, which is their receipt. */
  success_url?: string | undefined;
  /** Browser destination when the shopper cancels. Without it the shopper returns to the page of the link. */
  cancel_url?: string | undefined;
};

/** The request and the answer of each endpoint. */
export type Endpoints = {
  'GET /api/config': {
    body: null;
    answer: {
      data: Merchant;
    };
  };
  'POST /api/checkouts': {
    body: CheckoutCreateRequest;
    answer: {
      data: CreatedCheckout;
    };
  };
  'GET /api/checkouts': {
    body: null;
    answer: {
      data: Checkout[];
      links: Links;
    };
  };
  'GET /api/checkouts/{id}': {
    body: null;
    answer: {
      data: Checkout;
    };
  };
  'POST /api/refunds': {
    body: RefundCreateRequest;
    answer: {
      data: RefundRequest;
    };
  };
  'GET /api/refunds': {
    body: null;
    answer: {
      data: RefundRequest[];
      links: Links;
    };
  };
  'GET /api/refunds/{id}': {
    body: null;
    answer: {
      data: RefundRequest;
    };
  };
  'POST /api/payment-links': {
    body: PaymentLinkCreateRequest;
    answer: {
      data: PaymentLink;
    };
  };
  'GET /api/payment-links': {
    body: null;
    answer: {
      data: PaymentLink[];
      links: Links;
    };
  };
  'GET /api/payment-links/{id}': {
    body: null;
    answer: {
      data: PaymentLink;
    };
  };
  'GET /api/payouts': {
    body: null;
    answer: {
      data: Payout[];
      links: Links;
    };
  };
  'GET /api/payouts/{id}': {
    body: null;
    answer: {
      data: PayoutWithLines;
      links: Links;
    };
  };
};

/** The request and the answer of each endpoint for an intermediary. */
export type IntermediaryEndpoints = {
  'GET /api/merchants/{merchant_id}/config': {
    body: null;
    answer: {
      data: Merchant;
    };
  };
  'POST /api/checkouts': {
    body: IntermediaryCheckoutCreateRequest;
    answer: {
      data: CreatedCheckout;
    };
  };
  'GET /api/checkouts': {
    body: null;
    answer: {
      data: Checkout[];
      links: Links;
    };
  };
  'GET /api/checkouts/{id}': {
    body: null;
    answer: {
      data: Checkout;
    };
  };
  'POST /api/refunds': {
    body: IntermediaryRefundCreateRequest;
    answer: {
      data: RefundRequest;
    };
  };
  'GET /api/refunds': {
    body: null;
    answer: {
      data: RefundRequest[];
      links: Links;
    };
  };
  'GET /api/refunds/{id}': {
    body: null;
    answer: {
      data: RefundRequest;
    };
  };
  'POST /api/payment-links': {
    body: IntermediaryPaymentLinkCreateRequest;
    answer: {
      data: PaymentLink;
    };
  };
  'GET /api/payment-links': {
    body: null;
    answer: {
      data: PaymentLink[];
      links: Links;
    };
  };
  'GET /api/payment-links/{id}': {
    body: null;
    answer: {
      data: PaymentLink;
    };
  };
  'GET /api/payouts': {
    body: null;
    answer: {
      data: Payout[];
      links: Links;
    };
  };
  'GET /api/payouts/{id}': {
    body: null;
    answer: {
      data: PayoutWithLines;
      links: Links;
    };
  };
};
