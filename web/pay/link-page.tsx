import { logoPath } from '#merchants/logo-path.ts';
import { languageNames, languages } from '#platform/shared/language.ts';
import { showMoney } from '#platform/shared/money.ts';
import { fillIn, splitText } from '#platform/shared/words/fill-in.ts';
import type { LinkPage, LinkPrint } from '#purchases/payment-links/link-page.ts';
import type { LinkWords } from '#purchases/shoppers/pay-html.ts';
import { OperatorList } from './footer.tsx';
import { I18nContext } from './i18n.tsx';
import { Logo } from './logo.tsx';
import { Card, UnknownLink } from './outcome.tsx';
import { PlainRibbon } from './test-cards.tsx';
import { createI18n } from './words.ts';

// The page of a payment link, before there is a checkout. The server renders it, and it works
// without a script.

type Texts = LinkWords['link'];
type Ended = Exclude<LinkPage['status'], 'active'>;

const titles = {
  paid: 'paid',
  cancelled: 'cancelled',
  expired: 'expired',
  unavailable: 'unavailable',
} as const satisfies Record<Ended, keyof Texts>;

const nexts = {
  paid: 'paid_next',
  cancelled: 'cancelled_next',
  expired: 'expired_next',
  unavailable: 'unavailable_next',
} as const satisfies Record<Ended, keyof Texts>;

const signs = {
  paid: 'done',
  cancelled: 'stopped',
  expired: 'late',
  unavailable: 'stopped',
} as const;

export function linkTitle(page: LinkPage | null, { page: texts, link }: LinkWords): string {
  if (page === null) return texts.title_unknown;
  const what = page.status === 'active' ? texts.title_open : link[titles[page.status]];
  return `${what} · ${page.merchant_name}`;
}

export function LinkApp(props: { page: LinkPage | null; path: string; words: LinkWords }) {
  const { page, path, words } = props;
  return (
    <I18nContext.Provider value={createI18n(words.page, page)}>
      {page?.test_mode && <PlainRibbon />}
      <div class={page === null ? 'page alone' : 'page'}>
        {page !== null && <Ordered page={page} words={words} />}
        <main aria-labelledby="heading">
          {page === null ? (
            <UnknownLink />
          ) : page.status === 'active' ? (
            <Form
              page={page}
              path={path}
              texts={words.link}
              payMerchant={words.page.pay_merchant}
            />
          ) : (
            <Card sign={signs[page.status]} title={words.link[titles[page.status]]}>
              <p>
                <Named text={words.link[nexts[page.status]]} page={page} />
              </p>
            </Card>
          )}
        </main>
        <footer>
          <p class="brand">
            <Logo /> Tranche
          </p>
          {page !== null && (
            <>
              <Languages page={page} path={path} label={words.page.language} />
              <OperatorList operator={page.operator} />
            </>
          )}
        </footer>
      </div>
    </I18nContext.Provider>
  );
}

/** A text with the merchant's name, which keeps its own writing direction. */
function Named({ text, page }: { text: string; page: LinkPage }) {
  return (
    <>
      {splitText(text).map((part) =>
        typeof part === 'string' ? part : <bdi>{page.merchant_name}</bdi>,
      )}
    </>
  );
}

function Ordered({ page, words }: { page: LinkPage; words: LinkWords }) {
  const amount = page.amount === null ? null : showMoney(page.amount, page);
  return (
    <header class="order">
      {page.logo !== null && <img class="shop-logo" src={logoPath(page.logo)} alt="" />}
      <p class="merchant">
        {page.status === 'active' ? (
          <Named text={words.page.pay_merchant} page={page} />
        ) : (
          <bdi>{page.merchant_name}</bdi>
        )}
      </p>
      {amount !== null && <p class={amount.length > 13 ? 'amount long' : 'amount'}>{amount}</p>}
      {!page.reusable && (
        <p class="small">{fillIn(words.link.reference, { order: page.client_reference_id })}</p>
      )}
    </header>
  );
}

function Form(props: { page: LinkPage; path: string; texts: Texts; payMerchant: string }) {
  const { page, path, texts, payMerchant } = props;
  const money = (cents: number) => showMoney(cents, page);
  const bands = page.bands
    .map(({ from_amount, to_amount }) =>
      fillIn(texts.band, { from: money(from_amount), to: money(to_amount) }),
    )
    .join(', ');
  const isWrong = (member: 'amount' | 'email') => page.wrong.includes(member);
  return (
    <form class="link-form" method="post" action={`${path}?lang=${page.language}`} noValidate>
      <h1 id="heading" class="unseen">
        <Named text={payMerchant} page={page} />
      </h1>
      {page.notice !== null && (
        <p class="notice warning" role="alert">
          {page.notice === 'busy' ? texts.busy : texts.limited}
        </p>
      )}
      {page.amount === null && (
        <label class="field">
          <span>{texts.amount}</span>
          <input
            type="text"
            name="amount"
            inputMode="decimal"
            autocomplete="off"
            maxLength={20}
            value={page.typed.amount}
            aria-invalid={isWrong('amount')}
            aria-describedby="amount-next"
          />
          <span id="amount-next" class={isWrong('amount') ? 'field-wrong' : 'field-next'}>
            {fillIn(isWrong('amount') ? texts.amount_wrong : texts.amount_bands, { bands })}
          </span>
        </label>
      )}
      {page.asks_email && (
        <label class="field">
          <span>{texts.email}</span>
          <input
            type="email"
            name="email"
            autocomplete="email"
            maxLength={254}
            value={page.typed.email}
            aria-invalid={isWrong('email')}
            aria-describedby="email-next"
          />
          <span id="email-next" class={isWrong('email') ? 'field-wrong' : 'field-next'}>
            {isWrong('email') ? texts.email_wrong : texts.email_why}
          </span>
        </label>
      )}
      <button type="submit" class="button">
        <span>{texts.start}</span>
      </button>
      <p class="next">{texts.start_next}</p>
    </form>
  );
}

function Languages({ page, path, label }: { page: LinkPage; path: string; label: string }) {
  return (
    <ul class="languages" aria-label={label}>
      {languages.map((language) => (
        <li key={language}>
          <a
            class="link"
            lang={language}
            href={`${path}?lang=${language}`}
            aria-current={language === page.language}
          >
            {languageNames[language]}
          </a>
        </li>
      ))}
    </ul>
  );
}

/** The logo, the shop, the amount and the code. A sheet for a till needs nothing else. */
export function PrintedLink({ page, words }: { page: LinkPrint; words: LinkWords }) {
  const { size, path } = page.qr;
  return (
    <main class="print">
      <Logo />
      {page.logo !== null && <img class="print-logo" src={logoPath(page.logo)} alt="" />}
      <h1>{page.merchant_name}</h1>
      {page.amount !== null && <p class="print-amount">{showMoney(page.amount, page)}</p>}
      <svg class="code" viewBox={`0 0 ${size} ${size}`} role="img" aria-label={words.link.scan}>
        <path d={path} />
      </svg>
    </main>
  );
}
