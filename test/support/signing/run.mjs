// Each of these runs one example over the vectors: a line in has the key, the body and a signature
// in Base64, a line out has the signature that the example makes and whether it takes the given one.
import { readFileSync } from 'node:fs';
import { sign, verify } from '../../../docs/merchants/signing/signing.mjs';

for (const line of readFileSync(0, 'utf8').split('\n').slice(0, -1)) {
  const [key, body, signature] = line.split('\t').map((field) => Buffer.from(field, 'base64'));
  console.log(sign(body, String(key)), verify(body, String(signature), ['other', String(key)]));
}
