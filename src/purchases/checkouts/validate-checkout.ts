import { describeBands, isPayable, type MerchantRow, payableRules } from '#merchants/merchant.ts';
import {
  compileSchema,
  type FieldError,
  isHttpUrl,
  nullDropper,
  validationFailed,
} from '#platform/http/validation.ts';
import {
  type Destinations,
  explainBadNotifyUrl,
} from '#purchases/callbacks/delivery/destination.ts';
import { CreateCheckoutBody, IntermediaryCreateCheckoutBody } from './checkout.schema.ts';

const explainBody = compileSchema(CreateCheckoutBody);
const dropNulls = nullDropper(CreateCheckoutBody);
const explainIntermediaryBody = compileSchema(IntermediaryCreateCheckoutBody);

/**
 * Returns the body if this merchant accepts such a checkout. Otherwise throws an `ApiError` that
 * lists every bad field.
 */
export function validateCheckout(
  body: unknown,
  intermediary: boolean,
  merchant: MerchantRow | null,
  allowed: Destinations,
): CreateCheckoutBody {
  const errors = explainCheckout(body, intermediary, merchant, allowed);
  if (errors.length > 0) {
    throw validationFailed(errors, { lasting: errors.every(({ isRule }) => !isRule) });
  }
  return body as CreateCheckoutBody;
}

/**
 * Lists the bad fields of a body. Without a merchant, no merchant's rules are checked. `isRule`
 * marks an error that depends on the merchant's rules or our settings, which can change.
 */
export function explainCheckout(
  body: unknown,
  intermediary: boolean,
  merchant: MerchantRow | null,
  allowed: Destinations,
): (FieldError & { isRule?: true })[] {
  dropNulls(body);
  const errors: (FieldError & { isRule?: true })[] = intermediary
    ? explainIntermediaryBody(body)
    : explainBody(body);
  const { checkout } = body as { checkout?: unknown };
  if (merchant && typeof checkout === 'object' && checkout !== null) {
    const known = new Set(errors.map(({ path }) => path));
    for (const error of explainRules(merchant, allowed, checkout)) {
      if (!known.has(error.path)) errors.push({ ...error, isRule: true });
    }
    if (!intermediary && !isOwnMerchant(merchant, checkout)) {
      const problem = 'must be the merchant of this integration, or be left out';
      errors.push({ path: 'checkout.merchant_id', problem });
    }
  }
  return errors;
}

/** An integration of one merchant need not name that merchant, but must not name another. */
export function isOwnMerchant(
  merchant: MerchantRow,
  { merchant_id }: { merchant_id?: unknown },
): boolean {
  if (merchant_id === undefined || merchant_id === null) return true;
  return typeof merchant_id === 'string' && merchant_id.toLowerCase() === merchant.id;
}

/** Checks the rules that no schema can express. Skips malformed fields: the schema reports them. */
export function explainRules(
  merchant: MerchantRow,
  allowed: Destinations,
  { amount, currency, notify_url }: { amount?: unknown; currency?: unknown; notify_url?: unknown },
  wrapper = 'checkout.',
): FieldError[] {
  const errors: FieldError[] = [];
  if (Number.isInteger(amount) && !isPayable(merchant, amount as number)) {
    errors.push({ path: '', problem: `Amount has to be ${describeBands(payableRules(merchant))}` });
  }
  if (typeof currency === 'string' && currency !== merchant.territory.currency) {
    const problem = `must match merchant territory currency (${merchant.territory.currency})`;
    errors.push({ path: `${wrapper}currency`, problem });
  }
  if (typeof notify_url === 'string' && isHttpUrl(notify_url)) {
    const problem = explainBadNotifyUrl(new URL(notify_url), allowed);
    if (problem !== null) errors.push({ path: `${wrapper}notify_url`, problem });
  }
  return errors;
}
