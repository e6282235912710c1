import type { Merchant } from '#merchants/merchant.ts';
import { showMoney } from '#platform/shared/money.ts';
import { oneLine } from '#platform/shared/plain-text.ts';
import { fillIn } from '#platform/shared/words/fill-in.ts';
import { words } from '#platform/shared/words/words.ts';
import { writeDate } from '#platform/shared/words/write-date.ts';
import type { PaymentLink } from '#purchases/payment-links/payment-link.ts';
import type { Letter } from './letter.ts';

/**
 * A person types the reference of a link. The mail repeats it only if it looks like an order
 * number, because such a text cannot contain a sentence or the URL of another site.
 */
const isPlain = (reference: string) =>
  /^(?=.*\p{N})(?!.* .* )[\p{L}\p{N} #_/-]{1,64}$/u.test(reference);

/**
 * Composes the mail that asks a shopper to pay. The shopper's language is not known yet, so the
 * mail is in the merchant's language. It goes to any e-mail address that a person of the shop
 * types, so it contains nothing else that the shop can choose: no logo, address, contact or VAT
 * number.
 */
export function composeLinkMail(
  merchant: Pick<Merchant, 'name' | 'territory' | 'language'>,
  link: Pick<PaymentLink, 'amount' | 'currency' | 'client_reference_id' | 'expires_at'>,
  url: string,
): Letter {
  const { territory, language } = merchant;
  const texts = words[language].link;
  const end =
    link.expires_at === null
      ? null
      : Temporal.Instant.from(link.expires_at).toZonedDateTimeISO(territory.time_zone);
  const said = {
    merchant: oneLine(merchant.name),
    amount: showMoney(link.amount ?? 0, { ...territory, currency: link.currency }),
    order: link.client_reference_id,
    date: end ? writeDate(end.toPlainDate().toString(), language).replaceAll(' ', '\u00a0') : '',
    time: end ? end.toPlainTime().toString({ smallestUnit: 'minute' }) : '',
  };
  return {
    from: said.merchant,
    subject: fillIn(texts.mail_subject, said),
    paragraphs: [
      fillIn(isPlain(said.order) ? texts.mail_order : texts.mail, said),
      fillIn(texts.mail_next, said),
    ],
    rows: [],
    link: { label: texts.mail_open, url },
    footer: [fillIn(texts.mail_footer, said)],
  };
}
