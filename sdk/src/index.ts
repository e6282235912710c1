export type {
  Callback,
  CallbackAnswer,
  Checkout,
  CreatedCheckout,
  Customer,
  Dispute,
  DisputeEvent,
  ErrorObject,
  LineItem,
  Merchant,
  PaymentLink,
  PaymentLinkCreateRequest,
  Payout,
  PayoutEvent,
  PayoutLine,
  PayoutWithLines,
  RefundCreateRequest,
  RefundEvent,
  RefundRequest,
  Rule,
} from './api.ts';
export {
  type CallbackHandlerOptions,
  type CallbackHandlers,
  callbackHandlers,
  RefuseCallback,
} from './callback-handlers.ts';
export type { GivenHeaders } from './callback-headers.ts';
export {
  BadRequestError,
  ConnectionError,
  NotFoundError,
  RateLimitedError,
  ServerError,
  TrancheError,
  UnauthorizedError,
  UnprocessableError,
} from './errors.ts';
export type { ReplayStore } from './replays.ts';
export type { CallOptions, TrancheOptions } from './request.ts';
export { sign } from './signature.ts';
export {
  type CheckoutFields,
  type CreateOptions,
  type ListOptions,
  type MerchantClient,
  type OrderListOptions,
  type PayoutOptions,
  Tranche,
} from './tranche.ts';
export {
  CallbackError,
  type Event,
  type RawBody,
  type SigningKeys,
  type VerifyOptions,
  verifyCallback,
  verifyEvent,
} from './verify-callback.ts';
