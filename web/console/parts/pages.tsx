import { Button } from '@mantine/core';
import { type ReactNode, useState } from 'react';
import { Dialog } from './dialog.tsx';
import { useListPage } from './list.tsx';
import { Unread } from './states.tsx';

/** Shows all rows of a list that the page shows only in part, one page at a time. */
export function PagesDialog<Row>(props: {
  title: string;
  path: string;
  query?: Record<string, string>;
  /** The labels of the buttons for the first page and for the next one. */
  first: string;
  next: string;
  show: (rows: Row[]) => ReactNode;
  close: () => void;
}) {
  const [after, setAfter] = useState<string | null>(null);
  const page = useListPage<Row>(props.path, {
    ...props.query,
    ...(after !== null && { after }),
  });
  const next = page.data?.next ?? null;
  return (
    <Dialog opened close={props.close} title={props.title} size="lg">
      <div className="stack">
        {page.data ? props.show(page.data.data) : <Unread of={page} lines={6} />}
        <span className="row-of end">
          <Button variant="default" disabled={after === null} onClick={() => setAfter(null)}>
            {props.first}
          </Button>
          <Button variant="default" disabled={next === null} onClick={() => setAfter(next)}>
            {props.next}
          </Button>
        </span>
      </div>
    </Dialog>
  );
}
