import { normalForms } from '#platform/shared/plain-text.ts';
import type { Checkout, Customer, LineItem } from '#purchases/checkouts/checkout.ts';

/**
 * A person's identifiers. They are found however a merchant, a mail server, an operator or the
 * person has spelt them.
 */
export type Identifiers = {
  texts: string[];
  phones: string[];
  /** The single words of the name. They are searched for only in what people wrote. */
  words: string[];
};

/**
 * Single words of a name are removed only from texts that people wrote. A text that a program made,
 * such as a merchant's reference or one of our sentences, may contain such a word by chance.
 */
type Text = 'made by programs' | 'written by people';

/** Shorter texts occur by chance, and replacing them would damage other data. */
const charactersMin = 4;

/** A shorter word of a name, such as "de", identifies no one. */
const wordCharactersMin = 3;

/** The last digits of a phone number, which are the same with and without the country code. */
const localDigits = 9;

/**
 * The data that names these customers: e-mail address, phone number, postal address, and the name,
 * whole and in single words.
 */
export function identifiersOf(customers: Customer[]): Identifiers {
  const texts: string[] = [];
  const phones: string[] = [];
  const words: string[] = [];
  for (const {
    email,
    first_name = '',
    last_name = '',
    phone_number,
    billing_address,
  } of customers) {
    texts.push(email, phone_number ?? '', billing_address ?? '');
    // Some shops send the whole name in one field.
    const name = `${first_name} ${last_name}`.split(/\s+/).filter(Boolean);
    const pairs = [
      [first_name, last_name],
      [name.slice(0, -1).join(' '), name.at(-1) ?? ''],
      [name[0] ?? '', name.slice(1).join(' ')],
    ].map((pair) => pair.map((part) => part.trim()));
    for (const [first, last] of pairs) {
      if (!first || !last) continue;
      for (const join of [' ', '', '-', '.', '_']) {
        texts.push(`${first}${join}${last}`, `${last}${join}${first}`);
      }
    }
    words.push(...name);
    const digits = phone_number?.replace(/\D/g, '') ?? '';
    if (digits.length >= localDigits) phones.push(digits.slice(-localDigits));
  }
  const long = texts.map((text) => text.trim()).filter((text) => text.length >= charactersMin);
  const spoken = words.filter((word) => word.length >= wordCharactersMin);
  const formsOf = (all: string[]) => [
    ...new Set(all.flatMap((text) => [text, ...normalForms(text)])),
  ];
  return { texts: formsOf(long), phones: [...new Set(phones)], words: formsOf(spoken) };
}

/** One pattern for all spellings: literal, in a URL, in a form, and in JSON. */
function patternOf({ texts, phones, words }: Identifiers, text: Text): RegExp | null {
  const spellings = texts.flatMap((text) => [
    text,
    encodeURIComponent(text),
    encodeURI(text),
    new URLSearchParams({ text }).toString().slice('text='.length),
    JSON.stringify(text).slice(1, -1),
  ]);
  // The longest spelling comes first, because an e-mail address may contain the name.
  const longestFirst = [...new Set(spellings)].sort((one, other) => other.length - one.length);
  const parts = [
    ...longestFirst.map((text) => RegExp.escape(text)),
    ...phones.map((digits) => [...digits].join('[ ().\\/\\-]*')),
    ...(text === 'written by people' ? words : []).map(
      (word) => `(?<![\\p{L}\\p{N}])${RegExp.escape(word)}(?![\\p{L}\\p{N}])`,
    ),
  ];
  return parts.length === 0 ? null : new RegExp(parts.join('|'), 'giu');
}

export function namesPerson(
  text: string,
  identifiers: Identifiers,
  kind: Text = 'made by programs',
): boolean {
  return patternOf(identifiers, kind)?.test(text) ?? false;
}

/** The text with `[erased]` in place of every identifier. */
export function withoutPerson(
  text: string,
  identifiers: Identifiers,
  kind: Text = 'made by programs',
): string {
  const pattern = patternOf(identifiers, kind);
  return pattern ? text.replace(pattern, '[erased]') : text;
}

/**
 * The characters that make an address before or after another one a longer address. Those that
 * delimit texts, URLs and forms are left out, although the standard allows some of them before the
 * `@`. An apostrophe counts within a word only.
 */
const before = "(?<![\\p{L}\\p{M}\\p{N}.!$%&*+^_~-]|[\\p{L}\\p{M}\\p{N}]')";
const after = '(?![\\p{L}\\p{M}\\p{N}-]|\\.[\\p{L}\\p{N}])';

/**
 * Whether the body of a request contains an e-mail address, and not only as part of a longer one.
 */
export const namesAddress = (body: string, email: string): boolean =>
  new RegExp(`${before}${RegExp.escape(email.normalize('NFC'))}${after}`, 'iu').test(
    withoutEscapes(body).normalize('NFC'),
  );

/** A body, or the beginning of one, without the escapes of JSON and of URLs. */
const withoutEscapes = (body: string): string =>
  body
    .replace(/\\(?:u([\da-f]{4})|(.))/gi, (_, unit, other) =>
      unit ? String.fromCharCode(Number.parseInt(unit, 16)) : other.replace(/[bfnrt]/, ' '),
    )
    .replace(/(?:%[\da-f]{2})+/gi, (escapes) => {
      try {
        return decodeURIComponent(escapes);
      } catch {
        return escapes;
      }
    });

/** A URL without its query and fragment, where merchants may put anything. */
export function bareUrl(url: string, identifiers: Identifiers): string {
  const [place = ''] = url.split(/[?#]/);
  return withoutPerson(place, identifiers).replaceAll('[erased]', 'erased');
}

export type ErasedCheckout = Pick<
  Checkout,
  'client_reference_id' | 'notify_url' | 'success_url' | 'cancel_url' | 'customer' | 'line_items'
>;

/**
 * Returns what an erasure leaves of a checkout. All checkouts of one erasure get the same
 * pseudonym.
 */
export function pseudonymise(
  checkout: Checkout,
  identifiers: Identifiers,
  pseudonym: string,
): ErasedCheckout {
  const { id, client_reference_id, line_items } = checkout;
  return {
    // The merchant's books refer to the reference, so it stays unless it names the person.
    client_reference_id: namesPerson(client_reference_id, identifiers)
      ? `erased-${id}`
      : client_reference_id,
    notify_url: checkout.notify_url && bareUrl(checkout.notify_url, identifiers),
    success_url: checkout.success_url && bareUrl(checkout.success_url, identifiers),
    cancel_url: bareUrl(checkout.cancel_url, identifiers),
    customer: { email: `${pseudonym}@erased.invalid` },
    line_items: line_items.map((item, index): LineItem => ({ ...item, name: `Item ${index + 1}` })),
  };
}
