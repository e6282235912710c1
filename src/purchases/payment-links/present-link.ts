import { isPayable, type Merchant, payableRules, type Rule } from '#merchants/merchant.ts';
import type { Environment } from '#platform/shared/environment.ts';
import type { HostedPageSettings } from '#platform/shared/hosted-page.ts';
import type { Language } from '#platform/shared/language.ts';
import { linkUrls } from '#purchases/checkouts/link-token.ts';
import type { LinkPage, LinkPrint } from './link-page.ts';
import type { OpenDeps } from './open-payment-link.ts';
import { type ReadLink, statusOf } from './payment-link.ts';
import { qrPath } from './qr-code.ts';

/** The members that change with the shopper's form. */
type Form = Partial<Pick<LinkPage, 'typed' | 'wrong' | 'notice' | 'status'>>;

export function presentLinkPage(
  deps: { environment: Environment; page: HostedPageSettings },
  { link, merchant }: { link: ReadLink; merchant: Merchant },
  language: Language,
  form: Form = {},
): LinkPage {
  const status = statusOf(link, merchant.now());
  const isRefused = link.amount !== null && !isPayable(merchant, link.amount);
  return {
    status: status === 'active' && isRefused ? 'unavailable' : status,
    test_mode: deps.environment === 'sandbox',
    merchant_name: merchant.name,
    logo: merchant.logo,
    amount: link.amount,
    bands: joinBands(payableRules(merchant)),
    currency: link.currency,
    locale: merchant.territory.locale,
    time_zone: merchant.territory.time_zone,
    language,
    client_reference_id: link.client_reference_id,
    reusable: link.reusable,
    asks_email: link.customer === null,
    typed: { amount: '', email: '' },
    wrong: [],
    notice: null,
    operator: deps.page.operator,
    ...form,
  };
}

/**
 * Joins bands that differ only in their terms, which do not matter to a shopper who types an
 * amount.
 */
function joinBands(rules: Rule[]): LinkPage['bands'] {
  const bands: LinkPage['bands'] = [];
  for (const { from_amount, to_amount } of rules.toSorted(
    (a, b) => a.from_amount - b.from_amount,
  )) {
    const last = bands.at(-1);
    if (last?.to_amount === from_amount - 1) last.to_amount = to_amount;
    else bands.push({ from_amount, to_amount });
  }
  return bands;
}

export const presentLinkPrint = (
  deps: OpenDeps,
  { link, merchant }: { link: ReadLink; merchant: Merchant },
): LinkPrint => ({
  merchant_name: merchant.name,
  logo: merchant.logo,
  amount: link.amount,
  currency: link.currency,
  locale: merchant.territory.locale,
  qr: qrPath(linkUrls(deps, link).url),
});
