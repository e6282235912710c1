import { createHmac, timingSafeEqual } from 'node:crypto';

// Serialise once, sign that text, send that text: JSON.stringify(value), without an indent.
export function sign(body, signingKey) {
  return createHmac('sha512', signingKey).update(body).digest('base64');
}

// Verify the raw bytes, before anything parses them: in Express, express.raw({ type: '*/*' }) on
// this route. Pass both keys during a rotation, otherwise a list of one.
export function verify(body, signature, signingKeys) {
  const given = Buffer.from(signature ?? '');
  return signingKeys.some((key) => {
    const expected = Buffer.from(sign(body, key));
    return expected.length === given.length && timingSafeEqual(expected, given);
  });
}
