import type { Sealing } from '#platform/shared/sealing.ts';
import { uuidBytes, uuidText } from './payment-token.ts';

type Key = { merchant_id: string; id: string };

/**
 * The sealed bytes of a payment link's token begin with this. Those of a checkout's token are
 * shorter, so neither token opens the other's page.
 */
const beginning = Buffer.from('link');

/** The token in a payment link's URL consists of the link's sealed ids. It is not stored. */
const linkToken = (sealing: Sealing, { merchant_id, id }: Key): string =>
  sealing.tokenFor(Buffer.concat([beginning, uuidBytes(merchant_id), uuidBytes(id)]));

export function linkOfToken(sealing: Sealing, token: string): Key | null {
  const bytes = sealing.idsOf(token);
  if (bytes?.length !== 36 || !bytes.subarray(0, 4).equals(beginning)) return null;
  return { merchant_id: uuidText(bytes.subarray(4, 20)), id: uuidText(bytes.subarray(20)) };
}

/** The URLs of a payment link. All but the first are for its QR code. */
export function linkUrls({ baseUrl, sealing }: { baseUrl: string; sealing: Sealing }, link: Key) {
  const url = `${baseUrl}/link/${linkToken(sealing, link)}`;
  return {
    url,
    qr_svg_url: `${url}/qr.svg`,
    qr_png_url: `${url}/qr.png`,
    print_url: `${url}/print`,
  };
}
