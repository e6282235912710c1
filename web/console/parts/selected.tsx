import { Button } from '@mantine/core';
import { type ReactNode, useState } from 'react';
import type { BulkAction } from '#operating/operations/bulk-action.schema.ts';
import { money } from '../format.ts';
import { useAction } from './actions.tsx';
import { followBulkAction } from './bulk-actions.tsx';

/** The sum of the rows, if all have the same currency; otherwise empty. */
export function sumOf(rows: { amount: number; currency: string; locale: string }[]): string {
  const [first] = rows;
  if (!first || rows.some(({ currency }) => currency !== first.currency)) return '';
  const sum = rows.reduce((all, { amount }) => all + amount, 0);
  return `, ${money(sum, first.currency, first.locale)}`;
}

/** The selected rows of a view. Another view begins without a selection. */
export function usePicked(view: string): [Set<string>, (keys: Set<string>) => void] {
  const [picked, setPicked] = useState({ view, keys: new Set<string>() });
  const set = (keys: Set<string>) => setPicked({ view, keys });
  if (picked.view !== view) set(new Set());
  return [picked.keys, set];
}

/** Begins one action on many rows, and shows its progress. */
export function useBulkAction(clear: () => void) {
  const { run, busy, problem } = useAction();
  const begin = (path: string, body: object, what: string) =>
    void run<BulkAction>({ path, body, what }).then((answer) => {
      if (!answer) return;
      clear();
      followBulkAction(answer.id);
    });
  return { begin, busy, problem };
}

/** The bar below a list with the selected rows, and the one action on them. */
export function SelectedBar(props: {
  label: string;
  what: string;
  busy: boolean;
  problem: string | null;
  clear: () => void;
  onAction: () => void;
  children: ReactNode;
}) {
  return (
    <section className="picked" aria-label={props.label}>
      <span>
        {props.children}
        {props.problem !== null && <span className="danger-text"> · {props.problem}</span>}
      </span>
      <span className="row-of">
        <Button variant="default" onClick={props.clear}>
          Clear
        </Button>
        <Button loading={props.busy} onClick={props.onAction}>
          {props.what}
        </Button>
      </span>
    </section>
  );
}
