import Type from 'typebox';
import { Id } from '#operating/operations/list.schema.ts';

/** How many ids one request may name. */
export const namedMax = 100;

/** GET /api/merchant-names: by the beginning of the name, in upper or lower case, or by ids. */
export const MerchantNamesQuery = Type.Object({
  q: Type.Optional(Type.String({ maxLength: 255 })),
  /** Ids, separated by commas. */
  ids: Type.Optional(Type.String({ maxLength: namedMax * 37 })),
});
/** The merchants in the order of their names. A search by name returns at most 20. */
export const MerchantNames = Type.Object({
  data: Type.Array(Type.Object({ id: Id, name: Type.String(), time_zone: Type.String() })),
});
export type MerchantNames = Type.Static<typeof MerchantNames>;
