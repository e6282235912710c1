import type { Person } from './person.sql.ts';

/** The addresses of the console, for the staff and for merchants' people. */
export type ConsolePlaces = { url: string; merchantUrl: string | null };

type Scoped = Pick<Person, 'merchant_ids'>;

/** The address at which a person finds the console. */
export const placeOf = ({ url, merchantUrl }: ConsolePlaces, { merchant_ids }: Scoped): string =>
  merchant_ids === null ? url : (merchantUrl ?? url);

/** Staff can neither register nor sign in at the merchants' origin. */
export const mayUse = (
  { isForMerchants }: { isForMerchants: boolean },
  { merchant_ids }: Scoped,
): boolean => !isForMerchants || merchant_ids !== null;
