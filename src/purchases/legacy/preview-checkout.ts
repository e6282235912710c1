import type { MerchantRow } from '#merchants/merchant.ts';
import type { JsonObject, JsonValue } from '#platform/http/json.ts';
import type { Destinations } from '#purchases/callbacks/delivery/destination.ts';
import { explainCheckout } from '#purchases/checkouts/validate-checkout.ts';
import { type LegacyMediaType, readLegacyBody } from './legacy-body.ts';
import { fieldMapping, translateCheckout } from './translate-checkout.ts';

/** The v2 form of a v1 request, for a merchant that plans to move to v2. */
export type Preview = {
  request: { method: 'POST'; path: '/api/checkouts'; body: JsonObject };
  /** Fields that v2 requires and the request lacks, by their v2 names. */
  missing: string[];
  /** Everything else that v2 would refuse. */
  problems: string[];
  /** Fields that v2 does not have, by their v1 names. */
  ignored: string[];
};

/** Without a merchant, no merchant's rules are checked. */
export function previewCheckout(
  v1: JsonObject,
  merchant: MerchantRow | null,
  allowed: Destinations,
): Preview {
  const { checkout, errors } = translateCheckout(v1);
  const body = { checkout };
  const found = explainCheckout(body, false, merchant, allowed);
  const isMissing = ({ problem }: { problem: string }) => problem === 'is required';
  return {
    request: { method: 'POST', path: '/api/checkouts', body },
    missing: found.filter(isMissing).map(({ path }) => path),
    problems: [...errors, ...found.filter((error) => !isMissing(error))].map(({ path, problem }) =>
      path ? `${path} ${problem}` : problem,
    ),
    ignored: listLeaves(v1, '').filter(
      (name) => !fieldMapping.some(({ v1 }) => isWithin(name, v1)),
    ),
  };
}

const isWithin = (name: string, field: string) => name === field || name.startsWith(`${field}.`);

/** Recognises JSON by its first character: no form begins with a brace. */
export function mediaTypeOfFile(raw: Buffer): LegacyMediaType {
  const isJson = raw.toString('utf8').trimStart().startsWith('{');
  return isJson ? 'application/json' : 'application/x-www-form-urlencoded';
}

export function readLegacyFile(raw: Buffer): JsonObject {
  const mediaType = mediaTypeOfFile(raw);
  // Editors end a file with a newline, which is not part of the form.
  const text =
    mediaType === 'application/json' ? raw : Buffer.from(raw.toString('latin1').trim(), 'latin1');
  return readLegacyBody(text, mediaType);
}

function listLeaves(value: JsonValue, path: string): string[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [path];
  return Object.entries(value).flatMap(([name, one]) =>
    listLeaves(one, path ? `${path}.${name}` : name),
  );
}
