import { hydrate } from 'preact';
import type { PageWords } from '#platform/shared/words/words.ts';
import type { PayPage } from '#purchases/shoppers/pay-page.ts';
import { planPanels } from '#purchases/shoppers/plan-attempt.ts';
import { App } from './app.tsx';
import type { Arrival } from './plan-page.tsx';

const data = document.getElementById('pay-page')?.textContent;
const root = document.getElementById('root');
if (data && root) {
  const given = JSON.parse(data) as { page: PayPage; path: string; words: PageWords };
  const picked = root.querySelector<HTMLInputElement>('input[name=term]:checked')?.value;
  hydrate(
    <App
      {...given}
      pickedTerm={picked ? Number(picked) : undefined}
      arrival={takeArrival(given.path)}
    />,
    root,
  );
}

/**
 * In a mail's link, the token and the next step follow the `#`. They are removed from the URL at
 * once, so that they are neither in the history nor in what a shopper copies.
 */
function takeArrival(path: string): Arrival | null {
  if (location.pathname !== `${path}/manage`) return null;
  const [token = '', panel = '', number = ''] = location.hash.slice(1).split('.');
  history.replaceState(null, '', path);
  const known = planPanels.find((one) => one === panel) ?? null;
  return { token, panel: known, payment: Number(number) || null };
}
