import type { Merchant } from '#merchants/merchant.ts';
import { showMoney } from '#platform/shared/money.ts';
import { oneLine } from '#platform/shared/plain-text.ts';
import { fillIn } from '#platform/shared/words/fill-in.ts';
import { words } from '#platform/shared/words/words.ts';
import { writeDate } from '#platform/shared/words/write-date.ts';
import type { PaymentLink } from '#purchases/payment-links/payment-link.ts';
import { footerOf } from './compose-message.ts';
import type { Letter } from './letter.ts';

/**
 * A person types the reference of a link. Only one that can hold no address of another site is
 * repeated in the mail, so that the mail leads nowhere else.
 */
const isPlain = (reference: string) => /^[\p{L}\p{N} #_/-]{1,64}$/u.test(reference);

/** Asks a shopper to pay. Their language is not known yet, so it is in the merchant's. */
export function composeLinkMail(
  merchant: Pick<Merchant, 'name' | 'territory' | 'language' | 'localDate'> &
    Parameters<typeof footerOf>[1],
  link: Pick<PaymentLink, 'amount' | 'currency' | 'client_reference_id' | 'expires_at'>,
  url: string,
): Letter {
  const { territory, language } = merchant;
  const texts = words[language].link;
  const end = link.expires_at && merchant.localDate(Temporal.Instant.from(link.expires_at));
  const said = {
    merchant: oneLine(merchant.name),
    amount: showMoney(link.amount ?? 0, { ...territory, currency: link.currency }),
    order: link.client_reference_id,
    date: end ? writeDate(end.toString(), language).replaceAll(' ', '\u00a0') : '',
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
    footer: footerOf(texts.mail_footer, merchant, language),
  };
}
