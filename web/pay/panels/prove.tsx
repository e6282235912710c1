import { useRef, useState } from 'preact/hooks';
import { useI18n } from '../i18n.tsx';
import type { Panel } from '../manage.tsx';
import { NoLinks } from '../plan.tsx';
import { type Answered, sendLink } from '../session.ts';
import { MailboxHint } from '../test-cards.tsx';
import { Head, OutcomeNotice, type PanelProps, troubles } from './panel.tsx';

/** No sign-in link can be sent, so the shopper cannot act here. */
export function NoProof({ page, close }: PanelProps) {
  const i18n = useI18n();
  return (
    <div class="panel">
      <Head title={i18n.text('manage')} close={close} />
      <p>
        <NoLinks page={page} />
      </p>
    </div>
  );
}

/** "Send me a link": the answer is the same for every e-mail address. */
export function Prove({ page, path, close, panel }: PanelProps & { panel: Panel }) {
  const i18n = useI18n();
  const [state, setState] = useState<Answered | 'idle' | 'sending' | 'wrong'>('idle');
  const field = useRef<HTMLInputElement>(null);

  async function send(event: Event) {
    event.preventDefault();
    if (state === 'sending') return;
    const email = field.current?.value.trim() ?? '';
    if (!/^\S+@\S+$/.test(email)) {
      setState('wrong');
      field.current?.focus();
      return;
    }
    setState('sending');
    setState(await sendLink(path, email, panel === 'manage' ? null : panel));
  }

  const trouble = state === 'wrong' || state === 'refused' ? 'prove_wrong' : troubles[state];
  return (
    <form class="panel" noValidate onSubmit={send}>
      <Head title={i18n.text('prove')} about={i18n.text('prove_why')} close={close} />
      <OutcomeNotice isGood={state === 'done'}>
        {state === 'done' ? (
          <>
            <strong>{i18n.text('prove_sent')}</strong> {i18n.text('prove_sent_next')}
          </>
        ) : (
          trouble && i18n.text(trouble)
        )}
      </OutcomeNotice>
      <label class="field">
        <span>{i18n.text('prove_email')}</span>
        <input
          ref={field}
          type="email"
          name="email"
          autocomplete="email"
          maxLength={254}
          aria-invalid={state === 'wrong'}
        />
      </label>
      <button
        type="submit"
        class={state === 'sending' ? 'button busy' : 'button'}
        aria-disabled={state === 'sending'}
      >
        <span>{i18n.text(state === 'sending' ? 'prove_sending' : 'prove_send')}</span>
      </button>
      {page.test_mode && <MailboxHint url={page.mailbox_url} />}
    </form>
  );
}
