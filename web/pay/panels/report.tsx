import { useRef, useState } from 'preact/hooks';
import { useI18n } from '../i18n.tsx';
import { type Answered, report } from '../session.ts';
import { Head, type PanelProps, Result, troubles } from './panel.tsx';

/** "Something is wrong": the text goes to the operators. */
export function Report({ path, payment, close }: PanelProps) {
  const i18n = useI18n();
  const [state, setState] = useState<Answered | 'idle' | 'sending' | 'empty'>('idle');
  const field = useRef<HTMLTextAreaElement>(null);

  async function send(event: Event) {
    event.preventDefault();
    if (state === 'sending') return;
    const text = field.current?.value.trim() ?? '';
    if (text === '') {
      setState('empty');
      field.current?.focus();
      return;
    }
    setState('sending');
    const answer = await report(path, text);
    setState(answer);
    if (answer === 'refused') void payment?.reload();
  }

  const trouble = state === 'empty' ? 'report_empty' : troubles[state];
  return (
    <form class="panel" noValidate onSubmit={send}>
      <Head title={i18n.text('report')} close={close} />
      <Result isGood={state === 'done'}>
        {state === 'done' ? i18n.text('report_sent') : trouble && i18n.text(trouble)}
      </Result>
      {state !== 'done' && (
        <>
          <label class="field">
            <span>{i18n.text('report_label')}</span>
            <textarea
              ref={field}
              rows={5}
              maxLength={1000}
              aria-invalid={state === 'empty'}
              aria-describedby="report-hint"
            />
          </label>
          <p class="small" id="report-hint">
            {i18n.text('report_hint')}
          </p>
          <button
            type="submit"
            class={state === 'sending' ? 'button busy' : 'button'}
            aria-disabled={state === 'sending'}
          >
            <span>{i18n.text(state === 'sending' ? 'prove_sending' : 'report_send')}</span>
          </button>
        </>
      )}
    </form>
  );
}
