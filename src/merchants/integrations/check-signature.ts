import type { Database } from '#platform/database/database.ts';
import { reading } from '#platform/database/transaction.ts';
import { type ApiError, badRequest } from '#platform/http/errors.ts';
import { type JsonObject, shown } from '#platform/http/json.ts';
import type { RateLimits } from '#platform/http/rate-limits.ts';
import type { Clock, Timestamp } from '#platform/shared/clock.ts';
import type { Logger } from '#platform/shared/logger.ts';
import type { Random } from '#platform/shared/random.ts';
import { explainMismatch, sign, verifySignature } from '#platform/signing/signature.ts';
import { raiseAlert } from '#record/alerts/raise-alert.ts';
import { findIntegration } from './integration.sql.ts';
import type { Caller, SigningKey } from './integration.ts';
import { keepRefusedRequest } from './keep-refused-request.ts';

export const mustSign = () =>
  badRequest(
    'Signing has become mandatory for this integration: every POST must carry an X-Signature header.',
  );

export type SignedBody = {
  caller: Caller;
  clientSecret: string;
  header: string | string[] | undefined;
  value: JsonObject;
  raw: Buffer;
  compact: Buffer;
  /** The top-level members that the endpoint takes. */
  members: readonly string[];
  /** The method and the path, and the program that sent it, for the signature doctor. */
  request: string;
  userAgent: string | undefined;
};

/** At most this many of the members that the endpoint does not take are named. */
const othersMax = 3;

type Deps = {
  database: Database;
  clock: Clock;
  random: Random;
  log: Logger;
  rateLimits: RateLimits;
};

/** The key that signed a body. Null if the body is unsigned and the integration need not sign. */
export async function checkSignature(deps: Deps, body: SignedBody): Promise<SigningKey | null> {
  const { caller, header, compact } = body;
  if (header === undefined) {
    // The cached caller may be half a second old. The first signed POST makes signing mandatory at
    // once, so the database is asked before an unsigned one passes.
    const known = caller.signing_required_at ?? (await findSigningRequired(deps, caller.id));
    if (known !== null) throw mustSign();
    return null;
  }
  const signingKeys = caller.signing_keys.map(({ key }) => key);
  const match = verifySignature(header, compact, signingKeys);
  if (match === null) throw await refuseSignature(deps, body, signingKeys);
  return caller.signing_keys[match] ?? null;
}

async function findSigningRequired(deps: Deps, integration_id: string): Promise<Timestamp | null> {
  const integration = await reading(deps, (db) => findIntegration(db, integration_id));
  return integration?.signing_required_at ?? null;
}

/**
 * The contract requires the refusal to show the expected signature. The same key signs callbacks,
 * so an attacker with only the client secret could have us sign a forged callback. We therefore
 * show the signature only for bodies of this endpoint's own shape, and only 30 times an hour
 * (decision 0005). Requests for which it is shown are kept for the signature doctor.
 */
async function refuseSignature(
  deps: Deps,
  body: SignedBody,
  signingKeys: string[],
): Promise<ApiError> {
  const sentences = ['The X-Signature header does not match the body.'];
  const others = Object.keys(body.value).filter((name) => !body.members.includes(name));
  const [newestKey] = signingKeys;
  const mistake = explainMismatch({
    header: body.header,
    rawBody: body.raw,
    compactBody: body.compact,
    signingKeys,
    clientSecret: body.clientSecret,
  });
  if (newestKey === undefined) {
    sentences.push('This integration has no signing key in force: ask the operator for one.');
  } else if (others.length > 0) {
    const named = others.slice(0, othersMax).map(shown).join(', ');
    const rest = others.length - othersMax;
    sentences.push(
      `The expected signature is shown only for a body without other members than this endpoint takes; this one has ${named}${rest > 0 ? ` and ${rest} more` : ''}.`,
    );
  } else if (Object.keys(body.value).length > 0) {
    const { show, last } = await deps.rateLimits.shownSignature(body.caller);
    if (last) {
      await raiseAlert(deps, deps.database.db, {
        kind: 'signature_mismatches',
        integration_id: body.caller.id,
        detail:
          'An integration keeps sending wrong signatures: it was shown the expected signature 30 times within an hour.',
      });
    }
    if (show) {
      const expected = sign(newestKey, body.compact);
      const { caller, header, raw, request, userAgent } = body;
      const refused = { integration_id: caller.id, request, header, userAgent, raw };
      await keepRefusedRequest(deps, { ...refused, expected, mistake });
      sentences.push(`Expected ${expected}.`);
    } else {
      sentences.push(
        'The expected signature was shown 30 times within an hour and is not shown again for now.',
      );
    }
  }
  if (mistake !== null) sentences.push(mistake);
  return badRequest(sentences.join(' '));
}
