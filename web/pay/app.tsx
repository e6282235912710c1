import { useEffect, useRef, useState } from 'preact/hooks';
import type { Language } from '#platform/shared/language.ts';
import type { PageWords } from '#platform/shared/words/words.ts';
import type { PayPage } from '#purchases/shoppers/pay-page.ts';
import { EnterCard } from './enter-card.tsx';
import { Footer } from './footer.tsx';
import { buttonWords, PayForm } from './form.tsx';
import { I18nContext } from './i18n.tsx';
import { NoScript } from './no-script.tsx';
import { isPayable, Order } from './order.tsx';
import { Challenge, Outcome, UnknownLink, Waiting } from './outcome.tsx';
import { type Payment, startPayment } from './payment.ts';
import { firstView, isBusy, type View } from './payment-state.ts';
import { type Arrival, PlanPage, type Proof } from './plan-page.tsx';
import { openSession } from './session.ts';
import { TestRibbon } from './test-cards.tsx';
import { createI18n, type I18n } from './words.ts';

type AppProps = {
  page: PayPage | null;
  /** The path of this payment: `/pay/{token}`. */
  path: string;
  words: PageWords;
  /** The term that the shopper picked before this script had loaded. */
  pickedTerm?: number | undefined;
  /** The link in a mail that opened the page. */
  arrival?: Arrival | null;
};

export function App({
  page: first,
  path,
  words: firstWords,
  pickedTerm,
  arrival = null,
}: AppProps) {
  const [view, setView] = useState<View>(() => firstView(first));
  const [payment, setPayment] = useState<Payment | null>(null);
  const [term, setTerm] = useState(first?.number_of_payments ?? 1);
  // Once shown, the form stays with its input while its payment is in flight.
  const [hasForm, setHasForm] = useState(first?.status === 'open');
  const [words, setWords] = useState(firstWords);
  const [proof, setProof] = useState<Proof>(null);
  const { page } = view;
  const i18n = createI18n(words, page);

  useEffect(() => {
    if (first === null) return;
    const started = startPayment(first, path, setView);
    setPayment(started);
    if (pickedTerm !== undefined) setTerm(pickedTerm);
    if (arrival?.token && first.plan !== null) void prove(arrival.token, started);
  }, []);

  async function prove(token: string, started: Payment) {
    setProof('opening');
    const answer = await openSession(path, token);
    // A link that was used before opens no session, but this browser may still have the session
    // that the link opened. The document that is read now shows whether it does.
    await started.reload();
    setProof(answer);
  }

  const scene = sceneOf(view, hasForm);
  const main = useRef<HTMLElement>(null);
  const seen = useRef(scene);
  useEffect(() => {
    if (scene === 'form') setHasForm(true);
    document.title = title(view, i18n);
    if (page !== null) document.documentElement.lang = page.language;
    if (seen.current === scene) return;
    seen.current = scene;
    main.current?.querySelector('h1')?.focus();
  }, [scene, view, words]);

  async function speak(language: Language) {
    const spoken = await payment?.speak(language);
    if (spoken) setWords(spoken);
  }

  return (
    <I18nContext.Provider value={i18n}>
      {page?.test_mode && <TestRibbon mailboxUrl={page.mailbox_url} />}
      <div class={page === null ? 'page alone' : 'page'}>
        {page !== null && <Order page={page} />}
        <main ref={main} aria-labelledby="heading">
          {page !== null && isPayable(page) && (
            // Only an open checkout is certain not to have been charged. In every other state a
            // payment may be in flight, so the notice makes no promise about money.
            <NoScript
              text={`${i18n.text('no_script')} ${page.status === 'open' ? i18n.text('nothing_charged') : ''}`}
            />
          )}
          {page === null ? (
            <UnknownLink />
          ) : scene === 'form' ? (
            <PayForm view={view} page={page} payment={payment} term={term} choose={setTerm} />
          ) : scene === 'waiting' ? (
            <Waiting view={view} page={page} payment={payment} />
          ) : scene === 'plan' && page.plan !== null ? (
            <PlanPage
              view={view}
              page={page}
              plan={page.plan}
              path={path}
              payment={payment}
              proof={proof}
              arrival={arrival}
            />
          ) : scene === 'challenge' ? (
            <Challenge view={view} page={page} payment={payment} />
          ) : scene === 'begun' ? (
            <EnterCard view={view} page={page} payment={payment} />
          ) : (
            <Outcome view={view} page={page} payment={payment} path={path} />
          )}
          <p class="unseen" role="status">
            {buttonWords(view, i18n)}
            {view.slow && ` ${i18n.text('waiting_slow')}`}
          </p>
        </main>
        <Footer page={page} speak={payment !== null && !isBusy(view) ? speak : null} />
      </div>
    </I18nContext.Provider>
  );
}

type Scene = 'form' | 'plan' | 'waiting' | 'challenge' | 'unknown' | PayPage['status'];

function sceneOf({ page, choosesAgain, returning }: View, hasForm: boolean): Scene {
  if (page === null) return 'unknown';
  if (page.status === 'open') return 'form';
  if (page.status === 'begun' || page.status === 'challenge') {
    return choosesAgain ? 'form' : page.status;
  }
  if (page.status === 'paying') return hasForm ? 'form' : 'waiting';
  if (page.status === 'successful' && page.plan !== null && !returning) return 'plan';
  return page.status;
}

export function title({ page, returning }: View, i18n: I18n): string {
  if (page === null) return i18n.text('title_unknown');
  const what = {
    open: page.decline === null ? 'title_open' : 'title_declined',
    paying: 'title_paying',
    begun: 'title_open',
    challenge: 'title_challenge',
    expired: 'title_expired',
    successful: returning ? 'title_approved' : 'plan',
    cancelled: 'title_cancelled',
    invalid_payload: 'title_invalid',
  } as const;
  return `${i18n.text(what[page.status])} · ${page.merchant_name}`;
}
