import { hydrate } from 'preact';
import type { PayPage } from '../../src/payments/pay-page.ts';
import type { PageWords } from '../../src/shared/words/words.ts';
import { App } from './app.tsx';

const data = document.getElementById('pay-page')?.textContent;
const root = document.getElementById('root');
if (data && root) {
  const given = JSON.parse(data) as { page: PayPage; path: string; words: PageWords };
  const picked = root.querySelector<HTMLInputElement>('input[name=term]:checked')?.value;
  hydrate(<App {...given} pickedTerm={picked ? Number(picked) : undefined} />, root);
}
