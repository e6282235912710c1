import { hydrate } from 'preact';
import type { PageWords } from '#platform/shared/words/words.ts';
import type { PayPage } from '#purchases/shoppers/pay-page.ts';
import { App } from './app.tsx';

const data = document.getElementById('pay-page')?.textContent;
const root = document.getElementById('root');
if (data && root) {
  const given = JSON.parse(data) as { page: PayPage; path: string; words: PageWords };
  const picked = root.querySelector<HTMLInputElement>('input[name=term]:checked')?.value;
  hydrate(
    <App
      {...given}
      pickedTerm={picked ? Number(picked) : undefined}
      linkToken={takeToken(given.path)}
    />,
    root,
  );
}

/**
 * The one-time link's token, which is in the address after the `#`. It leaves the address at once,
 * so that it is neither in the history nor in what a shopper copies.
 */
function takeToken(path: string): string | undefined {
  if (location.pathname !== `${path}/manage`) return undefined;
  const token = location.hash.slice(1);
  history.replaceState(null, '', path);
  return token === '' ? undefined : token;
}
