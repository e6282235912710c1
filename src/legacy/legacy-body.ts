import { badRequest } from '../http/errors.ts';
import { MalformedForm, readForm } from '../http/form.ts';
import { type JsonObject, MalformedJson, readJson } from '../http/json.ts';

/** Old plugins send both (D31). */
export const legacyMediaTypes = ['application/json', 'application/x-www-form-urlencoded'] as const;
export type LegacyMediaType = (typeof legacyMediaTypes)[number];

/** What a v1 request says, whichever way it says it; a 400 when it says nothing. */
export function readLegacyBody(raw: Buffer, mediaType: LegacyMediaType): JsonObject {
  try {
    return mediaType === 'application/json' ? readJson(raw).value : readForm(raw);
  } catch (error) {
    if (error instanceof MalformedJson || error instanceof MalformedForm) {
      throw badRequest(error.message);
    }
    throw error;
  }
}
