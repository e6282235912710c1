import type { Merchant } from '#merchants/merchant.ts';
import {
  type JsonObject,
  type JsonValue,
  MalformedJson,
  readJsonValue,
} from '#platform/http/json.ts';
import { type FieldError, validationFailed } from '#platform/http/validation.ts';
import type { Destinations } from '#purchases/callbacks/delivery/destination.ts';
import type { CreateCheckoutBody } from '#purchases/checkouts/checkout.schema.ts';
import { lineItemsMax } from '#purchases/checkouts/checkout.schema.ts';
import { explainCheckout } from '#purchases/checkouts/validate-checkout.ts';

// The spec's table of v1 and v2 fields, as data. A v1 request becomes the v2 request with the same
// meaning, which is validated and served like any other. Errors name the v1 fields.

type Mapping = {
  v1: string;
  v2: string;
  /** v1 also sends this number as a string. */
  number?: true;
  /** v1 also sends this string as a whole number, because shops number their orders. */
  numeral?: true;
  /** An empty value counts as absent, because a form always sends all of its fields. */
  optional?: true;
};

export const fieldMapping: readonly Mapping[] = [
  { v1: 'purchaseAmount', v2: 'amount', number: true },
  { v1: 'currency', v2: 'currency' },
  { v1: 'purchase.order_id', v2: 'client_reference_id', numeral: true },
  { v1: 'merchant.notify_url', v2: 'notify_url' },
  { v1: 'merchant.return_url', v2: 'success_url' },
  { v1: 'customer.name', v2: 'customer.first_name', optional: true },
  { v1: 'customer.lastName', v2: 'customer.last_name', optional: true },
  { v1: 'customer.emailAddress', v2: 'customer.email' },
  { v1: 'customer.telephoneNumber', v2: 'customer.phone_number', optional: true },
  { v1: 'customer.billingAddress', v2: 'customer.billing_address', optional: true },
  { v1: 'purchase.items', v2: 'line_items', optional: true },
];

export const itemMapping: readonly Mapping[] = [
  { v1: 'description', v2: 'name' },
  { v1: 'price', v2: 'amount', number: true },
  { v1: 'qty', v2: 'quantity', number: true },
];

/**
 * These fields are accepted and ignored. The base URL decides the environment, not `mode`, and the
 * login decides the merchant, not `merchantReference`.
 */
export const droppedFields = [
  'merchant.merchantReference',
  'merchant.mode',
  'purchase.purchaseDate',
] as const;

const groups = ['merchant', 'customer', 'purchase'] as const;

export type Translation = {
  /** The v2 checkout without `cancel_url`, which v1 does not have. */
  checkout: JsonObject;
  /** Fields that cannot be translated, by their v1 names. */
  errors: FieldError[];
};

export function translateCheckout(request: JsonObject): Translation {
  const errors: FieldError[] = [];
  const checkout: JsonObject = {};
  for (const group of groups) {
    const value = request[group];
    if (value === undefined || (isObject(value) && !Array.isArray(value))) continue;
    errors.push({ path: group, problem: 'must be an object' });
  }
  for (const mapping of fieldMapping) {
    const value = translateValue(mapping, valueAt(request, mapping.v1));
    if (value === undefined) continue;
    const items = mapping.v2 === 'line_items' ? translateItems(value) : value;
    if (items === undefined) {
      errors.push({ path: mapping.v1, problem: 'must be a JSON array, as text or as it is' });
    } else {
      putAt(checkout, mapping.v2, items);
    }
  }
  checkout.customer ??= {};
  return { checkout, errors };
}

/** Translates a v1 request into a v2 body. Throws one error for each bad v1 field. */
export function validateLegacyCheckout(
  request: JsonObject,
  merchant: Merchant,
  allowed: Destinations,
): CreateCheckoutBody {
  const { checkout, errors } = translateCheckout(request);
  // After cancelling, the shopper returns to the same URL as after paying (decision 0040).
  const body = { checkout: { ...checkout, cancel_url: checkout.success_url } };
  const byPath = new Map(errors.map(({ path, problem }) => [path, problem]));
  for (const { path, problem } of explainCheckout(body, false, merchant, allowed)) {
    const own = legacyPath(path);
    // If a group is not an object, its fields are not reported as missing as well.
    const isReported = errors.some(
      (error) => own === error.path || own.startsWith(`${error.path}.`),
    );
    if (!isReported && !byPath.has(own)) byPath.set(own, problem);
  }
  if (byPath.size > 0) {
    throw validationFailed([...byPath].map(([path, problem]) => ({ path, problem })));
  }
  return body as unknown as CreateCheckoutBody;
}

/** Translates a path: `checkout.line_items[3].amount` becomes `purchase.items[3].price`. */
export function legacyPath(path: string): string {
  const own = path.replace(/^checkout\./, '').replace(/^cancel_url$/, 'success_url');
  const item = /^line_items(\[\d+\])(?:\.(\w+))?$/.exec(own);
  if (item) {
    const [, place, name] = item;
    const field = itemMapping.find(({ v2 }) => v2 === name)?.v1;
    return `purchase.items${place}${field === undefined ? '' : `.${field}`}`;
  }
  return fieldMapping.find(({ v2 }) => v2 === own)?.v1 ?? own;
}

function translateValue(mapping: Mapping, value: JsonValue | undefined): JsonValue | undefined {
  if (mapping.optional && (value === '' || value === null)) return undefined;
  if (mapping.numeral) return toNumeral(value);
  return mapping.number ? toNumber(value) : value;
}

/**
 * Converts a whole number to its digits. Any other value stays as it is, for validation to refuse.
 */
function toNumeral(value: JsonValue | undefined): JsonValue | undefined {
  const isWhole = typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
  return isWhole ? String(value) : value;
}

/**
 * Converts a string of decimal digits. Any other value stays as it is, for validation to refuse.
 */
function toNumber(value: JsonValue | undefined): JsonValue | undefined {
  const isDecimal = typeof value === 'string' && decimalPattern.test(value);
  return isDecimal ? Number(value) : value;
}

export const decimalPattern = /^(0|-?[1-9][0-9]{0,15})$/;

/** Returns undefined if the value is a string that is not JSON. */
function translateItems(value: JsonValue): JsonValue | undefined {
  const items = typeof value === 'string' ? readItems(value) : value;
  if (!Array.isArray(items)) return items;
  // One item more than allowed is enough for the refusal.
  return items.slice(0, lineItemsMax + 1).map((item) => {
    if (!isObject(item) || Array.isArray(item)) return item;
    const translated: JsonObject = {};
    for (const mapping of itemMapping) {
      const own = translateValue(mapping, item[mapping.v1]);
      if (own !== undefined) translated[mapping.v2] = own;
    }
    return translated;
  });
}

/** Reads the items as strictly as a body (decision 0002). */
function readItems(text: string): JsonValue | undefined {
  try {
    return readJsonValue(Buffer.from(text)).value;
  } catch (error) {
    if (error instanceof MalformedJson) return undefined;
    throw error;
  }
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null;
}

function valueAt(request: JsonObject, path: string): JsonValue | undefined {
  const [first = '', second] = path.split('.');
  const value = request[first];
  if (second === undefined) return value;
  return isObject(value) ? value[second] : undefined;
}

function putAt(checkout: JsonObject, path: string, value: JsonValue): void {
  const [first = '', second] = path.split('.');
  if (second === undefined) checkout[first] = value;
  else checkout[first] = { ...(checkout[first] as JsonObject), [second]: value };
}
