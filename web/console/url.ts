import { useLocation, useSearch } from 'wouter';
import { useChoice } from './session.tsx';

export type Filters = Record<string, string>;

function changed(search: string, path: string, change: Filters): string {
  const next = new URLSearchParams(search);
  if (!('after' in change)) next.delete('after');
  for (const [name, value] of Object.entries(change)) {
    if (value === '') next.delete(name);
    else next.set(name, value);
  }
  const text = next.toString();
  return text === '' ? path : `${path}?${text}`;
}

/**
 * The filters of a page live in its address, so a link is a saved view. A change returns to the
 * first page.
 */
export function useFilters(): [Filters, (change: Filters) => void] {
  const search = useSearch();
  const [path, navigate] = useLocation();
  const { merchant } = useChoice();
  const inAddress = Object.fromEntries(new URLSearchParams(search));
  const filters: Filters = { ...(merchant !== null && { merchant }), ...inAddress };
  const change = (wanted: Filters) =>
    navigate(changed(search, path, wanted), { replace: !('after' in wanted) });
  return [filters, change];
}

/**
 * The row that is open over a list, as a parameter of the address. Opening it keeps the list's
 * filters and page. Null closes it.
 */
export function useOpened(name: string): {
  opened: string | null;
  hrefOf: (id: string) => string;
  close: () => void;
} {
  const search = useSearch();
  const [path, navigate] = useLocation();
  const parameters = new URLSearchParams(search);
  const after = parameters.get('after') ?? '';
  return {
    opened: parameters.get(name),
    hrefOf: (id) => changed(search, path, { after, [name]: id }),
    close: () => navigate(changed(search, path, { after, [name]: '' })),
  };
}
