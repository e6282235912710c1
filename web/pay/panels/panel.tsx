import type { ComponentChildren } from 'preact';
import type { PageKey } from '#platform/shared/words/words.ts';
import type { PayPage } from '#purchases/shoppers/pay-page.ts';
import type { Plan } from '#purchases/shoppers/plan.ts';
import { useI18n } from '../i18n.tsx';
import type { Payment } from '../payment.ts';
import type { View } from '../payment-state.ts';

export type PanelProps = {
  view: View;
  page: PayPage;
  plan: Plan;
  path: string;
  payment: Payment | null;
  /** The late payment that the shopper's mail is about. */
  only: number | null;
  close: () => void;
};

export function Head({
  title,
  about,
  close,
}: {
  title: string;
  about?: string;
  close: (() => void) | null;
}) {
  const i18n = useI18n();
  return (
    <div class="panel-head">
      <button
        type="button"
        class="link back"
        aria-disabled={close === null}
        onClick={() => close?.()}
      >
        {i18n.text('back')}
      </button>
      <h1 id="heading" tabIndex={-1}>
        {title}
      </h1>
      {about !== undefined && <p>{about}</p>}
    </div>
  );
}

export const troubles: Partial<Record<string, PageKey>> = {
  limited: 'prove_limited',
  failed: 'no_connection',
};

/**
 * The place for the outcome of a request. It exists from the start, so that screen readers announce
 * the outcome.
 */
export function OutcomeNotice({
  isGood,
  children,
}: {
  isGood: boolean;
  children: ComponentChildren;
}) {
  return (
    <div role="status">
      {children && <p class={isGood ? 'notice good' : 'notice danger'}>{children}</p>}
    </div>
  );
}
