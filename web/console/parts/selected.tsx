import { Button } from '@mantine/core';
import type { ReactNode } from 'react';
import type { BulkAction } from '#operating/operations/bulk-action.schema.ts';
import { useAction } from './actions.tsx';
import { followBulkAction } from './bulk-actions.tsx';

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
