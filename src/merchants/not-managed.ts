import { notFound } from '#platform/http/errors.ts';

/** An unknown merchant and one that another integration manages get the same answer. */
export const notManaged = () =>
  notFound('There is no merchant with that ID that this integration manages.');
