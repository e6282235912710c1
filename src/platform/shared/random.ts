import { randomBytes, randomUUIDv7 } from 'node:crypto';

/** The only source of ids and randomness. A simulation passes a seeded one. */
export type Random = {
  /** Version 7 UUIDs: new rows are neighbours in the index, however large the table is. */
  uuid(): string;
  bytes(length: number): Buffer;
};

export const systemRandom: Random = {
  uuid: () => randomUUIDv7(),
  bytes: (length) => randomBytes(length),
};
