import { useLocation, useSearch } from 'wouter';

export type Filters = Record<string, string>;

/**
 * The filters of a page live in its address, so a link is a saved view. A change begins at the first
 * page again.
 */
export function useFilters(): [Filters, (change: Filters) => void] {
  const search = useSearch();
  const [path, navigate] = useLocation();
  const filters = Object.fromEntries(new URLSearchParams(search));
  const change = (changed: Filters) => {
    const next = new URLSearchParams(search);
    if (!('after' in changed)) next.delete('after');
    for (const [name, value] of Object.entries(changed)) {
      if (value === '') next.delete(name);
      else next.set(name, value);
    }
    const text = next.toString();
    navigate(text === '' ? path : `${path}?${text}`, { replace: !('after' in changed) });
  };
  return [filters, change];
}
