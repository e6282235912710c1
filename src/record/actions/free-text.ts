import assert from 'node:assert';
import { createHash } from 'node:crypto';
import type { Random } from '#platform/shared/random.ts';

/**
 * A text that a person wrote or searched for, as a value in the details of an action. It may name a
 * shopper, so the chained row holds a salted digest instead, and the text is a separate row that
 * can be erased (decision 0060).
 */
export class FreeText {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

export type ActionText = {
  /** The path of the text in the details: the members that lead to it, joined by dots. */
  field: string;
  digest: Buffer;
  /** Without it a short text could be guessed from its digest. It is erased with the text. */
  salt: Buffer;
  text: string;
};

const saltBytes = 32;

/** The member of the chained row that stands for a text. `listChainLinks` reads it in SQL. */
const digestMember = 'text_sha256';

type Members = Record<string, unknown>;

const isPlain = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;

/** Details with a digest in place of each free text, and the texts. */
export function takeTexts(
  random: Random,
  details: object,
): { details: object; texts: ActionText[] } {
  // The chain would be wrong for ever, because no text belongs to this digest.
  assert(!hasDigest(details), `The details of an action have a member ${digestMember}.`);
  return textsWithin(random, details, '');
}

const hasDigest = (value: unknown): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (digestMember in value || Object.values(value).some(hasDigest));

function textsWithin(
  random: Random,
  details: object,
  within: string,
): { details: object; texts: ActionText[] } {
  const texts: ActionText[] = [];
  const taken = Object.entries(details).map(([name, value]) => {
    if (value instanceof FreeText) {
      const salt = random.bytes(saltBytes);
      const digest = createHash('sha256').update(salt).update(value.text, 'utf8').digest();
      texts.push({ field: within + name, digest, salt, text: value.text });
      return [name, { [digestMember]: digest.toString('hex') }];
    }
    if (!isPlain(value)) return [name, value];
    const inner = textsWithin(random, value, `${within}${name}.`);
    texts.push(...inner.texts);
    return [name, inner.details];
  });
  return { details: Object.fromEntries(taken), texts };
}

/** The details with their texts. An erased text is replaced by a note that it was erased. */
export function withTexts(details: object, texts: Record<string, string> | null): object {
  return Object.entries(texts ?? {}).reduce(
    (filled, [field, text]) => replaced(filled, field.split('.'), text),
    details,
  );
}

function replaced(details: object, [name = '', ...rest]: string[], text: string): object {
  const inner = (details as Members)[name];
  return { ...details, [name]: rest.length === 0 ? text : replaced(Object(inner), rest, text) };
}
