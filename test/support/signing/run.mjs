// Each of these programs runs one example over the vectors. An input line has the key, the body and
// a signature in Base64; an output line has the example's signature and whether it accepts the
// given one. An empty signature stands for a callback without the header.
import { readFileSync } from 'node:fs';
import { sign, verify } from '../../../docs/merchants/signing/signing.mjs';

for (const line of readFileSync(0, 'utf8').split('\n').slice(0, -1)) {
  const [key, body, signature] = line.split('\t').map((field) => Buffer.from(field, 'base64'));
  const given = signature.length > 0 ? String(signature) : undefined;
  console.log(sign(body, String(key)), verify(body, given, ['other', String(key)]));
}
