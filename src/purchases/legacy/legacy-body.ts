import { badRequest } from '#platform/http/errors.ts';
import { MalformedForm, readForm } from '#platform/http/form.ts';
import { type JsonObject, MalformedJson, readJson } from '#platform/http/json.ts';

/** Old plugins send bodies of either type (decision 0040). */
export const legacyMediaTypes = ['application/json', 'application/x-www-form-urlencoded'] as const;
export type LegacyMediaType = (typeof legacyMediaTypes)[number];

/** The members of a v1 body, from JSON or a form. Throws a 400 if the body is malformed. */
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
