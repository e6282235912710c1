import { useEffect, useRef, useState } from 'preact/hooks';
import type { PayPage } from '../../src/payments/pay-page.ts';
import { buttonWords, PayForm } from './form.tsx';
import { Mark } from './mark.tsx';
import { Order } from './order.tsx';
import { Challenge, Outcome, UnknownLink, Waiting } from './outcome.tsx';
import { firstView, type Payment, startPayment, type View } from './payment.ts';
import { TestRibbon } from './test-cards.tsx';

type AppProps = {
  page: PayPage | null;
  /** The path of this payment: `/pay/{token}`. */
  path: string;
  /** The term that the shopper picked before this script had loaded. */
  pickedTerm?: number | undefined;
};

export function App({ page: first, path, pickedTerm }: AppProps) {
  const [view, setView] = useState<View>(() => firstView(first));
  const [payment, setPayment] = useState<Payment | null>(null);
  const [term, setTerm] = useState(first?.number_of_payments ?? 1);
  // Once shown, the form stays with its input while its payment is in flight.
  const [hasForm, setHasForm] = useState(first?.status === 'open');
  const { page } = view;

  useEffect(() => {
    if (first !== null) setPayment(startPayment(first, path, setView));
    if (pickedTerm !== undefined) setTerm(pickedTerm);
  }, []);

  const scene = sceneOf(view, hasForm);
  const main = useRef<HTMLElement>(null);
  const seen = useRef(scene);
  useEffect(() => {
    if (scene === 'form') setHasForm(true);
    document.title = title(view);
    if (seen.current === scene) return;
    seen.current = scene;
    main.current?.querySelector('h1')?.focus();
  }, [scene, view]);

  return (
    <>
      {page?.test_mode && <TestRibbon />}
      <div class={page === null ? 'page alone' : 'page'}>
        {page !== null && <Order page={page} />}
        <main ref={main} aria-labelledby="heading">
          {page === null ? (
            <UnknownLink />
          ) : scene === 'form' ? (
            <PayForm view={view} page={page} payment={payment} term={term} choose={setTerm} />
          ) : scene === 'waiting' ? (
            <Waiting view={view} page={page} payment={payment} />
          ) : scene === 'challenge' ? (
            <Challenge view={view} page={page} payment={payment} />
          ) : (
            <Outcome view={view} page={page} />
          )}
          <p class="unseen" role="status">
            {buttonWords(view)}
            {view.slow && ' This is taking longer than usual. Keep this page open.'}
          </p>
        </main>
        <footer>
          <Mark /> Tranche
        </footer>
      </div>
    </>
  );
}

type Scene = 'form' | 'waiting' | 'challenge' | 'unknown' | PayPage['status'];

function sceneOf({ page, anotherCard }: View, hasForm: boolean): Scene {
  if (page === null) return 'unknown';
  if (page.status === 'open') return 'form';
  if (page.status === 'challenge') return anotherCard ? 'form' : 'challenge';
  if (page.status === 'paying') return hasForm ? 'form' : 'waiting';
  return page.status;
}

export function title({ page, returning }: View): string {
  if (page === null) return 'Unknown link';
  const what = {
    open: 'Pay',
    paying: 'Asking your bank',
    challenge: 'Confirm at your bank',
    expired: 'Link no longer usable',
    successful: returning ? 'Payment approved' : 'Already paid',
    cancelled: 'Payment cancelled',
    invalid_payload: 'Cannot be paid',
  }[page.status];
  const problem = page.status === 'open' && page.decline !== null ? 'Declined: ' : '';
  return `${problem}${what} · ${page.merchant_name}`;
}
