import { useRef } from 'react';
import { useLocation, useSearch } from 'wouter';
import { useChoice, useSession } from './session.tsx';

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
 * The filters of a page live in its URL, so a link is a saved view. A change returns to the first
 * page.
 */
export function useFilters(): [Filters, (change: Filters) => void] {
  const search = useSearch();
  const [path, navigate] = useLocation();
  const { merchant } = useChoice();
  const filters: Filters = { ...(merchant !== null && { merchant }), ...useAddress() };
  const change = (wanted: Filters) =>
    navigate(changed(search, path, wanted), { replace: !('after' in wanted) });
  return [filters, change];
}

/**
 * The filters in the URL. Only the service's staff filter by the merchant: anyone else chooses one
 * for all pages.
 */
export function useAddress(): Filters {
  const { scope } = useSession();
  const { merchant, ...others } = Object.fromEntries(new URLSearchParams(useSearch()));
  return { ...others, ...(scope === 'all' && merchant !== undefined && { merchant }) };
}

/**
 * The row that is open over a list, as a parameter of the URL. Opening it keeps the list's filters
 * and page. Closing it returns to the list, so that the browser's back button does not open it
 * again.
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
  const opened = parameters.get(name);
  // `opened` is undefined before the first render. A row that is open in the first render was not
  // opened from this list, so closing it must not go back in the browser's history.
  const shown = useRef<{ opened: string | null | undefined; isFromList: boolean }>({
    opened: undefined,
    isFromList: false,
  });
  if (shown.current.opened !== opened) {
    shown.current = { opened, isFromList: shown.current.opened === null };
  }
  return {
    opened,
    hrefOf: (id) => changed(search, path, { after, [name]: id }),
    close: () =>
      shown.current.isFromList
        ? window.history.back()
        : navigate(changed(search, path, { after, [name]: '' }), { replace: true }),
  };
}
