import { hydrate } from 'preact';
import type { PayPage } from '../../src/payments/pay-page.ts';
import { App } from './app.tsx';

const data = document.getElementById('pay-page')?.textContent;
const root = document.getElementById('root');
if (data && root) {
  const { page, path } = JSON.parse(data) as { page: PayPage; path: string };
  const picked = root.querySelector<HTMLInputElement>('input[name=term]:checked')?.value;
  hydrate(<App page={page} path={path} pickedTerm={picked ? Number(picked) : undefined} />, root);
}
