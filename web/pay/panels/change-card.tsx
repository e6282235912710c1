import { useState } from 'preact/hooks';
import type { CardForm } from '../../card-forms/card-form.ts';
import { Trouble } from '../form.tsx';
import { useI18n } from '../i18n.tsx';
import { isBusy } from '../payment-state.ts';
import { isUnpaid } from '../plan.tsx';
import { chargesWords } from '../words.ts';
import { AttemptButton, consentTo, declineOf, OtherCard, Refusal } from './attempt.tsx';
import { Head, type PanelProps } from './panel.tsx';

/** Changes the card for the remaining payments. The bank confirms it, and nothing is charged. */
export function ChangeCard({ view, page, plan, payment, close }: PanelProps) {
  const i18n = useI18n();
  const [form, setForm] = useState<CardForm | null>(null);
  const busy = isBusy(view);
  const isBefore = page.card_entry?.entersCard !== 'after';
  const mayAttempt = payment !== null && !busy && (!isBefore || form !== null);
  const rest = plan.payments.filter(({ status }) => isUnpaid(status));
  const charges = chargesWords(rest, i18n, 'consent_monthly');

  function save(event: Event) {
    event.preventDefault();
    if (!mayAttempt) return;
    const request = { step: 'plan/card', consent: consentTo(rest, page) } as const;
    void payment.attempt(request, form?.submit ?? null);
  }

  return (
    <form class="panel pay-form" autocomplete="off" noValidate onSubmit={save}>
      <Head
        title={i18n.text('manage_card')}
        about={i18n.text('manage_card_note')}
        close={busy ? null : close}
      />
      <Trouble view={view} decline={declineOf(view)} />
      <Refusal view={view} />
      {isBefore && <OtherCard view={view} page={page} use={{ purpose: 'store' }} give={setForm} />}
      {charges !== null && <p class="consent">{i18n.text('consent_card', { charges })}</p>}
      <AttemptButton
        view={view}
        mayAttempt={mayAttempt}
        text={i18n.text(isBefore ? 'manage_save' : 'go_on')}
      />
    </form>
  );
}
