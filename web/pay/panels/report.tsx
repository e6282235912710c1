import { useRef, useState } from 'preact/hooks';
import type { PageEntry } from '#purchases/shoppers/pay-page.ts';
import { useI18n } from '../i18n.tsx';
import { AskMerchant } from '../plan.tsx';
import { type Answered, report } from '../session.ts';
import { Head, OutcomeNotice, type PanelProps, troubles } from './panel.tsx';

// The text stays until it is sent, even if the session ends before that and the shopper has to sign
// in again.
let draft = '';

/** "Something is wrong": the text goes to the people who answer, and their answer appears here. */
export function Report({ page, path, payment, close }: PanelProps) {
  const i18n = useI18n();
  const [state, setState] = useState<Answered | 'idle' | 'sending' | 'empty'>('idle');
  const field = useRef<HTMLTextAreaElement>(null);
  const entries = page.conversation?.entries ?? [];

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
    if (answer === 'done') {
      draft = '';
      if (field.current) field.current.value = '';
    }
    setState(answer);
    if (answer === 'done' || answer === 'refused') void payment?.reload();
  }

  const trouble = state === 'empty' ? 'report_empty' : troubles[state];
  const who = i18n.text(page.answer_days === 1 ? 'report_who_one' : 'report_who_other', {
    merchant: page.merchant_name,
    days: page.answer_days,
  });
  return (
    <form class="panel" noValidate onSubmit={send}>
      <Head title={i18n.text('report')} about={who} close={close} />
      {entries.length > 0 && <Thread entries={entries} />}
      <OutcomeNotice isGood={state === 'done'}>
        {state === 'done' ? (
          i18n.text('report_sent')
        ) : state === 'limited' ? (
          <AskMerchant page={page} of="report_limited" />
        ) : (
          trouble && i18n.text(trouble)
        )}
      </OutcomeNotice>
      <label class="field">
        <span>{i18n.text(entries.length > 0 ? 'report_again' : 'report_label')}</span>
        <textarea
          ref={field}
          defaultValue={draft}
          onInput={(event) => {
            draft = event.currentTarget.value;
          }}
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
    </form>
  );
}

/** The shopper's texts and the answers, the oldest first. */
function Thread({ entries }: { entries: PageEntry[] }) {
  const i18n = useI18n();
  return (
    <section class="thread" aria-labelledby="thread">
      <h2 id="thread">{i18n.text('report_thread')}</h2>
      <ol>
        {entries.map(({ name, text, at }) => (
          <li key={at} class={name === null ? 'is-own' : ''}>
            <p class="small">
              <strong>{name === null ? i18n.text('report_you') : <bdi>{name}</bdi>}</strong>{' '}
              <time dateTime={at}>
                {i18n.dateOf(at)}, {i18n.timeOf(at)}
              </time>
            </p>
            <p class="words" dir="auto">
              {text}
            </p>
          </li>
        ))}
      </ol>
    </section>
  );
}
