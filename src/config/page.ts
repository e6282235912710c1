import {
  type CardBrand,
  cardBrands,
  type HostedPageSettings,
} from '#platform/shared/hosted-page.ts';
import { isAddress, type Reader } from './reader.ts';

/** Links and texts that the operator adds to the pages of shoppers. */
export function readPage({ text, count, problem }: Reader): HostedPageSettings {
  const link = (name: string) => {
    const value = text(name) ?? null;
    if (value !== null && !isAddress(value, /^https:\/\//)) {
      problem(`${name} must be an https address.`);
    }
    return value;
  };
  const contact = text('SUPPORT_CONTACT') ?? null;
  const isPlace = (value: string) =>
    isAddress(value, /^https:\/\//) || /^[^\s@]+@[^\s@]+\.[^\s@]+$/.test(value);
  if (contact !== null && !isPlace(contact) && !/^\+?[0-9][0-9 ()-]{5,25}$/.test(contact)) {
    problem('SUPPORT_CONTACT must be an e-mail address, a phone number or an https address.');
  }
  const complaints = text('COMPLAINTS_CONTACT') ?? null;
  if (complaints !== null && !isPlace(complaints)) {
    problem('COMPLAINTS_CONTACT must be an e-mail address or an https address.');
  }
  const brands = (text('CARD_BRANDS') ?? 'visa,mastercard').split(',').map((name) => name.trim());
  if (!brands.every((brand) => cardBrands.includes(brand as CardBrand))) {
    problem(`CARD_BRANDS must list one or more of ${cardBrands.join(', ')}.`);
  }
  return {
    cardBrands: brands as CardBrand[],
    // `tranche sandbox` runs the mailbox page and fills this in.
    mailboxUrl: null,
    sandbox: null,
    operator: {
      terms_url: link('TERMS_URL'),
      privacy_url: link('PRIVACY_URL'),
      contact,
      complaints,
    },
    answerDays: count('ANSWER_DAYS', 2, { min: 1, max: 30 }),
  };
}
