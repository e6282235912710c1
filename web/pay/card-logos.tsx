import { brandName } from '#platform/shared/card-names.ts';
import type { CardBrand } from '#platform/shared/hosted-page.ts';
import { useI18n } from './i18n.tsx';

/** Small logos of the accepted cards. They are drawn here, so that nothing has to be loaded. */
export function CardLogos({ brands }: { brands: CardBrand[] }) {
  const i18n = useI18n();
  if (brands.length === 0) return null;
  const label = i18n.text('card_logos', { brands: brands.map(brandName).join(', ') });
  return (
    // The width is known before the logos are parsed, so that nothing moves.
    <span class={`card-logos of-${brands.length}`} role="img" aria-label={label}>
      {brands.map((brand) => (
        <CardLogo key={brand} brand={brand} />
      ))}
    </span>
  );
}

/** The logo of one card; an empty card for a brand without a logo. */
export function CardLogo({ brand }: { brand: string | null }) {
  return (
    <svg class="card-face" viewBox="0 0 36 24" aria-hidden="true" focusable="false">
      <rect class="card-logo" x=".5" y=".5" width="35" height="23" rx="3.5" />
      {logos[brand as CardBrand] ?? <path class="card-band" d="M1 7h34v4H1z" />}
    </svg>
  );
}

const logos = {
  visa: (
    <path
      fill="#1434cb"
      d="M15.9 8.6 14.6 15.4h-1.9l1.3-6.8h1.9zm7.9 4.4 1-2.7.5 2.7h-1.5zm2.1 2.4h1.7l-1.5-6.8h-1.6c-.4 0-.7.2-.8.5l-2.8 6.3h2l.4-1.1h2.4l.2 1.1zm-4.8-2.2c0-1.8-2.5-1.9-2.5-2.7 0-.3.2-.5.8-.6.3 0 1-.1 1.8.3l.3-1.5c-.4-.2-1-.3-1.8-.3-1.9 0-3.2 1-3.2 2.4 0 1 .9 1.6 1.6 2 .7.3 1 .6 1 .9 0 .5-.6.7-1.2.7-.9 0-1.5-.3-1.9-.5l-.4 1.6c.5.2 1.3.4 2.1.4 2.1 0 3.4-1 3.4-2.7zM13.100 8.600l-3 6.800H8.100L6.600 9.900c-.1-.4-.2-.5-.5-.6-.5-.3-1.300-.5-2-.7v-.1h3.100c.4 0 .8.3.9.7l.8 4.200 2-4.900h2.200z"
    />
  ),
  mastercard: (
    <>
      <circle cx="14.500" cy="12" r="6" fill="#eb001b" />
      <circle cx="21.500" cy="12" r="6" fill="#f79e1b" />
      <path fill="#ff5f00" d="M18 7.130a6 6 0 0 1 0 9.740 6 6 0 0 1 0-9.740z" />
    </>
  ),
  amex: (
    <>
      <rect width="36" height="24" rx="4" fill="#006fcf" />
      <path
        fill="none"
        stroke="#fff"
        stroke-width="1.400"
        d="M4.500 15 7 9l2.500 6M5.500 13.200h3M11.500 15V9l2.500 3.500L16.500 9v6M23 9h-4v6h4M19 12h3.500M25.500 9l5 6m0-6-5 6"
      />
    </>
  ),
};
