import type { Sealing } from '#platform/shared/sealing.ts';

/**
 * A payment token consists of the sealed ids of its checkout. Only we can read it. It is not
 * stored.
 */
export function paymentToken(
  sealing: Sealing,
  checkout: { merchant_id: string; id: string },
): string {
  return sealing.tokenFor(Buffer.concat([uuidBytes(checkout.merchant_id), uuidBytes(checkout.id)]));
}

export function checkoutOfToken(
  sealing: Sealing,
  token: string,
): { merchant_id: string; id: string } | null {
  const ids = sealing.idsOf(token);
  if (ids?.length !== 32) return null;
  return { merchant_id: uuidText(ids.subarray(0, 16)), id: uuidText(ids.subarray(16)) };
}

export function uuidBytes(uuid: string): Buffer {
  return Buffer.from(uuid.replaceAll('-', ''), 'hex');
}

export function uuidText(bytes: Buffer): string {
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
