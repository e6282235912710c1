import {
  type CardBrand,
  cardBrands,
  type HostedPageSettings,
} from '#platform/shared/hosted-page.ts';
import { isAddress, type Reader } from './reader.ts';

/** Links and texts that the operator adds to the pages of shoppers. */
export function readPage({ text, problem }: Reader): HostedPageSettings {
  const link = (name: string) => {
    const value = text(name) ?? null;
    if (value !== null && !isAddress(value, /^https:\/\//)) {
      problem(`${name} must be an https address.`);
    }
    return value;
  };
  const contact = text('SUPPORT_CONTACT') ?? null;
  const isContact =
    contact === null ||
    isAddress(contact, /^https:\/\//) ||
    /^[^\s@]+@[^\s@]+\.[^\s@]+$/.test(contact) ||
    /^\+?[0-9][0-9 ()-]{5,25}$/.test(contact);
  if (!isContact) {
    problem('SUPPORT_CONTACT must be an e-mail address, a phone number or an https address.');
  }
  const brands = (text('CARD_BRANDS') ?? 'visa,mastercard').split(',').map((name) => name.trim());
  if (!brands.every((brand) => cardBrands.includes(brand as CardBrand))) {
    problem(`CARD_BRANDS must be a list of some of ${cardBrands.join(', ')}.`);
  }
  return {
    cardBrands: brands as CardBrand[],
    // `tranche sandbox` runs the mailbox page and fills this in.
    mailboxUrl: null,
    operator: { terms_url: link('TERMS_URL'), privacy_url: link('PRIVACY_URL'), contact },
  };
}
