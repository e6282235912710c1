import type { Merchant } from '#merchants/merchant.ts';
import {
  compileSchema,
  type FieldError,
  nullDropper,
  validationFailed,
} from '#platform/http/validation.ts';
import type { Destinations } from '#purchases/callbacks/delivery/destination.ts';
import { explainRules, isOwnMerchant } from '#purchases/checkouts/validate-checkout.ts';
import { CreateLinkBody, IntermediaryCreateLinkBody } from './payment-link.schema.ts';
import { explainBadExpiry, reusableReferenceCharactersMax } from './payment-link.ts';

const explainBody = compileSchema(withoutFormat(CreateLinkBody));
const explainIntermediaryBody = compileSchema(withoutFormat(IntermediaryCreateLinkBody));
const dropNulls = nullDropper(CreateLinkBody);

/**
 * Removes the format of the time from the schema, because `explainBadExpiry` explains a bad time in
 * words.
 */
function withoutFormat<Schema>(schema: Schema): Schema {
  return JSON.parse(JSON.stringify(schema), (name, value) =>
    name === 'format' && value === 'date-time' ? undefined : value,
  );
}

/**
 * Returns the body if this merchant accepts such a link. Otherwise throws an error that names every
 * bad field.
 */
export function validateLink(
  body: unknown,
  intermediary: boolean,
  merchant: Merchant | null,
  allowed: Destinations,
): CreateLinkBody {
  dropNulls(body);
  const errors = intermediary ? explainIntermediaryBody(body) : explainBody(body);
  const rules = merchant ? explainLinkRules(merchant, allowed, body as CreateLinkBody) : [];
  const known = new Set(errors.map(({ path }) => path));
  const broken = rules.filter(({ path }) => !known.has(path));
  if (merchant && !intermediary && !isOwnMerchant(merchant, body as object)) {
    const problem = 'must be the merchant of this integration, or be left out';
    errors.push({ path: 'merchant_id', problem });
  }
  const all = [...errors, ...broken];
  if (all.length > 0) throw validationFailed(all, { lasting: broken.length === 0 });
  return body as CreateLinkBody;
}

/** The rules that no schema can express. They depend on the merchant, our settings and the time. */
export function explainLinkRules(
  merchant: Merchant,
  allowed: Destinations,
  body: Partial<CreateLinkBody>,
): FieldError[] {
  const { amount, expires_at, reusable, customer, client_reference_id, mail } = body;
  const errors = explainRules(merchant, allowed, body, '');
  const add = (path: string, problem: string) => errors.push({ path, problem });
  if (reusable !== true && amount === undefined) add('amount', 'is required');
  if (reusable === true && customer !== undefined) {
    add('customer', 'must be left out of a reusable link, which many shoppers open');
  }
  if (mail === true && customer === undefined) add('mail', 'needs the address of the shopper');
  const isLong = [...String(client_reference_id)].length > reusableReferenceCharactersMax;
  if (reusable === true && isLong) {
    const problem = `must have at most ${reusableReferenceCharactersMax} characters on a reusable link`;
    add('client_reference_id', problem);
  }
  if (typeof expires_at === 'string') {
    const problem = explainBadExpiry(expires_at, merchant.now());
    if (problem !== null) add('expires_at', problem);
  }
  return errors;
}
