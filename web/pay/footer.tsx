import type { OperatorLinks } from '#platform/shared/hosted-page.ts';
import { type Language, languageNames, languages } from '#platform/shared/language.ts';
import type { PayPage } from '#purchases/shoppers/pay-page.ts';
import { useI18n } from './i18n.tsx';
import { Logo } from './logo.tsx';
import { renderedOnce } from './render-once.tsx';

type FooterProps = {
  page: PayPage | null;
  /** Null while the language cannot change: before the script has loaded, and while paying. */
  speak: ((language: Language) => void) | null;
};

/** Names the operator of this page, and lets the shopper choose its language. */
export const Footer = renderedOnce(AnyFooter, ({ page }) =>
  JSON.stringify(page && [page.language, page.operator]),
);

function AnyFooter({ page, speak }: FooterProps) {
  const i18n = useI18n();
  return (
    <footer>
      <p class="brand">
        <Logo /> Tranche
      </p>
      {page !== null && (
        <ul class="languages" aria-label={i18n.text('language')}>
          {languages.map((language) => (
            <li key={language}>
              <button
                type="button"
                class="link"
                lang={language}
                aria-current={language === page.language}
                aria-disabled={speak === null}
                onClick={() => language !== page.language && speak?.(language)}
              >
                {languageNames[language]}
              </button>
            </li>
          ))}
        </ul>
      )}
      {page !== null && <OperatorList operator={page.operator} />}
    </footer>
  );
}

export function OperatorList({ operator }: { operator: OperatorLinks }) {
  const i18n = useI18n();
  const { terms_url, privacy_url, contact, complaints } = operator;
  if ((terms_url ?? privacy_url ?? contact ?? complaints) === null) return null;
  return (
    <ul class="links">
      {terms_url !== null && <Link href={terms_url} text={i18n.text('terms')} />}
      {privacy_url !== null && <Link href={privacy_url} text={i18n.text('privacy')} />}
      {contact !== null && (
        <Link href={contactUrl(contact)} text={`${i18n.text('contact')}: ${contact}`} />
      )}
      {complaints !== null && <Link href={contactUrl(complaints)} text={i18n.text('complaints')} />}
    </ul>
  );
}

/** Opens a new tab, so that this page keeps what the shopper has typed. */
function Link({ href, text }: { href: string; text: string }) {
  return (
    <li>
      <a href={href} target="_blank" rel="noopener noreferrer">
        {text}
      </a>
    </li>
  );
}

/** The contact of a merchant. It opens a new tab, like the operator's links. */
export function ContactLink({ contact }: { contact: string }) {
  return (
    <a href={contactUrl(contact)} target="_blank" rel="noopener noreferrer">
      {contact}
    </a>
  );
}

function contactUrl(contact: string): string {
  if (contact.startsWith('https://')) return contact;
  return contact.includes('@') ? `mailto:${contact}` : `tel:${contact.replace(/[^+0-9]/g, '')}`;
}
