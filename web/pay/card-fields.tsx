import { useEffect, useRef, useState } from 'preact/hooks';
import type { CardSession } from '#gateway/gateway.ts';
import type { PayPage } from '#purchases/shoppers/pay-page.ts';
import type { CardForm, CardUse } from '../card-forms/card-form.ts';
import { mountCard } from '../card-forms/card-forms.ts';
import { CardLogos } from './card-logos.tsx';
import { Text, useI18n } from './i18n.tsx';
import { renderedOnce } from './render-once.tsx';

/** The gateway's frame with its title, and a note about where the card details go. */
export const CardFields = renderedOnce(AnyCardFields, ({ page, card }) =>
  JSON.stringify([page.merchant_name, page.card_brands, card.state]),
);

function AnyCardFields({ page, card }: { page: PayPage; card: Card }) {
  const i18n = useI18n();
  return (
    <>
      <div class="card-title">
        <h2 id="card-heading">{i18n.text('card_details')}</h2>
        <CardLogos brands={page.card_brands} />
      </div>
      <div class="card-frame" aria-busy={card.state === 'loading'}>
        {card.state === 'loading' && (
          <div class="card-loading">
            <span />
            <span />
            <span />
            <p class="unseen">{i18n.text('card_loading')}</p>
          </div>
        )}
        <div ref={card.place} hidden={card.state === 'failed'} />
        {card.state === 'failed' && (
          <div class="notice danger" role="alert">
            <p>
              <strong>{i18n.text('card_failed')}</strong> {i18n.text('card_failed_next')}
            </p>
            <button type="button" class="link" onClick={card.retry}>
              {i18n.text('card_reload')}
            </button>
          </div>
        )}
      </div>
      <p class="small">
        <svg class="lock" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
          <path d="M4.5 7V5a3.5 3.5 0 0 1 7 0v2M3 7.5h10v6.5H3z" />
        </svg>
        <span>
          <Text of="card_privacy" merchant={<bdi>{page.merchant_name}</bdi>} />
        </span>
      </p>
    </>
  );
}

export type Card = ReturnType<typeof useCard>;

/** `/pay/{token}`, also on the page that a link in a mail opens. */
const paymentPath = () => location.pathname.split('/').slice(0, 3).join('/');

type CardState = 'loading' | 'ready' | 'failed';

/** Mounts the gateway's frame at its place on the page as soon as that place is rendered. */
export function useCard(page: PayPage, use: CardUse, session: CardSession | null = null) {
  const title = useI18n().text('card_details');
  const place = useRef<HTMLDivElement>(null);
  const [state, setState] = useState<CardState>('loading');
  const [form, setForm] = useState<CardForm | null>(null);
  const [retries, setRetries] = useState(0);

  useEffect(() => {
    let gone = false;
    let mounted: CardForm | null = null;
    if (place.current === null) return;
    const { card_entry: entry, currency } = page;
    if (entry === null) return setState('failed');
    const returnUrl = `${location.origin}${paymentPath()}/return`;
    mountCard({ entry, session, currency, returnUrl, place: place.current, use }).then(
      (made) => {
        mounted = made;
        if (gone) return made.destroy();
        setForm(made);
        setState('ready');
      },
      () => {
        if (!gone) setState('failed');
      },
    );
    return () => {
      gone = true;
      mounted?.destroy();
    };
    // The frame is mounted only once, because it holds the input. The effect below passes it a new
    // amount.
  }, [retries]);

  useEffect(() => form?.update(use), [form, JSON.stringify(use)]);
  useEffect(() => form?.name(title), [form, title]);

  return {
    place,
    state,
    form,
    retry() {
      setState('loading');
      setRetries(retries + 1);
    },
  };
}
